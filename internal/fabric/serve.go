// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fabric

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// protocolVersion is the first message to a client.
	protocolVersion = 0
	// memoryMessage comes with the memory.
	memoryMessage = -1
	// noNumber takes the place of the number of a client that becomes no member.
	noNumber = -1
	// acceptDelay is the time after which accepting is tried again, if the process has too many files for example.
	acceptDelay = 100 * time.Millisecond
)

// Serve makes members of the clients that connect, until ctx ends or l is closed; it closes l. Members stay when it returns, until
// Close. It returns nil when ctx ends, else the error of l.
func (f *Fabric) Serve(ctx context.Context, l *net.UnixListener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer l.Close()
	var repairing sync.WaitGroup
	defer repairing.Wait()
	rctx, end := context.WithCancel(ctx)
	defer end()
	repairing.Go(func() { f.repairAlways(rctx) })
	for {
		if !f.pause(ctx) {
			return nil
		}
		conn, err := l.AcceptUnix()
		switch {
		case err == nil:
			f.join(conn)
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			f.log("cannot accept connections: %v", err)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(acceptDelay):
			}
		}
	}
}

// pause waits until another client may join. It returns false when ctx ends. Clients wait in the socket meanwhile.
func (f *Fabric) pause(ctx context.Context) bool {
	for {
		f.mu.Lock()
		wait := f.joins.take(time.Now())
		f.mu.Unlock()
		if wait == 0 {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// repairAlways repairs the directory from time to time, until ctx ends.
func (f *Fabric) repairAlways(ctx context.Context) {
	tick := time.NewTicker(f.cfg.repair)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.repair()
		}
	}
}

// repair clears the GIDs of members that are marked as removed in the directory, although this server serves them: another member has
// written that. Their guests have stopped to use the fabric when they have seen it, and can join again when it is cleared. It is
// cleared the second time that it is seen, so that the guests see it as well.
func (f *Fabric) repair() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var cleared []int
	for number, m := range f.members {
		if m == nil || m.expelled || f.closed {
			continue
		}
		e, err := f.mem.readEntry(number)
		was := m.suspect
		m.suspect = err == nil && f.layout.decodeEntry(e).gid == removedGID
		if was && m.suspect {
			m.suspect = false
			f.setGID(number, 0)
			cleared = append(cleared, number)
		}
	}
	if len(cleared) > 0 {
		f.log("members %v were marked as removed in the memory, which another member has done: their guests can load the module again", cleared)
	}
}

// join makes a member of a connection, or refuses it.
func (f *Fabric) join(conn *net.UnixConn) {
	m, err := newMember(conn)
	if err != nil {
		f.log("refused a connection: %v", err)
		conn.Close()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	err = f.admit(m)
	switch {
	case err == nil:
		return
	case errors.Is(err, errFull):
		switch n := f.refused.add(time.Now()); n {
		case 0:
		case 1:
			f.log("refused PID %d: %v: raise members=", m.pid, err)
		default:
			f.log("refused PID %d, and %d others since the last such line: %v: raise members=", m.pid, n-1, err)
		}
	case !errors.Is(err, net.ErrClosed):
		f.log("refused a connection of PID %d: %v", m.pid, err)
	}
	f.refuse(m)
}

// refuse sends a client that becomes no member a number that none can have, for which QEMU reports an error. If the connection ended before QEMU
// has read that, QEMU would read from it for ever, without a pause, and with it would hang a guest that runs and is to get a device. So it stays
// until the client ends it, for as long as members may take to read, unless there are many. Called with mu.
func (f *Fabric) refuse(m *member) {
	// The socket has room for two messages, since nothing was sent before.
	_, err := m.send([]message{{protocolVersion, -1}, {noNumber, -1}}, time.Now().Add(time.Second))
	if err = errors.Join(err, m.conn.SetReadDeadline(time.Now().Add(f.cfg.stall))); err != nil || f.closed || len(f.lingering) == lingerMax {
		m.conn.Close()
		return
	}
	f.lingering[m] = true
	f.running.Go(func() {
		_, _ = m.conn.Read(make([]byte, 1))
		m.conn.Close()
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.lingering, m)
	})
}

