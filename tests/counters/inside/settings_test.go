// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"golang.org/x/sys/unix"
)

// Classes of sizes.
const (
	class16K = iota + 1
	class32K
	class64K
	class128K
)

// settings tests the effect of settings that the stock module has too, and of 0 where only ours takes it.
func (s setting) settings(t *testing.T, server host) {
	if s.technology == "SMC-D" {
		return
	}
	port := uint16(6100)
	next := func() netip.AddrPort {
		port++
		return netip.AddrPortFrom(s.to, port)
	}
	t.Run("autocorking", func(t *testing.T) { autocorking(t, server, next) })
	t.Run("SO_SNDBUF and SO_RCVBUF", func(t *testing.T) {
		got := s.buffers(t, server, next(), func(fd int) error {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 20000); err != nil {
				return err
			}
			return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 100000)
		})
		if got.TxBufSizes[class32K] != 1 || got.RxBufSizes[class128K] != 1 || got.TxBufSizes[class64K] != 1 || got.RxBufSizes[class64K] != 1 {
			t.Errorf("one end asked for 20000 and 100000 bytes, the other for 65536 each: got %v, %v", got.TxBufSizes, got.RxBufSizes)
		}
	})
	if !ours() {
		return
	}
	t.Run("TCP's default", func(t *testing.T) {
		p := &pair{t: t, server: server}
		p.everywhere("sysctl -n net.ipv4.tcp_rmem >/run/tcp_rmem; sysctl -n net.ipv4.tcp_wmem >/run/tcp_wmem;" +
			"sysctl -qw net.smc.rmem=0 net.smc.wmem=0 'net.ipv4.tcp_rmem=4096 131072 6291456' 'net.ipv4.tcp_wmem=4096 16384 4194304'")
		defer p.everywhere("sysctl -qw net.smc.rmem=65536 net.smc.wmem=65536" +
			" \"net.ipv4.tcp_rmem=$(cat /run/tcp_rmem)\" \"net.ipv4.tcp_wmem=$(cat /run/tcp_wmem)\"")
		got := s.buffers(t, server, next(), func(int) error { return nil })
		if got.TxBufSizes[class16K] != 2 || got.RxBufSizes[class128K] != 2 {
			t.Errorf("TCP begins with 16384 and 131072 bytes: got %v, %v", got.TxBufSizes, got.RxBufSizes)
		}
	})
}

func ours() bool {
	_, err := os.Stat("/proc/sys/net/smc/loopback")
	return err == nil
}

// buffers are the counters when a client with socket options connects.
func (s setting) buffers(t *testing.T, server host, to netip.AddrPort, prepare func(fd int) error) netlinksmc.TechStats {
	t.Helper()
	p := &pair{t: t, server: server, prepare: prepare}
	before := s.count(t, server)
	p.connect(to)
	p.close()
	return difference(s.count(t, server), before)
}

// autocorking sends small messages without a pause, in bursts that the send queue has room for, and counts packets.
func autocorking(t *testing.T, server host, next func() netip.AddrPort) {
	const bursts, burst, size = 100, 12, 100
	packets := func(limit string) int {
		p := &pair{t: t, server: server}
		p.everywhere("sysctl -qw net.smc.autocorking_size=" + limit)
		p.connect(next())
		defer p.close()
		before := sentPackets(t)
		for range bursts {
			for range burst {
				p.must(p.send(size, 0))
			}
			if n := p.must(p.recv(burst*size, unix.MSG_WAITALL)); n != burst*size {
				t.Fatalf("%d of %d bytes have arrived", n, burst*size)
			}
		}
		return sentPackets(t) - before
	}
	never, little, always := packets("0"), packets("250"), packets("65536")
	t.Logf("%d messages of %d bytes took %d packets without autocorking, %d with at most 250 bytes, %d with 64 KiB",
		bursts*burst, size, never, little, always)
	if never < bursts*burst {
		t.Errorf("autocorking_size=0: %d packets", never)
	}
	// A packet has the collected data and the data of the last call.
	if least := bursts * burst * size / (250 + size); little < least || little >= never {
		t.Errorf("autocorking_size=250: %d packets, want at least %d and less than %d", little, least, never)
	}
	if always >= little || always > never/2 {
		t.Errorf("autocorking_size=65536: %d packets, want less than %d", always, min(little, never/2+1))
	}
}

// sentPackets is how many packets soft-RoCE has sent.
func sentPackets(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
