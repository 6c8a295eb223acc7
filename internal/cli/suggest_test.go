// SPDX-License-Identifier: Apache-2.0

package cli

import "testing"

// TestNoSuch checks what the error for an unknown name says about those that exist.
func TestNoSuch(t *testing.T) {
	for _, tt := range []struct {
		exist []string
		want  string
	}{
		{nil, "no eht0: there is none; 'ls' lists those that exist"},
		{[]string{"lo"}, "no eht0: there is lo; 'ls' lists it"},
		{[]string{"lo", "eth0"}, `no eht0 (did you mean "eth0"?): there are lo, eth0; 'ls' lists them`},
		{[]string{"a1", "b2", "c3", "d4", "eth0"}, `no eht0 (did you mean "eth0"?): 'ls' lists those that exist`},
	} {
		if got := NoSuch("no eht0", "eht0", tt.exist, "ls").Error(); got != tt.want {
			t.Errorf("%s\nwant %s", got, tt.want)
		}
	}
}
