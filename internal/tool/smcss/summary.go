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
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// jsonSummary is the document of --summary. The lists are sorted by code or name and have no entries with a count of 0.
type jsonSummary struct {
	Schema int `json:"schema"`
	// with `--watch`
	Time  string `json:"time,omitzero"`
	Total int    `json:"socket_count" schema1:"total"`
	// every socket counts
	States []jsonStateCount `json:"states"`
	// sockets that have a transport count
	Transports []jsonTransportCount `json:"transports" schema1:"modes"`
	// text and remedy with `--explain`
	Fallbacks   []jsonFallbackCount `json:"fallbacks"`
	Interrupted bool                `json:"interrupted,omitzero"`
}

type jsonStateCount struct {
	State   string `json:"state"`
	Sockets int    `json:"socket_count" schema1:"sockets"`
}

type jsonTransportCount struct {
	Transport string `json:"transport" schema1:"mode,upper"`
	Sockets   int    `json:"socket_count" schema1:"sockets"`
}

type jsonFallbackCount struct {
	jsondoc.Fallback
	Sockets int `json:"socket_count" schema1:"sockets"`
}

// summaryView counts sockets and prints the counts at the end.
type summaryView struct {
	w       io.Writer
	json    bool
	explain bool
	reason  func(netlinksmc.Reason) jsondoc.Reason
	// as converts a document to the schema that was asked for.
	as func(any) any
	// time is set for a line of --watch.
	time time.Time

	total     int
	states    map[netlinksmc.SocketState]int
	modes     map[netlinksmc.Mode]int
	fallbacks map[netlinksmc.Fallback]int
}

func newSummaryView(o *options, at time.Time) *summaryView {
	return &summaryView{
		w: o.env.Out, json: o.json, explain: o.cols.explain, reason: o.reason, as: o.env.JSON, time: at,
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
		return cli.WriteJSON(v.w, v.as(doc))
	}
	doc.Time = v.time.Format(time.RFC3339)
	return cli.WriteJSONLine(v.w, v.as(doc))
}

func (v *summaryView) document(interrupted bool) jsonSummary {
	doc := jsonSummary{
		Schema:      jsondoc.Schema,
		Total:       v.total,
		States:      []jsonStateCount{},
		Transports:  []jsonTransportCount{},
		Fallbacks:   []jsonFallbackCount{},
		Interrupted: interrupted,
	}
	for _, s := range slices.Sorted(maps.Keys(v.states)) {
		doc.States = append(doc.States, jsonStateCount{State: s.String(), Sockets: v.states[s]})
	}
	for _, m := range slices.Sorted(maps.Keys(v.modes)) {
		doc.Transports = append(doc.Transports, jsonTransportCount{Transport: jsondoc.Transport(m.String()), Sockets: v.modes[m]})
	}
	for _, f := range slices.SortedFunc(maps.Keys(v.fallbacks), compareFallbacks) {
		doc.Fallbacks = append(doc.Fallbacks, jsonFallbackCount{Fallback: jsondoc.NewFallback(f, v.reason), Sockets: v.fallbacks[f]})
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
	for _, m := range slices.Sorted(maps.Keys(v.modes)) {
		modes = append(modes, []string{m.String(), strconv.Itoa(v.modes[m])})
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
		row := []string{label(c.Reason), "-", strconv.Itoa(c.Sockets)}
		if c.PeerReason != nil {
			row[1] = label(*c.PeerReason)
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
func label(r jsondoc.Reason) string { return strings.TrimSpace(r.Code + " " + r.Name) }

// meaning returns the text of the reasons of both sides.
func (c jsonFallbackCount) meaning() string {
	text := cmp.Or(c.Reason.Text, unknownReason)
	if c.PeerReason != nil {
		text += "; peer: " + cmp.Or(c.PeerReason.Text, unknownReason)
	}
	return text
}
