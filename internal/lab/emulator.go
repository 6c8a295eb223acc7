// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The suite with a newer QEMU, which runs with the libraries of the machine's own QEMU.
const emulatorSuite = "bookworm-backports"

// qemu is the command line of the emulator.
type qemu struct {
	path string
	args []string // before all others
}

// findEmulator returns this machine's emulator for an architecture if it is reliable. Otherwise it returns one from the cache, and
// downloads it first if necessary. If that fails, it returns this machine's emulator for its own architecture after all.
func findEmulator(ctx context.Context, a *architecture, progress func(string)) (*qemu, error) {
	own, version, err := a.installed(ctx)
	switch {
	case err == nil && (a.newEnough(version) || a.native() && accelerator() != "tcg"):
		// Accelerators other than tcg do not translate code, so the fault cannot occur.
		return own, nil
	case err != nil && a.native():
		return nil, err
	}
	better, err := cachedEmulator(ctx, a, progress)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && !a.native():
		return nil, fmt.Errorf("%s %d.%d or newer, to emulate %s: %w", a.emulator, a.goodMajor, a.goodMinor, a.name, err)
	case err != nil:
		progress(fmt.Sprintf("QEMU %s has to do, with which guests die at times of an int3: %v", version, err))
		return own, nil
	}
	return better, nil
}

// installed returns the emulator that is installed on this machine, and its version.
func (a *architecture) installed(ctx context.Context) (*qemu, string, error) {
	path, err := exec.LookPath(a.emulator)
	if err != nil {
		return nil, "", fmt.Errorf("%s is not installed: run 'apt-get install %s'", a.emulator, a.packages[0])
	}
	q := &qemu{path: path}
	version, err := q.version(ctx)
	return q, version, err
}

// cachedEmulator returns the emulator in the cache. It downloads it first if the cache has none.
func cachedEmulator(ctx context.Context, a *architecture, progress func(string)) (*qemu, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	// Architectures that differ in their kernels share an emulator.
	name := emulatorSuite
	if !a.native() {
		name += "-" + a.debian
	}
	dir := filepath.Join(cache, "qemu")
	have := func() (*qemu, error) { return openEmulator(a, filepath.Join(dir, name)) }
	return obtainBy(ctx, dir, have, false, progress, func() error {
		src, err := newArchive(filepath.Join(cache, "apt", emulatorSuite), emulatorSuite, NativeArch, "")
		if err != nil {
			return err
		}
		progress(fmt.Sprintf("reading the package lists of Debian %s, for %s %d.%d or newer", emulatorSuite, a.emulator, a.goodMajor, a.goodMinor))
		if err := src.update(ctx); err != nil {
			return err
		}
		return unpackEmulator(ctx, a, src.fetch, filepath.Join(dir, name), progress)
	})
}

// openEmulator returns the emulator for an architecture that was unpacked into dir.
func openEmulator(a *architecture, dir string) (*qemu, error) {
	share := filepath.Join(dir, "usr/share")
	q := &qemu{
		path: filepath.Join(dir, "usr/bin", a.emulator),
		args: []string{"-L", filepath.Join(share, "qemu"), "-L", filepath.Join(share, "seabios")},
	}
	_, err := os.Stat(q.path)
	return q, err
}

// unpackEmulator makes the directory final from packages, if the emulator in them runs here.
func unpackEmulator(ctx context.Context, a *architecture, fetch fetcher, final string, progress func(string)) error {
	downloads, unpacked := filepath.Join(filepath.Dir(final), "download"), filepath.Join(filepath.Dir(final), "unpack")
	if err := extract(ctx, fetch, a.packages, downloads, unpacked, progress); err != nil {
		return err
	}
	q, err := openEmulator(a, unpacked)
	if err != nil {
		return err
	}
	version, err := q.version(ctx)
	if err != nil {
		return err
	}
	progress("guests run under QEMU " + version)
	if err := os.Rename(unpacked, final); err != nil {
		return err
	}
	return os.RemoveAll(downloads)
}

// version returns the version of the emulator.
func (q *qemu) version(ctx context.Context) (string, error) {
	out, err := output(ctx, q.path, "--version")
	if err != nil {
		return "", err
	}
	version := regexp.MustCompile(`\d+\.\d+(\.\d+)?`).FindString(out)
	if version == "" {
		return "", fmt.Errorf("%s --version gave none: %q", q.path, strings.TrimSpace(out))
	}
	return version, nil
}

// newEnough reports whether an emulator of this version runs guests of the architecture reliably.
func (a *architecture) newEnough(version string) bool {
	part := strings.Split(version, ".")
	major, _ := strconv.Atoi(part[0])
	minor, _ := strconv.Atoi(part[1])
	return major > a.goodMajor || major == a.goodMajor && minor >= a.goodMinor
}
