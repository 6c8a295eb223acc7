// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"github.com/smckit/smckit/pkg/smcerr"
)

// socketHeader writes the fixed part of a socket. The addresses are those of the tests' connection.
func socketHeader(state SocketState, mode Mode, inode uint64) []byte {
	b := []byte{familySMC, byte(state), byte(mode), 0}
	b = binary.BigEndian.AppendUint16(b, 37373)
	b = binary.BigEndian.AppendUint16(b, 40001)
	b = append(b, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = append(b, 10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for _, v := range []uint32{3, 0x55667788, 0x11223344, 1000} {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return binary.NativeEndian.AppendUint64(b, inode)
}

// wantSocket is what socketHeader decodes to.
func wantSocket(state SocketState, mode Mode, inode uint64) Socket {
	return Socket{
		State: state, Mode: mode,
		Local: netip.MustParseAddrPort("10.0.0.1:37373"), Peer: netip.MustParseAddrPort("10.0.0.2:40001"),
		BoundIfindex: 3, Cookie: 0x1122334455667788, UID: 1000, Inode: inode,
	}
}

// numbers writes n 32-bit numbers from first on.
func numbers(first, n uint32) []byte {
	var b []byte
	for i := range n {
		b = binary.NativeEndian.AppendUint32(b, first+i)
	}
	return b
}

func cursor(wrap uint16, count uint32) []byte {
	b := binary.NativeEndian.AppendUint16([]byte{0xff, 0xff}, wrap)
	return binary.NativeEndian.AppendUint32(b, count)
}

// fixed writes s into n bytes.
func fixed(s string, n int) []byte { return append([]byte(s), make([]byte, n-len(s))...) }

var (
	connInfoValue = join(numbers(1, 4), cursor(1, 11), cursor(2, 12), cursor(3, 13), cursor(4, 14),
		[]byte{5, 6, 7, 8}, cursor(9, 19), cursor(10, 20), cursor(11, 21))
	wantConnInfo = &ConnInfo{
		Token: 1, SndbufSize: 2, RMBESize: 3, PeerRMBESize: 4,
		RxProd: Cursor{1, 11}, RxCons: Cursor{2, 12}, TxProd: Cursor{3, 13}, TxCons: Cursor{4, 14},
		RxProdFlags: 5, RxConnFlags: 6, TxProdFlags: 7, TxConnFlags: 8,
		TxPrep: Cursor{9, 19}, TxSent: Cursor{10, 20}, TxFin: Cursor{11, 21},
	}
	linkGroupValue = join([]byte{1}, fixed("mlx5_1", 64), []byte{2}, fixed(testGID, 40), fixed(peerGID, 40), []byte{1})
	wantLinkGroup  = &LinkGroupInfo{
		LinkID: 1, IBDev: "mlx5_1", IBPort: 2, GID: testGID, PeerGID: peerGID, Role: RoleServer,
	}
	dmbValue = join(numbers(0x100, 1), make([]byte, 4), u64(0, 1)[4:], u64(0, 2)[4:], u64(0, 3)[4:], u64(0, 4)[4:])
	wantDMB  = DMBInfo{LinkGroupID: 0x100, PeerGID: 1, GID: 2, Token: 3, PeerToken: 4}

	progressValue = join(u64(0, 1<<40)[4:], u64(0, 2)[4:], u64(0, 3)[4:], u64(0, 4)[4:], u64(0, 5001)[4:], u64(0, 6)[4:])
	wantProgress  = &Progress{Sent: 1 << 40, Acked: 2, Received: 3, Read: 4, Age: 5001 * time.Millisecond, Failovers: 6}
)

func TestParseSocket(t *testing.T) {
	tests := []struct {
		name  string
		data  []byte
		state SocketState
		mode  Mode
		want  func(*Socket)
	}{
		{
			"bare", socketHeader(StateActive, ModeSMCR, 5), StateActive, ModeSMCR,
			func(*Socket) {},
		},
		{
			"fallback", join(socketHeader(StateActive, ModeTCP, 5), attr(5, join(numbers(0x03010000, 1), numbers(0x03030000, 1)))),
			StateActive, ModeTCP,
			func(s *Socket) { s.Fallback = &Fallback{Reason: 0x03010000, PeerDiagnosis: 0x03030000} },
		},
		{
			"fallback without reasons", socketHeader(StateActive, ModeTCP, 5), StateActive, ModeTCP,
			func(s *Socket) { s.Fallback = &Fallback{} },
		},
		{
			"reasons without fallback", join(socketHeader(StateActive, ModeSMCR, 5), attr(5, make([]byte, 8))),
			StateActive, ModeSMCR, func(*Socket) {},
		},
		{
			"SMC-R", join(socketHeader(StateActive, ModeSMCR, 5), u8(3, 3), attr(1, connInfoValue), attr(2, linkGroupValue)),
			StateActive, ModeSMCR,
			func(s *Socket) {
				s.Shutdown = ShutdownReceive | ShutdownSend
				s.Conn, s.LinkGroup = wantConnInfo, wantLinkGroup
			},
		},
		{
			"SMC-D", join(socketHeader(StateActive, ModeSMCD, 5), attr(4, dmbValue)), StateActive, ModeSMCD,
			func(s *Socket) { s.DMB = new(wantDMB) },
		},
		{
			"SMC-D with extended GIDs", join(socketHeader(StateActive, ModeSMCD, 5),
				attr(4, join(dmbValue, u64(0, 5)[4:], u64(0, 6)[4:]))), StateActive, ModeSMCD,
			func(s *Socket) {
				s.DMB = new(wantDMB)
				s.DMB.PeerExtGID, s.DMB.ExtGID = Some(uint64(5)), Some(uint64(6))
			},
		},
		{
			"longer values and unknown attributes", join(socketHeader(StateActive, ModeSMCR, 5), u8(9, 1),
				attr(1, join(connInfoValue, []byte{1, 2, 3, 4})), attr(2, join(linkGroupValue, []byte{9}))),
			StateActive, ModeSMCR,
			func(s *Socket) { s.Conn, s.LinkGroup = wantConnInfo, wantLinkGroup },
		},
		{
			"progress", join(socketHeader(StateActive, ModeSMCD, 5), attr(256, progressValue), u8(257, 1)), StateActive, ModeSMCD,
			func(s *Socket) { s.Progress = wantProgress },
		},
		{
			"an impossible age", join(socketHeader(StateActive, ModeSMCD, 5), attr(256, bytes.Repeat([]byte{255}, 56))), StateActive, ModeSMCD,
			func(s *Socket) {
				const most = math.MaxUint64
				s.Progress = &Progress{most, most, most, most, math.MaxInt64 / time.Millisecond * time.Millisecond, most}
			},
		},
		{
			"unknown state and mode", socketHeader(99, 9, 5), 99, 9, func(*Socket) {},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseSocket(tt.data)
			if err != nil {
				t.Fatal(err)
			}
			want := wantSocket(tt.state, tt.mode, 5)
			tt.want(&want)
			diffSocket(t, want, got)
		})
	}
}

func diffSocket(tb testing.TB, want, got Socket) {
	tb.Helper()
	if d := cmp.Diff(want, got, append(optionals, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }))); d != "" {
		tb.Errorf("mismatch (-want +got):\n%s", d)
	}
}

