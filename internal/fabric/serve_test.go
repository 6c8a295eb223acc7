// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fabric

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestJoinAndLeave(t *testing.T) {
	s := start(t, testConfig(), t.TempDir())
	a, b, c := s.join(t), s.join(t), s.join(t)
	for i, m := range []*client{a, b, c} {
		if m.number != i {
			t.Errorf("the client that joined as number %d is member %d", i, m.number)
		}
	}
	head := a.mapped()
	if want := s.layout.header("blue", DefaultCHID, s.uuid); !bytes.Equal(head[:headerLen], want) {
		t.Errorf("header %x, want %x", head[:headerLen], want)
	}
	checkMemory(t, a.memory, s.layout.Size)

	// A doorbell of one member is what another member has under its number.
	b.ring(2, VectorSignal)
	c.rung(VectorSignal)

	setGID(head, 1, 7)
	b.close()
	for _, m := range []*client{a, c} {
		m.rung(VectorMembers)
	}
	if g := gid(head, 1); g != 0 {
		t.Errorf("the GID of a member that is gone is %x", g)
	}

	// The number is used again, with an empty entry and without rings for the former member.
	s.waitMembers(t, 2)
	copy(head[entry(1)+entryHost:], "former")
	a.ring(1, VectorSignal)
	d := s.join(t)
	if d.number != 1 || head[entry(1)+entryHost] != 0 {
		t.Errorf("member %d, its host begins with %q", d.number, head[entry(1)+entryHost])
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(d.peers[1][VectorSignal]), Events: unix.POLLIN}}, 0); n != 0 || err != nil {
		t.Errorf("the new member has a ring for the former one (%v)", err)
	}
	// The others ring it by the doorbells that they have had from the start.
	for _, m := range []*client{a, c} {
		m.ring(1, VectorSignal)
		d.rung(VectorSignal)
	}
	d.ring(0, VectorSignal)
	a.rung(VectorSignal)
}

// ring rings another member's doorbell.
func (c *client) ring(member, vector int) {
	c.t.Helper()
	if _, err := unix.Write(c.peers[member][vector], []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		c.t.Fatal(err)
	}
}

// checkMemory checks that no member can change the size of the memory, or keep others from writing to it.
func checkMemory(t *testing.T, fd int, size uint64) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || uint64(st.Size) != size {
		t.Errorf("the memory has %d bytes (%v)", st.Size, err)
	}
	for _, n := range []int64{0, int64(size) - 4096, int64(size) + 4096} {
		if err := unix.Ftruncate(fd, n); !errors.Is(err, unix.EPERM) {
			t.Errorf("a member can make the memory %d bytes long: %v", n, err)
		}
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_FUTURE_WRITE); !errors.Is(err, unix.EPERM) {
		t.Errorf("a member can add seals: %v", err)
	}
}

func TestFull(t *testing.T) {
	c := testConfig()
	c.joinRate = 1e6
	s := start(t, c, t.TempDir())
	var all []*client
	for range s.layout.Members {
		all = append(all, s.join(t))
	}
	// QEMU may read later, for which the connection has to be there, but not each of any number of them.
	var refused []*client
	for range 2 * lingerMax {
		extra := s.dial(t)
		extra.checkRefused()
		refused = append(refused, extra)
	}
	s.log.wait(t, "fabric blue: refused PID ")
	s.waitLingering(t, lingerMax)
	for _, extra := range refused {
		extra.conn.Close()
	}
	s.waitLingering(t, 0)
	all[2].close()
	s.waitMembers(t, s.layout.Members-1)
	if m := s.join(t); m.number != 2 {
		t.Errorf("member %d", m.number)
	}
}

// waitLingering waits until a number of refused clients keep their connections.
func (s *server) waitLingering(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(deadline); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		have := len(s.lingering)
		s.mu.Unlock()
		if have == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d refused clients keep their connections, want %d", have, n)
		}
	}
}

func TestGarbage(t *testing.T) {
	s := start(t, testConfig(), t.TempDir())
	for _, garbage := range [][]byte{{0}, bytes.Repeat([]byte{0xff}, 8), bytes.Repeat([]byte("x"), 1<<16)} {
		b := s.join(t)
		// The server may close the connection before all is sent.
		_, _ = b.conn.Write(garbage)
		s.waitMembers(t, 0)
	}
	s.log.wait(t, "member 0 removed: it sent data, which no ivshmem device does, PID ")
}

