// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/internal/fakekernel"
	"github.com/smckit/smckit/pkg/internal/nlconn"
	"golang.org/x/sys/unix"
)

// diagOnSocket returns a Diag on a socket with a fake kernel behind it.
func diagOnSocket(tb testing.TB) (*Diag, *fakekernel.Kernel) {
	tb.Helper()
	s, k := fakekernel.New(tb)
	d := &Diag{conn: nlconn.New(netlink.NewConn(s, fakekernel.PortID), s.Interrupted)}
	tb.Cleanup(func() { _ = d.Close() })
	return d, k
}

func TestSocketStream(t *testing.T) {
	d, k := diagOnSocket(t)
	fakekernel.Serve(t, func() {
		req := k.Request()
		diff(t, uint32(7), req.Header.PID)
		stranger := socketMessage(req, 99)
		stranger.Header.Sequence--
		k.Send(stranger)
		k.Send(socketMessage(req, 1), stranger, socketMessage(req, 2))
		k.Send(netlink.Message{Header: netlink.Header{Type: netlink.Noop, Sequence: req.Header.Sequence}})
		k.Send(socketMessage(req, 3))
		k.Send(done(req))
	})
	inodes, err := collect(d.Sockets(t.Context(), 0))
	if err != nil {
		t.Error(err)
	}
	diff(t, []uint64{1, 2, 3}, inodes)
}

// TestSocketInterruptedAtEnd has the flag only where the netlink library drops it.
func TestSocketInterruptedAtEnd(t *testing.T) {
	d, k := diagOnSocket(t)
	fakekernel.Serve(t, func() {
		for i := range uint64(2) {
			req := k.Request()
			end := done(req)
			if i == 0 {
				end.Header.Flags |= netlink.DumpInterrupted
			}
			k.Send(socketMessage(req, i+1))
			k.Send(end)
		}
	})
	inodes, err := collect(d.Sockets(t.Context(), 0))
	if !errors.Is(err, ErrDumpInterrupted) {
		t.Errorf("got error %v, want ErrDumpInterrupted", err)
	}
	diff(t, []uint64{1}, inodes)
	// The next one is not, and says so.
	inodes, err = collect(d.Sockets(t.Context(), 0))
	if err != nil {
		t.Error(err)
	}
	diff(t, []uint64{2}, inodes)
}

// TestSocketErrorAtEnd is a dump that fails half way: the message that ends it carries the errno.
func TestSocketErrorAtEnd(t *testing.T) {
	d, k := diagOnSocket(t)
	fakekernel.Serve(t, func() {
		req := k.Request()
		end := done(req)
		errno := int32(unix.ENOMEM)
		end.Data = binary.NativeEndian.AppendUint32(nil, uint32(-errno))
		k.Send(socketMessage(req, 1))
		k.Send(end)
	})
	inodes, err := collect(d.Sockets(t.Context(), 0))
	if !errors.Is(err, unix.ENOMEM) {
		t.Errorf("got error %v, want ENOMEM", err)
	}
	diff(t, []uint64{1}, inodes)
}

// TestSocketCancelled ends a wait for an answer that does not come, and then makes another request: what is left of the
// first answer must not get into the second.
func TestSocketCancelled(t *testing.T) {
	d, k := diagOnSocket(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := make(chan netlink.Message, 1)
	fakekernel.Serve(t, func() {
		req := k.Request()
		k.Send(socketMessage(req, 1))
		first <- req
	})
	var inodes []uint64
	for s, err := range d.Sockets(ctx, 0) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got error %v, want context.Canceled", err)
			}
			break
		}
		inodes = append(inodes, s.Inode)
		go cancel()
	}
	diff(t, []uint64{1}, inodes)

	old := <-first
	fakekernel.Serve(t, func() {
		k.Send(socketMessage(old, 2))
		k.Send(socketMessage(old, 3), done(old))
		req := k.Request()
		k.Send(socketMessage(req, 11))
		k.Send(done(req))
	})
	inodes, err := collect(d.Sockets(t.Context(), 0))
	if err != nil {
		t.Error(err)
	}
	diff(t, []uint64{11}, inodes)
}

func TestSocketClosed(t *testing.T) {
	d, k := diagOnSocket(t)
	fakekernel.Serve(t, func() {
		k.Send(socketMessage(k.Request(), 1))
	})
	var last error
	for _, err := range d.Sockets(t.Context(), 0) {
		last = err
		if err == nil {
			go func() { _ = d.Close() }()
		}
	}
	if !errors.Is(last, os.ErrClosed) {
		t.Errorf("got error %v, want os.ErrClosed", last)
	}
	if _, err := collect(d.Sockets(t.Context(), 0)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: got error %v, want os.ErrClosed", err)
	}
}

