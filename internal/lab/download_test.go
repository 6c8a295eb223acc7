// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// content is a file whose bytes show their position in it.
func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return b
}

// mirrorOf serves a file and records the requested ranges. If serve returns true, it has answered the request itself.
type mirrorOf struct {
	data   []byte
	ranges []string
	serve  func(n int, w http.ResponseWriter) bool
}

func (m *mirrorOf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.ranges = append(m.ranges, r.Header.Get("Range"))
	if m.serve != nil && m.serve(len(m.ranges), w) {
		return
	}
	http.ServeContent(w, r, "x.deb", time.Time{}, bytes.NewReader(m.data))
}

func (m *mirrorOf) download(t *testing.T, have []byte) *download {
	t.Helper()
	// Another test covers the fallback to apt.
	old := aptHelper
	aptHelper = "/nonexistent/apt-helper"
	t.Cleanup(func() { aptHelper = old })
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	sum := sha256.Sum256(m.data)
	d := &download{uri: server.URL, file: filepath.Join(t.TempDir(), "x.deb"), size: int64(len(m.data)), sha256: hex.EncodeToString(sum[:])}
	if have != nil {
		if err := os.WriteFile(d.file, have, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func TestDownload(t *testing.T) {
	data := content(3<<20 + 17)
	half := data[:1<<20+5]
	corrupted := bytes.Clone(half)
	corrupted[77] ^= 1
	whole := bytes.Clone(data)
	whole[len(whole)-1] ^= 1
	cut := func(n int, w http.ResponseWriter) bool {
		if n > 1 {
			return false
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(half)
		return true
	}
	noRanges := func(_ int, w http.ResponseWriter) bool { _, _ = w.Write(data); return true }
	for _, tc := range []struct {
		name   string
		have   []byte
		serve  func(int, http.ResponseWriter) bool
		ranges []string
	}{
		{"all of it", nil, nil, []string{""}},
		{"what an interrupted run left", half, nil, []string{"bytes=1048581-"}},
		{"complete already", data, nil, nil},
		{"empty file", []byte{}, nil, []string{""}},
		{"connection lost", nil, cut, []string{"", "bytes=1048581-"}},
		{"server without ranges", half, noRanges, []string{"bytes=1048581-"}},
		{"left of another file", corrupted, nil, []string{"bytes=1048581-", ""}},
		{"complete but corrupted", whole, nil, []string{""}},
		{"longer than it should be", append(bytes.Clone(data), 1, 2, 3), nil, []string{""}},
		{"server busy at first", nil, func(n int, w http.ResponseWriter) bool {
			if n == 1 {
				http.Error(w, "later", http.StatusServiceUnavailable)
			}
			return n == 1
		}, []string{"", ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := &mirrorOf{data: data, serve: tc.serve}
			d := m.download(t, tc.have)
			if err := d.download(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(d.file); err != nil || !bytes.Equal(got, data) {
				t.Errorf("the file is not the one: %d bytes, %v", len(got), err)
			}
			if diff := cmp.Diff(tc.ranges, m.ranges); diff != "" {
				t.Errorf("requests: %s", diff)
			}
		})
	}
}

func TestDownloadFails(t *testing.T) {
	data := content(100_000)
	for _, tc := range []struct {
		name  string
		serve func(int, http.ResponseWriter) bool
		want  error
		left  bool // the received part is kept
	}{
		{"another file", func(_ int, w http.ResponseWriter) bool { _, _ = w.Write(make([]byte, len(data))); return true }, errDigest, false},
		{"a longer file", func(_ int, w http.ResponseWriter) bool { _, _ = w.Write(append(bytes.Clone(data), 0)); return true }, errDigest, false},
		{"not found", func(_ int, w http.ResponseWriter) bool { w.WriteHeader(http.StatusNotFound); return true }, nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := &mirrorOf{data: data, serve: tc.serve}
			d := m.download(t, nil)
			err := d.download(t.Context())
			if err == nil || (tc.want != nil && !errors.Is(err, tc.want)) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if len(m.ranges) != 3 {
				t.Errorf("%d attempts", len(m.ranges))
			}
			if _, err := os.Stat(d.file); (err == nil) != tc.left {
				t.Errorf("left behind: %v", err)
			}
		})
	}
}

// TestDownloadInterrupted interrupts a download in the middle and continues it with a second one.
func TestDownloadInterrupted(t *testing.T) {
	data := content(2 << 20)
	ctx, cancel := context.WithCancel(t.Context())
	var released atomic.Bool
	m := &mirrorOf{data: data}
	m.serve = func(n int, w http.ResponseWriter) bool {
		if n > 1 {
			return false
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data[:1<<20+1])
		_ = http.NewResponseController(w).Flush()
		// Send no more data, and cancel the client.
		cancel()
		<-ctx.Done()
		released.Store(true)
		return true
	}
	d := m.download(t, nil)
	if err := d.download(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if err := d.download(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(d.file); !bytes.Equal(got, data) {
		t.Error("the file is not the one")
	}
	if len(m.ranges) > 2 {
		t.Errorf("requests: %q", m.ranges)
	}
}

// TestDownloadByApt checks that apt downloads the file if HTTP fails, or at once if the scheme is unknown.
func TestDownloadByApt(t *testing.T) {
	m := &mirrorOf{data: content(10), serve: func(_ int, w http.ResponseWriter) bool { w.WriteHeader(407); return true }}
	d := m.download(t, nil)
	aptHelper = filepath.Join(t.TempDir(), "helper")
	script := "#!/bin/sh\n[ \"$3\" = download-file ] && printf %s \"$4\" >\"$5\"\n"
	if err := os.WriteFile(aptHelper, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{d.uri, "copy:///srv/x.deb"} {
		d.uri = uri
		if err := d.download(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(d.file); string(got) != uri {
			t.Errorf("apt was not asked: %q", got)
		}
	}
}
