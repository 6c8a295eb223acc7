// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// queueLimit is how many bytes wait for an emulator before who sends to it has to wait, as with the flow control of Ethernet.
	queueLimit = 256 << 10
	// stallTime is how long an emulator may read nothing before what is sent to it is lost. Emulators do not read for an interface
	// that is down, and those that do not get the processor pause for a moment.
	stallTime = 500 * time.Millisecond
	// writeSize is how much an emulator has to read in that time.
	writeSize = 32 << 10
)

// frameQueue writes frames to an emulator. It never holds others up for longer than stallTime.
type frameQueue struct {
	conn net.Conn

	mu      sync.Mutex
	changed *sync.Cond
	frames  []byte // each behind its length, as the emulator reads them
	stalled bool
	closed  bool
}

// newFrameQueue makes a queue for an emulator, which writes until the connection is closed.
func newFrameQueue(conn net.Conn) *frameQueue {
	q := &frameQueue{conn: conn}
	q.changed = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// close has the queue lose what it has, and closes the connection.
func (q *frameQueue) close() {
	q.set(func() { q.closed = true })
	_ = q.conn.Close()
}

func (q *frameQueue) set(change func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	change()
	q.changed.Broadcast()
}

// put takes a frame behind its length, once there is room.
func (q *frameQueue) put(frame []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.frames) > queueLimit && !q.stalled && !q.closed {
		q.changed.Wait()
	}
	if q.stalled || q.closed {
		return
	}
	q.frames = append(q.frames, frame...)
	q.changed.Broadcast()
}

// take waits for frames, and returns all there are. Their memory is the caller's until it gives it back as buf. It returns nil when
// the queue is closed.
func (q *frameQueue) take(buf []byte) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.frames) == 0 && !q.closed {
		q.changed.Wait()
	}
	if q.closed {
		return nil
	}
	frames := q.frames
	q.frames = buf[:0]
	q.changed.Broadcast()
	return frames
}

// run writes what comes. The emulator may have ended, and read nothing more: the lab detects that elsewhere.
func (q *frameQueue) run() {
	for frames := q.take(nil); frames != nil; frames = q.take(frames) {
		if err := q.write(frames); err != nil {
			q.set(func() { q.closed = true })
			return
		}
	}
}

// write writes frames while the emulator reads. If it stops, the others are lost, and all that come until it reads again.
func (q *frameQueue) write(frames []byte) error {
	for done := 0; done < len(frames); {
		_ = q.conn.SetWriteDeadline(time.Now().Add(stallTime))
		n, err := q.conn.Write(frames[done:min(len(frames), done+writeSize)])
		done += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return q.stall(frames[done:frameEnd(frames, done)])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stall loses what comes until the emulator has read a frame, or the rest of one.
func (q *frameQueue) stall(rest []byte) error {
	q.set(func() { q.stalled, q.frames = true, q.frames[:0] })
	_ = q.conn.SetWriteDeadline(time.Time{})
	_, err := q.conn.Write(rest)
	q.set(func() { q.stalled = false })
	return err
}

// frameEnd returns the end of the frame that has the byte at an offset.
func frameEnd(frames []byte, at int) int {
	end := 0
	for end <= at {
		end += 4 + int(binary.BigEndian.Uint32(frames[end:]))
	}
	return end
}
