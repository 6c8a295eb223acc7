// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// keptBuilds is how many builds of modules the cache has at most: those of all kernels for the sources of three checkouts. Each takes some
// tens of megabytes.
const keptBuilds = 18

// moduleCache has directories of built modules by their stamps, for other checkouts of the same sources.
type moduleCache string

func openModuleCache() (moduleCache, error) {
	cache, err := CacheDir()
	return moduleCache(filepath.Join(cache, "modules")), err
}

func (c moduleCache) entry(stamp string) string { return filepath.Join(string(c), stamp[:32]) }

// take makes dir a copy of the build with a stamp, and reports whether there is one.
func (c moduleCache) take(stamp, dir string) (bool, error) {
	entry := c.entry(stamp)
	have, err := os.ReadFile(filepath.Join(entry, stampFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(have) != stamp {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := replaceDir(dir, entry); err != nil {
		return false, err
	}
	now := time.Now()
	return true, os.Chtimes(entry, now, now)
}

// keep copies the build in dir, and removes those that nobody has used for the longest time.
func (c moduleCache) keep(stamp, dir string) error {
	if err := replaceDir(c.entry(stamp), dir); err != nil {
		return err
	}
	entries, err := filepath.Glob(filepath.Join(string(c), "*"))
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b string) int { return lastUse(b).Compare(lastUse(a)) })
	for _, entry := range entries[min(keptBuilds, len(entries)):] {
		err = errors.Join(err, os.RemoveAll(entry))
	}
	return err
}

// lastUse returns when a build was taken last, or the zero time if another process has removed it meanwhile.
func lastUse(entry string) (t time.Time) {
	if info, err := os.Stat(entry); err == nil {
		t = info.ModTime()
	}
	return t
}

// replaceDir makes dir a copy of from. Others never see half of it.
func replaceDir(dir, from string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	next, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".new")
	if err != nil {
		return err
	}
	defer os.RemoveAll(next) // nothing is there when all has gone well
	if err := errors.Join(os.Chmod(next, 0o755), os.CopyFS(next, os.DirFS(from)), os.RemoveAll(dir)); err != nil {
		return err
	}
	return os.Rename(next, dir)
}
