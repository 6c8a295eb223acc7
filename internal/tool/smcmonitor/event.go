// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcmonitor

import (
	"fmt"
	"strings"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
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
	Time        string `json:"time"`
	Object      string `json:"object"`
	Action      string `json:"action"`
	Transport   string `json:"transport,omitzero"`
	LinkGroupID string `json:"linkgroup_id,omitzero"`
	LinkID      uint8  `json:"link_id,omitzero"`
	LinkUID     string `json:"link_uid,omitzero"`
	Role        string `json:"role,omitzero"`
	Type        string `json:"linkgroup_type,omitzero"`
	PNETID      string `json:"pnet_id,omitzero"`
	Device      string `json:"device,omitzero"`
	Port        uint8  `json:"port,omitzero"`
	// of the port
	Interface string `json:"netdev,omitzero"`
	GID       string `json:"gid,omitzero"`
	PeerGID   string `json:"peer_gid,omitzero"`
	// why a link failed, as in docs/smcr.md
	Cause string `json:"cause,omitzero"`
	// a number that belongs to the cause, or an errno
	Detail *int `json:"detail,omitzero"`
	// why a connection is TCP
	Reason *jsondoc.Reason `json:"reason,omitzero"`
	// the same, from the peer
	PeerReason *jsondoc.Reason `json:"peer_reason,omitzero"`
	// number of connections of an event that was counted
	Connections uint64 `json:"connections,omitzero"`
}

func newReason(r netlinksmc.Reason) *jsondoc.Reason {
	return &jsondoc.Reason{Code: r.String(), Name: r.Name(), Text: r.Text()}
}

const (
	smcR = "smcr"
	smcD = "smcd"
)

// Lines have the words that the other commands print.
var (
	transportText = map[string]string{smcR: "SMC-R", smcD: "SMC-D"}
	roleText      = map[string]string{jsondoc.RoleClient: "CLNT", jsondoc.RoleServer: "SERV"}
)

// text is the event as a line.
func (e *eventJSON) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", e.Object, e.Action)
	for _, f := range []struct{ name, value string }{
		{"", e.LinkGroupID},
		{"link", number(e.LinkID, "%02x")},
		{"uid", e.LinkUID},
		{"", transportText[e.Transport]},
		{"", roleText[e.Role]},
		{"type", e.Type},
		{"pnet_id", e.PNETID},
		{"dev", e.Device},
		{"port", number(e.Port, "%d")},
		{"interface", e.Interface},
		{"gid", e.GID},
		{"peer_gid", e.PeerGID},
		{"cause", e.Cause},
		{"reason", reasonText(e.Reason)},
		{"peer_reason", reasonText(e.PeerReason)},
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

func reasonText(r *jsondoc.Reason) string {
	switch {
	case r == nil:
		return ""
	case r.Name == "":
		return r.Code
	}
	return r.Name + " (" + r.Text + ")"
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
			e.Schema, e.Time = jsondoc.Schema, at.Format(time.RFC3339Nano)
			e.Device, e.PNETID, e.Interface = cli.Printable(e.Device), cli.Printable(e.PNETID), cli.Printable(e.Interface)
			if err := p.env.WriteJSONLine(e); err != nil {
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