// TestFilesFromClients checks that the server does not hold files that clients send.
func TestFilesFromClients(t *testing.T) {
	s := start(t, testConfig(), t.TempDir())
	b := s.join(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fd, err := unix.FcntlInt(w.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, _, err := b.conn.WriteMsgUnix([]byte{1}, unix.UnixRights(fd, fd, fd), nil); err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	s.waitMembers(t, 0)
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the pipe is open: %d, %v", n, err)
	}
}

func TestHalfClosed(t *testing.T) {
	s := start(t, testConfig(), t.TempDir())
	s.join(t)
	b := s.join(t)
	if err := b.conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	s.waitMembers(t, 1)
	// A client that stops to receive while it joins, but has not ended.
	c := s.stall(t)
	if err := c.conn.CloseRead(); err != nil {
		t.Fatal(err)
	}
	s.waitMembers(t, 1)
}

// TestManyConnections connects and ends at once, thousands of times. It counts files, and checks that a member does not notice.
func TestManyConnections(t *testing.T) {
	c := testConfig()
	c.joinRate = 1e6
	s := start(t, c, t.TempDir())
	a := s.join(t)
	before := openFiles(t)
	ended := make(chan error, 4)
	for range cap(ended) {
		go func() {
			var err error
			for range 500 {
				var conn *net.UnixConn
				if conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: s.path, Net: "unix"}); err != nil {
					break
				}
				conn.Close()
			}
			ended <- err
		}()
	}
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	d := s.joinSoon(t)
	a.ring(d.number, VectorSignal)
	d.rung(VectorSignal)
	d.close()
	s.waitMembers(t, 1)
	for end := time.Now().Add(deadline); openFiles(t) > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d files are open, %d before", openFiles(t), before)
		}
	}
}

// openFiles counts the files of this process, which is client and server.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestStalledMember checks that a client that does not read what it is sent is removed, that others can join meanwhile, and that its
// number stays taken while its connection is open.
func TestStalledMember(t *testing.T) {
	c := testConfig()
	c.stall = 500 * time.Millisecond
	s := start(t, c, t.TempDir())
	a, b := s.join(t), s.stall(t)
	head := a.mapped()
	setGID(head, 1, 9)
	s.join(t)
	s.log.wait(t, "member 1 removed")
	waitGID(t, head, 1, removedGID)
	// Its own guest is rung, too.
	a.rungFor(1, VectorMembers)
	if d := s.join(t); d.number != 3 {
		t.Errorf("the number of a guest that still has the memory is given again: %d", d.number)
	}
	if got := removed(s.Status()); !slices.Equal(got, []int{1}) {
		t.Errorf("the status has these removed members: %v", got)
	}
	// The guest reboots, and does not know that its member is removed.
	setGID(head, 1, 9)
	a.rungAll()
	b.close()
	s.waitMembers(t, 3)
	if g := gid(head, 1); g != 0 {
		t.Errorf("its GID is %x after its connection has ended", g)
	}
	a.rung(VectorMembers)
	if d := s.join(t); d.number != 1 {
		t.Errorf("the number is %d after the connection has ended", d.number)
	}
}

// TestEndOfJoining checks which numbers stay taken when a member cannot be sent everything: those whose guests may have the memory.
func TestEndOfJoining(t *testing.T) {
	for _, tc := range []struct {
		hasMemory     bool
		err           error
		left, removed bool
	}{
		{true, nil, false, false},
		{true, os.ErrDeadlineExceeded, false, true},
		{true, unix.ETOOMANYREFS, false, true},
		{true, unix.EPIPE, true, false},
		{true, unix.ECONNRESET, true, false},
		{false, os.ErrDeadlineExceeded, true, false},
		{false, unix.ETOOMANYREFS, true, false},
	} {
		s := start(t, testConfig(), t.TempDir())
		c := s.join(t)
		s.waitMembers(t, 1)
		s.mu.Lock()
		s.welcomed(s.members[0], tc.hasMemory, tc.err)
		left := s.members[0] == nil
		s.mu.Unlock()
		if got := len(removed(s.Status())) > 0; left != tc.left || got != tc.removed {
			t.Errorf("%v, %v: left %t, removed %t", tc.hasMemory, tc.err, left, got)
		}
		c.close()
		s.stop()
	}
}

