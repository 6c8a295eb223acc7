// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// userlandSuite is the Debian suite of the programs that guests of another architecture than this machine's run, and of the compiler
// for libraries of such an architecture.
const userlandSuite = "bookworm"

// userlandPackages are those programs: what scripts of tests need.
var userlandPackages = []string{
	"bash", "busybox-static", "coreutils", "dash", "findutils", "grep", "iproute2", "kmod", "mawk", "procps", "sed", "util-linux", "mount",
}

// userland returns a directory with programs for an architecture.
func userland(ctx context.Context, a *architecture, progress func(string)) (string, error) {
	p := packageTree{parent: "userland/" + a.debian, apt: userlandSuite + "-" + a.debian, arch: a.debian, packages: userlandPackages}
	dir, err := p.obtain(ctx, progress)
	if err != nil {
		return "", fmt.Errorf("programs for %s: %w", a.debian, err)
	}
	return dir, nil
}

// packageTree is a directory of the cache with packages of userlandSuite. It is not a complete system: the packages are unpacked, and
// none of their scripts has run.
type packageTree struct {
	parent   string // a directory of the cache, for this tree alone
	apt      string // the name of the private apt root
	arch     string // the architecture of the programs
	packages []string
}

// dir returns the path of the tree in the cache. If there is such a directory, it is complete.
func (p *packageTree) dir(cache string) string {
	return filepath.Join(cache, p.parent, recipe(p.packages))
}

// obtain returns the path of the tree. The cache gets it first if it has none.
func (p *packageTree) obtain(ctx context.Context, progress func(string)) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	final := p.dir(cache)
	parent := filepath.Dir(final)
	have := func() (*string, error) {
		_, err := os.Stat(final)
		return &final, err
	}
	_, err = obtainBy(ctx, parent, have, false, progress, func() error {
		src, err := newArchive(filepath.Join(cache, "apt", p.apt), userlandSuite, p.arch, "")
		if err != nil {
			return err
		}
		progress("reading the package lists of Debian " + userlandSuite + " for " + p.arch)
		if err := src.update(ctx); err != nil {
			return err
		}
		if err := p.unpack(ctx, src, final, progress); err != nil {
			return err
		}
		return pruneRoots(parent, filepath.Base(final))
	})
	return final, err
}

// unpack makes the directory final from the packages and those that they depend on.
func (p *packageTree) unpack(ctx context.Context, src packageSource, final string, progress func(string)) error {
	packages, err := src.closure(ctx, nil, p.packages...)
	if err != nil {
		return err
	}
	// Every user of a guest writes to it.
	finish := func(root string) error { return os.Chmod(filepath.Join(root, "tmp"), 0o777|os.ModeSticky) }
	return fillRoot(ctx, src, packages, final, "", finish, progress)
}
