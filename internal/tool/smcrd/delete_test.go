// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDelete checks the requests and the output of the commands.
func TestDelete(t *testing.T) {
	for _, c := range []struct {
		tech   tech
		args   string
		call   string // to the kernel; empty for none
		result result
	}{
		{techR, "linkgroup delete 00000100", "delete R 00000100", result{}},
		{techR, "linkg delete 0x101", "delete R 00000100", result{}},
		{techD, "linkgroup delete 00000201", "delete D 00000201", result{}},
		{techR, "linkgroup delete 100 --json=1", "delete R 00000100", result{stdout: "{\n  \"schema\": 1,\n  \"changed\": true\n}\n"}},
		{techR, "linkgroup delete", "", result{stderr: "smcr: linkgroup delete: the LG-ID is missing; see 'smcr linkgroup --help'\n", status: 2}},
		{techR, "linkgroup delete all", "", result{
			stderr: "smcr: \"all\" is not an LG-ID: give up to 8 hexadecimal digits as 'linkgroup' shows them; see 'smcr linkgroup --help'\n", status: 2,
		}},
		{techR, "linkgroup delete 100 200", "", result{stderr: "smcr: \"200\" is an unexpected word; see 'smcr linkgroup --help'\n", status: 2}},
		{techR, "linkgroup delete 100 --watch 1", "", result{
			stderr: "smcr: linkgroup delete: --watch is for listings; see 'smcr linkgroup --help'\n", status: 2,
		}},
		{techR, "link delete 00000100 02", "delete link 00000100 02", result{}},
		{techR, "link delete 0x1ff 0xA", "delete link 00000100 0a", result{}},
		{techR, "link delete 100 1 --json=1", "delete link 00000100 01", result{stdout: "{\n  \"schema\": 1,\n  \"changed\": true\n}\n"}},
		{techR, "link delete", "", result{stderr: "smcr: link delete: the LG-ID is missing; see 'smcr link --help'\n", status: 2}},
		{techR, "link delete 100", "", result{stderr: "smcr: link delete: the LINK-ID is missing; see 'smcr link --help'\n", status: 2}},
		{techR, "link delete all 1", "", result{
			stderr: "smcr: \"all\" is not an LG-ID: give up to 8 hexadecimal digits as 'linkgroup' shows them; see 'smcr link --help'\n", status: 2,
		}},
		{techR, "link delete 100 00000101", "", result{stderr: notLinkID("00000101"), status: 2}},
		{techR, "link delete 100 100", "", result{stderr: notLinkID("100"), status: 2}},
		{techR, "link delete 100 +1", "", result{stderr: notLinkID("+1"), status: 2}},
		{techR, "link delete 100 1 2", "", result{stderr: "smcr: \"2\" is an unexpected word; see 'smcr link --help'\n", status: 2}},
		{techR, "link delete 100 1 --watch 1", "", result{stderr: "smcr: link delete: --watch is for listings; see 'smcr link --help'\n", status: 2}},
		{techD, "link delete 100 1", "", result{stderr: "smcd: \"1\" is an unexpected word; see 'smcd linkgroup --help'\n", status: 2}},
	} {
		f := populated()
		got := (&bench{fake: f}).run(c.tech, strings.Fields(c.args)...)
		if diff := cmp.Diff(c.result, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.args, diff)
		}
		if calls := strings.Join(f.calls, ", "); calls != c.call {
			t.Errorf("%s: requests %q, want %q", c.args, calls, c.call)
		}
	}
	for _, args := range []string{"linkgroup delete 100", "link delete 100 1"} {
		f := populated()
		f.err = errTest
		got := (&bench{fake: f}).run(techR, strings.Fields(args)...)
		if got.status != 1 || !strings.Contains(got.stderr, errTest.Error()) {
			t.Errorf("%s that fails: %+v", args, got)
		}
	}
	// The word is not abbreviated, so that a typing mistake does not end connections.
	for _, args := range []string{"linkgroup del 100", "link del 100 1"} {
		f := populated()
		if got := (&bench{fake: f}).run(techR, strings.Fields(args)...); got.status != 2 || len(f.calls) > 0 {
			t.Errorf("%s: %+v, requests %q", args, got, f.calls)
		}
	}
}

func notLinkID(word string) string {
	return fmt.Sprintf("smcr: %q is not a LINK-ID: give the last two hexadecimal digits of the Link-UID in 'smcr -d link'; "+
		"see 'smcr link --help'\n", word)
}
