// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/internal/fakekernel"
)

// BenchmarkSockets lists 10,000 sockets that have fallen back to TCP, in datagrams of 32 KiB as the kernel sends them.
func BenchmarkSockets(b *testing.B) {
	const sockets = 10_000
	d, k := diagOnSocket(b)
	template := socketMessage(netlink.Message{}, 1)
	template.Data = join(template.Data, u8(AttrDiagShutdown, 0), attr(AttrDiagFallback, numbers(0x03010000, 2)))
	one := fakekernel.Marshal(template)
	batch := bytes.Repeat(one, 250)
	go func() {
		for range b.N {
			req := k.Request()
			// The answer is made before the loop, except for the sequence number of the request.
			for i := 0; i < len(batch); i += len(one) {
				binary.NativeEndian.PutUint32(batch[i+8:], req.Header.Sequence)
			}
			for range sockets / 250 {
				k.SendBytes(batch)
			}
			k.Send(done(req))
		}
	}()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		inodes := 0
		for _, err := range d.Sockets(b.Context(), 0) {
			if err != nil {
				b.Fatal(err)
			}
			inodes++
		}
		if inodes != sockets {
			b.Fatalf("%d sockets, want %d", inodes, sockets)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/sockets, "ns/socket")
}

// BenchmarkParseSocket decodes one socket with everything.
func BenchmarkParseSocket(b *testing.B) {
	data := join(socketHeader(StateActive, ModeSMCR, 1), u8(3, 1), attr(1, connInfoValue), attr(2, linkGroupValue),
		attr(5, numbers(1, 2)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseSocket(data); err != nil {
			b.Fatal(err)
		}
	}
}
