// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/lab"
)

// stockTracepoints are those of Linux 6.12 and their fields, for which people have scripts.
var stockTracepoints = map[string]string{
	"smc_switch_to_fallback": "const void * sk; const void * clcsk; u64 net_cookie; int fallback_rsn",
	"smc_tx_sendmsg":         "const void * smc; u64 net_cookie; size_t len; __data_loc char[] name",
	"smc_rx_recvmsg":         "const void * smc; u64 net_cookie; size_t len; __data_loc char[] name",
	"smcr_link_down":         "const void * lnk; const void * lgr; u64 net_cookie; int state; __data_loc char[] name; void * location",
}

// ourTracepoints are those that our module has beside them.
var ourTracepoints = map[string]string{
	"smc_phase":          "const void * sk; u8 from; u8 to",
	"smc_rendezvous":     "const void * sk; bool server; int rc",
	"smc_fallback":       "const void * sk; bool server; u32 reason; u32 peer",
	"smc_tx":             "const void * sk; u32 token; size_t asked; ssize_t done",
	"smc_rx":             "const void * sk; u32 token; size_t asked; ssize_t done",
	"smc_close":          "const void * sk; u32 token; u8 from; u8 event; u8 to",
	"smc_clc_send":       "const void * sk; u8 type; u8 version; unsigned int len; u8 head[28]",
	"smc_clc_recv":       "const void * sk; u8 type; u8 version; unsigned int len; u8 head[28]",
	"smc_llc_malformed":  "u32 link; unsigned int len; u8 head[44]",
	"smc_link_add":       "u32 link; bool server",
	"smc_link_not_added": "u32 link; bool server; u8 step; int err",
	"smc_link_fail":      "u32 link; u8 why; int detail",
	"smc_failover":       "const void * sk; u32 token; u8 from; u8 to; u64 has; u64 sent",
}

// tracepoints compares the tracepoints of a host with these. tests/counters has what they show.
func tracepoints(t *testing.T, lt *lab.Test, ours bool) {
	if diff := cmp.Diff(stockTracepoints, lt.Tracepoints("a", "smc")); diff != "" {
		t.Errorf("smc: want -, got +:\n%s", diff)
	}
	if !ours {
		return
	}
	if diff := cmp.Diff(ourTracepoints, lt.Tracepoints("a", "smckit")); diff != "" {
		t.Errorf("smckit: want -, got +:\n%s", diff)
	}
}