func TestParseSocketDamaged(t *testing.T) {
	header := socketHeader(StateActive, ModeSMCR, 5)
	tests := []struct {
		name, err string
		data      []byte
	}{
		{"nothing", "socket of 0 bytes, want 64", nil},
		{"short", "socket of 63 bytes, want 64", header[:63]},
		{"short connection info", "DIAG_CONNINFO: value of 75 bytes, want 76", join(header, attr(1, connInfoValue[:75]))},
		{"short link group", "DIAG_LGRINFO: value of 146 bytes, want 147", join(header, attr(2, linkGroupValue[:146]))},
		{"no shutdown", "DIAG_SHUTDOWN: value of 0 bytes, want 1", join(header, attr(3, nil))},
		{"short DMB", "DIAG_DMBINFO: value of 39 bytes, want 40", join(header, attr(4, dmbValue[:39]))},
		{"short fallback", "DIAG_FALLBACK: value of 4 bytes, want 8", join(header, attr(5, numbers(1, 1)))},
		{"cut attribute", "beyond the end", join(header, attr(1, connInfoValue)[:70])},
		{"short progress", "DIAG_PROGRESS: value of 47 bytes, want 48", join(header, attr(256, progressValue[:47]))},
		{"half a DMB extension is none", "", join(header, attr(4, join(dmbValue, make([]byte, 8))))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseSocket(tt.data)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got error %v, want one with %q", err, tt.err)
			}
		})
	}
}