// admit gives a member its number, and starts its goroutines. Called with mu.
func (f *Fabric) admit(m *member) error {
	if f.closed {
		return net.ErrClosed
	}
	if m.number = slices.Index(f.members, nil); m.number < 0 {
		return errFull
	}
	// Members may have overwritten the header.
	if err := errors.Join(f.writeHeader(), f.mem.clearEntry(m.number)); err != nil {
		return err
	}
	if err := f.keepMember(m); err != nil {
		return err
	}
	// Others may have rung since the last member left.
	f.drain(m.number)
	f.members[m.number] = m
	f.logMember(m, "joined")
	f.running.Go(func() { f.read(m) })
	f.running.Go(func() { f.welcome(m) })
	return nil
}

// welcome sends a member everything that it needs; after that, it is sent nothing: the doorbells are those of all numbers, so that it need
// not know who joins and leaves. QEMU does not notice if the server stops in the middle: with the memory the guest is a member, so its number
// stays taken unless it has ended.
func (f *Fabric) welcome(m *member) {
	defer close(m.welcomed)
	all := []message{
		{protocolVersion, -1},
		{int64(m.number), -1},
		{memoryMessage, int(f.mem.file.Fd())},
	}
	for number := range f.doorbells {
		if number != m.number {
			all = append(all, f.announce(number)...)
		}
	}
	// Its own ones are last, as from QEMU's server.
	all = append(all, f.announce(m.number)...)
	sent, err := m.send(all, time.Now().Add(f.cfg.stall))
	hasMemory := sent > slices.IndexFunc(all, func(msg message) bool { return msg.number == memoryMessage })

	f.mu.Lock()
	defer f.mu.Unlock()
	f.welcomed(m, hasMemory, err)
}

// welcomed ends joining after a member has been sent what was possible. Called with mu.
func (f *Fabric) welcomed(m *member, hasMemory bool, err error) {
	switch {
	case f.closed || f.members[m.number] != m:
	case err == nil:
		f.unmark(m)
	case !hasMemory || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET):
		f.leave(m, fmt.Sprintf("left: %v", err))
	case errors.Is(err, os.ErrDeadlineExceeded):
		f.expel(m, fmt.Sprintf("it has not read its doorbells within %v", f.cfg.stall))
	default:
		f.expel(m, fmt.Sprintf("it cannot be sent its doorbells: %v", errno(err)))
	}
}

// announce returns the messages with the doorbells of a number.
func (f *Fabric) announce(number int) (all []message) {
	for _, e := range f.doorbells[number] {
		all = append(all, message{int64(number), e.fd})
	}
	return all
}

// read waits for the end of a connection: clients send nothing. Files that one sends nevertheless are closed by the kernel, because
// this does not ask for them.
func (f *Fabric) read(m *member) {
	var b [1]byte
	n, err := m.conn.Read(b[:])
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed || f.members[m.number] != m:
		return
	case n > 0:
		f.leave(m, "removed: it sent data, which no ivshmem device does")
	case errors.Is(err, io.EOF):
		f.leave(m, "left")
	default:
		f.leave(m, fmt.Sprintf("left: %v", err))
	}
}

// leave removes a member. Called with mu.
func (f *Fabric) leave(m *member, how string) {
	f.logMember(m, how)
	// Also if it is expelled: its guest may have rebooted, and written a GID again.
	f.setGID(m.number, 0)
	f.stored(f.cfg.Store.Remove(f.storeName(peerName(m.number, m.since))))
	f.unmark(m)
	f.members[m.number] = nil
	f.ringMembers()
	// The service manager has the connection, too, so closing is not enough.
	_ = m.conn.CloseWrite()
	_ = m.conn.CloseRead()
	m.conn.Close()
	f.drain(m.number)
}

// expel ends the membership of a client that has the memory, but not all doorbells. Its connection and its number stay until it ends:
// another guest with the same number would use the same area. It stays marked, so that the next server does the same. Called with mu.
func (f *Fabric) expel(m *member, why string) {
	f.logMember(m, "removed: "+why)
	m.expelled = true
	f.setGID(m.number, removedGID)
	// Its own guest finds out by its entry of the directory.
	f.ringMembers()
}

// setGID sets a member's GID in the directory to one of those that memory.setGID has.
func (f *Fabric) setGID(number int, gid uint64) {
	if err := f.mem.setGID(number, gid); err != nil {
		f.log("cannot clear the GID of member %d: %v", number, err)
	}
}

// ringMembers has the guests of all members search the directory. Called with mu.
func (f *Fabric) ringMembers() {
	for number, m := range f.members {
		if m != nil {
			f.doorbells[number][VectorMembers].ring()
		}
	}
}
