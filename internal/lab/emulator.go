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

// emulator is the program that runs guests.
const emulator = "qemu-system-x86_64"

// QEMU before 8.1 may go on executing a page's old translation while another processor writes to that page. Kernels patch
// themselves all the time, by way of a breakpoint. Guests with two processors then die of an "Oops: int3": in one of about a
// hundred boots, and within seconds where something toggles static keys.
const goodMajor, goodMinor = 8, 1

// The suite with a newer QEMU, which runs with the libraries of the machine's own QEMU, and the packages to take from it.
const emulatorSuite = "bookworm-backports"

var emulatorPackages = []string{"qemu-system-x86", "qemu-system-data", "seabios"}

// qemu is the command line of the emulator.
type qemu struct {
	path string
	args []string // before all others
}

// findEmulator returns this machine's emulator if it is reliable. Otherwise it returns one from the cache, and downloads it
// first if necessary. If that fails, it returns this machine's emulator after all.
func findEmulator(ctx context.Context, progress func(string)) (*qemu, error) {
	path, err := exec.LookPath(emulator)
	if err != nil {
		return nil, fmt.Errorf("%s is not installed: run 'apt-get install qemu-system-x86'", emulator)
	}
	own := &qemu{path: path}
	version, err := own.version(ctx)
	if err != nil {
		return nil, err
	}
	// Accelerators other than tcg do not translate code, so the fault cannot occur.
	if accelerator() != "tcg" || newEnough(version) {
		return own, nil
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "qemu")
	have := func() (*qemu, error) { return openEmulator(filepath.Join(dir, emulatorSuite)) }
	better, err := obtainBy(ctx, dir, have, false, progress, func() error {
		a, err := newArchive(filepath.Join(cache, "apt", emulatorSuite), emulatorSuite, "")
		if err != nil {
			return err
		}
		progress("reading the package lists of Debian " + emulatorSuite + ": QEMU " + version + " is older than 8.1")
		if err := a.update(ctx); err != nil {
			return err
		}
		return unpackEmulator(ctx, a.fetch, filepath.Join(dir, emulatorSuite), progress)
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		progress(fmt.Sprintf("QEMU %s has to do, with which guests die at times of an int3: %v", version, err))
		return own, nil
	}
	return better, nil
}

// openEmulator returns the emulator that was unpacked into dir.
func openEmulator(dir string) (*qemu, error) {
	share := filepath.Join(dir, "usr/share")
	q := &qemu{
		path: filepath.Join(dir, "usr/bin", emulator),
		args: []string{"-L", filepath.Join(share, "qemu"), "-L", filepath.Join(share, "seabios")},
	}
	_, err := os.Stat(q.path)
	return q, err
}

// unpackEmulator makes the directory final from packages, if the emulator in them runs here.
func unpackEmulator(ctx context.Context, fetch fetcher, final string, progress func(string)) error {
	downloads, unpacked := filepath.Join(filepath.Dir(final), "download"), filepath.Join(filepath.Dir(final), "unpack")
	if err := extract(ctx, fetch, emulatorPackages, downloads, unpacked, progress); err != nil {
		return err
	}
	q, err := openEmulator(unpacked)
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

// newEnough reports whether an emulator of this version can run several processors reliably.
func newEnough(version string) bool {
	part := strings.Split(version, ".")
	major, _ := strconv.Atoi(part[0])
	minor, _ := strconv.Atoi(part[1])
	return major > goodMajor || major == goodMajor && minor >= goodMinor
}
