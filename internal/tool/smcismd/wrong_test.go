// SPDX-License-Identifier: Apache-2.0

package smcismd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/fdstore"
	"github.com/smckit/smckit/internal/wrongtest"
	"github.com/spf13/cobra"
)

// TestWrongHosts runs the command on hosts that cannot do what it is to do. The command needs no module. DIR has no sockets of a server, but
// files.
func TestWrongHosts(t *testing.T) {
	wrongtest.Run(t, "testdata/wrong.txt", 12, func(t *testing.T, _ string, _ wrongtest.Host) wrongtest.Command {
		dir := t.TempDir()
		for name, text := range map[string]string{"empty": "", "bad": "blue:16M\nred:\xff\n", "red.sock": "no socket"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		sys := system{openStore: func() (*fdstore.Store, error) { return nil, nil }}
		tool := cli.Tool{Name: toolName, New: func(env *cli.Env) *cobra.Command { return newRoot(env, sys) }}
		return wrongtest.Command{Tool: tool, Dir: dir}
	})
}
