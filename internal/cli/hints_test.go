// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"testing"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/spf13/cobra"
)

// TestHint checks where remedies name commands as the user of a suite knows them.
func TestHint(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"reboot", "reboot"},
		{"old_list", "suite list"},
		{"old_list shows it", "suite list shows it"},
		{"use it: old_list add X, old_list del Y; or (old_list)", "use it: suite list add X, suite list del Y; or (suite list)"},
		{"'old_list' and 'old_list -a', then old_list: old_list", "'suite list' and 'suite list -a', then suite list: suite list"},
		{"read old_list.conf, /etc/old_list and old_lists, not my-old_list", "read old_list.conf, /etc/old_list and old_lists, not my-old_list"},
		{"'both links' and 'both -d links', 'both links-of X'", "'suite links' and 'suite links -d', 'both links-of X'"},
	} {
		suite := Tool{Name: "suite", Subs: []Sub{
			{Name: "list", Tool: Tool{Name: "old_list"}},
			{Name: "links", Tool: Tool{Name: "old_links"}, Lines: map[string]string{"both links": "", "both -d links": "-d"}},
		}}
		env := &Env{hints: suite.hints()}
		if got := env.Hint(tt.text); got != tt.want {
			t.Errorf("%q: %q, not %q", tt.text, got, tt.want)
		}
		env.hints = suite.Subs[0].Tool.hints()
		if got := env.Hint(tt.text); got != tt.text {
			t.Errorf("under its own name, a tool prints %q, not %q", got, tt.text)
		}
	}
}

// TestReason checks that a reason of a document has the remedy as the user knows it, and that the other fields stay as they are.
func TestReason(t *testing.T) {
	const limit = netlinksmc.ReasonMemoryLimit
	env := &Env{hints: Tool{Name: "suite", Subs: []Sub{{Name: "rules", Tool: Tool{Name: "smc_policy"}}}}.hints()}
	want := (&Env{}).Reason(limit)
	if want.Remedy != limit.Remedy() || want.Text == "" {
		t.Errorf("%+v", want)
	}
	want.Remedy = "raise the ceiling (suite rules memory), lower net.smc.rmem and net.smc.wmem, or accept TCP"
	if got := env.Reason(limit); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
}

// TestNote checks that a remark is one line, in which commands have the names that the user knows.
func TestNote(t *testing.T) {
	var stderr bytes.Buffer
	env := &Env{Err: &stderr, called: "suite twin", hints: Tool{Name: "suite", Subs: []Sub{{Name: "twin", Tool: Tool{Name: "old"}}}}.hints()}
	env.Note("warning: %s\nhas\x1b gone, %q: 'old -a' lists old", "eth0", "old")
	if got, want := stderr.String(), "suite twin: warning: eth0 has\\x1b gone, \"old\": 'suite twin -a' lists old\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

// TestOperation checks that a message has the words of a command line that its beginning lacks.
func TestOperation(t *testing.T) {
	root, object := &cobra.Command{Use: "suite"}, &cobra.Command{Use: "twin"}
	root.AddCommand(object)
	for called, want := range map[string]string{"suite": "twin delete", "suite twin": "delete"} {
		if got := (&Env{called: called}).Operation(object, "delete"); got != want {
			t.Errorf("%s: %q, not %q", called, got, want)
		}
	}
}
