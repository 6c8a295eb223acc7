// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fabric

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/fdstore"
	"golang.org/x/sys/unix"
)

// deadline is how long a test waits for a thing that comes soon.
const deadline = 20 * time.Second

// server is a fabric that serves at a socket.
type server struct {
	*Fabric
	path string
	log  *logLines
	stop func()
}

// logLines collects the log.
type logLines struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{}
}

func newLog() *logLines { return &logLines{more: make(chan struct{}, 1)} }

func (l *logLines) add(line string) {
	l.mu.Lock()
	l.lines = append(l.lines, line)
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// wait waits until a line of the log contains a text.
func (l *logLines) wait(t *testing.T, text string) {
	t.Helper()
	end := time.After(deadline)
	for {
		l.mu.Lock()
		all := strings.Join(l.lines, "\n")
		l.mu.Unlock()
		if strings.Contains(all, text) {
			return
		}
		select {
		case <-l.more:
		case <-end:
			t.Fatalf("no line has %q: %s", text, all)
		}
	}
}

// testConfig is a small fabric.
func testConfig() Config { return Config{Name: "blue", Size: SizeMin(4), Members: 4} }

func start(t *testing.T, c Config, dir string) *server {
	t.Helper()
	s := &server{path: filepath.Join(dir, "blue.sock"), log: newLog()}
	c.Log = s.log.add
	f, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Fabric = f
	l, err := f.Listen(s.path, Permissions{Mode: 0o600, UID: -1, GID: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Serve(ctx, l) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// waitMembers waits until the fabric has a number of members.
func (s *server) waitMembers(t *testing.T, n int) Status {
	t.Helper()
	for end := time.Now().Add(deadline); ; {
		st := s.Status()
		if len(st.Members) == n {
			return st
		}
		if time.Now().After(end) {
			t.Fatalf("%d members, not %d", len(st.Members), n)
		}
		time.Sleep(time.Millisecond)
	}
}

// client is what QEMU's device is to the server.
type client struct {
	t      *testing.T
	conn   *net.UnixConn
	number int
	memory int
	// members is how many numbers the fabric has, and peers are the doorbells of each, its own among them.
	members int
	peers   map[int][]int
}

func (s *server) dial(t *testing.T) *client {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: s.path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	return s.client(t, conn)
}

// client returns a client that has received nothing.
func (s *server) client(t *testing.T, conn *net.UnixConn) *client {
	c := &client{t: t, conn: conn, number: -1, memory: -1, members: s.layout.Members, peers: map[int][]int{}}
	t.Cleanup(c.close)
	return c
}

// stall joins, and receives nothing.
func (s *server) stall(t *testing.T) *client {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*net.UnixConn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "a socket")
		conn, err := net.FileConn(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = conn.(*net.UnixConn)
	}
	s.Fabric.join(conns[0])
	return s.client(t, conns[1])
}

// joinSoon joins when the server has handled connections that have ended: they may have all numbers as yet.
func (s *server) joinSoon(t *testing.T) *client {
	t.Helper()
	for end := time.Now().Add(deadline); ; time.Sleep(time.Millisecond) {
		c := s.dial(t)
		for !c.joined() {
			err := c.receive()
			if errors.Is(err, errRefused) && time.Now().Before(end) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if c.joined() {
			return c
		}
		c.close()
	}
}

// join connects and receives everything.
func (s *server) join(t *testing.T) *client {
	t.Helper()
	c := s.dial(t)
	c.join()
	return c
}

// join receives everything.
func (c *client) join() {
	c.t.Helper()
	for !c.joined() {
		if err := c.receive(); err != nil {
			c.t.Fatal(err)
		}
	}
}

// joined reports whether the client has all that it needs.
func (c *client) joined() bool {
	n := 0
	for _, fds := range c.peers {
		n += len(fds)
	}
	return n == c.members*Vectors
}

// close ends the connection. Clients that have joined must not have been sent anything since.
func (c *client) close() {
	if c.joined() {
		c.checkSilence()
	}
	c.conn.Close()
	for _, fds := range c.peers {
		closeFDs(fds)
	}
	c.peers = nil
	if c.memory >= 0 {
		unix.Close(c.memory)
		c.memory = -1
	}
}

// checkSilence checks that there is no message.
func (c *client) checkSilence() {
	c.t.Helper()
	raw, err := c.conn.SyscallConn()
	if err != nil {
		c.t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) {
		if n, _, err := unix.Recvfrom(int(fd), make([]byte, 8), unix.MSG_DONTWAIT|unix.MSG_PEEK); err == nil && n > 0 {
			c.t.Errorf("member %d is sent something after it has joined", c.number)
		}
	})
}

func closeFDs(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// errRefused means that the client has got no number.
var errRefused = errors.New("the server refuses the client")

// checkRefused checks that the client gets no number.
func (c *client) checkRefused() {
	c.t.Helper()
	err := c.receive()
	if err == nil {
		err = c.receive()
	}
	if !errors.Is(err, errRefused) {
		c.t.Errorf("one member too many: %v", err)
	}
}

// next returns the next message; fd is -1 if it has no file.
func (c *client) next() (number int64, fd int, err error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(deadline)); err != nil {
		return 0, -1, err
	}
	b, oob := make([]byte, 8), make([]byte, 128)
	n, oobn, _, _, err := c.conn.ReadMsgUnix(b, oob)
	if err != nil {
		return 0, -1, err
	}
	if n != 8 {
		return 0, -1, fmt.Errorf("a message of %d bytes", n)
	}
	fd = -1
	if oobn > 0 {
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil || len(messages) != 1 {
			return 0, -1, fmt.Errorf("%d control messages: %w", len(messages), err)
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil || len(fds) != 1 {
			return 0, -1, fmt.Errorf("%d files: %w", len(fds), err)
		}
		fd = fds[0]
	}
	return int64(binary.LittleEndian.Uint64(b)), fd, nil
}

// receive handles a message as QEMU's device does. It returns an error where that would report one.
func (c *client) receive() error {
	number, fd, err := c.next()
	if err != nil {
		return err
	}
	switch {
	case c.number == -1:
		if number != 0 || fd >= 0 {
			return fmt.Errorf("the version is %d, with file %d", number, fd)
		}
		c.number = -2
	case c.number == -2:
		if number == noNumber && fd < 0 {
			return errRefused
		}
		if number < 0 || fd >= 0 {
			return fmt.Errorf("its number is %d, with file %d", number, fd)
		}
		c.number = int(number)
	case number == -1:
		if c.memory >= 0 || fd < 0 {
			return errors.New("a second memory, or none")
		}
		c.memory = fd
	case number < 0 || c.memory < 0:
		return fmt.Errorf("message %d comes too early", number)
	case fd >= 0:
		if len(c.peers[int(number)]) == Vectors {
			return fmt.Errorf("too many doorbells of member %d", number)
		}
		c.peers[int(number)] = append(c.peers[int(number)], fd)
	default:
		// QEMU would free its doorbells of the member, and use them when the next one with this number joins.
		return fmt.Errorf("member %d is gone", number)
	}
	return nil
}

// knows reports whether its doorbells of another member are those of that client.
func (c *client) knows(other *client) bool {
	for i, fd := range c.peers[other.number] {
		if doorbellID(c.t, fd) != doorbellID(c.t, other.peers[other.number][i]) {
			return false
		}
	}
	return true
}

// doorbellID returns the kernel's number of an eventfd.
func doorbellID(t *testing.T, fd int) string {
	t.Helper()
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		t.Fatal(err)
	}
	_, id, ok := strings.Cut(string(info), "eventfd-id:")
	if !ok {
		t.Fatalf("no ID of the eventfd: %s", info)
	}
	id, _, _ = strings.Cut(id, "\n")
	return id
}

// rung waits for one of its own doorbells.
func (c *client) rung(vector int) {
	c.t.Helper()
	c.rungFor(c.number, vector)
}

// rungFor waits for a doorbell of any member: all have the same ones.
func (c *client) rungFor(member, vector int) {
	c.t.Helper()
	fds := []unix.PollFd{{Fd: int32(c.peers[member][vector]), Events: unix.POLLIN}}
	if n, err := poll(fds); n != 1 || err != nil {
		c.t.Fatalf("member %d: vector %d: no doorbell (%v)", member, vector, err)
	}
	var b [8]byte
	if _, err := unix.Read(c.peers[member][vector], b[:]); err != nil {
		c.t.Fatal(err)
	}
}

// rungAll forgets which of its own doorbells have been rung. The server must not be ringing one.
func (c *client) rungAll() {
	c.t.Helper()
	for _, fd := range c.peers[c.number] {
		if _, err := unix.Read(fd, make([]byte, 8)); err != nil && !errors.Is(err, unix.EAGAIN) {
			c.t.Fatal(err)
		}
	}
}

func poll(fds []unix.PollFd) (n int, err error) {
	for end := time.Now().Add(deadline); time.Now().Before(end); {
		if n, err = unix.Poll(fds, int(deadline/time.Millisecond)); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
	return 0, unix.ETIMEDOUT
}

// mapped maps the first bytes of the memory, for writing.
func (c *client) mapped() []byte {
	c.t.Helper()
	b, err := unix.Mmap(c.memory, 0, headLen, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = unix.Munmap(b) })
	return b
}

// gid returns the second half of a member's GID in the directory.
func gid(mapped []byte, member int) uint64 {
	return binary.LittleEndian.Uint64(mapped[entry(member)+entryGID:])
}

// setGID does what the module of a guest does when its area is ready.
func setGID(mapped []byte, member int, random uint64) {
	binary.LittleEndian.PutUint64(mapped[entry(member)+entryGID:], uint64(member)<<56|random)
}

// waitGID waits for the second half of a member's GID.
func waitGID(t *testing.T, mapped []byte, member int, want uint64) {
	t.Helper()
	for end := time.Now().Add(deadline); gid(mapped, member) != want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the GID of member %d is %x, not %x", member, gid(mapped, member), want)
		}
	}
}

// manager is a service manager.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
	path string
	// settled has an element for each message that is not about files.
	settled chan struct{}

	mu   sync.Mutex
	kept map[string]int
}

