// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Streams of a session.
const (
	Stdin = iota
	Stdout
	Stderr
	streams
)

type kind uint8

const (
	kindHello  kind = iota + 1 // agent: JSON Hello, session 0
	kindOpen                   // lab: JSON Request
	kindData                   // both: stream number, bytes
	kindEOF                    // both: stream number
	kindCredit                 // both: stream number, 4 bytes more that may be sent
	kindSignal                 // lab: signal number for the process group
	kindResize                 // lab: rows, columns
	kindExit                   // agent: JSON Exit; last of its session
)

const (
	headerLen  = 9
	maxPayload = 64 << 10
	// window is the number of bytes of a stream that may be sent before they are read; it bounds the memory of a session at
	// both ends.
	window = 256 << 10
)

// ErrClosed is the error of every operation on a channel that was closed properly.
var ErrClosed = errors.New("the control channel is closed")

// ErrRebooted ends the sessions of an agent whose guest has booted again.
var ErrRebooted = errors.New("the guest has booted again")

// Conn is one end of the channel.
type Conn struct {
	rw    io.ReadWriteCloser
	serve func(*Session)
	hello func(Hello)

	wmu sync.Mutex // one frame at a time on rw

	mu       sync.Mutex
	next     uint32
	sessions map[uint32]*Session
	// isGreeted is set with the first hello.
	isGreeted bool
	err       error
	done      chan struct{}
}

// Client returns the lab's end. hello is called when the agent is ready, and again if the guest has booted again: sessions of before have
// ended with ErrRebooted then.
func Client(rw io.ReadWriteCloser, hello func(Hello)) *Conn {
	c := newConn(rw)
	c.hello = hello
	go c.read()
	return c
}

// Serve answers requests on the agent's end with serve, each in a goroutine of its own, until the channel ends.
func Serve(rw io.ReadWriteCloser, hello Hello, serve func(*Session)) error {
	c := newConn(rw)
	c.serve = serve
	if err := c.sendJSON(0, kindHello, hello); err != nil {
		return err
	}
	c.read()
	return c.Err()
}

func newConn(rw io.ReadWriteCloser) *Conn {
	return &Conn{rw: rw, sessions: map[uint32]*Session{}, done: make(chan struct{})}
}

// Done is closed when the channel has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns the error that has ended the channel, nil while it is open.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the channel and with it all sessions.
func (c *Conn) Close() error {
	c.fail(ErrClosed)
	return nil
}

// Open starts a session.
func (c *Conn) Open(req Request) (*Session, error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return nil, c.err
	}
	c.next++
	s := newSession(c, c.next, req)
	c.sessions[s.id] = s
	c.mu.Unlock()
	return s, c.sendJSON(s.id, kindOpen, req)
}

func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	close(c.done)
	c.rw.Close()
	for _, s := range c.sessions {
		s.end(Exit{}, err)
	}
	c.sessions = nil
}

// greeted handles a hello. A second one is that of another agent, which knows nothing of sessions that there are.
func (c *Conn) greeted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isGreeted {
		c.isGreeted = true
		return
	}
	for _, s := range c.sessions {
		s.end(Exit{}, ErrRebooted)
	}
	clear(c.sessions)
}

// read takes frames off the channel until it ends.
func (c *Conn) read() {
	r := bufio.NewReaderSize(c.rw, maxPayload+headerLen)
	for {
		id, k, payload, err := readFrame(r)
		if err == nil {
			err = c.handle(id, k, payload)
		}
		if errors.Is(err, io.EOF) {
			err = ErrClosed
		}
		if err != nil {
			c.fail(err)
			return
		}
	}
}

func readFrame(r io.Reader) (id uint32, k kind, payload []byte, err error) {
	var h [headerLen]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, 0, nil, err
	}
	n := binary.BigEndian.Uint32(h[5:])
	if n > maxPayload {
		return 0, 0, nil, fmt.Errorf("control channel: frame of %d bytes", n)
	}
	payload = make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, 0, nil, err
	}
	return binary.BigEndian.Uint32(h[:]), kind(h[4]), payload, nil
}

// handle processes one frame. An error means that the other end violates the protocol.
func (c *Conn) handle(id uint32, k kind, payload []byte) error {
	switch k {
	case kindHello:
		var h Hello
		if err := json.Unmarshal(payload, &h); err != nil {
			return fmt.Errorf("control channel: hello: %w", err)
		}
		c.greeted()
		if c.hello != nil {
			c.hello(h)
		}
		return nil
	case kindOpen:
		return c.accept(id, payload)
	}
	c.mu.Lock()
	s := c.sessions[id]
	c.mu.Unlock()
	if s == nil {
		return nil // for a session that has just ended
	}
	return s.handle(k, payload)
}

func (c *Conn) accept(id uint32, payload []byte) error {
	var req Request
	if err := json.Unmarshal(payload, &req); err != nil || c.serve == nil {
		return fmt.Errorf("control channel: request: %v", err)
	}
	s := newSession(c, id, req)
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return c.err
	}
	c.sessions[id] = s
	c.mu.Unlock()
	go c.serve(s)
	return nil
}

func (c *Conn) sendJSON(id uint32, k kind, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) > maxPayload {
		return fmt.Errorf("control channel: request of %d bytes is too long", len(b))
	}
	return c.send(id, k, b)
}

func (c *Conn) send(id uint32, k kind, parts ...[]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b := make([]byte, 0, headerLen+n)
	b = binary.BigEndian.AppendUint32(b, id)
	b = append(b, byte(k))
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	for _, p := range parts {
		b = append(b, p...)
	}
	c.wmu.Lock()
	_, err := c.rw.Write(b)
	c.wmu.Unlock()
	if err != nil {
		c.fail(fmt.Errorf("control channel: %w", err))
		return c.Err()
	}
	return nil
}
