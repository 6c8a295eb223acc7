// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Kernel is a distribution kernel in the cache, ready to boot.
type Kernel struct {
	// Series is the name it was asked for by, for example "6.12".
	Series string
	// Release is what `uname -r` says in a guest.
	Release string
	// Image is the file to boot.
	Image string
	// Modules is the directory that belongs at /lib/modules/<Release>.
	Modules string
}

// suites maps each supported kernel series to the Debian suite that ships it.
var suites = map[string]string{
	"6.1":  "bookworm",
	"6.12": "trixie",
	"7.2":  "sid",
}

// Series lists the kernel series that can be provisioned, oldest first.
func Series() []string { return []string{"6.1", "6.12", "7.2"} }

// CacheDir is where kernels are kept: $SMCKIT_CACHE, or smckit below the user's cache directory.
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

// Provision returns the kernel of the given series from the cache, and first brings it there if it is missing or update
// is set. Several processes may do so at once: one works, the others wait for it. An interrupted download goes on where
// it stopped. Each step is told to progress.
func Provision(ctx context.Context, series string, update bool, progress func(string)) (*Kernel, error) {
	suite, ok := suites[series]
	if !ok {
		return nil, fmt.Errorf("no kernel series %q: choose one of %s", series, strings.Join(Series(), ", "))
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "kernels", series)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if !update {
		if k, err := openKernel(series, dir); err == nil {
			return k, nil
		}
	}
	unlock, err := lock(ctx, filepath.Join(dir, "lock"), progress)
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Another process may have finished the work while this one waited.
	if !update {
		if k, err := openKernel(series, dir); err == nil {
			return k, nil
		}
	}
	archive, err := newArchive(filepath.Join(cache, "apt", suite), suite)
	if err != nil {
		return nil, err
	}
	if err := provision(ctx, archive, dir, progress); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", series, err)
	}
	return openKernel(series, dir)
}

// lock takes an exclusive lock on a file, and says so if it has to wait for another process.
func lock(ctx context.Context, path string, progress func(string)) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		progress("waiting for another process that provisions this kernel")
		taken := make(chan error, 1)
		go func() { taken <- unix.Flock(int(f.Fd()), unix.LOCK_EX) }()
		select {
		case err = <-taken:
		case <-ctx.Done():
			// The goroutine keeps the file until the process ends or it gets the lock; nobody is served wrongly by that.
			return nil, ctx.Err()
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

// source is where packages come from: apt in real life.
type source interface {
	// resolve names the packages that make up the suite's current kernel, and its release.
	resolve(ctx context.Context, progress func(string)) (release string, packages []string, err error)
	// fetch puts a package into dir, continuing what an earlier attempt left there, and returns its path.
	fetch(ctx context.Context, pkg, dir string, progress func(string)) (string, error)
}

// provision downloads and unpacks the current kernel of src below dir, and makes it the current one with a single
// rename.
func provision(ctx context.Context, src source, dir string, progress func(string)) error {
	release, packages, err := src.resolve(ctx, progress)
	if err != nil {
		return err
	}
	final := filepath.Join(dir, release)
	if _, err := os.Stat(final); err != nil {
		downloads := filepath.Join(dir, "download")
		if err := os.MkdirAll(downloads, 0o755); err != nil {
			return err
		}
		unpacked := filepath.Join(dir, "unpack")
		if err := os.RemoveAll(unpacked); err != nil {
			return err
		}
		for _, pkg := range packages {
			deb, err := src.fetch(ctx, pkg, downloads, progress)
			if err != nil {
				return err
			}
			progress("unpacking " + filepath.Base(deb))
			if err := run(ctx, "dpkg-deb", "-x", deb, unpacked); err != nil {
				return err
			}
		}
		if err := arrange(ctx, unpacked, release); err != nil {
			return err
		}
		if err := os.Rename(unpacked, final); err != nil {
			return err
		}
		if err := os.RemoveAll(downloads); err != nil {
			return err
		}
	}
	return pointTo(dir, release)
}

// pointTo makes release the current kernel below dir.
func pointTo(dir, release string) error {
	link := filepath.Join(dir, "current")
	if err := os.Remove(link + ".new"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Symlink(release, link+".new"); err != nil {
		return err
	}
	return os.Rename(link+".new", link)
}

// arrange gives an unpacked kernel the layout that openKernel expects, whichever way its suite packs it: vmlinuz and
// modules, with the index that modprobe reads.
func arrange(ctx context.Context, dir, release string) error {
	for _, candidate := range []string{"usr/lib/modules", "lib/modules"} {
		from := filepath.Join(dir, candidate, release)
		if _, err := os.Stat(from); err != nil {
			continue
		}
		// depmod wants the usual path above the modules.
		base := filepath.Join(dir, "root/lib/modules")
		if err := os.MkdirAll(base, 0o755); err != nil {
			return err
		}
		if err := os.Rename(from, filepath.Join(base, release)); err != nil {
			return err
		}
		if err := run(ctx, "depmod", "-b", filepath.Join(dir, "root"), release); err != nil {
			return err
		}
	}
	for _, candidate := range []string{"boot/vmlinuz-" + release, "usr/lib/modules/" + release + "/vmlinuz", "root/lib/modules/" + release + "/vmlinuz"} {
		if err := os.Rename(filepath.Join(dir, candidate), filepath.Join(dir, "vmlinuz")); err == nil {
			break
		}
	}
	for _, need := range []string{"vmlinuz", "root/lib/modules/" + release + "/modules.dep"} {
		if _, err := os.Stat(filepath.Join(dir, need)); err != nil {
			return fmt.Errorf("the packages of %s hold no %s", release, filepath.Base(need))
		}
	}
	for _, rest := range []string{"usr", "lib", "boot"} {
		if err := os.RemoveAll(filepath.Join(dir, rest)); err != nil {
			return err
		}
	}
	return nil
}

// openKernel returns the current kernel below dir.
func openKernel(series, dir string) (*Kernel, error) {
	release, err := os.Readlink(filepath.Join(dir, "current"))
	if err != nil {
		return nil, err
	}
	k := &Kernel{
		Series:  series,
		Release: release,
		Image:   filepath.Join(dir, release, "vmlinuz"),
		Modules: filepath.Join(dir, release, "root/lib/modules", release),
	}
	for _, file := range []string{k.Image, filepath.Join(k.Modules, "modules.dep")} {
		if _, err := os.Stat(file); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// HasModule says whether the kernel ships the named module.
func (k *Kernel) HasModule(name string) bool {
	dep, err := k.dependencies()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(dep, func(d dependency) bool { return d.name == name })
}
