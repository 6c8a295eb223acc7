// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// WriteFile puts text in the place of a file at once: who reads it meanwhile, or after a crash, sees the old or the new one. An
// existing file keeps its mode and owner, and a symbolic link stays one.
func WriteFile(path, text string) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails once it has its name
	_, err = tmp.WriteString(text)
	if err = errors.Join(err, likeOld(tmp, path)); err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// likeOld gives f the mode and the owner of the file at path, or those of a new one.
func likeOld(f *os.File, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return f.Chmod(0o644)
	}
	if err != nil {
		return err
	}
	// The mode comes after the owner, which clears bits of it.
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && (int(stat.Uid) != os.Geteuid() || int(stat.Gid) != os.Getegid()) {
		if err := f.Chown(int(stat.Uid), int(stat.Gid)); err != nil {
			return err
		}
	}
	return f.Chmod(info.Mode().Perm())
}
