// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// inspectors is how many calls at once are answered that need a look at memory or sockets of their program.
const inspectors = 8

// inspectPatience is how long a call waits for an inspector while all of them are stuck with calls of other processes.
const inspectPatience = 2 * time.Second

// inspection has the calls that need a look at memory or sockets of their program. Such a look may take as long as the program
// likes: its memory may be mapped from a file system in user space, and another call of its own may hold the lock of its socket.
// So no worker takes it. Inspectors do, each process has one of them at most, and if all are stuck the calls of other processes
// are answered without one.
type inspection struct {
	patience time.Duration
	// giveUp answers a call that no inspector had time for.
	giveUp func(notification)

	mu      sync.Mutex
	changed *sync.Cond
	waiting []*inspected // in the order of their arrival
	busy    map[int]bool // processes that an inspector is busy with
}

// inspected is a call that waits for an inspector.
type inspected struct {
	notification
	process int
	timer   *time.Timer
}

func newInspection(patience time.Duration, giveUp func(notification)) *inspection {
	i := &inspection{patience: patience, giveUp: giveUp, busy: map[int]bool{}}
	i.changed = sync.NewCond(&i.mu)
	return i
}

// submit has a call of a process answered by an inspector.
func (i *inspection) submit(n notification, process int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	c := &inspected{notification: n, process: process}
	c.timer = time.AfterFunc(i.patience, func() { i.expire(c) })
	i.waiting = append(i.waiting, c)
	i.changed.Signal()
}

// expire gives a call up, unless it has been taken, or waits for another one of its own process: that one is stuck by the
// program's own doing.
func (i *inspection) expire(c *inspected) {
	i.mu.Lock()
	at := slices.Index(i.waiting, c)
	switch {
	case at < 0:
		i.mu.Unlock()
		return
	case i.busy[c.process]:
		c.timer.Reset(i.patience)
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

// done says that a call has been answered.
func (i *inspection) done(c *inspected) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.busy, c.process)
	// Any inspector may take the next call of this process.
	i.changed.Signal()
}

// inspect answers calls that need a look at their program; it does not return.
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

// needsInspection says whether a call can only be answered with a look at the program.
func (s *supervisor) needsInspection(n notification) bool {
	for _, a := range s.abis {
		if a.arch == n.arch {
			kind, inMemory := a.which(n.nr)
			return inMemory || (s.Match != nil && (kind == callConnect || kind == callListen))
		}
	}
	return false
}

// processOf returns the process of a thread, or the thread's own number if the process is not to be had.
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

// uninspected answers a call that no inspector had time for: a socket is TCP, and addresses pass.
func (s *supervisor) uninspected(n notification) {
	w := worker{s, s.home}
	r := request{id: n.id, pid: int(n.pid)}
	w.warn(r, "inspect", "memory or sockets of other programs do not answer: sockets are TCP, or stay as they are")
	for _, a := range s.abis {
		// Of socketcall(), the register has which call it is, and not yet what kind of socket it wants.
		if _, inMemory := a.which(n.nr); a.arch == n.arch && inMemory && n.args[0] == socketcallSocket && w.Require {
			w.refuse(n.id, unix.ENOBUFS)
			return
		}
	}
	w.proceed(n.id)
}
