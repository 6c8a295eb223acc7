// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// userlandSuite is the Debian suite of the programs that guests of another architecture than this machine's run.
const userlandSuite = "bookworm"

// userlandPackages are those programs: what scripts of tests need.
var userlandPackages = []string{
	"bash", "busybox-static", "coreutils", "dash", "findutils", "grep", "iproute2", "kmod", "mawk", "procps", "sed", "util-linux", "mount",
}

// userland returns a directory with programs for an architecture. It is not a complete system: the packages are unpacked, and
// none of their scripts has run. The cache gets it first if it has none.
func userland(ctx context.Context, a *architecture, progress func(string)) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "userland", a.debian)
	final := filepath.Join(dir, recipe(userlandPackages))
	have := func() (*string, error) {
		_, err := os.Stat(final)
		return &final, err
	}
	_, err = obtainBy(ctx, dir, have, false, progress, func() error {
		src, err := newArchive(filepath.Join(cache, "apt", userlandSuite+"-"+a.debian), userlandSuite, a.debian, "")
		if err != nil {
			return err
		}
		progress("reading the package lists of Debian " + userlandSuite + " for " + a.debian)
		if err := src.update(ctx); err != nil {
			return err
		}
		if err := makeUserland(ctx, src, final, progress); err != nil {
			return err
		}
		return pruneRoots(dir, filepath.Base(final))
	})
	if err != nil {
		return "", fmt.Errorf("programs for %s: %w", a.debian, err)
	}
	return final, nil
}

// makeUserland makes the directory final from packages. A directory of this name is complete.
func makeUserland(ctx context.Context, src packageSource, final string, progress func(string)) error {
	packages, err := src.closure(ctx, nil, userlandPackages...)
	if err != nil {
		return err
	}
	// Every user of a guest writes to it.
	finish := func(root string) error { return os.Chmod(filepath.Join(root, "tmp"), 0o777|os.ModeSticky) }
	return fillRoot(ctx, src, packages, final, "", finish, progress)
}
