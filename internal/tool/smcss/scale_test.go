// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"context"
	"io"
	"iter"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

// manySource generates n sockets while they are listed.
type manySource struct {
	n int
	// half is called after half of the sockets.
	half func()
}

func (m *manySource) Sockets(context.Context, netlinksmc.DiagExt) iter.Seq2[netlinksmc.Socket, error] {
	return func(yield func(netlinksmc.Socket, error) bool) {
		for i := range m.n {
			if i == m.n/2 && m.half != nil {
				m.half()
			}
			s := netlinksmc.Socket{
				State: netlinksmc.StateActive, Mode: netlinksmc.ModeTCP, UID: 1000, Inode: uint64(100000 + i),
				Cookie:   uint64(i),
				Local:    netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 1}), 5201),
				Peer:     netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), uint16(i|1)),
				Fallback: &netlinksmc.Fallback{Reason: 0x03010000},
			}
			if !yield(s, nil) {
				return
			}
		}
	}
}

func (m *manySource) Close() error { return nil }

// TestMemory lists very many sockets, and checks that the heap does not grow with their number.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes on an emulated processor")
	}
	const sockets = 200_000
	for args, limit := range map[string]uint64{
		"-a":           2 << 20,
		"--explain":    2 << 20,
		"--json":       2 << 20,
		"-s":           2 << 20,
		"--port 1":     2 << 20,
		"--json --all": 2 << 20,
		// -p keeps the inodes: 8 bytes for each socket, and twice as much while the list grows.
		"-p": 8 << 20,
	} {
		t.Run(args, func(t *testing.T) {
			var before, during runtime.MemStats
			src := &manySource{n: sockets, half: func() {
				runtime.GC()
				runtime.ReadMemStats(&during)
			}}
			h := newHarness(t, src)
			h.deps.proc = t.TempDir()
			h.env.Out = io.Discard
			runtime.GC()
			runtime.ReadMemStats(&before)
			if status := h.run(strings.Fields(args)...); status != 0 {
				t.Fatalf("exit status %d: %s", status, &h.err)
			}
			if grown := int64(during.HeapAlloc) - int64(before.HeapAlloc); grown > int64(limit) {
				t.Errorf("%d bytes more than before after %d sockets, limit %d", grown, sockets/2, limit)
			}
		})
	}
}

// BenchmarkList lists 10,000 sockets, the number that a busy host has.
func BenchmarkList(b *testing.B) {
	for _, args := range []string{"-a", "--explain", "--json", "-s", "-p"} {
		b.Run(args, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h := newHarness(&testing.T{}, &manySource{n: 10_000})
				h.deps.proc = b.TempDir()
				h.env.Out = io.Discard
				if status := h.run(strings.Fields(args)...); status != 0 {
					b.Fatalf("exit status %d: %s", status, &h.err)
				}
			}
		})
	}
}
