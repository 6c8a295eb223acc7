// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestChrootRefused checks the error if the programs that create namespaces print that this is not permitted.
func TestChrootRefused(t *testing.T) {
	for _, tc := range []struct {
		name, says string
		privilege  bool
	}{
		{"no namespace", "unshare: unshare failed: Operation not permitted", true},
		{"no mapping", "unshare: write failed /proc/self/uid_map: Operation not permitted", true},
		{"no mount", "mount: /x/proc: permission denied.", true},
		{"a compiler's error", "main.c:1:1: error: mount: what is not permitted", false},
	} {
		dir := t.TempDir()
		script := "#!/bin/sh\necho \"" + tc.says + "\" >&2\nexit 1\n"
		if err := os.WriteFile(filepath.Join(dir, "unshare"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
		out, err := (&buildRoot{dir: dir}).chroot(t.Context(), nil, "make")
		if err == nil || strings.Contains(err.Error(), "sudo") != tc.privilege || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", tc.name, err)
		}
		// Other output is returned unchanged, because callers need the whole output of a build.
		if !tc.privilege && out != tc.says+"\n" {
			t.Errorf("%s: said %q", tc.name, out)
		}
	}
}

// TestChroot runs programs in a root that contains this machine's programs.
func TestChroot(t *testing.T) {
	r := &buildRoot{dir: t.TempDir()}
	for _, dir := range []string{"proc", "dev", "tmp"} {
		mkdir(filepath.Join(r.dir, dir))
	}
	for _, dir := range []string{"bin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+dir, filepath.Join(r.dir, dir)); err != nil {
			t.Fatal(err)
		}
	}
	const inside = "/build"
	outside := write(t, map[string]string{"file": "content"})
	binds := []bind{{"/usr", "/usr"}, {outside, inside}}
	if _, err := r.chroot(t.Context(), binds, "true"); err != nil && strings.Contains(err.Error(), "sudo") {
		t.Skip(err)
	}
	out, err := r.chroot(t.Context(), binds, "sh", "-c", `cat "$0/file"; echo $$ $HOME; exit 7`, inside)
	if err == nil || !strings.Contains(err.Error(), "exit status 7") || out != "content1 /tmp\n" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, inside, "file")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the mount is still there: %v", err)
	}
	// Cancelling a call ends it and its processes at once. Otherwise it would wait for their output.
	fifo := filepath.Join(outside, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	started, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer started.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() {
		_, err := r.chroot(ctx, binds, "sh", "-c", `echo >"$0/fifo"; sleep 1000 & wait`, inside)
		done <- err
	}()
	if err := started.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := started.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
}
