// SPDX-License-Identifier: Apache-2.0

package smcdbg

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"time"
)

// createFile makes a new file that only this user can read.
func createFile(path string) (io.WriteCloser, string, error) {
	if path != "" {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		return f, path, err
	}
	f, err := os.CreateTemp("", "smc_dbg-*.tgz")
	if err != nil {
		return nil, "", err
	}
	return f, f.Name(), nil
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
	return errors.Join(a.tar.Flush(), a.zip.Flush())
}

// close ends the archive and closes the file.
func (a *archive) close() error {
	return errors.Join(a.tar.Close(), a.zip.Close(), a.w.Close())
}
