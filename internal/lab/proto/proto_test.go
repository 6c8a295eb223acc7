// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// pair returns a lab's end and lets serve answer at the other.
func pair(t *testing.T, serve func(*Session)) *Conn {
	t.Helper()
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(there, Hello{Kernel: "6.0"}, serve) }()
	hello := make(chan Hello, 1)
	c := Client(here, func(h Hello) { hello <- h })
	if diff := cmp.Diff(Hello{Kernel: "6.0"}, <-hello); diff != "" {
		t.Error(diff)
	}
	t.Cleanup(func() {
		c.Close()
		if err := <-served; !errors.Is(err, ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the agent's end: %v", err)
		}
	})
	return c
}

func open(t *testing.T, c *Conn, r Request) *Session {
	t.Helper()
	s, err := c.Open(r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// cat answers with its input, and writes a word to standard error.
func cat(s *Session) {
	w := s.Writer(Stdout)
	_, err := io.Copy(w, s.Reader(Stdin))
	w.Close()
	e := s.Writer(Stderr)
	io.WriteString(e, "done")
	e.Close()
	if err != nil {
		s.Finish(Exit{Error: err.Error()})
		return
	}
	s.Finish(Exit{Code: 7, Signal: len(s.Request.Argv)})
}

func TestStreams(t *testing.T) {
	c := pair(t, cat)
	// These are larger than a window, so that the reader must grant credit.
	for _, size := range []int{0, 1, maxPayload, 3*window + 11} {
		in := bytes.Repeat([]byte("0123456789abcdef!"), size/17+1)[:size]
		s := open(t, c, Request{Op: OpExec, Argv: []string{"x", "y"}})
		go func() {
			w := s.Writer(Stdin)
			w.Write(in)
			w.Close()
		}()
		out, err := io.ReadAll(iotest.HalfReader(s.Reader(Stdout)))
		if err != nil || !bytes.Equal(out, in) {
			t.Errorf("%d bytes: %d came back, %v", size, len(out), err)
		}
		if e, err := io.ReadAll(s.Reader(Stderr)); string(e) != "done" || err != nil {
			t.Errorf("standard error %q, %v", e, err)
		}
		<-s.Done()
		if e, err := s.Exit(); (e != Exit{Code: 7, Signal: 2}) || err != nil {
			t.Errorf("exit %+v, %v", e, err)
		}
	}
}

// TestStuckSessions checks that sessions whose output is not read, or that do not read their input, do not block another.
func TestStuckSessions(t *testing.T) {
	c := pair(t, func(s *Session) {
		switch s.Request.Argv[0] {
		case "flood":
			for {
				if _, err := s.Writer(Stdout).Write(make([]byte, maxPayload)); err != nil {
					return
				}
			}
		case "deaf":
			<-s.Done()
		default:
			cat(s)
		}
	})
	open(t, c, Request{Op: OpExec, Argv: []string{"flood"}})
	deaf := open(t, c, Request{Op: OpExec, Argv: []string{"deaf"}})
	go deaf.Writer(Stdin).Write(make([]byte, 4*window))
	s := open(t, c, Request{Op: OpExec, Argv: []string{"cat"}})
	go func() {
		w := s.Writer(Stdin)
		io.WriteString(w, "through")
		w.Close()
	}()
	if out, err := io.ReadAll(s.Reader(Stdout)); string(out) != "through" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
}

func TestEvents(t *testing.T) {
	c := pair(t, func(s *Session) {
		var got []int
		var size *Size
		for len(got) < 2 || size == nil {
			signals, z, ok := s.Event()
			if !ok {
				return
			}
			got = append(got, signals...)
			if z != nil {
				size = z
			}
		}
		s.Finish(Exit{Code: got[0]*1000 + got[1], Signal: int(size.Rows)*1000 + int(size.Cols)})
	})
	s := open(t, c, Request{Op: OpExec})
	for _, err := range []error{s.Signal(2), s.Resize(Size{Rows: 24, Cols: 132}), s.Signal(15)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	<-s.Done()
	if e, err := s.Exit(); (e != Exit{Code: 2015, Signal: 24132}) || err != nil {
		t.Errorf("exit %+v, %v", e, err)
	}
}

// TestLoss checks that the end of the channel ends every wait for it, at both ends, with a reason.
func TestLoss(t *testing.T) {
	agent := make(chan bool, 1)
	c := pair(t, func(s *Session) {
		_, _, ok := s.Event()
		agent <- ok
	})
	s := open(t, c, Request{Op: OpExec})
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(s.Reader(Stdout))
		read <- err
	}()
	c.Close()
	if err := <-read; !errors.Is(err, ErrClosed) {
		t.Errorf("read: %v", err)
	}
	if <-agent {
		t.Error("the agent's session goes on")
	}
	if _, err := s.Exit(); !errors.Is(err, ErrClosed) {
		t.Errorf("exit: %v", err)
	}
	if _, err := c.Open(Request{}); !errors.Is(err, ErrClosed) {
		t.Errorf("open: %v", err)
	}
	if _, err := s.Writer(Stdin).Write([]byte("x")); err == nil {
		t.Error("write: no error")
	}
}

func TestRequestTooLong(t *testing.T) {
	c := pair(t, cat)
	if _, err := c.Open(Request{Op: OpExec, Argv: []string{strings.Repeat("x", maxPayload)}}); err == nil {
		t.Error("no error")
	}
	// The channel still works.
	s := open(t, c, Request{Op: OpExec})
	s.Writer(Stdin).Close()
	<-s.Done()
	if _, err := s.Exit(); err != nil {
		t.Error(err)
	}
}

// half is a channel whose other end has sent everything.
type half struct{ io.Reader }

func (half) Write(p []byte) (int, error) { return len(p), nil }
func (half) Close() error                { return nil }

func frame(id uint32, k kind, payload string) []byte {
	var b bytes.Buffer
	c := newConn(struct {
		io.Reader
		io.WriteCloser
	}{nil, nopCloser{&b}})
	_ = c.send(id, k, []byte(payload))
	return b.Bytes()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func TestMalformed(t *testing.T) {
	over := make([]byte, window+1)
	for _, tc := range []struct {
		name string
		data []byte
	}{
		{"length", []byte{0, 0, 0, 1, byte(kindData), 0xff, 0, 0, 0}},
		{"hello", frame(0, kindHello, "{")},
		{"open at the lab's end", frame(9, kindOpen, "{}")},
		{"no stream", frame(1, kindData, "")},
		{"unknown stream", frame(1, kindData, "\x03x")},
		{"signal", frame(1, kindSignal, "xx")},
		{"resize", frame(1, kindResize, "xxx")},
		{"credit", frame(1, kindCredit, "\x00xxx")},
		{"unknown kind", frame(1, 99, "\x00xxx")},
		{"exit", frame(1, kindExit, "[")},
		{"more than the window", bytes.Repeat(frame(1, kindData, "\x01"+string(over[:maxPayload-1])), 5)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, w := io.Pipe()
			c := Client(half{r}, nil)
			s := open(t, c, Request{Op: OpExec})
			w.Write(tc.data)
			<-s.Done()
			if err := c.Err(); err == nil || errors.Is(err, ErrClosed) {
				t.Errorf("error %v, want one that tells what is wrong", err)
			}
		})
	}
}

func FuzzClient(f *testing.F) {
	f.Add(append(frame(0, kindHello, `{"kernel":"6"}`), frame(1, kindExit, "{}")...))
	f.Add(append(frame(1, kindData, "\x01hello"), frame(1, kindEOF, "\x01")...))
	f.Add(frame(1, kindCredit, "\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, w := io.Pipe()
		c := Client(half{r}, nil)
		s, err := c.Open(Request{Op: OpExec})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			w.Write(data)
			w.Close()
		}()
		out, _ := io.ReadAll(s.Reader(Stdout))
		if len(out) > len(data) {
			t.Errorf("%d bytes read of %d", len(out), len(data))
		}
		<-c.Done()
	})
}

// TestRebooted has a second agent at the same channel, as after a reboot of the guest: sessions of the first end, new ones work.
func TestRebooted(t *testing.T) {
	here, there := net.Pipe()
	hello := make(chan Hello, 2)
	c := Client(here, func(h Hello) { hello <- h })
	defer c.Close()
	first := newConn(there)
	greet := func() {
		if err := first.sendJSON(0, kindHello, Hello{Kernel: "6.0"}); err != nil {
			t.Fatal(err)
		}
		<-hello
	}
	opened := make(chan struct{})
	first.serve = func(*Session) { close(opened) }
	go first.read()
	greet()
	lost := open(t, c, Request{Op: OpExec})
	<-opened
	greet()
	<-lost.Done()
	if _, err := lost.Exit(); !errors.Is(err, ErrRebooted) {
		t.Errorf("a session of before: %v", err)
	}
	opened = make(chan struct{})
	s := open(t, c, Request{Op: OpExec})
	<-opened
	select {
	case <-s.Done():
		t.Error("a session of the second agent has ended")
	default:
	}
}
