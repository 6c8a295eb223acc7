// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fabric

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// joinMessages is how many messages a client of testConfig receives while it joins: version, number, memory, doorbells.
const joinMessages = 3 + 4*Vectors

// messagesToMemory is after how many of them a client has the memory, so that its guest can write to the directory.
const messagesToMemory = 3

// receiveSome receives the first messages.
func (c *client) receiveSome(n int) {
	c.t.Helper()
	for i := range n {
		if err := c.receive(); err != nil {
			c.t.Fatalf("after %d messages: %v", i, err)
		}
	}
}

// TestKilledWhileJoining ends a client after each message that it receives while it joins. The members are rung, the directory, the number
// and all files of the client are free again, and the next client with the number reaches everybody.
func TestKilledWhileJoining(t *testing.T) {
	s := start(t, testConfig(), t.TempDir())
	a, b := s.join(t), s.join(t)
	head := a.mapped()
	for received := 0; received <= joinMessages; received++ {
		before := openFiles(t)
		victim := s.dial(t)
		victim.receiveSome(received)
		if received >= messagesToMemory {
			setGID(head, victim.number, 7)
		}
		s.waitMembers(t, 3)
		victim.close()
		s.waitMembers(t, 2)
		for _, m := range []*client{a, b} {
			m.rung(VectorMembers)
		}
		for n := range s.layout.Members {
			if g := gid(head, n); g != 0 {
				t.Errorf("after %d messages, member %d has the GID %x", received, n, g)
			}
		}
		waitFiles(t, before)
		next := s.join(t)
		if next.number != 2 || !a.knows(next) || !next.knows(a) || !next.knows(b) {
			t.Errorf("after %d messages, member %d joins, whose doorbells are not those of the others", received, next.number)
		}
		a.ring(next.number, VectorSignal)
		next.rung(VectorSignal)
		next.ring(b.number, VectorSignal)
		b.rung(VectorSignal)
		next.close()
		s.waitMembers(t, 2)
		for _, m := range []*client{a, b} {
			m.rung(VectorMembers)
		}
		waitFiles(t, before)
	}
}

// waitFiles waits until this process has a number of files.
func waitFiles(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(deadline); openFiles(t) != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d files are open, %d before", openFiles(t), n)
		}
	}
}

// TestServerEndsWhileJoining ends the server after each message that a client has received, and starts it again. If the client has been sent
// everything, it is a member. Otherwise its guest may have the memory, so its number stays taken until it ends.
func TestServerEndsWhileJoining(t *testing.T) {
	for received := 0; received <= joinMessages; received++ {
		t.Run(fmt.Sprintf("after %d", received), func(t *testing.T) {
			// The server waits for the client before it ends.
			t.Parallel()
			serverEndsAfter(t, received)
		})
	}
}

func serverEndsAfter(t *testing.T, received int) {
	m, dir, c, first, a := startKept(t)
	victim := first.stall(t)
	victim.receiveSome(received)
	first.stop()
	victim.receiveRest()
	complete := victim.joined()

	c.Store = m.store()
	second := start(t, c, dir)
	second.log.wait(t, "continued with 2 members")
	a.rung(VectorMembers)
	if got := removed(second.Status()); slices.Equal(got, []int{1}) == complete || len(got) > 1 {
		t.Errorf("the client has received everything: %t; removed members: %v", complete, got)
	}
	next := second.join(t)
	if next.number != 2 || !a.knows(next) {
		t.Errorf("member %d joins, whose doorbells are not those of the others", next.number)
	}
	if complete {
		next.ring(1, VectorSignal)
		victim.rung(VectorSignal)
	}
	victim.close()
	second.waitMembers(t, 2)
	a.rung(VectorMembers)
	if again := second.join(t); again.number != 1 || !a.knows(again) {
		t.Errorf("member %d joins after the client has ended", again.number)
	}
}

// receiveRest receives what the server has sent.
func (c *client) receiveRest() {
	c.t.Helper()
	raw, err := c.conn.SyscallConn()
	if err != nil {
		c.t.Fatal(err)
	}
	for {
		var n int
		_ = raw.Control(func(fd uintptr) { n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) })
		if n == 0 && err == nil {
			return
		}
		if err := errors.Join(err, c.receive()); err != nil {
			c.t.Fatal(err)
		}
	}
}
