// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fabric

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// member is a guest's QEMU that is connected.
type member struct {
	number int
	conn   *net.UnixConn
	// pid is that of the process which connected, 0 if the server cannot see it.
	pid     int
	since   time.Time
	vectors [Vectors]*eventfd
	out     outbox

	// expelled is set when the server does not serve the member any more, but its connection, and so its guest, still exist. Protected by
	// Fabric.mu.
	expelled bool
}

// newMember makes a member of a connection, which has no number yet.
func newMember(conn *net.UnixConn) (m *member, err error) {
	m = &member{conn: conn, since: time.Now()}
	m.out.init()
	if m.pid, err = peerPID(conn); err != nil {
		return nil, err
	}
	for i := range m.vectors {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			m.release()
			return nil, fmt.Errorf("cannot create a doorbell: %w", err)
		}
		m.vectors[i] = newEventfd(fd)
	}
	return m, nil
}

func peerPID(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil {
		err = cerr
	}
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

// close ends the goroutines of a member and closes its files.
func (m *member) close() {
	m.out.close()
	m.conn.Close()
	m.release()
}

// release gives back the doorbells.
func (m *member) release() {
	for i, v := range m.vectors {
		if v != nil {
			v.put()
			m.vectors[i] = nil
		}
	}
}

// eventfd is a doorbell. It is closed when the member is gone and all messages with it are sent.
type eventfd struct {
	// fd is no os.File: package os would poll it, and each doorbell between guests would wake this process.
	fd   int
	refs atomic.Int32
	// wanted counts calls of ring since its goroutine has last begun to write.
	wanted atomic.Int64
}

func newEventfd(fd int) *eventfd {
	e := &eventfd{fd: fd}
	e.refs.Store(1)
	return e
}

func (e *eventfd) get() *eventfd {
	e.refs.Add(1)
	return e
}

func (e *eventfd) put() {
	if e.refs.Add(-1) == 0 {
		unix.Close(e.fd)
	}
}

// ringsMax is how many rings can be under way in the process. Each one that blocks keeps a thread.
const ringsMax = 128

// rings is how many are.
var rings atomic.Int32

// ring rings the doorbell. Members share the flags of the file and can clear O_NONBLOCK at any time, so the write may block: a goroutine of
// its own does it, at most one for each doorbell. If members make too many of them block, it does nothing: guests look at the directory
// each second, too.
func (e *eventfd) ring() {
	if e.wanted.Add(1) > 1 {
		return
	}
	if rings.Add(1) > ringsMax {
		rings.Add(-1)
		e.wanted.Store(0)
		return
	}
	e.get()
	go func() {
		defer rings.Add(-1)
		defer e.put()
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		for {
			n := e.wanted.Load()
			e.setNonblock()
			// If the counter is full, the doorbell is pending already.
			_, _ = unix.Write(e.fd, one[:])
			if e.wanted.CompareAndSwap(n, 0) {
				return
			}
		}
	}()
}

func (e *eventfd) setNonblock() {
	if flags, err := unix.FcntlInt(uintptr(e.fd), unix.F_GETFL, 0); err == nil && flags&unix.O_NONBLOCK == 0 {
		_, _ = unix.FcntlInt(uintptr(e.fd), unix.F_SETFL, flags|unix.O_NONBLOCK)
	}
}

// abandon ends a write that blocks: the member is gone, so no one else reads.
func (e *eventfd) abandon() {
	if e.wanted.Load() > 0 {
		e.setNonblock()
		_, _ = unix.Read(e.fd, make([]byte, 8))
	}
}

// message is a step of a member's goroutine: it sends a number and perhaps a file; then it calls done.
type message struct {
	kind   kind
	number int64
	fd     int      // -1: none
	holds  *eventfd // that has fd
	silent bool     // send nothing, and call done also if the member is gone
	done   func()
}

// kind says what a message means to the client.
type kind int

const (
	setup  kind = iota // the version, the client's number, the memory
	vector             // a doorbell of a member
	gone               // a member is gone
)

func (msg message) put() {
	if msg.holds != nil {
		msg.holds.put()
	}
}

// drop is for a message that is not sent.
func (msg message) drop() {
	msg.put()
	if msg.silent {
		msg.done()
	}
}

// send sends the number and the file.
func (msg message) send(conn *net.UnixConn, timeout time.Duration) error {
	if msg.silent {
		return nil
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(msg.number))
	var rights []byte
	if msg.fd >= 0 {
		rights = unix.UnixRights(msg.fd)
	}
	if err := conn.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	n, _, err := conn.WriteMsgUnix(b[:], rights, nil)
	if err == nil && n != len(b) {
		err = errors.New("the socket took a part of a message")
	}
	return err
}

// outbox has the messages that wait for a member: besides those of joining, at most one that another member is gone, and the doorbells
// of the next one with its number.
type outbox struct {
	wake chan struct{}

	mu    sync.Mutex
	queue []message
	// vectors is how many doorbells of each number the client has been sent since it was sent that a member is gone.
	vectors [MembersMax]int
	closed  bool
}

func (o *outbox) init() { o.wake = make(chan struct{}, 1) }

// push appends messages, or drops them if the outbox is closed.
func (o *outbox) push(messages ...message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		for _, msg := range messages {
			msg.drop()
		}
		return
	}
	o.queue = append(o.queue, messages...)
	o.signal()
}

// signal wakes pop. Called with mu.
func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// pushGone appends that a member is gone. Doorbells of it that have not been sent are dropped. If the client does not have any, there is
// no message: QEMU frees its doorbells of the number at each one, and does not check whether it has freed them before.
func (o *outbox) pushGone(number int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	has := o.vectors[number] > 0
	o.queue = slices.DeleteFunc(o.queue, func(msg message) bool {
		if msg.number != int64(number) {
			return false
		}
		if msg.kind == gone {
			has = false
		}
		if msg.kind == vector {
			msg.drop()
		}
		return msg.kind == vector
	})
	if has {
		o.queue = append(o.queue, message{kind: gone, number: int64(number), fd: -1})
		o.signal()
	}
}

// sent records that the client has been sent all doorbells of a member.
func (o *outbox) sent(number int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.vectors[number] = Vectors
}

// pop waits for the next message. It returns false when the outbox is closed.
func (o *outbox) pop() (message, bool) {
	for {
		o.mu.Lock()
		if o.closed {
			o.mu.Unlock()
			return message{}, false
		}
		if len(o.queue) > 0 {
			msg := o.queue[0]
			o.queue = o.queue[1:]
			switch msg.kind {
			case setup:
			case vector:
				o.vectors[msg.number]++
			case gone:
				o.vectors[msg.number] = 0
			}
			o.mu.Unlock()
			return msg, true
		}
		o.mu.Unlock()
		<-o.wake
	}
}

// close drops all messages, and ends pop.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.closed = true
	for _, msg := range o.queue {
		msg.drop()
	}
	o.queue = nil
	close(o.wake)
}

// barrier returns a channel that is closed when all messages up to now are sent, or dropped.
func (o *outbox) barrier() <-chan struct{} {
	sent := make(chan struct{})
	o.push(message{silent: true, done: func() { close(sent) }})
	return sent
}