func TestParseAddr(t *testing.T) {
	for want, addr := range map[string][16]byte{
		"10.0.0.1:258":         {10, 0, 0, 1},
		"0.0.0.0:258":          {},
		"[::1]:258":            {15: 1},
		"[fe80::1]:258":        {0xfe, 0x80, 15: 1},
		"[::ffff:1.2.3.4]:258": {10: 0xff, 11: 0xff, 12: 1, 13: 2, 14: 3, 15: 4},
	} {
		diff(t, want, parseAddr(addr[:], []byte{1, 2}).String())
	}
}

// fakeDiag returns a Diag whose requests fn answers.
func fakeDiag(tb testing.TB, fn nltest.Func) *Diag {
	tb.Helper()
	d := NewDiagFromConn(nltest.Dial(fn))
	tb.Cleanup(func() { _ = d.Close() })
	return d
}

// socketMessage is a socket as a part of the answer to req.
func socketMessage(req netlink.Message, inode uint64) netlink.Message {
	return netlink.Message{
		Header: netlink.Header{
			Type: sockDiagByFamily, Flags: netlink.Multi, Sequence: req.Header.Sequence, PID: req.Header.PID,
		},
		Data: socketHeader(StateActive, ModeSMCR, inode),
	}
}

// collect returns the inodes of the sockets and the error at the end.
func collect(seq iter.Seq2[Socket, error]) (inodes []uint64, err error) {
	for s, serr := range seq {
		if serr != nil {
			return inodes, serr
		}
		inodes = append(inodes, s.Inode)
	}
	return inodes, nil
}

func TestDiagRequest(t *testing.T) {
	for ext, b := range map[DiagExt]byte{
		0: 0, DiagConnInfo: 1, DiagLinkGroup: 2, DiagDMB: 8, DiagConnInfo | DiagLinkGroup | DiagDMB: 11,
	} {
		d := fakeDiag(t, nltest.CheckRequest(
			[]netlink.HeaderType{20}, []netlink.HeaderFlags{netlink.Request | netlink.Dump},
			func(reqs []netlink.Message) ([]netlink.Message, error) {
				want := make([]byte, 52)
				want[0], want[3] = 43, b
				diff(t, want, reqs[0].Data)
				return []netlink.Message{done(reqs[0])}, nil
			}))
		if inodes, err := collect(d.Sockets(t.Context(), ext)); inodes != nil || err != nil {
			t.Errorf("got %v, error %v", inodes, err)
		}
	}
}

func TestSockets(t *testing.T) {
	d := fakeDiag(t, func(reqs []netlink.Message) ([]netlink.Message, error) {
		var msgs []netlink.Message
		for i := range uint64(5) {
			msgs = append(msgs, socketMessage(reqs[0], i+1))
		}
		return append(msgs, done(reqs[0])), nil
	})
	want := []uint64{1, 2, 3, 4, 5}
	for range 2 {
		inodes, err := collect(d.Sockets(t.Context(), 0))
		if err != nil {
			t.Error(err)
		}
		diff(t, want, inodes)
	}
	// Leaving the loop early leaves nothing behind.
	for s := range d.Sockets(t.Context(), 0) {
		diff(t, uint64(1), s.Inode)
		break
	}
	inodes, err := collect(d.Sockets(t.Context(), 0))
	if err != nil {
		t.Error(err)
	}
	diff(t, want, inodes)
}

