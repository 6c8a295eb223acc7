// SPDX-License-Identifier: Apache-2.0

package nlconn_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"github.com/smckit/smckit/pkg/internal/fakekernel"
	"github.com/smckit/smckit/pkg/internal/nlconn"
	"github.com/smckit/smckit/pkg/smcerr"
)

var family = nlconn.Family{ID: 0x21, Version: 1}

var dump = netlink.Message{Header: netlink.Header{Type: 99, Flags: netlink.Request | netlink.Dump}}

func newConn(t *testing.T) (*nlconn.Conn, *fakekernel.Kernel) {
	t.Helper()
	s, k := fakekernel.New(t)
	return nlconn.New(netlink.NewConn(s, fakekernel.PortID), s.Interrupted), k
}

func newGeneric(t *testing.T) (*nlconn.Generic, *fakekernel.Kernel) {
	t.Helper()
	s, k := fakekernel.New(t)
	return nlconn.NewGeneric(genetlink.NewConn(netlink.NewConn(s, fakekernel.PortID)), s.Interrupted), k
}

// drain reads an answer to its end and returns the error at its end.
func drain(ctx context.Context, c *nlconn.Conn) error {
	for _, err := range c.Stream(ctx, dump) {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestCancelled ends the context of each request while the request waits for its answer.
func TestCancelled(t *testing.T) {
	t.Run("Stream", func(t *testing.T) {
		c, k := newConn(t)
		k.CheckCancelled(func(ctx context.Context) error { return drain(ctx, c) })
	})
	for name, call := range map[string]func(context.Context, *nlconn.Generic) error{
		"LookUp": func(ctx context.Context, g *nlconn.Generic) error { _, err := g.LookUp(ctx, "X"); return err },
		"Dump":   func(ctx context.Context, g *nlconn.Generic) error { _, err := g.Dump(ctx, family, 1); return err },
		"Set":    func(ctx context.Context, g *nlconn.Generic) error { return g.Set(ctx, family, 1, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			g, k := newGeneric(t)
			k.CheckCancelled(func(ctx context.Context) error { return call(ctx, g) })
		})
	}
}

// TestDeadline lets the deadline of a request pass while the request waits for its answer.
func TestDeadline(t *testing.T) {
	g, k := newGeneric(t)
	fakekernel.Serve(t, func() { k.Request() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := g.Dump(ctx, family, 1); !errors.Is(err, context.DeadlineExceeded) || nlconn.Kind(err) != nil {
		t.Errorf("error %v", err)
	}
}

// TestCancelledInLine ends the context of a request that waits for the request before it, and of one that has not begun.
func TestCancelledInLine(t *testing.T) {
	c, k := newConn(t)
	first, stop := context.WithCancel(t.Context())
	defer stop()
	received := make(chan struct{})
	fakekernel.Serve(t, func() {
		k.Request()
		close(received)
	})
	end := make(chan error)
	go func() { end <- drain(first, c) }()
	<-received
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := drain(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("in line: %v", err)
	}
	stop()
	if err := <-end; !errors.Is(err, context.Canceled) {
		t.Errorf("first: %v", err)
	}
	if err := drain(first, c); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// TestManyCancelled has requests of several goroutines end at random moments, answered or not. It has a meaning under the race
// detector, and checks that each context gets its own answer.
func TestManyCancelled(t *testing.T) {
	g, k := newGeneric(t)
	const requests = 200
	go func() {
		for {
			b, err := k.TryRequest()
			if err != nil {
				return
			}
			k.Answer(b)
		}
	}()
	end := make(chan error)
	for i := range requests {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%20)*10*time.Microsecond)
			defer cancel()
			err := g.Set(ctx, family, 1, nil)
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				end <- fmt.Errorf("request %d: %w", i, err)
				return
			}
			end <- nil
		}()
	}
	for range requests {
		if err := <-end; err != nil {
			t.Error(err)
		}
	}
	if err := g.Set(t.Context(), family, 1, nil); err != nil {
		t.Error(err)
	}
}

// TestClosed closes the connection while a request waits for its answer.
func TestClosed(t *testing.T) {
	g, k := newGeneric(t)
	fakekernel.Serve(t, func() {
		k.Request()
		_ = g.Close()
	})
	for range 2 {
		if _, err := g.Dump(t.Context(), family, 1); !errors.Is(err, os.ErrClosed) || nlconn.Kind(err) != nil {
			t.Errorf("error %v", err)
		}
	}
}

// TestDumpInterrupted checks how often a dump is tried, with the flag in the first message of the answer or only in the last.
func TestDumpInterrupted(t *testing.T) {
	for interruptions := range nlconn.DumpTries + 1 {
		for _, last := range []bool{false, true} {
			g, k := newGeneric(t)
			fakekernel.Serve(t, func() {
				for i := range min(interruptions+1, nlconn.DumpTries) {
					req := k.Request()
					answer := []netlink.Message{message(req, byte(i)), fakekernel.Done(req)}
					if i < interruptions && last {
						answer[1].Header.Flags |= netlink.DumpInterrupted
					} else if i < interruptions {
						answer[0].Header.Flags |= netlink.DumpInterrupted
					}
					k.Send(answer...)
				}
			})
			replies, err := g.Dump(t.Context(), family, 1)
			if interrupted := interruptions == nlconn.DumpTries; errors.Is(err, smcerr.ErrDumpInterrupted) != interrupted {
				t.Errorf("%d interruptions: error %v", interruptions, err)
			}
			if want := byte(min(interruptions, nlconn.DumpTries-1)); len(replies) != 1 || replies[0].Data[0] != want {
				t.Errorf("%d interruptions: answer %v, want that of try %d", interruptions, replies, want)
			}
		}
	}
}

// message is a message of a dump with one byte behind the header of generic netlink.
func message(req netlink.Message, b byte) netlink.Message {
	m := fakekernel.Done(req)
	m.Header.Type = netlink.HeaderType(family.ID)
	m.Data = []byte{1, 1, 0, 0, b, 0, 0, 0}
	return m
}

// TestStreamInterrupted checks that the error comes after the messages.
func TestStreamInterrupted(t *testing.T) {
	c, k := newConn(t)
	fakekernel.Serve(t, func() {
		req := k.Request()
		end := fakekernel.Done(req)
		end.Header.Flags |= netlink.DumpInterrupted
		k.Send(message(req, 1), message(req, 2), end)
	})
	var got []byte
	var last error
	for m, err := range c.Stream(t.Context(), dump) {
		if err == nil {
			got = append(got, m.Data[4])
		}
		last = err
	}
	if string(got) != "\x01\x02" || !errors.Is(last, smcerr.ErrDumpInterrupted) {
		t.Errorf("messages %v, error %v", got, last)
	}
}

// TestWithoutDeadlines uses a connection whose deadlines cannot be set.
func TestWithoutDeadlines(t *testing.T) {
	c := nlconn.New(nltest.Dial(func(req []netlink.Message) ([]netlink.Message, error) {
		return []netlink.Message{{Header: netlink.Header{
			Type: netlink.Done, Flags: netlink.Multi, Sequence: req[0].Header.Sequence, PID: req[0].Header.PID,
		}}}, nil
	}), nil)
	if err := drain(t.Context(), c); err != nil {
		t.Error(err)
	}
}

func TestKind(t *testing.T) {
	op := func(err error) error { return &netlink.OpError{Op: "receive", Err: err} }
	for _, tt := range []struct {
		err, kind error
	}{
		{op(syscall.EPERM), smcerr.ErrPermission},
		{op(os.NewSyscallError("recvmsg", syscall.EACCES)), smcerr.ErrPermission},
		{op(syscall.EOPNOTSUPP), smcerr.ErrNotSupported},
		{op(syscall.EPROTONOSUPPORT), smcerr.ErrNotSupported},
		{op(syscall.EAFNOSUPPORT), smcerr.ErrNotSupported},
		{op(syscall.ENOENT), nil},
		{op(syscall.ENOMEM), nil},
		{op(errors.New("mismatched sequence in netlink reply")), smcerr.ErrMalformed},
		{errors.New("answer without the number of the family"), smcerr.ErrMalformed},
		{op(os.ErrClosed), nil},
		{context.Canceled, nil},
		{context.DeadlineExceeded, nil},
		{smcerr.ErrDumpInterrupted, smcerr.ErrDumpInterrupted},
	} {
		if got := nlconn.Kind(tt.err); got != tt.kind {
			t.Errorf("%v: %v, want %v", tt.err, got, tt.kind)
		}
	}
}

// FuzzFamily checks that no answer to the look-up of a family makes it panic, or find a family without a number.
func FuzzFamily(f *testing.F) {
	f.Add([]byte("\x06\x00\x01\x00\x21\x00\x00\x00"))
	f.Add([]byte("\x05\x00\x01\x00\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		g := nlconn.NewGeneric(genetlink.NewConn(nltest.Dial(func(req []netlink.Message) ([]netlink.Message, error) {
			return []netlink.Message{{
				Header: netlink.Header{Sequence: req[0].Header.Sequence, PID: req[0].Header.PID},
				Data:   append([]byte{1, 2, 0, 0}, b...),
			}}, nil
		})), nil)
		if id, err := g.LookUp(t.Context(), "X"); err == nil && id == 0 {
			t.Error("family without a number")
		}
	})
}
