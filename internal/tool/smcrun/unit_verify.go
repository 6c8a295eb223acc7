// SPDX-License-Identifier: Apache-2.0

package smcrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/unitfile"
)

// verify has systemd-analyze check a copy of the service, without and with the new drop-in. Only messages that the drop-in adds count: the
// service, or services that it depends on, may have others.
func (c *unitChange) verify(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "smc_run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	before, err := c.analyze(ctx, dir, "")
	if errors.Is(err, exec.ErrNotFound) {
		c.env.Note("note: systemd-analyze is not installed, so the drop-in is not verified")
		return nil
	}
	after, afterErr := c.analyze(ctx, dir, c.new)
	var added []string
	for _, line := range after {
		if !slices.Contains(before, line) {
			added = append(added, strings.ReplaceAll(line, dir+"/", ""))
		}
	}
	if len(added) == 0 && (err != nil || afterErr == nil) {
		return nil
	}
	return fmt.Errorf("systemd does not accept the drop-in: %s%s", strings.Join(append(added, errorText(afterErr, added)...), "; "), familyRemedy(added))
}

// errorText returns the error of systemd-analyze if it has printed nothing.
func errorText(err error, printed []string) []string {
	if len(printed) > 0 || err == nil {
		return nil
	}
	return []string{err.Error()}
}

// familyRemedy explains how to run a service that is restricted to some address families under a systemd that does not know AF_SMC.
func familyRemedy(messages []string) string {
	if !slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(m, "address family") }) {
		return ""
	}
	return ": this systemd does not know AF_SMC (it needs a C library from glibc 2.26 on when it is built): update it, or lift the " +
		"restriction with an empty RestrictAddressFamilies= in a drop-in of your own"
}

// analyze returns the messages of systemd-analyze about a copy of the service in dir.
func (c *unitChange) analyze(ctx context.Context, dir, text string) ([]string, error) {
	unit := filepath.Join(dir, c.unit.Name)
	files := []unitfile.File{{Path: unit, Text: c.unit.Fragment.Text}, {Path: filepath.Join(unit+".d", filepath.Base(c.path)), Text: text}}
	for _, f := range c.unit.DropIns {
		files = append(files, unitfile.File{Path: filepath.Join(unit+".d", filepath.Base(f.Path)), Text: f.Text})
	}
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(f.Path, []byte(f.Text), 0o600); err != nil {
			return nil, err
		}
	}
	out, err := c.sys.output(ctx, "systemd-analyze", "verify", "--man=no", unit)
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(line string) bool { return line == "" }), err
}