// TestMarkedAsRemoved checks that the server clears the mark of members that it serves, and of no others.
func TestMarkedAsRemoved(t *testing.T) {
	c := testConfig()
	c.repair, c.stall = 5*time.Millisecond, 100*time.Millisecond
	s := start(t, c, t.TempDir())
	a, _ := s.join(t), s.stall(t)
	head := a.mapped()
	waitGID(t, head, 1, removedGID)
	s.join(t)
	setGID(head, 0, 5)
	binary.LittleEndian.PutUint64(head[entry(2)+entryGID:], removedGID)
	waitGID(t, head, 2, 0)
	s.log.wait(t, "members [2] were marked as removed in the memory, which another member has done")
	if gid(head, 0) != 5 || gid(head, 1) != removedGID {
		t.Errorf("the GIDs of others are %x and %x", gid(head, 0), gid(head, 1))
	}
}

// removed returns the numbers of the members that are removed.
func removed(s Status) (numbers []int) {
	for _, m := range s.Members {
		if m.Removed {
			numbers = append(numbers, m.Number)
		}
	}
	return numbers
}

// TestDoorbellsThatBlock checks that a member that makes others' doorbells block does not stop the server.
func TestDoorbellsThatBlock(t *testing.T) {
	s := start(t, testConfig(), t.TempDir())
	a, b, c := s.join(t), s.join(t), s.join(t)
	for _, fds := range [][]int{a.peers[1], a.peers[2]} {
		if _, err := unix.Write(fds[VectorMembers], []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.FcntlInt(uintptr(fds[VectorMembers]), unix.F_SETFL, 0); err != nil {
			t.Fatal(err)
		}
	}
	head := a.mapped()
	setGID(head, 0, 5)
	a.close()
	waitGID(t, head, 0, 0)
	// The doorbells of members that are there, and of those that leave and join, do not keep it from serving.
	b.close()
	s.waitMembers(t, 1)
	d, e := s.join(t), s.join(t)
	d.ring(e.number, VectorSignal)
	e.rung(VectorSignal)
	c.close()
	e.rung(VectorMembers)
}

// TestDrainNeverBlocks drains a doorbell that has not been rung, after a member has cleared O_NONBLOCK.
func TestDrainNeverBlocks(t *testing.T) {
	e, err := makeEventfd()
	if err != nil {
		t.Fatal(err)
	}
	defer e.put()
	if _, err := unix.FcntlInt(uintptr(e.fd), unix.F_SETFL, 0); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	go func() {
		e.drain()
		close(drained)
	}()
	select {
	case <-drained:
	case <-time.After(deadline):
		t.Fatal("it blocks")
	}
}

// TestRingNeverBlocks rings a doorbell whose counter is full, while a member clears O_NONBLOCK all the time.
func TestRingNeverBlocks(t *testing.T) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(fd, []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	e := newEventfd(fd)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, 0)
			}
		}
	}()
	for range 20000 {
		e.ring()
	}
	close(stop)
	<-stopped
	for end := time.Now().Add(deadline); e.wanted.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the goroutine waits for ever")
		}
		e.drain()
	}
	e.put()
}

// TestExpelledMemberBlocks checks that a ring that blocks ends when a member leaves that has been expelled.
func TestExpelledMemberBlocks(t *testing.T) {
	s := start(t, testConfig(), t.TempDir())
	a := s.join(t)
	e := s.doorbells[0][VectorMembers]
	if _, err := unix.Write(e.fd, []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(e.fd), unix.F_SETFL, 0); err != nil {
		t.Fatal(err)
	}
	// This is what ring does if the member clears O_NONBLOCK just before the write.
	e.wanted.Add(1)
	written := make(chan error, 1)
	go func() {
		_, err := unix.Write(e.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		written <- err
	}()
	s.mu.Lock()
	s.expel(s.members[0], "of a test")
	s.mu.Unlock()
	a.close()
	select {
	case err := <-written:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(deadline):
		t.Error("the write blocks")
	}
}

// TestRingsMax checks that a doorbell is not rung when many rings block.
func TestRingsMax(t *testing.T) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	e := newEventfd(fd)
	defer e.put()
	rings.Add(ringsMax)
	e.ring()
	if n := e.wanted.Load(); n != 0 || rings.Load() < ringsMax {
		t.Errorf("%d rings are wanted, %d are under way", n, rings.Load())
	}
	if _, err := unix.Read(fd, make([]byte, 8)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("the doorbell is rung: %v", err)
	}
	rings.Add(-ringsMax)
	e.ring()
	if n, err := poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}); n != 1 || err != nil {
		t.Errorf("the doorbell is not rung: %v", err)
	}
}

