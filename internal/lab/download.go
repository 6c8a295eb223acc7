// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// download is a file of known size and digest to fetch. It continues an interrupted attempt. apt would start again from the
// beginning, unless the earlier apt ended properly.
type download struct {
	uri    string
	file   string // path of the downloaded file
	size   int64  // bytes
	sha256 string // lower-case hex
}

var errDigest = errors.New("the file does not match the digest in the signed package list")

// download completes the file and checks its digest.
func (d *download) download(ctx context.Context) error {
	if !strings.HasPrefix(d.uri, "http://") && !strings.HasPrefix(d.uri, "https://") {
		return d.byApt(ctx)
	}
	for attempt := 1; ; attempt++ {
		err := d.attempt(ctx)
		if err == nil {
			err = d.verify()
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, errDigest) {
			os.Remove(d.file)
		}
		if attempt == 3 {
			// apt may have the configuration of a proxy or a password.
			if d.byApt(ctx) == nil {
				return nil
			}
			return fmt.Errorf("downloading %s: %w", d.uri, err)
		}
	}
}

// aptHelper downloads and verifies a file with the configuration of this machine's apt.
var aptHelper = "/usr/lib/apt/apt-helper"

func (d *download) byApt(ctx context.Context) error {
	return run(ctx, aptHelper, "-o", "APT::Sandbox::User=", "download-file", d.uri, d.file, "SHA256:"+d.sha256)
}

// stalled is how long a server may send nothing before the connection counts as dead.
const stalled = time.Minute

// attempt fetches the rest of the file.
func (d *download) attempt(ctx context.Context) error {
	f, err := os.OpenFile(d.file, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if have == d.size {
		return nil
	}
	if have > d.size {
		have = 0
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(stalled, func() { cancel(fmt.Errorf("the server sends nothing for %s", stalled)) })
	defer watchdog.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.uri, nil)
	if err != nil {
		return err
	}
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusPartialContent:
	case http.StatusOK:
		have = 0 // a server without support for ranges sends the whole file
	default:
		return fmt.Errorf("the server answered %s", resp.Status)
	}
	if err := f.Truncate(have); err != nil {
		return err
	}
	if _, err := f.Seek(have, io.SeekStart); err != nil {
		return err
	}
	// One byte more than expected is enough to notice that the file is another one.
	body := io.LimitReader(resp.Body, d.size-have+1)
	for err == nil {
		watchdog.Reset(stalled)
		_, err = io.CopyN(f, body, 1<<20)
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

func (d *download) verify() error {
	f, err := os.Open(d.file)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return err
	}
	if n < d.size {
		return fmt.Errorf("only %d of %d bytes came: %w", n, d.size, io.ErrUnexpectedEOF)
	}
	if n != d.size || hex.EncodeToString(h.Sum(nil)) != d.sha256 {
		return errDigest
	}
	return nil
}
