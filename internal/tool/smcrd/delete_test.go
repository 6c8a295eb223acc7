// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDeleteLinkGroup checks the requests and the output of the command.
func TestDeleteLinkGroup(t *testing.T) {
	for _, c := range []struct {
		tech   tech
		args   string
		call   string // to the kernel; empty for none
		result result
	}{
		{techR, "linkgroup delete 00000100", "delete R 00000100", result{}},
		{techR, "linkg delete 0x101", "delete R 00000100", result{}},
		{techD, "linkgroup delete 00000201", "delete D 00000201", result{}},
		{techR, "linkgroup delete 100 --json", "delete R 00000100", result{stdout: "{\n  \"schema\": 1,\n  \"changed\": true\n}\n"}},
		{techR, "linkgroup delete", "", result{stderr: "smcr: linkgroup delete: the LG-ID is missing; see 'smcr --help'\n", status: 2}},
		{techR, "linkgroup delete all", "", result{
			stderr: "smcr: \"all\" is not an LG-ID: give up to 8 hexadecimal digits as 'linkgroup' shows them; see 'smcr --help'\n", status: 2,
		}},
		{techR, "linkgroup delete 100 200", "", result{stderr: "smcr: \"200\" is one word too many; see 'smcr --help'\n", status: 2}},
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
	f := populated()
	f.err = errTest
	if got := (&bench{fake: f}).run(techD, "linkgroup", "delete", "100"); got.status != 1 || !strings.Contains(got.stderr, errTest.Error()) {
		t.Errorf("a failure: %+v", got)
	}
	// The word is not abbreviated, so that a typing mistake does not end a link group.
	if got := (&bench{fake: populated()}).run(techR, "linkgroup", "del", "100"); got.status != 2 {
		t.Errorf("abbreviated: %+v", got)
	}
}
