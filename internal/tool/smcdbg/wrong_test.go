// SPDX-License-Identifier: Apache-2.0

package smcdbg

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/wrongtest"
	"github.com/spf13/cobra"
)

// TestWrongHosts runs the command on hosts that cannot do what it is to do. A report that lacks a part is no failure: without the module, or
// permission, the processes fail that read one part each. DIR has the file mine, and is the directory for temporary files. On the host with
// a full standard output the archive's disk is full, too.
func TestWrongHosts(t *testing.T) {
	wrongtest.Run(t, "testdata/wrong.txt", 20, func(t *testing.T, _ string, h wrongtest.Host) wrongtest.Command {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", dir)
		d := someDeps()
		d.timeout = time.Hour
		d.sections = []section{{"a.txt", text("text\n")}}
		switch h {
		case wrongtest.NoModule:
			bare := host{root: t.TempDir()}
			d.sections = []section{{"module.txt", bare.modules}, {"sysctl.txt", bare.sysctls}}
		case wrongtest.NoPermission:
			d.sections = []section{{"dmesg.txt", func(context.Context) (string, error) { return "", logError(syscall.EPERM) }}}
			d.create = func(path string) (io.WriteCloser, string, error) {
				return nil, "", notCreated(&fs.PathError{Op: "open", Path: path, Err: syscall.EACCES})
			}
		case wrongtest.Full:
			d.create = func(path string) (io.WriteCloser, string, error) {
				f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
				return f, path, err
			}
		}
		tool := Tool
		tool.New = func(env *cli.Env) *cobra.Command { return newCommand(env, d) }
		return wrongtest.Command{Tool: tool, Dir: dir}
	})
}
