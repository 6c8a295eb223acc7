// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Kernel is a distribution kernel in the cache, ready to boot.
type Kernel struct {
	// Series is the name of the series, for example "6.12".
	Series string
	// Arch is the architecture, one of Archs(); empty for NativeArch.
	Arch string
	// Release is the output of `uname -r` in a guest.
	Release string
	// Package is the version of the distribution's packages.
	Package string
	// Image is the file to boot: an ELF image, which the emulator enters directly, if one could be extracted.
	Image string
	// Modules is the directory that belongs at /lib/modules/<Release>.
	Modules string
}

// CacheDir returns the directory for kernels: $SMCKIT_CACHE, or smckit in the user's cache directory.
func CacheDir() (string, error) {
	if dir := os.Getenv("SMCKIT_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for the kernel cache: %w: set SMCKIT_CACHE", err)
	}
	return filepath.Join(dir, "smckit"), nil
}

// Provision returns the kernel of the given series from the cache. It fetches the kernel first if it is missing or update is
// set. If several processes call it, one fetches and the others wait. An interrupted download continues. Provision reports each
// step to progress, which may be nil.
func Provision(ctx context.Context, series string, update bool, progress func(string)) (*Kernel, error) {
	if progress == nil {
		progress = func(string) {}
	}
	if series != DebugSeries {
		return ProvisionArch(ctx, NativeArch, series, update, progress)
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	k, err := obtainDebug(ctx, filepath.Join(cache, "linux", series), update, progress)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("kernel %s: %w", series, err)
	}
	return k, err
}

// ProvisionArch does what Provision does, for the kernel of an architecture.
func ProvisionArch(ctx context.Context, arch, series string, update bool, progress func(string)) (*Kernel, error) {
	a, err := findArch(arch)
	if err != nil {
		return nil, err
	}
	known, ok := findSeries(series)
	if !ok || slices.Contains(a.lacks, series) {
		return nil, fmt.Errorf("no kernel series %q for %s: choose one of %s", series, a.name, strings.Join(ArchSeries(a.name), ", "))
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(string) {}
	}
	open := func() (source, error) {
		return newArchive(filepath.Join(cache, "apt", known.suite+a.suffix()), known.suite, a.debian, "")
	}
	k, err := obtain(ctx, a.name, series, filepath.Join(cache, "linux", series+a.suffix()), open, update, progress)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("kernel %s%s: %w", series, a.suffix(), err)
		if a.name != NativeArch {
			err = &UnavailableError{err}
		}
	}
	return k, err
}

// obtain opens the current kernel below dir, and provisions it first if there is none or update is set.
func obtain(
	ctx context.Context, arch, series, dir string, open func() (source, error), update bool, progress func(string),
) (*Kernel, error) {
	have := func() (*Kernel, error) {
		k, err := openKernel(series, dir)
		if err == nil {
			k.Arch = arch
		}
		return k, err
	}
	return obtainBy(ctx, dir, have, update, progress, func() error {
		src, err := open()
		if err != nil {
			return err
		}
		return provision(ctx, src, arch, dir, progress)
	})
}