func TestSocketDamagedDatagram(t *testing.T) {
	header := func(length uint32, req netlink.Message) []byte {
		b := fakekernel.Marshal(socketMessage(req, 1))
		binary.NativeEndian.PutUint32(b, length)
		return b
	}
	tests := []struct {
		name, err string
		datagram  func(netlink.Message) []byte
	}{
		{"half a header", "10 bytes where a message", func(req netlink.Message) []byte { return header(80, req)[:10] }},
		{"length zero", "message of 0 bytes", func(req netlink.Message) []byte { return header(0, req) }},
		{"length beyond the end", "message of 84 bytes in a datagram with 80", func(req netlink.Message) []byte {
			return header(84, req)
		}},
		{"huge length", "message of 4294967295 bytes", func(req netlink.Message) []byte { return header(1<<32-1, req) }},
		{"truncated", "larger than 65536", func(req netlink.Message) []byte {
			m := socketMessage(req, 1)
			m.Data = append(m.Data, make([]byte, 64<<10)...)
			return fakekernel.Marshal(m)
		}},
		{"overrun", "messages lost", func(req netlink.Message) []byte {
			return fakekernel.Marshal(netlink.Message{Header: netlink.Header{Type: netlink.Overrun, Sequence: req.Header.Sequence}})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, k := diagOnSocket(t)
			fakekernel.Serve(t, func() {
				k.SendBytes(tt.datagram(k.Request()))
				// The next request is answered as if nothing had been.
				req := k.Request()
				k.Send(socketMessage(req, 5), done(req))
			})
			_, err := collect(d.Sockets(t.Context(), 0))
			if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got error %v, want one with %q", err, tt.err)
			}
			inodes, err := collect(d.Sockets(t.Context(), 0))
			if err != nil {
				t.Error(err)
			}
			diff(t, []uint64{5}, inodes)
		})
	}
}

// TestClientOnSocket runs a dump and a change over a real socket.
func TestClientOnSocket(t *testing.T) {
	s, k := fakekernel.New(t)
	fakekernel.Serve(t, func() {
		k.SendFamily(k.Request(), testFamily)
		for range nlconn.DumpTries {
			req := k.Request()
			end := done(req)
			end.Header.PID = 7
			end.Header.Flags |= netlink.DumpInterrupted
			m := groupMessage(req, 0x100, 0)
			m.Header.PID = 7
			k.Send(m)
			k.Send(end)
		}
		k.Send(errorReply(k.Request(), unix.EEXIST, "it is there")...)
		k.Send(errorReply(k.Request(), 0, "")...)
	})
	conn := nlconn.NewGeneric(genetlink.NewConn(netlink.NewConn(s, fakekernel.PortID)), s.Interrupted)
	client, err := newClient(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := client.LinkGroupsR(t.Context())
	if !errors.Is(err, ErrDumpInterrupted) {
		t.Errorf("got error %v, want ErrDumpInterrupted", err)
	}
	diff(t, []LinkGroupR{{ID: 0x100}}, groups)
	err = client.AddUEID(t.Context(), "LAB.ONE")
	if !errors.Is(err, ErrUEIDExists) {
		t.Errorf("got error %v, want ErrUEIDExists", err)
	}
	diff(t, `add user EID "LAB.ONE": user EID already defined (kernel: it is there)`, err.Error())
	if err := client.AddUEID(t.Context(), "LAB.TWO"); err != nil {
		t.Error(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if err := client.FlushUEIDs(t.Context()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got error %v, want os.ErrClosed", err)
	}
}

// streamSockets is how many sockets TestSocketsBounded lists.
const streamSockets = 100_000

// TestSocketsBounded lists a hundred thousand sockets from a kernel that holds all but the first back until that one
// has arrived, and measures that memory does not grow on the way.
func TestSocketsBounded(t *testing.T) {
	d, k := diagOnSocket(t)
	arrived := make(chan struct{})
	fakekernel.Serve(t, func() {
		req := k.Request()
		k.Send(socketMessage(req, 1))
		<-arrived
		batch := make([]netlink.Message, 0, 100)
		for i := uint64(2); i <= streamSockets; i++ {
			m := socketMessage(req, i)
			m.Data = append(m.Data, attr(AttrDiagFallback, numbers(0x03010000, 2))...)
			if batch = append(batch, m); len(batch) == cap(batch) {
				k.Send(batch...)
				batch = batch[:0]
			}
		}
		k.Send(batch...)
		k.Send(done(req))
	})
	var n, early, late uint64
	for s, err := range d.Sockets(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; s.Inode != n {
			t.Fatalf("socket %d has inode %d", n, s.Inode)
		}
		switch n {
		case 1:
			close(arrived)
		case streamSockets / 10:
			early = heap()
		case streamSockets - 1:
			late = heap()
		}
	}
	diff(t, uint64(streamSockets), n)
	if late > early+1<<20 {
		t.Errorf("heap grew from %d to %d bytes", early, late)
	}
}

// heap returns the bytes that are in use after a garbage collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestDial uses the real kernel, which needs no privilege. Where it has no SMC, that must be what the error says.
func TestDial(t *testing.T) {
	c, err := New()
	if err == nil {
		err = c.Close()
	} else if errors.Is(err, syscall.EPROTONOSUPPORT) || errors.Is(err, os.ErrPermission) {
		t.Skip("this machine has no generic netlink:", err)
	} else if errors.Is(err, ErrNoModule) {
		err = nil
	}
	if err != nil {
		t.Error(err)
	}
}
