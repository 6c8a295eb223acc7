// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// timers are the rows of the table of timers in docs/protocol.md, each with the definition that the module uses. A row
// without a definition names no time of our module's own.
var timers = map[string]struct{ file, name string }{
	"a CLC message":                         {"kernel/handshake/handshake.h", "SMC_HANDSHAKE_TIMEOUT"},
	"CONFIRM LINK, client":                  {"kernel/transport/rdma/client.c", "CLIENT_CONFIRM_LINK_TIMEOUT"},
	"CONFIRM LINK, server":                  {"kernel/transport/rdma/server.c", "SERVER_CONFIRM_LINK_TIMEOUT"},
	"ADD LINK, client after first contact":  {},
	"answer to ADD LINK, server":            {"kernel/transport/rdma/llc_add.c", "KEYS_TIMEOUT"},
	"CONFIRM LINK of an added link":         {"kernel/transport/rdma/llc_add.c", "CONFIRM_TIMEOUT"},
	"answer to CONFIRM RKEY":                {"kernel/transport/rdma/group.h", "SMC_RDMA_ANSWER_TIMEOUT"},
	"answer to DELETE RKEY":                 {"kernel/transport/rdma/llc_call.c", "DELETE_RKEY_TIMEOUT"},
	"answer to TEST LINK":                   {"kernel/transport/rdma/group.h", "SMC_RDMA_ANSWER_TIMEOUT"},
	"nothing sent arrives":                  {"kernel/transport/rdma/llc_test.c", "STALL_TIME"},
	"registration of memory":                {"kernel/transport/rdma/register.c", "REG_TIMEOUT"},
	"idle group":                            {}, // a setting
	"link down while its port is":           {"kernel/transport/rdma/link.c", "FLAP_TIME"},
	"a close that the peer does not answer": {},
}

// TestTimers compares the times in docs/protocol.md with the definitions in the module's sources.
func TestTimers(t *testing.T) {
	row := regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`)
	seconds := regexp.MustCompile(`^(\d+) s\b`)
	_, table, _ := strings.Cut(read(t, "docs/protocol.md"), "\n## 13 Timers and limits\n")
	table, _, _ = strings.Cut(table, "\n| limit |")
	seen := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(table, -1) {
		what, stock, ours := m[1], m[2], m[3]
		if what == "what" || strings.HasPrefix(what, "---") {
			continue
		}
		timer, ok := timers[what]
		if !ok {
			t.Errorf("docs/protocol.md: no definition is known for the timer %q", what)
			continue
		}
		seen[what] = true
		if timer.name == "" {
			continue
		}
		if ours == "the same" {
			ours = stock
		}
		cell := seconds.FindStringSubmatch(ours)
		if cell == nil {
			t.Errorf("docs/protocol.md: %q has no time in seconds: %q", what, ours)
			continue
		}
		if want := defined(t, timer.file, timer.name); cell[1] != want {
			t.Errorf("docs/protocol.md: %q is %s s, and %s of %s is %s s", what, cell[1], timer.name, timer.file, want)
		}
	}
	for what := range timers {
		if !seen[what] {
			t.Errorf("docs/protocol.md: the timer %q is missing", what)
		}
	}
}

// defined returns the whole seconds that a macro of the module stands for.
func defined(t *testing.T, file, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^#define ` + name + ` (?:\((\d+) \* HZ\)|(HZ))$`).FindStringSubmatch(read(t, file))
	switch {
	case m == nil:
		t.Fatalf("%s does not define %s in whole seconds", file, name)
	case m[2] != "":
		return strconv.Itoa(1)
	}
	return m[1]
}