// obtainBy returns the result of have. If have fails or update is set, it calls bring first, in one process at a time.
func obtainBy[T any](
	ctx context.Context, dir string, have func() (*T, error), update bool, progress func(string), bring func() error,
) (*T, error) {
	if !update {
		if k, err := have(); err == nil {
			return k, nil
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, filepath.Join(dir, "lock"), progress)
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Another process may have finished the work while this one waited.
	if !update {
		if k, err := have(); err == nil {
			return k, nil
		}
	}
	if err := bring(); err != nil {
		return nil, err
	}
	return have()
}

// lock takes an exclusive lock on a file, and reports it if it has to wait for another process.
func lock(ctx context.Context, path string, progress func(string)) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for reported := false; ; reported = true {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if !reported {
			progress("waiting for another process that works on the same")
		}
		// A blocking flock could not be cancelled.
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// source provides packages. Except in tests, it is apt.
type source interface {
	// resolve names the packages that make up the suite's current kernel for an architecture of the lab.
	resolve(ctx context.Context, arch string, progress func(string)) (*kernelPackages, error)
	// fetch downloads a package into dir, continuing an earlier attempt, and returns its path.
	fetch(ctx context.Context, pkg, dir string, progress func(string)) (string, error)
}

// provision downloads and unpacks the current kernel of src below dir, and makes it the current one with a single
// rename. A directory with a kernel's name is complete and never changes again.
func provision(ctx context.Context, src source, arch, dir string, progress func(string)) error {
	kp, err := src.resolve(ctx, arch, progress)
	if err != nil {
		return err
	}
	name := kp.release + "_" + strings.ReplaceAll(kp.version, "/", "_")
	final := filepath.Join(dir, name)
	downloads := filepath.Join(dir, "download")
	if _, err := os.Stat(final); err != nil {
		if err := unpack(ctx, src, kp, downloads, final, progress); err != nil {
			return err
		}
	} else {
		progress(kp.release + " (" + kp.version + ") is the newest")
	}
	if err := pointTo(dir, name); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(downloads), prune(dir, name))
}

// unpack makes the directory final from packages. It works in a directory with another name, so that an interrupted run
// leaves nothing that looks like a kernel.
func unpack(ctx context.Context, src source, kp *kernelPackages, downloads, final string, progress func(string)) error {
	unpacked := filepath.Join(filepath.Dir(final), "unpack")
	if err := extract(ctx, src.fetch, kp.packages, downloads, unpacked, progress); err != nil {
		return err
	}
	if err := arrange(ctx, unpacked, kp); err != nil {
		return err
	}
	// The name means that the directory is complete, which must hold after a power cut too.
	unix.Sync()
	return os.Rename(unpacked, final)
}

// pointTo makes name the current kernel below dir.
func pointTo(dir, name string) error {
	link := filepath.Join(dir, "current")
	if err := os.Remove(link + ".new"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Symlink(name, link+".new"); err != nil {
		return err
	}
	return os.Rename(link+".new", link)
}

// description is the file that describes the kernel in its directory. A guest holds a shared lock on it.
const description = "kernel.json"

// prune removes the kernels below dir that are neither current nor run by a guest.
func prune(dir, current string) error {
	old, err := filepath.Glob(filepath.Join(dir, "*", description))
	if err != nil {
		return err
	}
	for _, file := range old {
		kernel := filepath.Dir(file)
		if base := filepath.Base(kernel); base == current || base == "current" {
			continue
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			err = os.RemoveAll(kernel)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// use keeps the kernel from being pruned until the returned file is closed.
func (k *Kernel) use() (*os.File, error) {
	f, err := os.Open(filepath.Join(filepath.Dir(k.Image), description))
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("kernel %s has just been replaced by a newer one: try again", k.Release)
	}
	return f, nil
}

// openKernel returns the current kernel below dir.
func openKernel(series, dir string) (*Kernel, error) {
	// Read the link once: the guest must get image and modules of the same kernel, even if another one becomes current
	// meanwhile.
	name, err := os.Readlink(filepath.Join(dir, "current"))
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, name)
	data, err := os.ReadFile(filepath.Join(dir, description))
	if err != nil {
		return nil, err
	}
	k := &Kernel{Series: series, Image: filepath.Join(dir, "image"), Modules: filepath.Join(dir, "modules")}
	if err := json.Unmarshal(data, &struct{ Release, Package *string }{&k.Release, &k.Package}); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, description), err)
	}
	return k, nil
}

// Config returns the value of an option of the kernel's configuration, for example CONFIG_HZ, or "" if it is not set.
func (k *Kernel) Config(option string) (string, error) {
	config, err := os.ReadFile(filepath.Join(filepath.Dir(k.Image), "config"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(config)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && name == option {
			return value, nil
		}
	}
	return "", nil
}

// HasModule reports whether the kernel ships the named module.
func (k *Kernel) HasModule(name string) bool {
	dep, err := k.dependencies()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(dep, func(d dependency) bool { return d.name == name })
}
