// SPDX-License-Identifier: Apache-2.0

package smcdbg

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/smckit/smckit/internal/remedy"
)

// createFile makes a new file that only this user can read.
func createFile(path string) (io.WriteCloser, string, error) {
	if path != "" {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		return f, path, notCreated(err)
	}
	f, err := os.CreateTemp("", "smc_dbg-*.tgz")
	if err != nil {
		return nil, "", notCreated(err)
	}
	return f, f.Name(), nil
}

// notCreated returns an error in making the archive with what to do.
func notCreated(err error) error {
	switch {
	case errors.Is(err, fs.ErrExist):
		return remedy.Errorf("give --output a name that does not exist", "%w", err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return remedy.Errorf("give --output a name in a directory that exists", "%w", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return remedy.Errorf("give --output a name in a directory that you may write to", "%w", err)
	}
	return err
}

// archive writes a compressed archive. It flushes each file that is added, so that the archive can be unpacked even if this
// process is killed.
type archive struct {
	w   io.WriteCloser
	zip *gzip.Writer
	tar *tar.Writer
	now time.Time
}

func newArchive(w io.WriteCloser, now time.Time) *archive {
	zip := gzip.NewWriter(w)
	return &archive{w, zip, tar.NewWriter(zip), now.Truncate(time.Second)}
}

func (a *archive) add(name, text string) error {
	h := &tar.Header{Name: "smc_dbg/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: a.now}
	if err := a.tar.WriteHeader(h); err != nil {
		return err
	}
	if _, err := io.WriteString(a.tar, text); err != nil {
		return err
	}
	return cmp.Or(a.tar.Flush(), a.zip.Flush())
}

// close ends the archive and closes the file. It returns the first error only, which the other writers repeat.
func (a *archive) close() error {
	return cmp.Or(a.tar.Close(), a.zip.Close(), a.w.Close())
}
