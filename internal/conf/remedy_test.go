// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/remedy"
)

// TestRemedies checks which part of a mistake in a file is the remedy.
func TestRemedies(t *testing.T) {
	var known []string
	for _, s := range Settings {
		known = append(known, s.Name)
	}
	for _, tt := range []struct{ file, text, problem, remedy string }{
		{EIDFile, "seid disable\n", "eid:1: the system EID cannot be disabled while there is no user EID", "add one to the file, or remove this line"},
		{EIDFile, "A B\n", `eid:1: unexpected word "B"`, "a line has one user EID"},
		{EIDFile, "A\nA\n", "eid:2: user EID A is a duplicate", "remove one of the lines"},
		{EIDFile, "A\nseid enable\nseid enable\n", "eid:3: a second line about the system EID", "remove one of them"},
		{EIDFile, "seid on\n", "eid:1: 'seid' is followed by 'enable' or 'disable'", ""},
		{SettingsFile, "net.smc.rmem = 1\n", `settings:1: unknown setting "net.smc.rmem"`, `write names without 'net.smc.' ("rmem")`},
		{SettingsFile, "x = 1\n", `settings:1: unknown setting "x"`, "it is one of " + strings.Join(known, ", ")},
		{SettingsFile, "loopback = 3\n", `settings:1: loopback = "3": the value is one of off, namespace, on`, ""},
		{SettingsFile, "\x01\n", "settings:1: control character '\\x01': this is not a text file", ""},
		{PolicyFile, "smc port 1 port 2\n", "policy:1: word 4: port is there already", "a list has commas"},
		{PolicyFile, "smc port x\n", `policy:1: word 3: port "x": ports are numbers from 1 to 65535, ranges of them, and lists: 6379,8000-8100`, ""},
	} {
		var err error
		switch tt.file {
		case EIDFile:
			_, err = ParseEIDs(tt.text, "eid")
		case SettingsFile:
			_, err = ParseSettings(tt.text, "settings")
		default:
			_, err = ParseRules(tt.text, "policy")
		}
		if err == nil {
			t.Errorf("%q has no mistake", tt.text)
			continue
		}
		problem, action := remedy.Split(err)
		if problem != tt.problem || action != tt.remedy {
			t.Errorf("%q: %q and %q, not %q and %q", tt.text, problem, action, tt.problem, tt.remedy)
		}
		if action != "" && err.Error() != problem+": "+action {
			t.Errorf("%q: %q", tt.text, err)
		}
	}
	// The remedy of an invalid EID depends on the mistake.
	_, err := ParseEIDs("ä\n", "eid")
	if problem, action := remedy.Split(err); problem != `eid:1: invalid user EID "ä"` || action == "" {
		t.Errorf("%q and %q", problem, action)
	}
}
