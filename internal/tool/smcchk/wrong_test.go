// SPDX-License-Identifier: Apache-2.0

package smcchk

import (
	"testing"

	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/internal/wrongtest"
)

// TestWrongHosts runs the command on hosts that cannot do what it is to do. That a host has no module is an answer, not an error.
func TestWrongHosts(t *testing.T) {
	wrongtest.Run(t, "testdata/wrong.txt", 12, func(_ *testing.T, _ string, host wrongtest.Host) wrongtest.Command {
		h := newHarness()
		h.noAFSMC = host == wrongtest.NoModule
		if host == wrongtest.NoPermission {
			h.listen = remedy.Errorf("run as root, or use a port from 1024 on", "listening on 0.0.0.0:80: permission denied")
		}
		return wrongtest.Command{Tool: h.tool()}
	})
}
