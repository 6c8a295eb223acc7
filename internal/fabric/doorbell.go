// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fabric

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// The doorbells belong to the numbers, not to the members that have them, and exist as long as the fabric. A client gets them once, and is
// never sent that a member is gone: QEMU's device then frees its doorbells of the number, and keeps the pointer. It would write to the freed
// memory when it gets doorbells of this number again, and free it twice when the next member is gone.

// eventfd is a doorbell. It is closed when the fabric and all rings have ended.
type eventfd struct {
	// fd is no os.File: package os would poll it, and each doorbell between guests would wake this process.
	fd   int
	refs atomic.Int32
	// wanted counts calls of ring since its goroutine has last begun to write.
	wanted atomic.Int64
}

func makeEventfd() (*eventfd, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("cannot create a doorbell: %w", err)
	}
	return newEventfd(fd), nil
}

func newEventfd(fd int) *eventfd {
	e := &eventfd{fd: fd}
	e.refs.Store(1)
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
	e.refs.Add(1)
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

// drain forgets rings that no one has read, and so ends a ring that blocks. Members can clear O_NONBLOCK at any time, but RWF_NOWAIT is
// of this call only.
func (e *eventfd) drain() {
	_, _ = unix.Preadv2(e.fd, [][]byte{make([]byte, 8)}, -1, unix.RWF_NOWAIT)
}

// makeDoorbells makes those doorbells that do not exist yet, and has the Store keep them. It returns the numbers that lacked some.
func (f *Fabric) makeDoorbells() (lacking []int, err error) {
	for number := range f.doorbells {
		for vector, e := range f.doorbells[number] {
			if e != nil {
				continue
			}
			if e, err = makeEventfd(); err != nil {
				return nil, err
			}
			f.doorbells[number][vector] = e
			f.stored(f.cfg.Store.Add(f.storeName(vectorName(number, vector)), e.fd))
			if !slices.Contains(lacking, number) {
				lacking = append(lacking, number)
			}
		}
	}
	return lacking, nil
}

// drain drains the doorbells of a number, so that the next member begins without rings for the one before.
func (f *Fabric) drain(number int) {
	for _, e := range f.doorbells[number] {
		e.drain()
	}
}

// closeDoorbells closes all doorbells. No member may be about to be sent one.
func (f *Fabric) closeDoorbells() {
	for number := range f.doorbells {
		for vector, e := range f.doorbells[number] {
			if e != nil {
				e.put()
				f.doorbells[number][vector] = nil
			}
		}
	}
}
