// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"cmp"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// timers are the rows of the table of timers in docs/protocol.md, each with the definition that the module uses, and others of the
// same file that the row has, too. A row without a definition names no time of our module's own.
var timers = map[string]struct {
	file, name string
	also       []string
}{
	"a CLC message":                                                             {"kernel/handshake/handshake.h", "SMC_HANDSHAKE_TIMEOUT", nil},
	"CONFIRM LINK, client":                                                      {"kernel/transport/rdma/client.c", "CLIENT_CONFIRM_LINK_TIMEOUT", nil},
	"CONFIRM LINK, server":                                                      {"kernel/transport/rdma/server.c", "SERVER_CONFIRM_LINK_TIMEOUT", nil},
	"ADD LINK, client after first contact":                                      {},
	"answer to ADD LINK, server":                                                {"kernel/transport/rdma/llc_add.c", "KEYS_TIMEOUT", []string{"TIMEOUT_MOST"}},
	"CONFIRM LINK of an added link":                                             {"kernel/transport/rdma/llc_add.c", "CONFIRM_TIMEOUT", []string{"TIMEOUT_MOST", "EXPEDITED_TIMEOUT"}},
	"answer to DELETE LINK":                                                     {"kernel/transport/rdma/llc_end.c", "DELETE_LINK_TIMEOUT", nil},
	"first contact of another connection, server":                               {"kernel/transport/rdma/server.c", "FORMING_TIMEOUT", nil},
	"another link, after one was lost or not added":                             {"kernel/transport/rdma/llc_request.c", "RETRY_FIRST", []string{"RETRY_MOST"}},
	"data under way, before a connection goes over to another link":             {"kernel/transport/rdma/failover.c", "SETTLE_TIMEOUT", nil},
	"the peer has stopped a lost link, before places of its RMB are used again": {"kernel/transport/rdma/links.c", "LATE_TIMEOUT", nil},
	"answer to CONFIRM RKEY":                                                    {"kernel/transport/rdma/group.h", "SMC_RDMA_ANSWER_TIMEOUT", nil},
	"CONFIRM RKEY again, after the peer has refused it for now":                 {"kernel/transport/rdma/llc_call.c", "REPEAT_DELAY", nil},
	"answer to DELETE RKEY":                                                     {"kernel/transport/rdma/llc_call.c", "DELETE_RKEY_TIMEOUT", nil},
	"answer to TEST LINK":                                                       {"kernel/transport/rdma/group.h", "SMC_RDMA_ANSWER_TIMEOUT", nil},
	"nothing sent arrives":                                                      {"kernel/transport/rdma/llc_test.c", "STALL_TIME", nil},
	"registration of memory":                                                    {"kernel/transport/rdma/register.c", "REG_TIMEOUT", nil},
	"idle group":                                                                {}, // a setting
	"link down while its port is":                                               {"kernel/transport/rdma/link.c", "FLAP_TIME", nil},
	"a member of a fabric whose kernel does not run":                            {}, // SMC_FABRIC_SILENT counts looks, one in a second
	"a close that the peer does not answer":                                     {},
}

// localTimes are definitions of times that the table does not have, each with the reason.
var localTimes = map[string]string{
	"SMC_HANDSHAKE_CROSSING": "orders the DECLINEs of two sides that fail at once",
	"SMC_HANDSHAKE_EARLY":    "as SMC_HANDSHAKE_CROSSING",
	"SMC_HANDSHAKE_LATE":     "as SMC_HANDSHAKE_CROSSING",
	"SMC_HANDSHAKE_UNSENT":   "waits for a lock of this host",
	"UNHOOK_DELAY":           "for hooks of this host",
	"REAP_INTERVAL":          "how often a table of this host is cleaned",
	"LIFETIME":               "of an entry of the table of SYNs, longer than TCP repeats",
	"RESERVED_TIME":          "how long an entry of that table counts for the backlog",
	"SMC_SYN_LOCAL_TIME":     "between two namespaces of a host",
	"SMC_RDMA_LLC_WAIT":      "limits the sum of the other times within a rendezvous, so that it stays below that of a CLC message",
	"CALL_INTERVAL":          "how often the timer looks after requests",
	"PROMPT":                 "when an answer counts as early",
	"LINGER":                 "how long a queue pair outlives its link",
	"REQUEST_INTERVAL":       "limits how often a server follows a client's requests",
	"TAKE_INTERVAL":          "limits how often a client takes offered links",
	"TAKE_BURST":             "as TAKE_INTERVAL",
	"LONG_TIMEOUT":           "until the adapter has sent the message before",
	"TERM":                   "when an RMB is given up of which the peer does not say that it is done",
	"LOOK_INTERVAL":          "how often acknowledgements are looked at",
	"BALANCE_DELAY":          "before connections of this host are distributed over links",
	"PASSED_TIME":            "how long a passed test counts",
	"RMB_INTERVAL":           "how often a client looks for an RMB that it may use",
	"KEEPALIVE_LIMIT":        "the least that SO_KEEPALIVE may set",
	"ACK_TIMEOUT":            "an attribute of queue pairs, of which the adapter makes a time",
}

// TestTimersComplete checks that each time that the handshake or SMC-R defines is in the table of timers, or local.
func TestTimersComplete(t *testing.T) {
	known := make(map[string]bool)
	for _, timer := range timers {
		for _, name := range append(timer.also, timer.name) {
			known[timer.file+" "+name] = true
		}
	}
	define := regexp.MustCompile(`(?m)^#define (?:(\w+) .*(?:\bHZ\b|_to_jiffies\().*|(\w*TIMEOUT\w*) .*)$`)
	used := make(map[string]bool)
	for _, dir := range []string{"kernel/transport/rdma", "kernel/handshake"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.[ch]"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no sources: %v", dir, err)
		}
		for _, path := range files {
			file := dir + "/" + filepath.Base(path)
			for _, m := range define.FindAllStringSubmatch(read(t, file), -1) {
				name := m[1] + m[2]
				if used[name] = true; !known[file+" "+name] && localTimes[name] == "" {
					t.Errorf("%s: %s is neither in the table of timers of docs/protocol.md nor local", file, name)
				}
			}
		}
	}
	for name := range localTimes {
		if !used[name] {
			t.Errorf("no source defines the local time %s", name)
		}
	}
}

// TestTimers compares the times in docs/protocol.md with the definitions in the module's sources.
func TestTimers(t *testing.T) {
	row := regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`)
	seconds := regexp.MustCompile(`^(\d+(?:\.\d+)?) s\b`)
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
		for _, name := range timer.also {
			if want := defined(t, timer.file, name); !strings.Contains(ours[len(cell[0]):], " "+want+" s") {
				t.Errorf("docs/protocol.md: %q is without the %s s of %s of %s", what, want, name, timer.file)
			}
		}
	}
	for what := range timers {
		if !seen[what] {
			t.Errorf("docs/protocol.md: the timer %q is missing", what)
		}
	}
}

// defined returns the seconds that a macro of the module stands for.
func defined(t *testing.T, file, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^#define ` + name + ` (?:\((?:(\d+) \* )?HZ(?: / (\d+))?\)|HZ)$`).FindStringSubmatch(read(t, file))
	if m == nil {
		t.Fatalf("%s does not define %s in seconds", file, name)
	}
	number := func(text string) float64 {
		n, err := strconv.ParseFloat(cmp.Or(text, "1"), 64)
		if err != nil {
			t.Fatalf("%s: %s: %v", file, name, err)
		}
		return n
	}
	return strconv.FormatFloat(number(m[1])/number(m[2]), 'g', -1, 64)
}
