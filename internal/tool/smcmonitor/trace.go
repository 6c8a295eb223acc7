// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcmonitor

import (
	"fmt"
	"strconv"

	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/smctrace"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// tracepoints are the events of either module that the command understands. Those of the system smckit are ours, and say more.
var tracepoints = []string{
	"smc/smc_switch_to_fallback", "smc/smcr_link_down",
	"smckit/smc_fallback", "smckit/smc_link_fail", "smckit/smc_link_not_added", "smckit/smc_link_add",
}

// tracer makes events of the lines of the trace.
type tracer struct {
	// cookie is that of the network namespace whose fallbacks are shown.
	cookie uint64
	// ours reports whether the module is smckit's: then smcr_link_down repeats what smc_link_fail has said.
	ours bool
	// begun has what smc_fallback said of sockets, until smc_switch_to_fallback names their namespace.
	begun map[string]eventJSON
}

// mostBegun is the maximum number of sockets in begun. The kernel reports both events of a socket at the same moment.
const mostBegun = 1024

func newTracer(cookie uint64, names []string) *tracer {
	t := &tracer{cookie: cookie, begun: map[string]eventJSON{}}
	for _, n := range names {
		t.ours = t.ours || n == "smckit/smc_link_fail"
	}
	return t
}

// event returns the event of a line, if it has one. look reports whether the listings have changed, or may have.
func (t *tracer) event(e smctrace.Event) (event eventJSON, ok, look bool) {
	switch e.Name {
	case "smc_fallback":
		if len(t.begun) == mostBegun {
			clear(t.begun) // lost events have left these
		}
		t.begun[e.Fields["sk"]] = eventJSON{Role: traceRole(e.Words), PeerReason: peerReason(e.Fields["peer"])}
	case "smc_switch_to_fallback":
		event, ok = t.fallback(e)
		return event, ok, false
	case "smc_link_fail":
		event = traceLink(e)
		event.Action = "fail"
		if len(e.Words) > 0 {
			event.Cause = e.Words[0]
		}
		return event, true, true
	case "smc_link_not_added":
		event = traceLink(e)
		event.Action, event.Cause, event.Detail = "not-added", "STEP_"+e.Fields["step"], traceNumber(e.Fields["err"])
		return event, true, false
	case "smcr_link_down":
		return eventJSON{Object: objLink, Action: "fail", Device: e.Fields["dev"]}, !t.ours, true
	case "smc_link_add":
		return eventJSON{}, false, true
	}
	return eventJSON{}, false, false
}

// fallback returns the event of smc_switch_to_fallback, which both modules have, with what smc_fallback has said about the socket.
func (t *tracer) fallback(e smctrace.Event) (eventJSON, bool) {
	event := t.begun[e.Fields["sk"]]
	delete(t.begun, e.Fields["sk"])
	reason, err := strconv.ParseInt(e.Fields["fallback_rsn"], 10, 64)
	if err != nil {
		return eventJSON{}, false
	}
	if net, err := strconv.ParseUint(e.Fields["net"], 10, 64); err != nil || net != t.cookie {
		return eventJSON{}, false
	}
	event.Object, event.Action, event.Reason = objFallback, "tcp", newReason(netlinksmc.Reason(uint32(reason)))
	return event, true
}

// traceLink decodes the number of a link: that of its group, and its own in the last byte.
func traceLink(e smctrace.Event) eventJSON {
	event := eventJSON{Object: objLink, Transport: smcR, Role: traceRole(e.Words), Detail: traceNumber(e.Fields["detail"])}
	if id, err := strconv.ParseUint(e.Fields["link"], 16, 32); err == nil {
		event.LinkGroupID, event.LinkID = fmt.Sprintf("%08x", uint32(id)&groupMask), uint8(id)
	}
	return event
}

func traceRole(words []string) string {
	for _, w := range words {
		switch w {
		case "server":
			return jsondoc.RoleServer
		case "client":
			return jsondoc.RoleClient
		}
	}
	return ""
}

func traceNumber(text string) *int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return &n
}

// peerReason returns the peer's reason, nil if it has given none.
func peerReason(text string) *jsondoc.Reason {
	n, err := strconv.ParseUint(text, 0, 32)
	if err != nil || n == 0 {
		return nil
	}
	return newReason(netlinksmc.Reason(n))
}