func newManager(t *testing.T) *manager {
	t.Helper()
	m := &manager{t: t, path: filepath.Join(t.TempDir(), "notify"), settled: make(chan struct{}, 1), kept: map[string]int{}}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	m.conn = conn
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.serve()
	}()
	t.Cleanup(func() {
		conn.Close()
		<-ended
		for _, fd := range m.kept {
			unix.Close(fd)
		}
	})
	return m
}

func (m *manager) serve() {
	b, oob := make([]byte, 4096), make([]byte, 128)
	for {
		n, oobn, _, _, err := m.conn.ReadMsgUnix(b, oob)
		if err != nil {
			return
		}
		m.handle(string(b[:n]), oob[:oobn])
	}
}

func (m *manager) handle(state string, oob []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, name, _ := strings.Cut(state, "FDNAME=")
	if strings.Contains(state, "FDSTOREREMOVE=1") {
		if fd, ok := m.kept[name]; ok {
			unix.Close(fd)
			delete(m.kept, name)
		}
		return
	}
	if !strings.Contains(state, "FDSTORE=1") {
		m.settled <- struct{}{}
		return
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		m.t.Errorf("%q: %d control messages: %v", state, len(messages), err)
		return
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		m.t.Errorf("%q: %d files: %v", state, len(fds), err)
		return
	}
	if old, ok := m.kept[name]; ok {
		m.t.Errorf("%s is kept twice", name)
		unix.Close(old)
	}
	// systemd ignores a second name of a file.
	for other, fd := range m.kept {
		if isSameFile(fd, fds[0]) {
			m.t.Errorf("%s is the same file as %s", name, other)
		}
	}
	m.kept[name] = fds[0]
}

