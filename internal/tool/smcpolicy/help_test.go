// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/golden"
)

// TestHelp compares the help of every command with a golden file.
func TestHelp(t *testing.T) {
	for _, name := range []string{"", "add", "del", "show", "flush", "apply", "export", "on", "off", "explain", "auto", "peers", "memory", "namespaces"} {
		h := newHarness(t)
		h.run(append(strings.Fields(name), "--help")...)
		golden.Check(t, "testdata/"+strings.TrimSuffix("help-"+name, "-")+".txt", h.out.String())
	}
}
