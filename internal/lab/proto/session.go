// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Session is one request and the streams that belong to it.
type Session struct {
	// Request is the request that opened the session.
	Request Request

	id   uint32
	conn *Conn

	mu   sync.Mutex
	cond *sync.Cond // of mu: something below has changed
	in   [streams]buffer
	out  [streams]struct {
		credit int
		closed bool
	}
	signals []int
	size    *Size
	exit    Exit
	err     error
	ended   bool
	done    chan struct{}
}

// buffer holds bytes of a stream that have arrived and were not read yet.
type buffer struct {
	data []byte
	eof  bool
	owed int // read, but the sender does not know
}

func newSession(c *Conn, id uint32, req Request) *Session {
	s := &Session{Request: req, id: id, conn: c, done: make(chan struct{})}
	s.cond = sync.NewCond(&s.mu)
	for i := range s.out {
		s.out[i].credit = window
	}
	return s
}

func (s *Session) handle(k kind, p []byte) error {
	if k == kindExit {
		var e Exit
		if err := json.Unmarshal(p, &e); err != nil {
			return fmt.Errorf("control channel: exit: %w", err)
		}
		s.forget()
		s.end(e, nil)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.cond.Broadcast()
	bad := fmt.Errorf("control channel: malformed frame of kind %d", k)
	switch k {
	case kindSignal:
		if len(p) != 1 {
			return bad
		}
		s.signals = append(s.signals, int(p[0]))
		return nil
	case kindResize:
		if len(p) != 4 {
			return bad
		}
		s.size = &Size{Rows: binary.BigEndian.Uint16(p), Cols: binary.BigEndian.Uint16(p[2:])}
		return nil
	}
	if len(p) == 0 || p[0] >= streams {
		return bad
	}
	in, out, p := &s.in[p[0]], &s.out[p[0]], p[1:]
	switch {
	case k == kindData && len(in.data)+len(p) <= window:
		in.data = append(in.data, p...)
	case k == kindEOF:
		in.eof = true
	case k == kindCredit && len(p) == 4:
		out.credit += int(binary.BigEndian.Uint32(p))
	default:
		return bad
	}
	return nil
}

// end makes e or err the outcome of s. Bytes that have arrived can still be read.
func (s *Session) end(e Exit, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.exit, s.err, s.ended = e, err, true
	close(s.done)
	s.cond.Broadcast()
}

func (s *Session) forget() {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	delete(s.conn.sessions, s.id)
}

// Done is closed when the session has ended: at the lab's end with the agent's Exit, at the agent's with the channel.
func (s *Session) Done() <-chan struct{} { return s.done }

// Exit returns the outcome of a session that is Done.
func (s *Session) Exit() (Exit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exit, s.err
}

// Finish ends the session from the agent's side. All output must have been written.
func (s *Session) Finish(e Exit) {
	s.forget()
	_ = s.conn.sendJSON(s.id, kindExit, e)
	s.end(e, nil)
}

// Signal asks the agent to send signal number sig to the process group of the session.
func (s *Session) Signal(sig int) error { return s.conn.send(s.id, kindSignal, []byte{byte(sig)}) }

// Resize sends the agent the new size of the terminal.
func (s *Session) Resize(z Size) error {
	b := binary.BigEndian.AppendUint16(nil, z.Rows)
	return s.conn.send(s.id, kindResize, binary.BigEndian.AppendUint16(b, z.Cols))
}

// Event waits for the next request of the lab to a running session. It returns ok false when the session has ended.
func (s *Session) Event() (signals []int, size *Size, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.ended {
			return nil, nil, false
		}
		if len(s.signals) > 0 || s.size != nil {
			signals, size = s.signals, s.size
			s.signals, s.size = nil, nil
			return signals, size, true
		}
		s.cond.Wait()
	}
}

// Reader returns the reading end of stream n.
func (s *Session) Reader(n int) io.Reader { return reader{s, n} }

// Writer returns the writing end of stream n. The caller closes it after the last byte.
func (s *Session) Writer(n int) io.WriteCloser { return writer{s, n} }

type reader struct {
	s *Session
	n int
}

func (r reader) Read(p []byte) (int, error) {
	s, in := r.s, &r.s.in[r.n]
	s.mu.Lock()
	for len(in.data) == 0 && !in.eof && !s.ended {
		s.cond.Wait()
	}
	if len(in.data) == 0 {
		defer s.mu.Unlock()
		if s.err != nil && !in.eof {
			return 0, s.err
		}
		return 0, io.EOF
	}
	k := copy(p, in.data)
	in.data = in.data[k:]
	in.owed += k
	var credit int
	// Grant credits in halves of a window: the sender never waits for a reader that keeps up, and few credits are sent.
	if in.owed >= window/2 && !s.ended {
		credit, in.owed = in.owed, 0
	}
	s.mu.Unlock()
	if credit > 0 {
		b := binary.BigEndian.AppendUint32([]byte{byte(r.n)}, uint32(credit))
		_ = s.conn.send(s.id, kindCredit, b) // a failure shows at the next read
	}
	return k, nil
}

type writer struct {
	s *Session
	n int
}

var errEnded = errors.New("the session has ended")

func (w writer) Write(p []byte) (int, error) {
	done := 0
	for len(p) > 0 {
		n, err := w.reserve(min(len(p), maxPayload-1))
		if err != nil {
			return done, err
		}
		if err := w.s.conn.send(w.s.id, kindData, []byte{byte(w.n)}, p[:n]); err != nil {
			return done, err
		}
		done += n
		p = p[n:]
	}
	return done, nil
}

// reserve waits until at least one byte may be sent and takes up to n from the credit.
func (w writer) reserve(n int) (int, error) {
	s, out := w.s, &w.s.out[w.n]
	s.mu.Lock()
	defer s.mu.Unlock()
	for out.credit == 0 && !s.ended && !out.closed {
		s.cond.Wait()
	}
	if s.ended || out.closed {
		return 0, errEnded
	}
	n = min(n, out.credit)
	out.credit -= n
	return n, nil
}

func (w writer) Close() error {
	s := w.s
	s.mu.Lock()
	closed := s.out[w.n].closed || s.ended
	s.out[w.n].closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	return s.conn.send(s.id, kindEOF, []byte{byte(w.n)})
}