// isSameFile reports whether file descriptors are duplicates, if the kernel says so.
func isSameFile(a, b int) bool {
	const kcmpFile = 0
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(os.Getpid()), kcmpFile, uintptr(a), uintptr(b), 0)
	return errno == 0 && order == 0
}

// wait waits until the files that it keeps match a condition.
func (m *manager) wait(condition func(names map[string]int) bool) {
	m.t.Helper()
	for end := time.Now().Add(deadline); ; {
		m.mu.Lock()
		ok := condition(m.kept)
		m.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			m.t.Fatalf("it keeps %v", m.kept)
		}
		time.Sleep(time.Millisecond)
	}
}

// settle waits until it has handled all messages so far, as systemd does before it starts a process.
func (m *manager) settle() {
	m.t.Helper()
	conn, err := net.Dial("unixgram", m.path)
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("STATUS=")); err != nil {
		m.t.Fatal(err)
	}
	select {
	case <-m.settled:
	case <-time.After(deadline):
		m.t.Fatal("it does not handle messages")
	}
}

// store starts the next process of the service: it gets duplicates of all files.
func (m *manager) store() *fdstore.Store {
	m.t.Helper()
	m.settle()
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := map[string]int{}
	for name, fd := range m.kept {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			m.t.Fatal(err)
		}
		kept[name] = dup
	}
	s, err := fdstore.Dial(m.path, kept)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { s.Close() })
	return s
}
