// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"testing"

	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/wrongtest"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// TestWrongHosts runs the command on hosts that cannot do what it is to do.
func TestWrongHosts(t *testing.T) {
	refusals := map[wrongtest.Host]int{wrongtest.NoModule: int(unix.ENOENT), wrongtest.NoPermission: int(unix.EPERM)}
	wrongtest.Run(t, "testdata/wrong.txt", 12, func(t *testing.T, _ string, host wrongtest.Host) wrongtest.Command {
		var src source = &fakeSource{sockets: testSockets()}
		if errno := refusals[host]; errno != 0 {
			src = netlinksmc.NewDiagFromConn(nltest.Dial(func(req []netlink.Message) ([]netlink.Message, error) {
				// In an answer, a flag of dumps means that attributes follow, behind the length in what is the request's body here.
				req[0].Header.Flags = 0
				return nltest.Error(errno, req)
			}))
		}
		h := newHarness(t, src)
		tool := Tool
		tool.New = func(env *cli.Env) *cobra.Command { return newCommand(env, h.deps) }
		return wrongtest.Command{Tool: tool}
	})
}
