// SPDX-License-Identifier: Apache-2.0

package smcrnics

import (
	"os"
	"syscall"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/wrongtest"
	"github.com/spf13/cobra"
)

// TestWrongHosts runs the command on hosts that cannot do what it is to do. Without the module, the command lists devices all the same. smckit
// runs on a host that is no IBM Z.
func TestWrongHosts(t *testing.T) {
	wrongtest.Run(t, "testdata/wrong.txt", 12, func(t *testing.T, name string, host wrongtest.Host) wrongtest.Command {
		h := zHost(t)
		if name == "smckit" {
			h = x86Host(t)
		}
		if host == wrongtest.NoPermission {
			h.WriteFile = func(string, []byte) error { return &os.PathError{Op: "write", Path: "power", Err: syscall.EACCES} }
		}
		tool := Tool
		tool.New = func(env *cli.Env) *cobra.Command { return newCommand(env, func(bool) scanner { return h }) }
		if name == "smckit" {
			tool = wrongtest.Suite("devices", tool)
		}
		return wrongtest.Command{Tool: tool}
	})
}
