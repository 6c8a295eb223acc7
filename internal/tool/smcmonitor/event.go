// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcmonitor

import (
	"fmt"
	"strings"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// The objects of events, which are also the operands that select them.
const (
	objGroup    = "linkgroup"
	objLink     = "link"
	objDevice   = "device"
	objPort     = "port"
	objFallback = "fallback"
)

// objects lists them in the order of the manual.
var objects = []string{objGroup, objLink, objDevice, objPort, objFallback}

// eventJSON is an event, one line of --json. Fields that the event does not have are left out.
type eventJSON struct {
	Schema int `json:"schema"`
	// RFC 3339, when the command noticed the event
	Time string `json:"time"`
	// `linkgroup`, `link`, `device`, `port` or `fallback`
	Object string `json:"object"`
	// `add`, `delete`, `up`, `down`, `change`, `fail`, `not-added` or `tcp`
	Action string `json:"action"`
	// `SMC-R` or `SMC-D`
	Transport string `json:"transport,omitzero"`
	// 8 hex digits
	LinkGroupID string `json:"linkgroup_id,omitzero"`
	// of the link in its group
	LinkID uint8 `json:"link_id,omitzero"`
	// 8 hex digits, as in `smcr -d link`
	LinkUID string `json:"link_uid,omitzero"`
	// `SERV` or `CLNT`
	Role string `json:"role,omitzero"`
	// arrangement of the links: `SINGLE`, `SYM`, `ASYML`, `ASYMP` or `NONE`
	Type   string `json:"type,omitzero"`
	PNETID string `json:"pnet_id,omitzero"`
	Device string `json:"device,omitzero"`
	Port   uint8  `json:"port,omitzero"`
	// interface of the port
	Interface string `json:"interface,omitzero"`
	GID       string `json:"gid,omitzero"`
	PeerGID   string `json:"peer_gid,omitzero"`
	// why a link failed, as in docs/smcr.md
	Cause string `json:"cause,omitzero"`
	// a number that belongs to the cause, or an errno
	Detail *int `json:"detail,omitzero"`
	// why a connection is TCP
	Reason *reasonJSON `json:"reason,omitzero"`
	// the same, from the peer
	PeerReason *reasonJSON `json:"peer_reason,omitzero"`
	// number of connections of an event that was counted
	Connections uint64 `json:"connections,omitzero"`
}

// reasonJSON is a fallback or decline code.
type reasonJSON struct {
	// as in `0x03010000`
	Code string `json:"code"`
	// as in `PEER_NO_SMC`; left out for a code that no Linux has
	Name string `json:"name,omitzero"`
	Text string `json:"text,omitzero"`
}

func newReason(r netlinksmc.Reason) *reasonJSON {
	return &reasonJSON{Code: r.String(), Name: r.Name(), Text: r.Text()}
}

func (r *reasonJSON) String() string {
	if r.Name == "" {
		return r.Code
	}
	return r.Name + " (" + r.Text + ")"
}

// text is the event as a line.
func (e *eventJSON) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", e.Object, e.Action)
	for _, f := range []struct{ name, value string }{
		{"", e.LinkGroupID},
		{"link", number(e.LinkID, "%02x")},
		{"uid", e.LinkUID},
		{"", e.Transport},
		{"", e.Role},
		{"type", e.Type},
		{"pnet_id", e.PNETID},
		{"dev", e.Device},
		{"port", number(e.Port, "%d")},
		{"interface", e.Interface},
		{"gid", e.GID},
		{"peer_gid", e.PeerGID},
		{"cause", e.Cause},
		{"reason", e.reasonText(e.Reason)},
		{"peer_reason", e.reasonText(e.PeerReason)},
	} {
		if f.value == "" {
			continue
		}
		b.WriteByte(' ')
		if f.name != "" {
			b.WriteString(f.name + " ")
		}
		b.WriteString(cli.Printable(f.value))
	}
	if e.Detail != nil {
		fmt.Fprintf(&b, " detail %d", *e.Detail)
	}
	if e.Connections > 0 {
		fmt.Fprintf(&b, " connections %d", e.Connections)
	}
	return b.String()
}

func (e *eventJSON) reasonText(r *reasonJSON) string {
	if r == nil {
		return ""
	}
	return r.String()
}

// number returns the text of a number, "" for 0.
func number(n uint8, format string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, n)
}

// stamp is the format of times in lines, that of ip -ts.
const stamp = "2006-01-02T15:04:05.000000"

// printer prints the events that were asked for.
type printer struct {
	env        *cli.Env
	objects    map[string]bool
	json, time bool
	now        func() time.Time
}

// print prints events, and writes them out: a reader waits for them.
func (p *printer) print(events ...eventJSON) error {
	for _, e := range events {
		if !p.objects[e.Object] {
			continue
		}
		at := p.now()
		if p.json {
			e.Schema, e.Time = 1, at.Format(time.RFC3339Nano)
			e.Device, e.PNETID, e.Interface = cli.Printable(e.Device), cli.Printable(e.PNETID), cli.Printable(e.Interface)
			if err := cli.WriteJSONLine(p.env.Out, e); err != nil {
				return err
			}
			continue
		}
		line := e.text()
		if p.time {
			line = "[" + at.Format(stamp) + "] " + line
		}
		if _, err := fmt.Fprintln(p.env.Out, line); err != nil {
			return err
		}
	}
	return p.env.Flush()
}
