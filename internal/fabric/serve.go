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
	"time"
)

const (
	// protocolVersion is the first message to a client.
	protocolVersion = 0
	// memoryMessage comes with the memory.
	memoryMessage = -1
	// acceptDelay is the time after which accepting is tried again, if the process has too many files for example.
	acceptDelay = 100 * time.Millisecond
)

// Serve makes members of the clients that connect, until ctx ends or l is closed; it closes l. Members stay when it returns, until
// Close. It returns nil when ctx ends, else the error of l.
func (f *Fabric) Serve(ctx context.Context, l *net.UnixListener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer l.Close()
	for {
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

// join makes a member of a connection, or closes it.
func (f *Fabric) join(conn *net.UnixConn) {
	m, err := newMember(conn)
	if err != nil {
		f.log("refused a connection: %v", err)
		conn.Close()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch err := f.admit(m); {
	case errors.Is(err, errFull):
		switch n := f.refused.add(time.Now()); n {
		case 0:
		case 1:
			f.log("refused PID %d: %v: raise members=", m.pid, err)
		default:
			f.log("refused PID %d, and %d others since the last such line: %v: raise members=", m.pid, n-1, err)
		}
		m.close()
	case err != nil:
		m.close()
	}
}

// admit gives a member its number and sends everyone what they need to know. Called with mu.
func (f *Fabric) admit(m *member) error {
	if f.closed {
		return net.ErrClosed
	}
	if m.number = slices.Index(f.members, nil); m.number < 0 {
		return errFull
	}
	// Members may have overwritten the header.
	if err := errors.Join(f.writeHeader(), f.mem.clearEntry(m.number)); err != nil {
		f.log("refused a connection of PID %d: %v", m.pid, err)
		return err
	}
	f.keepVectors(m)
	f.members[m.number] = m
	f.log("member %d joined, PID %d", m.number, m.pid)
	f.welcome(m)
	for _, other := range f.others(m.number) {
		other.out.push(m.notices()...)
	}
	f.start(m)
	return nil
}

// notices returns the messages by which others learn of a member, and the member of its own doorbells.
func (m *member) notices() []message {
	var all []message
	for _, v := range m.vectors {
		all = append(all, message{kind: vector, number: int64(m.number), fd: v.fd, holds: v.get()})
	}
	return all
}

// welcome sends a member what it needs to begin. When it has received all that, the Store keeps its connection: if the server is killed
// before, the next one finds doorbells without a connection, and removes the member. Called with mu.
func (f *Fabric) welcome(m *member) {
	all := []message{
		{number: protocolVersion, fd: -1},
		{number: int64(m.number), fd: -1},
		{number: memoryMessage, fd: int(f.mem.file.Fd())},
	}
	for _, other := range f.others(m.number) {
		all = append(all, other.notices()...)
	}
	all = append(all, m.notices()...)
	all[len(all)-1].done = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.members[m.number] == m && !m.expelled && !f.closed {
			f.keepMember(m)
		}
	}
	m.out.push(all...)
}

// others returns the members that the server serves, except one. Called with mu.
func (f *Fabric) others(number int) (all []*member) {
	for _, other := range f.members {
		if other != nil && other.number != number && !other.expelled {
			all = append(all, other)
		}
	}
	return all
}

// announceGone sends all other members that a member is gone. Called with mu.
func (f *Fabric) announceGone(number int) {
	for _, other := range f.others(number) {
		other.out.pushGone(number)
	}
}

// start starts the goroutines of a member. Called with mu.
func (f *Fabric) start(m *member) {
	f.running.Add(2)
	go func() {
		defer f.running.Done()
		f.read(m)
	}()
	go func() {
		defer f.running.Done()
		f.write(m)
	}()
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

// write sends a member its messages.
func (f *Fabric) write(m *member) {
	for {
		msg, ok := m.out.pop()
		if !ok {
			return
		}
		err := msg.send(m.conn, f.cfg.stall)
		msg.put()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			f.mu.Lock()
			f.expel(m, fmt.Sprintf("it has read nothing for %v", f.cfg.stall))
			f.mu.Unlock()
			return
		case err != nil:
			f.mu.Lock()
			if !f.closed && f.members[m.number] == m {
				f.leave(m, fmt.Sprintf("left: %v", err))
			}
			f.mu.Unlock()
			return
		}
		if msg.done != nil {
			msg.done()
		}
	}
}

// leave removes a member. Called with mu.
func (f *Fabric) leave(m *member, how string) {
	f.log("member %d %s, PID %d", m.number, how, m.pid)
	// Also if it is expelled: its guest may have rebooted, and written a GID again.
	f.retire(m.number, 0)
	if !m.expelled {
		f.announceGone(m.number)
	}
	f.forget(m)
	f.members[m.number] = nil
	// The service manager has the connection, too, so closing is not enough.
	_ = m.conn.CloseWrite()
	_ = m.conn.CloseRead()
	for _, v := range m.vectors {
		if v != nil {
			v.abandon()
		}
	}
	m.close()
}

// expel ends the membership of a client that does not read. Its connection and its number stay until it ends, because its guest still
// has the memory: another guest with the same number would use the same area. Called with mu.
func (f *Fabric) expel(m *member, why string) {
	if f.closed || m.expelled || f.members[m.number] != m {
		return
	}
	f.log("member %d removed, PID %d: %s", m.number, m.pid, why)
	f.forget(m)
	m.expelled = true
	f.retire(m.number, removedGID)
	f.announceGone(m.number)
	// The guest finds out by its entry of the directory.
	m.vectors[VectorMembers].ring()
	m.out.close()
	f.keepMember(m)
}

// retire sets a member's GID to one of those that setGID has, and has the guests of all other members search the directory. Called with mu.
func (f *Fabric) retire(number int, gid uint64) {
	if err := f.mem.setGID(number, gid); err != nil {
		f.log("cannot clear the GID of member %d: %v", number, err)
	}
	for _, other := range f.others(number) {
		other.vectors[VectorMembers].ring()
	}
}
