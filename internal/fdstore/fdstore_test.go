// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fdstore

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// listen is the socket of a service manager.
func listen(t *testing.T) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// receive returns a message, and how many files came with it.
func receive(t *testing.T, conn *net.UnixConn) (state string, files int) {
	t.Helper()
	b, oob := make([]byte, 4096), make([]byte, 128)
	n, oobn, _, _, err := conn.ReadMsgUnix(b, oob)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			unix.Close(fd)
		}
		files += len(fds)
	}
	return string(b[:n]), files
}

func TestMessages(t *testing.T) {
	manager := listen(t)
	s, err := Dial(manager.LocalAddr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, tc := range []struct {
		send  func() error
		want  string
		files int
	}{
		{func() error { return s.Notify("READY=1") }, "READY=1", 0},
		{func() error { return s.Add("a/b", 0) }, "FDSTORE=1\nFDPOLL=0\nFDNAME=a/b", 1},
		{func() error { return s.AddConn("c", manager) }, "FDSTORE=1\nFDPOLL=0\nFDNAME=c", 1},
		{func() error { return s.Remove("a/b") }, "FDSTOREREMOVE=1\nFDNAME=a/b", 0},
	} {
		if err := tc.send(); err != nil {
			t.Fatal(err)
		}
		if state, files := receive(t, manager); state != tc.want || files != tc.files {
			t.Errorf("%q with %d files, want %q with %d", state, files, tc.want, tc.files)
		}
	}
}

func TestKept(t *testing.T) {
	manager := listen(t)
	kept := map[string]int{}
	for _, name := range []string{"a/1", "a/2", "ab", "b/1"} {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		kept[name] = fd
	}
	s, err := Dial(manager.LocalAddr().String(), kept)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	taken := s.Take("a/")
	if diff := cmp.Diff([]string{"1", "2"}, slices.Sorted(maps.Keys(taken))); diff != "" {
		t.Errorf("want (-), got (+): %s", diff)
	}
	closeAll(taken)
	if diff := cmp.Diff([]string{"ab", "b/1"}, s.Discard()); diff != "" {
		t.Errorf("want (-), got (+): %s", diff)
	}
	removed := map[string]bool{}
	for range 2 {
		state, _ := receive(t, manager)
		removed[state] = true
	}
	if !removed["FDSTOREREMOVE=1\nFDNAME=ab"] || !removed["FDSTOREREMOVE=1\nFDNAME=b/1"] {
		t.Errorf("removed %v", removed)
	}
}

func TestInherited(t *testing.T) {
	pid := strconv.Itoa(os.Getpid())
	for _, tc := range []struct {
		env  map[string]string
		good bool
	}{
		{nil, true},
		{map[string]string{"LISTEN_PID": "1", "LISTEN_FDS": "5"}, true}, // for another process
		{map[string]string{"LISTEN_PID": pid, "LISTEN_FDS": "2", "LISTEN_FDNAMES": "a"}, false},
		{map[string]string{"LISTEN_PID": pid, "LISTEN_FDS": "-1", "LISTEN_FDNAMES": "a"}, false},
		{map[string]string{"LISTEN_PID": pid, "LISTEN_FDNAMES": "a"}, false},
	} {
		files, err := inherited(func(name string) string { return tc.env[name] })
		if (err == nil) != tc.good || len(files) > 0 {
			t.Errorf("%v: %v, %v", tc.env, files, err)
		}
	}
}

// TestNone checks that a service without a service manager needs no other code.
func TestNone(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	s, err := Open()
	if s != nil || err != nil {
		t.Fatalf("%v, %v", s, err)
	}
	for _, err := range []error{s.Notify("READY=1"), s.Add("a", 0), s.AddConn("a", nil), s.Remove("a"), s.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
	if len(s.Take("")) > 0 || len(s.Discard()) > 0 {
		t.Error("files of no one")
	}
}
