// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// inspectors is the number of threads that answer calls for which they must inspect memory or sockets of a program.
const inspectors = 8

// inspectTimeout limits how long a call waits for an inspector while calls of other processes block all of them.
const inspectTimeout = 2 * time.Second

// inspection queues the calls for which the supervisor must inspect memory or sockets of the program. A program can block this
// for as long as it likes: its memory may be mapped from a file system in user space, and another call of its own may hold the
// lock of its socket. So workers never do it. Inspectors do; at most one of them works for a process at any time, and if all
// are blocked, calls of other processes are answered without inspection.
type inspection struct {
	timeout time.Duration
	// giveUp answers a call that no inspector took in time.
	giveUp func(notification)

	mu      sync.Mutex
	changed *sync.Cond
	waiting []*inspected // in the order in which they were submitted
	busy    map[int]bool // processes that an inspector is busy with
}

// inspected is a call that waits for an inspector.
type inspected struct {
	notification
	process int
	timer   *time.Timer
}

func newInspection(timeout time.Duration, giveUp func(notification)) *inspection {
	i := &inspection{timeout: timeout, giveUp: giveUp, busy: map[int]bool{}}
	i.changed = sync.NewCond(&i.mu)
	return i
}

// submit queues a call of a process for the inspectors.
func (i *inspection) submit(n notification, process int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	c := &inspected{notification: n, process: process}
	c.timer = time.AfterFunc(i.timeout, func() { i.expire(c) })
	i.waiting = append(i.waiting, c)
	i.changed.Signal()
}

// expire gives up a call that no inspector has taken. A call that waits only for an earlier call of its own process stays: that
// process blocks itself.
func (i *inspection) expire(c *inspected) {
	i.mu.Lock()
	at := slices.Index(i.waiting, c)
	switch {
	case at < 0:
		i.mu.Unlock()
		return
	case i.busy[c.process]:
		c.timer.Reset(i.timeout)
		i.mu.Unlock()
		return
	}
	i.waiting = slices.Delete(i.waiting, at, at+1)
	i.mu.Unlock()
	i.giveUp(c.notification)
}

// take waits for a call of a process that no inspector is busy with.
func (i *inspection) take() *inspected {
	i.mu.Lock()
	defer i.mu.Unlock()
	for {
		at := slices.IndexFunc(i.waiting, func(c *inspected) bool { return !i.busy[c.process] })
		if at >= 0 {
			c := i.waiting[at]
			i.waiting = slices.Delete(i.waiting, at, at+1)
			i.busy[c.process] = true
			c.timer.Stop()
			return c
		}
		i.changed.Wait()
	}
}

// done marks a call as answered.
func (i *inspection) done(c *inspected) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.busy, c.process)
	// Any inspector may take the next call of this process.
	i.changed.Signal()
}

// inspect takes queued calls and answers them; it does not return.
func (s *supervisor) inspect(ready chan<- error) {
	runtime.LockOSThread()
	err := blockSignals()
	ready <- err
	w := worker{s, s.home}
	for err == nil {
		c := s.inspection.take()
		w.answer(c.notification)
		s.inspection.done(c)
	}
}

// needsInspection reports whether the answer to a call depends on memory or sockets of the program.
func (s *supervisor) needsInspection(n notification) bool {
	for _, a := range s.abis {
		if a.arch == n.arch {
			kind, inMemory := a.callByNumber(n.nr)
			return inMemory || (s.Match != nil && (kind == callConnect || kind == callListen))
		}
	}
	return false
}

// processOf returns the process of a thread, or the number of the thread if it cannot read the process.
func processOf(tid int) int {
	status, err := readStatus(tid)
	if err != nil {
		return tid
	}
	pid, err := status.number("Tgid:", 0)
	if err != nil {
		return tid
	}
	return pid
}

// uninspected answers a call that no inspector took in time: socket() makes a TCP socket, connect() and listen() proceed.
func (s *supervisor) uninspected(n notification) {
	w := worker{s, s.home}
	r := request{id: n.id, pid: int(n.pid)}
	w.warn(r, "inspect", "the supervisor could not read memory or sockets in time, because other programs block it: sockets are TCP, or stay as they are")
	for _, a := range s.abis {
		// The registers of socketcall() contain the number of the call, but not the kind of socket.
		if _, inMemory := a.callByNumber(n.nr); a.arch == n.arch && inMemory && n.args[0] == socketcallSocket && w.Require {
			w.refuse(n.id, unix.ENOBUFS)
			return
		}
	}
	w.proceed(n.id)
}
