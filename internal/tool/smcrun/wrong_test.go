// SPDX-License-Identifier: Apache-2.0

package smcrun

import (
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/seccomp"
	"github.com/smckit/smckit/internal/wrongtest"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// TestWrongHosts runs the command on hosts that cannot do what it is to do. Without permission, the kernel refuses to execute the program.
func TestWrongHosts(t *testing.T) {
	wrongtest.Run(t, "testdata/wrong.txt", 12, func(t *testing.T, _ string, host wrongtest.Host) wrongtest.Command {
		dir, m := dirs(t), &machine{}
		switch host {
		case wrongtest.NoModule:
			m.probe = unix.EAFNOSUPPORT
		case wrongtest.NoPermission:
			m.execErr = []error{&seccomp.ExecError{Path: "prog", Err: unix.EACCES}}
		}
		sys := m.system(dir, dir+"/own", nil)
		tool := Tool
		tool.New = func(env *cli.Env) *cobra.Command { return newCommand(env, sys) }
		return wrongtest.Command{Tool: tool, Dir: dir}
	})
}
