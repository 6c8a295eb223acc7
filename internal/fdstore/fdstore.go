// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package fdstore keeps file descriptors in the service manager while a service restarts: the file descriptor store of systemd, see
// sd_notify(3) and sd_listen_fds(3).
package fdstore

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// firstFD is the number of the first file descriptor that the service manager passes.
const firstFD = 3

// timeout is how long a message may take. The service manager reads all of them, unless it is stuck.
const timeout = 5 * time.Second

// DefaultMax is how many files the service manager keeps if it does not say: FileDescriptorStoreMax= of smc-ismd.service.
const DefaultMax = 4096

// NamesMax is how long the names of all files can be, with a separator for each: Linux limits the length of an environment variable, and
// does not start a process with a longer one.
const NamesMax = 32*4096 - len("LISTEN_FDNAMES=") - 1

// Max returns how many files the service manager keeps. systemd says that from version 254 on; the administrator can do it for older ones.
func Max(getenv func(string) string) int {
	if n, err := strconv.Atoi(getenv("FDSTORE")); err == nil && n > 0 {
		return n
	}
	return DefaultMax
}

// ErrFull is that the service manager would drop a file without a word.
var ErrFull = errors.New("the service manager has no room for another file: raise FileDescriptorStoreMax=, or have fewer files")

// Store is the connection to a service manager, and the files that it has kept since the process before this one. A nil Store has
// none, and does nothing.
type Store struct {
	conn *net.UnixConn
	// sending keeps one message's deadline from another's.
	sending sync.Mutex

	max int

	mu   sync.Mutex
	kept map[string]int
	// names are those of all files that the service manager has, and length is that of their list.
	names  map[string]bool
	length int
}

// Open takes over the file descriptors that the service manager has passed to this process, and connects to it. Without a service manager it
// returns nil.
func Open() (*Store, error) {
	socket := os.Getenv("NOTIFY_SOCKET")
	kept, err := inherited(os.Getenv)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	if socket == "" {
		closeAll(kept)
		return nil, nil
	}
	return Dial(socket, kept)
}

// Dial returns a Store for the service manager that listens at a socket, with the files that it has kept, by their names.
func Dial(socket string, kept map[string]int) (*Store, error) {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		closeAll(kept)
		return nil, fmt.Errorf("cannot connect to the service manager: %w", err)
	}
	s := &Store{conn: conn, kept: kept, max: Max(os.Getenv), names: map[string]bool{}}
	for name := range kept {
		s.names[name] = true
		s.length += len(name) + 1
	}
	return s, nil
}

// inherited returns the file descriptors that the environment describes, by their names.
func inherited(getenv func(string) string) (map[string]int, error) {
	fds := make(map[string]int)
	if getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return fds, nil
	}
	names := strings.Split(getenv("LISTEN_FDNAMES"), ":")
	if n, err := strconv.ParseUint(getenv("LISTEN_FDS"), 10, 16); err != nil || int(n) != len(names) {
		return nil, fmt.Errorf("the service manager passes %q files with %d names", getenv("LISTEN_FDS"), len(names))
	}
	for i, name := range names {
		unix.CloseOnExec(firstFD + i)
		if old, ok := fds[name]; ok {
			unix.Close(old)
		}
		fds[name] = firstFD + i
	}
	return fds, nil
}

func closeAll(fds map[string]int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// Take returns the kept file descriptors whose names begin with a prefix, by the rest of their names. The caller closes them.
func (s *Store) Take(prefix string) map[string]int {
	fds := make(map[string]int)
	if s == nil {
		return fds
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, fd := range s.kept {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			fds[rest] = fd
			delete(s.kept, name)
		}
	}
	return fds
}

// Add has the service manager keep a file under a name, which has no colon and at most 255 characters. The caller's file descriptor
// stays open. The service manager must not have the file already: it ignores a second name. The errors are ErrFull and those of sending a
// message.
func (s *Store) Add(name string, fd int) error {
	if s == nil {
		return nil
	}
	if err := s.reserve(name); err != nil {
		return err
	}
	// FDPOLL=0: the service manager does not drop a connection that ends while the service restarts, so that the service finds out
	// which one it was.
	err := s.send("FDSTORE=1\nFDPOLL=0\nFDNAME="+name, fd)
	if err != nil {
		s.release(name)
	}
	return err
}

// reserve counts a file, unless there are too many.
func (s *Store) reserve(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[name] {
		return nil
	}
	if len(s.names) >= s.max || s.length+len(name)+1 > NamesMax {
		return ErrFull
	}
	s.names[name] = true
	s.length += len(name) + 1
	return nil
}

// release undoes reserve.
func (s *Store) release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[name] {
		delete(s.names, name)
		s.length -= len(name) + 1
	}
}

// AddConn does the same for a connection or a listening socket.
func (s *Store) AddConn(name string, c syscall.Conn) error {
	if s == nil {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	if err := raw.Control(func(fd uintptr) { sent = s.Add(name, int(fd)) }); err != nil {
		return err
	}
	return sent
}

// Remove has the service manager close the files of a name. The errors are those of sending a message.
func (s *Store) Remove(name string) error {
	if s == nil {
		return nil
	}
	err := s.send("FDSTOREREMOVE=1\nFDNAME=" + name)
	if err == nil {
		s.release(name)
	}
	return err
}

// Notify reports the state of the service, such as READY=1. The errors are those of sending a message.
func (s *Store) Notify(state string) error {
	if s == nil {
		return nil
	}
	return s.send(state)
}

func (s *Store) send(state string, fds ...int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return err
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	if err := s.conn.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	// WriteMsgUnix refuses connected sockets for datagrams.
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		sent = unix.Sendmsg(int(fd), []byte(state), rights, nil, unix.MSG_NOSIGNAL)
		return !errors.Is(sent, unix.EAGAIN)
	})
	if err == nil {
		err = sent
	}
	if err != nil {
		return fmt.Errorf("cannot reach the service manager: %w", err)
	}
	return nil
}

// Discard closes the kept file descriptors that no one has taken, has the service manager forget them, and returns their names.
func (s *Store) Discard() (names []string) {
	rest := s.Take("")
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		_ = s.Remove(name)
		unix.Close(rest[name])
		names = append(names, name)
	}
	return names
}

// Close closes the connection to the service manager, which keeps what it has. The errors are those of net.Conn.
func (s *Store) Close() error {
	if s == nil {
		return nil
	}
	return s.conn.Close()
}