func TestSocketsErrors(t *testing.T) {
	answer := func(msgs ...func(netlink.Message) netlink.Message) nltest.Func {
		return func(reqs []netlink.Message) ([]netlink.Message, error) {
			var out []netlink.Message
			for _, m := range msgs {
				out = append(out, m(reqs[0]))
			}
			return append(out, done(reqs[0])), nil
		}
	}
	good := func(req netlink.Message) netlink.Message { return socketMessage(req, 1) }
	edited := func(edit func(*netlink.Message)) func(netlink.Message) netlink.Message {
		return func(req netlink.Message) netlink.Message {
			m := good(req)
			edit(&m)
			return m
		}
	}
	refusal := func(errno syscall.Errno) nltest.Func {
		return func(reqs []netlink.Message) ([]netlink.Message, error) { return errorReply(reqs[0], errno, ""), nil }
	}
	tests := []struct {
		name    string
		fn      nltest.Func
		sockets int
		want    error
		text    string
	}{
		{"no smc_diag", refusal(syscall.ENOENT), 0, ErrNoModule, "modprobe smc_diag"},
		{"no smc_diag, as Go says it", refusal(syscall.ENOENT), 0, os.ErrNotExist, ""},
		{"not permitted", refusal(syscall.EPERM), 0, os.ErrPermission, "root"},
		{"no sock_diag", refusal(syscall.EOPNOTSUPP), 0, ErrNotSupported, "this kernel has no sock_diag"},
		{"refused", refusal(syscall.EINVAL), 0, syscall.EINVAL, "list SMC sockets: invalid argument"},
		{"short socket", answer(good, edited(func(m *netlink.Message) { m.Data = m.Data[:10] })), 1, ErrMalformed, "10 bytes"},
		{
			"other request", answer(good, edited(func(m *netlink.Message) { m.Header.Sequence++ })), 1,
			ErrMalformed, "sequence",
		},
		{
			"interrupted", answer(good, edited(func(m *netlink.Message) { m.Header.Flags |= netlink.DumpInterrupted }), good),
			3, ErrDumpInterrupted, "",
		},
		{"unknown message", answer(good, edited(func(m *netlink.Message) { m.Header.Type = 21 }), good), 2, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inodes, err := collect(fakeDiag(t, tt.fn).Sockets(t.Context(), 0))
			diff(t, tt.sockets, len(inodes))
			if !errors.Is(err, tt.want) {
				t.Errorf("got error %v, want %v", err, tt.want)
			}
			if _, ok := errors.AsType[*smcerr.Error](err); err != nil && !ok {
				t.Errorf("%v is not an *smcerr.Error", err)
			}
			if err != nil && !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got error %v, want one with %q", err, tt.text)
			}
		})
	}
}

func TestSocketsContext(t *testing.T) {
	d := fakeDiag(t, func(reqs []netlink.Message) ([]netlink.Message, error) {
		return []netlink.Message{socketMessage(reqs[0], 1), socketMessage(reqs[0], 2), done(reqs[0])}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var n int
	for _, err := range d.Sockets(ctx, 0) {
		if n++; n == 2 && !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want context.Canceled", err)
		}
		cancel()
	}
	diff(t, 2, n)
	if _, err := collect(d.Sockets(ctx, 0)); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}
}

// TestSocketsNested calls Sockets inside its own loop, where only the context ends the wait.
func TestSocketsNested(t *testing.T) {
	d := fakeDiag(t, func(reqs []netlink.Message) ([]netlink.Message, error) {
		return []netlink.Message{socketMessage(reqs[0], 1), done(reqs[0])}, nil
	})
	for range d.Sockets(t.Context(), 0) {
		ctx, cancel := context.WithTimeout(t.Context(), 1)
		if _, err := collect(d.Sockets(ctx, 0)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want context.DeadlineExceeded", err)
		}
		cancel()
	}
}