func TestClose(t *testing.T) {
	s := start(t, testConfig(), t.TempDir())
	a, b := s.join(t), s.join(t)
	head := a.mapped()
	setGID(head, 0, 5)
	s.stop()
	for _, m := range []*client{a, b} {
		if _, _, err := m.next(); !errors.Is(err, io.EOF) {
			t.Errorf("member %d: %v", m.number, err)
		}
	}
	if gid(head, 0) == 0 {
		t.Error("the server has removed a member that goes on")
	}
	a.ring(1, VectorSignal)
	b.rung(VectorSignal)
	if _, err := os.Lstat(s.path); !os.IsNotExist(err) {
		t.Errorf("the socket still exists: %v", err)
	}
}

func TestStatus(t *testing.T) {
	s := start(t, testConfig(), t.TempDir())
	before := time.Now().Add(-time.Second)
	a := s.join(t)
	head := a.mapped()
	setGID(head, 0, 0x1234)
	copy(head[entry(0)+entryHost:], "guest\x1b[2J")
	head[entry(0)+entryUsed+7] = 0xff
	head[entry(0)+entryRung], head[entry(0)+entrySpared] = 3, 4
	st := s.Status()
	if len(st.Members) != 1 || st.Name != "blue" || st.Limit != 4 || st.CHID != DefaultCHID || st.GID == 0 {
		t.Fatalf("%+v", st)
	}
	m := st.Members[0]
	if m.PID != os.Getpid() || m.Since.Before(before) || m.ExtGID != 0x1234 || m.Host != "guest?[2J" || m.Used != st.AreaBytes || m.Rung != 3 || m.Spared != 4 {
		t.Errorf("%+v", m)
	}
}

func TestListen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	for range 2 { // The second time it is there already.
		l, err := Listen(path, Permissions{Mode: 0o620, UID: os.Getuid(), GID: os.Getgid()})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		st, err := os.Lstat(path)
		if err != nil || st.Mode().Perm() != 0o620 {
			t.Errorf("mode %v (%v)", st.Mode(), err)
		}
		l.Close()
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(file, Permissions{UID: -1, GID: -1}); err == nil || err.Error() != file+" exists and is not a socket: remove it" {
		t.Errorf("a file that is no socket: %v", err)
	}
	l, err := Listen(path, Permissions{UID: -1, GID: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path, Permissions{UID: -1, GID: -1}); err == nil || err.Error() != "another program listens at "+path+": stop it, or use another directory" {
		t.Errorf("a socket that another program has: %v", err)
	}
	if _, err := Listen(filepath.Join(dir, "missing", "s"), Permissions{UID: -1, GID: -1}); err == nil {
		t.Error("a directory that does not exist")
	}
}

// FuzzClient sends bytes and files at some moment of joining.
func FuzzClient(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00"), uint8(0), uint8(0))
	f.Add([]byte("\xff"), uint8(3), uint8(2))
	f.Add([]byte(""), uint8(7), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, after, files uint8) {
		s := start(t, testConfig(), t.TempDir())
		a, b := s.join(t), s.dial(t)
		for range after % 8 {
			if err := b.receive(); err != nil {
				t.Fatal(err)
			}
		}
		var rights []byte
		if n := int(files % 4); n > 0 && len(data) > 0 {
			rights = unix.UnixRights([]int{0, 1, 2}[:n]...)
		}
		_, _, _ = b.conn.WriteMsgUnix(data, rights, nil)
		b.close()
		d := s.joinSoon(t)
		a.ring(d.number, VectorSignal)
		d.rung(VectorSignal)
	})
}
