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

// createFile makes a new file that nobody else can read.
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

// writeArchive writes and closes w.
func writeArchive(w io.WriteCloser, files []file, now time.Time) error {
	zip := gzip.NewWriter(w)
	archive := tar.NewWriter(zip)
	var err error
	for _, f := range files {
		h := &tar.Header{Name: "smc_dbg/" + f.name, Mode: 0o600, Size: int64(len(f.text)), ModTime: now.Truncate(time.Second)}
		if err = archive.WriteHeader(h); err != nil {
			break
		}
		if _, err = io.WriteString(archive, f.text); err != nil {
			break
		}
	}
	if err == nil {
		err = archive.Close()
	}
	return errors.Join(err, zip.Close(), w.Close())
}
