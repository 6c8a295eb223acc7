// SPDX-License-Identifier: Apache-2.0

package smcpnet

import (
	"testing"

	"github.com/smckit/smckit/internal/wrongtest"
)

// TestWrongHosts runs the command on hosts that cannot do what it is to do.
func TestWrongHosts(t *testing.T) {
	wrongtest.Run(t, "testdata/wrong.txt", 20, func(t *testing.T, _ string, host wrongtest.Host) wrongtest.Command {
		h := newHarness(t, someRows()...)
		h.kernel.NoModule, h.kernel.Unprivileged = host == wrongtest.NoModule, host == wrongtest.NoPermission
		return wrongtest.Command{Tool: h.tool()}
	})
}
