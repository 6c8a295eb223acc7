// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// WriteFile replaces a file atomically: readers see either the old or the new text, also after a crash. An existing file keeps
// its mode and owner. If path is a symbolic link, WriteFile replaces its target.
func WriteFile(path, text string) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	tmp, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)))
	if err != nil {
		return err
	}
	_, err = tmp.WriteString(text)
	if err = errors.Join(err, likeOld(tmp.File, path)); err != nil {
		return errors.Join(err, tmp.Cleanup())
	}
	if err := tmp.CloseAtomicallyReplace(); err != nil {
		return errors.Join(err, tmp.Cleanup())
	}
	return nil
}

// likeOld gives f the mode and the owner of the file at path, or the mode of a new file if there is none.
func likeOld(f *os.File, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return f.Chmod(0o644)
	}
	if err != nil {
		return err
	}
	// Set the mode after the owner, because chown(2) clears bits of the mode.
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && (int(stat.Uid) != os.Geteuid() || int(stat.Gid) != os.Getegid()) {
		if err := f.Chown(int(stat.Uid), int(stat.Gid)); err != nil {
			return err
		}
	}
	return f.Chmod(info.Mode().Perm())
}
