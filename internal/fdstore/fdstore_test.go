// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fdstore

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

// TestFull checks that the service manager is not sent what it would drop, and that there is room again for what is removed.
func TestFull(t *testing.T) {
	t.Setenv("FDSTORE", "3")
	manager := listen(t)
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Dial(manager.LocalAddr().String(), map[string]int{"kept": fd})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	closeAll(s.Take(""))
	for i, step := range []struct {
		remove bool
		name   string
		want   error
	}{{false, "a", nil}, {false, "b", nil}, {false, "c", ErrFull}, {false, "b", nil}, {true, "unknown", nil}, {false, "c", ErrFull}, {true, "kept", nil}, {false, "c", nil}, {false, "d", ErrFull}} {
		do := func() error { return s.Add(step.name, 0) }
		if step.remove {
			do = func() error { return s.Remove(step.name) }
		}
		if err := do(); !errors.Is(err, step.want) {
			t.Errorf("step %d: %v, want %v", i, err, step.want)
		}
		if step.want == nil {
			receive(t, manager)
		}
	}
}

// TestNamesMax checks that the list of names is no longer than a process can be passed.
func TestNamesMax(t *testing.T) {
	manager := listen(t)
	s, err := Dial(manager.LocalAddr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var all []string
	for i := 0; ; i++ {
		name := fmt.Sprintf("%0200d", i)
		if err := s.Add(name, 0); errors.Is(err, ErrFull) {
			break
		} else if err != nil || i == DefaultMax {
			t.Fatalf("name %d: %v", i, err)
		}
		receive(t, manager)
		all = append(all, name)
	}
	cmd := exec.Command("true")
	cmd.Env = []string{"LISTEN_FDNAMES=" + strings.Join(all, ":")}
	if err := cmd.Run(); err != nil {
		t.Errorf("with %d names: %v", len(all), err)
	}
	longer := exec.Command("true")
	longer.Env = []string{cmd.Env[0] + strings.Repeat("x", 300)}
	if err := longer.Run(); !errors.Is(err, unix.E2BIG) {
		t.Errorf("the limit is too low: %v", err)
	}
}

func TestMax(t *testing.T) {
	for text, want := range map[string]int{"": DefaultMax, "x": DefaultMax, "0": DefaultMax, "100": 100} {
		if got := Max(func(string) string { return text }); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}
