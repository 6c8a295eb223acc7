// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/netip"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/spf13/cobra"
)

// fakeSource sends sockets, then err. Like the kernel, it leaves out extensions that were not requested.
type fakeSource struct {
	sockets []netlinksmc.Socket
	err     error
	asked   []netlinksmc.DiagExt
	closed  int
	onClose func()
}

func (f *fakeSource) Sockets(ctx context.Context, ext netlinksmc.DiagExt) iter.Seq2[netlinksmc.Socket, error] {
	f.asked = append(f.asked, ext)
	return func(yield func(netlinksmc.Socket, error) bool) {
		for _, s := range f.sockets {
			if err := ctx.Err(); err != nil {
				yield(netlinksmc.Socket{}, err)
				return
			}
			if ext&netlinksmc.DiagConnInfo == 0 {
				s.Conn, s.Progress = nil, nil
			}
			if ext&netlinksmc.DiagLinkGroup == 0 {
				s.LinkGroup = nil
			}
			if ext&netlinksmc.DiagDMB == 0 {
				s.DMB = nil
			}
			if !yield(s, nil) {
				return
			}
		}
		if f.err != nil {
			yield(netlinksmc.Socket{}, f.err)
		}
	}
}

func (f *fakeSource) Close() error {
	f.closed++
	if f.onClose != nil {
		f.onClose()
	}
	return nil
}

// harness runs the command on fakes.
type harness struct {
	deps deps
	env  *cli.Env
	vars map[string]string
	out  bytes.Buffer
	err  bytes.Buffer
}

func newHarness(t *testing.T, src source) *harness {
	t.Helper()
	h := &harness{vars: map[string]string{}}
	h.deps = deps{
		open:   func() (source, error) { return src, nil },
		proc:   "testdata/no-proc",
		ifName: func(index uint32) string { return map[uint32]string{3: "eth0", 0x1a: "bad\xff\x1b[2Jname"}[index] },
		lookupUser: func(name string) (uint32, error) {
			if name == "alice" {
				return 1000, nil
			}
			return 0, errors.New("no such user")
		},
		tcp: func() (map[ends]jsonTCP, error) { return nil, errors.New("TCP was asked without -i") },
		now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		tick: func(time.Duration) (<-chan time.Time, func()) {
			t.Error("a ticker was started without --watch")
			return nil, func() {}
		},
	}
	h.env = &cli.Env{
		In:         bytes.NewReader(nil),
		Out:        &h.out,
		Err:        &h.err,
		Getenv:     func(name string) string { return h.vars[name] },
		EnterNetNS: func(name string) error { return errors.New("entered " + name) },
	}
	return h
}

func (h *harness) run(args ...string) int { return h.runContext(context.Background(), args...) }

func (h *harness) runContext(ctx context.Context, args ...string) int {
	tool := Tool
	tool.New = func(env *cli.Env) *cobra.Command { return newCommand(env, h.deps) }
	return cli.Run(ctx, tool, h.env, args)
}

// failingWriter accepts n bytes and then fails.
type failingWriter struct {
	n   int
	err error
}

func (w *failingWriter) Write(p []byte) (int, error) {
	if len(p) <= w.n {
		w.n -= len(p)
		return len(p), nil
	}
	n := w.n
	w.n = 0
	return n, w.err
}

var _ io.Writer = (*failingWriter)(nil)

