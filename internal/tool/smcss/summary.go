// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// jsonSummary is the document of --summary. The lists are sorted by code or name and have no entries with a count of 0.
type jsonSummary struct {
	Schema int `json:"schema"`
	// RFC 3339, with `--watch`
	Time  string `json:"time,omitzero"`
	Total int    `json:"total"`
	// counts every socket
	States []jsonStateCount `json:"states"`
	// counts sockets that have a mode
	Modes     []jsonModeCount     `json:"modes"`
	Fallbacks []jsonFallbackCount `json:"fallbacks"`
	// true if the list changed while it was read
	Interrupted bool `json:"interrupted,omitzero"`
}

type jsonStateCount struct {
	State   string `json:"state"`
	Sockets int    `json:"sockets"`
}

type jsonModeCount struct {
	Mode    string `json:"mode"`
	Sockets int    `json:"sockets"`
}

type jsonFallbackCount struct {
	Local   jsonReason  `json:"local"`
	Peer    *jsonReason `json:"peer,omitzero"`
	Sockets int         `json:"sockets"`
}

// summaryView counts sockets and prints the counts at the end.
type summaryView struct {
	w       io.Writer
	json    bool
	explain bool
	// time is set for a line of --watch.
	time time.Time

	total     int
	states    map[netlinksmc.SocketState]int
	modes     map[netlinksmc.Mode]int
	fallbacks map[netlinksmc.Fallback]int
}

func newSummaryView(w io.Writer, json, explain bool, at time.Time) *summaryView {
	return &summaryView{
		w: w, json: json, explain: explain, time: at,
		states:    map[netlinksmc.SocketState]int{},
		modes:     map[netlinksmc.Mode]int{},
		fallbacks: map[netlinksmc.Fallback]int{},
	}
}

func (v *summaryView) begin() error { return nil }

func (v *summaryView) socket(s *netlinksmc.Socket) error {
	v.total++
	v.states[s.State]++
	if hasMode(s) {
		v.modes[s.Mode]++
	}
	if s.Mode == netlinksmc.ModeTCP && s.Fallback != nil {
		v.fallbacks[*s.Fallback]++
	}
	return nil
}

func (v *summaryView) end(interrupted bool) error {
	if !v.json {
		return v.printText()
	}
	doc := v.document(interrupted)
	if v.time.IsZero() {
		return cli.WriteJSON(v.w, doc)
	}
	doc.Time = v.time.Format(time.RFC3339)
	return cli.WriteJSONLine(v.w, doc)
}

func (v *summaryView) document(interrupted bool) jsonSummary {
	doc := jsonSummary{
		Schema:      schema,
		Total:       v.total,
		States:      []jsonStateCount{},
		Modes:       []jsonModeCount{},
		Fallbacks:   []jsonFallbackCount{},
		Interrupted: interrupted,
	}
	for _, s := range slices.Sorted(maps.Keys(v.states)) {
		doc.States = append(doc.States, jsonStateCount{State: s.String(), Sockets: v.states[s]})
	}
	for _, m := range slices.Sorted(maps.Keys(v.modes)) {
		doc.Modes = append(doc.Modes, jsonModeCount{Mode: m.String(), Sockets: v.modes[m]})
	}
	for _, f := range slices.SortedFunc(maps.Keys(v.fallbacks), compareFallbacks) {
		c := jsonFallbackCount{Local: newJSONReason(f.Reason, v.explain), Sockets: v.fallbacks[f]}
		if f.PeerDiagnosis != 0 {
			peer := newJSONReason(f.PeerDiagnosis, v.explain)
			c.Peer = &peer
		}
		doc.Fallbacks = append(doc.Fallbacks, c)
	}
	return doc
}

func compareFallbacks(a, b netlinksmc.Fallback) int {
	return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.PeerDiagnosis, b.PeerDiagnosis))
}

// printText prints the total, and a table for each kind of count that is not empty.
func (v *summaryView) printText() error {
	if _, err := fmt.Fprintf(v.w, "Sockets: %d\n", v.total); err != nil {
		return err
	}
	doc := v.document(false)
	var states, modes [][]string
	for _, s := range doc.States {
		states = append(states, []string{s.State, strconv.Itoa(s.Sockets)})
	}
	for _, m := range doc.Modes {
		modes = append(modes, []string{m.Mode, strconv.Itoa(m.Sockets)})
	}
	header, fallbacks := v.fallbackTable(doc.Fallbacks)
	return cmp.Or(
		v.printTable([]string{"State", "Sockets"}, states),
		v.printTable([]string{"Mode", "Sockets"}, modes),
		v.printTable(header, fallbacks),
	)
}

func (v *summaryView) fallbackTable(counts []jsonFallbackCount) (header []string, rows [][]string) {
	header = []string{"Fallback", "Peer", "Sockets"}
	if v.explain {
		header = append(header, "Meaning")
	}
	for _, c := range counts {
		row := []string{c.Local.label(), "-", strconv.Itoa(c.Sockets)}
		if c.Peer != nil {
			row[1] = c.Peer.label()
		}
		if v.explain {
			row = append(row, c.meaning())
		}
		rows = append(rows, row)
	}
	return header, rows
}

// printTable prints an empty line and a table, or nothing if the table has no rows.
func (v *summaryView) printTable(header []string, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	if _, err := io.WriteString(v.w, "\n"); err != nil {
		return err
	}
	return cli.WriteTable(v.w, header, rows)
}

// label is the code and, if it is known, its name.
func (r jsonReason) label() string { return strings.TrimSpace(r.Code + " " + r.Name) }

// meaning returns the text of the reasons of both sides.
func (c jsonFallbackCount) meaning() string {
	text := cmp.Or(c.Local.Text, unknownReason)
	if c.Peer != nil {
		text += "; peer: " + cmp.Or(c.Peer.Text, unknownReason)
	}
	return text
}