func ep(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// testConn has a different value in every field, so that no two can be swapped unnoticed.
func testConn() *netlinksmc.ConnInfo {
	return &netlinksmc.ConnInfo{
		Token: 0x01234567, SndbufSize: 0x10000, RMBESize: 0x20000, PeerRMBESize: 0x4000,
		RxProd:      netlinksmc.Cursor{Wrap: 1, Count: 0x11},
		RxCons:      netlinksmc.Cursor{Wrap: 2, Count: 0x22},
		TxProd:      netlinksmc.Cursor{Wrap: 3, Count: 0x33},
		TxCons:      netlinksmc.Cursor{Wrap: 4, Count: 0x44},
		TxPrep:      netlinksmc.Cursor{Wrap: 5, Count: 0x55},
		TxSent:      netlinksmc.Cursor{Wrap: 6, Count: 0x66},
		TxFin:       netlinksmc.Cursor{Wrap: 0xffff, Count: 0xffffffff},
		RxProdFlags: 0x81, RxConnFlags: 0x42, TxProdFlags: 0x24, TxConnFlags: 0x18,
	}
}

func testLink() *netlinksmc.LinkGroupInfo {
	return &netlinksmc.LinkGroupInfo{
		LinkID: 2, IBDev: "mlx5_1", IBPort: 1, Role: netlinksmc.RoleServer,
		GID:     "fe80:0000:0000:0000:0000:00ff:fe00:0001",
		PeerGID: "fe80:0000:0000:0000:0000:00ff:fe00:0002",
	}
}

func testDMB() *netlinksmc.DMBInfo {
	return &netlinksmc.DMBInfo{
		LinkGroupID: 0x300, GID: 0x1111, Token: 0x2222, PeerGID: 0x33, PeerToken: 0x4444000000000000,
		ExtGID: netlinksmc.Some[uint64](5), PeerExtGID: netlinksmc.Some[uint64](6),
	}
}

// testSockets returns sockets in every state and mode, with every kind of address, and connections without the parts that the
// kernel may leave out.
func testSockets() []netlinksmc.Socket {
	long6 := "[2001:db8:1234:5678:9abc:def0:1234:5678]"
	list := []netlinksmc.Socket{
		{State: netlinksmc.StateInit, UID: 0, Inode: 45670, Cookie: 1},
		{State: netlinksmc.StateListen, UID: 0, Inode: 45671, Local: ep("0.0.0.0:37373"), Peer: ep("0.0.0.0:0")},
		{
			State: netlinksmc.StateListen, Mode: netlinksmc.ModeTCP, UID: 1000, Inode: 45672,
			Local: ep(long6 + ":8"), Fallback: &netlinksmc.Fallback{Reason: 0x03060000},
		},
		{
			State: netlinksmc.StateActive, UID: 0, Inode: 45678, Cookie: 0xfedcba9876543210, BoundIfindex: 3,
			Local: ep("10.0.0.1:37373"), Peer: ep("10.0.0.2:40001"), Conn: testConn(), LinkGroup: testLink(),
		},
		{
			State: netlinksmc.StateActive, Mode: netlinksmc.ModeTCP, UID: 1000, Inode: 45679,
			Local: ep("10.0.0.1:37373"), Peer: ep("10.0.0.3:40001"), Conn: testConn(),
			Fallback: &netlinksmc.Fallback{Reason: 0x03010000, PeerDiagnosis: 0x03030000},
		},
		{
			State: netlinksmc.StateActive, Mode: netlinksmc.ModeTCP, UID: 4294967294, Inode: 12345678, BoundIfindex: 0x1a,
			Local: ep("[::ffff:192.168.100.200]:443"), Peer: ep("[::ffff:192.168.100.201]:50000"),
			Fallback: &netlinksmc.Fallback{Reason: 0x05000000, PeerDiagnosis: 0x11223344},
		},
		{
			State: netlinksmc.StateActive, Mode: netlinksmc.ModeTCP, Inode: 45680,
			Local: ep("[fe80::1]:37373"), Peer: ep("[::1]:65535"), Fallback: &netlinksmc.Fallback{Reason: 0x01010000},
		},
		{
			State: netlinksmc.StateActive, Mode: netlinksmc.ModeSMCD, Inode: 45681, Shutdown: netlinksmc.ShutdownSend,
			Local: ep(long6 + ":37373"), Peer: ep(long6 + ":9"), Conn: testConn(), DMB: testDMB(),
		},
		// A connection that has no link group yet.
		{State: netlinksmc.StateActive, Inode: 45682, Local: ep("[::1.2.3.4]:1"), Peer: ep("[::5:6]:2")},
		{
			State: netlinksmc.StateActive, Mode: netlinksmc.ModeSMCD, Inode: 0, Local: ep("10.255.255.254:1"),
			Peer: ep("10.255.255.253:2"),
		},
	}
	for i, state := range []netlinksmc.SocketState{
		netlinksmc.StatePeerCloseWait1, netlinksmc.StatePeerCloseWait2, netlinksmc.StateAppCloseWait1,
		netlinksmc.StateAppCloseWait2, netlinksmc.StateAppFinCloseWait, netlinksmc.StatePeerFinCloseWait,
		netlinksmc.StatePeerAbortWait, netlinksmc.StateProcessAbort, netlinksmc.StateClosed, 99,
	} {
		list = append(list, netlinksmc.Socket{
			State: state, UID: 1000, Inode: uint64(50000 + i), Shutdown: netlinksmc.Shutdown(i % 4),
			Local: ep("10.0.0.1:80"), Peer: ep("10.0.0.9:50000"), Conn: testConn(), LinkGroup: testLink(),
		})
	}
	// States and modes of later kernels.
	return append(list, netlinksmc.Socket{
		State: netlinksmc.StateActive, Mode: 7, Inode: 60000, Local: ep("10.0.0.1:80"), Peer: ep("10.0.0.9:50001"),
	})
}
