// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package inside has the tests that tests/counters runs in guests: loads on AF_SMC connections, and the counters of both
// ends for each. Elsewhere its tests are skipped.
package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/rpc"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// guests holds the technology to count, SMC-D or SMC-R, and the server's address.
const guests guest.Marker = "/run/smckit-counters"

// report is the file for the counters of each load.
const report = "/run/counters.json"

// controlPort is the port on which the server's end takes commands; connections of loads use the ports after it.
const controlPort = 5999

// buffer is the size of both buffers of a connection.
const buffer = 64 << 10

// waitLimit limits each wait for the other host or for data. Kernels with checkers take an order of magnitude longer.
var waitLimit = 20 * time.Second

// host is the server's end, as the client's end sees it.
type host struct{ *rpc.Client }

// Call makes the server's end run a method. Sockets time out after waitLimit, so an answer that takes longer will not come.
func (h host) Call(method string, args, reply any) error {
	call := h.Go(method, args, reply, make(chan *rpc.Call, 1))
	limit := time.NewTimer(waitLimit + waitLimit/2)
	defer limit.Stop()
	select {
	case <-call.Done:
		return call.Error
	case <-limit.C:
		return fmt.Errorf("after %v: the server's host has not answered %s %v", waitLimit+waitLimit/2, method, args)
	}
}

// pair is a connection, of which this program has the client's end.
type pair struct {
	t       *testing.T
	client  int
	server  host
	ring    int                // bytes of data that the receiver's buffer holds
	prepare func(fd int) error // does something with the client's socket before it connects; may be nil
}

// load is traffic on one new connection.
type load struct {
	name string
	run  func(p *pair)
}

var loads = []load{
	{"nothing", func(*pair) {}},
	{"sizes", sizes},
	{"most of a buffer", most},
	{"no data", noData},
	{"peek", peek},
	{"part of the data", part},
	{"longer than the buffers", long},
	{"calls while the receiver's buffer is full", whileFull},
	{"full buffers", full},
	{"options", options},
	{"urgent data", urgent},
	{"splice", splice},
	{"half closed", halfClosed},
	{scarceMemory, func(*pair) {}},
}

// scarceMemory has connections ask for buffers that no kernel has in one piece.
const scarceMemory = "scarce memory"

// TestLoads runs the loads one after the other and writes the changes of the counters.
func TestLoads(t *testing.T) {
	guests.Need(t)
	p := parameters(t)
	c, err := net.DialTimeout("tcp4", netip.AddrPortFrom(p.to, controlPort).String(), waitLimit)
	if err != nil {
		t.Fatal(err)
	}
	server := host{rpc.NewClient(c)}
	defer server.Close()
	counted := map[string]netlinksmc.TechStats{}
	for i, l := range loads {
		t.Run(l.name, func(t *testing.T) {
			before := p.count(t, server)
			l.do(&pair{t: t, server: server, ring: p.ring()}, netip.AddrPortFrom(p.to, uint16(controlPort+1+i)))
			counted[l.name] = difference(p.count(t, server), before)
		})
	}
	p.settings(t, server)
	b, err := json.Marshal(counted)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(report, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// setting describes the environment in which the loads run.
type setting struct {
	technology string
	to         netip.Addr
}

// ring is how many bytes of data fill a new buffer. With SMC-D the buffer begins with 32 bytes of cursors. They share a page
// with data, and a writer gets room in whole pages, so 32 bytes more stay free.
func (s setting) ring() int {
	if s.technology == "SMC-D" {
		return buffer - 64
	}
	return buffer
}

func parameters(t *testing.T) (s setting) {
	t.Helper()
	b, err := os.ReadFile(string(guests))
	if err != nil {
		t.Fatal(err)
	}
	var addr string
	if _, err := fmt.Sscan(string(b), &s.technology, &addr); err != nil {
		t.Fatal(err)
	}
	s.to = netip.MustParseAddr(addr)
	if guest.Checked(t) {
		waitLimit = 2 * time.Minute
	}
	return s
}

// count is the sum of the counters of both ends, which with SMC-D are in one kernel.
func (s setting) count(t *testing.T, server host) netlinksmc.TechStats {
	t.Helper()
	sum, err := stats(s.technology)
	if err != nil {
		t.Fatal(err)
	}
	if s.technology == "SMC-D" {
		return sum
	}
	var text []byte
	var other netlinksmc.TechStats
	if err := server.Call("End.Stats", Call{}, &text); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &other); err != nil {
		t.Fatal(err)
	}
	combine(&sum, &other, func(a *uint64, b uint64) { *a += b })
	return sum
}

func difference(a, b netlinksmc.TechStats) netlinksmc.TechStats {
	combine(&a, &b, func(a *uint64, b uint64) { *a -= b })
	return a
}

// combine does something with each pair of counters.
func combine(a, b *netlinksmc.TechStats, f func(a *uint64, b uint64)) {
	for _, h := range []struct{ a, b *netlinksmc.SizeHistogram }{
		{&a.TxBufSizes, &b.TxBufSizes}, {&a.RxBufSizes, &b.RxBufSizes}, {&a.TxSizes, &b.TxSizes}, {&a.RxSizes, &b.RxSizes},
	} {
		for i := range h.a {
			f(&h.a[i], h.b[i])
		}
	}
	for _, n := range []struct{ a, b *netlinksmc.BufferStats }{{&a.TxBuf, &b.TxBuf}, {&a.RxBuf, &b.RxBuf}} {
		f(&n.a.TooSmall, n.b.TooSmall)
		f(&n.a.TooSmallPeer, n.b.TooSmallPeer)
		f(&n.a.Full, n.b.Full)
		f(&n.a.FullPeer, n.b.FullPeer)
		f(&n.a.Reused, n.b.Reused)
		f(&n.a.Allocated, n.b.Allocated)
		f(&n.a.Downgraded, n.b.Downgraded)
	}
	for _, n := range []struct {
		a *uint64
		b uint64
	}{
		{&a.ClientV1, b.ClientV1},
		{&a.ClientV2, b.ClientV2},
		{&a.ServerV1, b.ServerV1},
		{&a.ServerV2, b.ServerV2},
		{&a.Sendpage, b.Sendpage},
		{&a.Splice, b.Splice},
		{&a.Cork, b.Cork},
		{&a.NoDelay, b.NoDelay},
		{&a.Urgent, b.Urgent},
		{&a.RxBytes, b.RxBytes},
		{&a.TxBytes, b.TxBytes},
		{&a.RxCount, b.RxCount},
		{&a.TxCount, b.TxCount},
	} {
		f(n.a, n.b)
	}
}

// do makes a connection and runs the load on it.
func (l load) do(p *pair, to netip.AddrPort) {
	if l.name == scarceMemory {
		p.everywhere("sysctl -n net.smc.rmem >/run/rmem; sysctl -qw net.smc.rmem=16777216")
		defer p.everywhere("sysctl -qw net.smc.rmem=$(cat /run/rmem)")
	}
	p.connect(to)
	l.run(p)
	p.close()
}

func (p *pair) close() {
	fd := p.client
	p.client = -1
	p.must(0, unix.Close(fd))
	p.must(p.ask("Close", 0, 0))
}

// abandon closes both ends of a connection on which a load has failed.
func (p *pair) abandon() {
	if p.client >= 0 {
		unix.Close(p.client)
		_ = p.server.Call("End.Close", Call{}, &Answer{})
	}
}

// everywhere runs a script on both hosts.
func (p *pair) everywhere(script string) {
	if err := errors.Join(run(script), p.server.Call("End.Shell", script, &Answer{})); err != nil {
		p.t.Fatal(err)
	}
}

func run(script string) error { return exec.Command("/bin/sh", "-euc", script).Run() }

func (p *pair) connect(to netip.AddrPort) {
	p.t.Helper()
	var listening, accepted Answer
	if err := p.server.Call("End.Listen", to, &listening); err != nil || listening.Err != 0 {
		p.t.Fatalf("the server listens at %v: %v, %v", to, err, listening.Err)
	}
	proto, sa := guest.Sockaddr(to)
	fd, err := unix.Socket(unix.AF_SMC, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, proto)
	p.client = p.must(fd, err)
	p.t.Cleanup(p.abandon)
	p.must(0, limit(fd))
	if p.prepare != nil {
		p.must(0, p.prepare(fd))
	}
	done := make(chan error, 1)
	go func() { done <- p.server.Call("End.Accept", Call{}, &accepted) }()
	if err := unix.Connect(p.client, sa); err != nil {
		p.t.Fatalf("the client connects to %v: %v", to, err)
	}
	if err := <-done; err != nil || accepted.Err != 0 {
		p.t.Fatalf("the server accepts the client's connection: %v, %v", err, accepted.Err)
	}
}

// limit makes calls on a socket fail with EAGAIN after waitLimit.
func limit(fd int) error {
	tv := unix.NsecToTimeval(waitLimit.Nanoseconds())
	return errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv))
}

// ask has the server's end do something.
func (p *pair) ask(what string, n, flags int) (int, error) {
	p.t.Helper()
	var a Answer
	if err := p.server.Call("End."+what, Call{n, flags}, &a); err != nil {
		p.t.Fatal(err)
	}
	if a.Err != 0 {
		return 0, fmt.Errorf("the server's end, %s(%d, %#x): %w", what, n, flags, a.Err)
	}
	return a.N, nil
}

// must fails the test if a call that the load consists of fails.
func (p *pair) must(n int, err error) int {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p *pair) send(n, flags int) (int, error) {
	done, err := unix.SendmsgN(p.client, make([]byte, n), nil, nil, flags)
	if err != nil {
		err = fmt.Errorf("the client's end, send(%d, %#x): %w", n, flags, err)
	}
	return done, err
}

func (p *pair) recv(n, flags int) (int, error) { return p.ask("Recv", n, flags) }

// arrived waits until n bytes can be read.
func (p *pair) arrived(n int) {
	p.t.Helper()
	guest.Await(p.t, waitLimit, func() string {
		if have := p.unread(); have != n {
			return fmt.Sprintf("the server's end has %d bytes to read, and the client has sent %d", have, n)
		}
		return ""
	})
}

func (p *pair) unread() int {
	p.t.Helper()
	return p.must(p.ask("Unread", 0, 0))
}

// readable waits for events at the server's end.
func (p *pair) readable(events int) {
	p.t.Helper()
	p.must(p.ask("Ready", 0, events))
}

// sizes has one call for each of some sizes. Together they fit into the receiver's buffer: the stock module may keep the
// rest of a message back until the receiver reads.
func sizes(p *pair) {
	for _, n := range []int{1, 8192, 8193, 16384, 16385} {
		p.exchange(n)
	}
}

// most sends nearly as much as a buffer holds in one call.
func most(p *pair) { p.exchange(60000) }

// exchange sends n bytes in one call and receives them in one call.
func (p *pair) exchange(n int) {
	p.t.Helper()
	if got := p.must(p.send(n, 0)); got != n {
		p.t.Fatalf("%d of %d bytes were sent", got, n)
	}
	p.arrived(n)
	if got := p.must(p.recv(n, unix.MSG_WAITALL)); got != n {
		p.t.Fatalf("%d of %d bytes were received", got, n)
	}
}

// noData receives where there is nothing.
func noData(p *pair) {
	for range 3 {
		if _, err := p.recv(10, unix.MSG_DONTWAIT); !errors.Is(err, unix.EAGAIN) {
			p.t.Fatalf("recv() without data: %v", err)
		}
	}
}

// peek looks at data before it reads it.
func peek(p *pair) {
	p.must(p.send(100, 0))
	p.arrived(100)
	p.must(p.recv(100, unix.MSG_PEEK))
	p.must(p.recv(100, 0))
}

// part reads less than there is, and then the rest.
func part(p *pair) {
	p.must(p.send(100, 0))
	p.arrived(100)
	p.must(p.recv(10, 0))
	p.must(p.recv(20, 0))
	p.must(p.recv(70, 0))
}

// long sends more in one call than the buffers hold.
func long(p *pair) {
	sent := p.must(p.send(200_000, unix.MSG_DONTWAIT))
	for sent > 0 {
		p.readable(unix.POLLIN)
		sent -= p.must(p.recv(200_000, 0))
	}
}

// whileFull receives while the receiver's buffer is full.
func whileFull(p *pair) {
	p.fill()
	for range 3 {
		p.must(p.recv(10, unix.MSG_PEEK))
	}
	p.must(p.recv(10, 0))
	p.must(p.recv(2*p.ring, 0))
}

// full fills the buffers, empties them and sends again.
func full(p *pair) {
	p.fill()
	// The stock module has a second buffer to send from, and takes as many bytes as it holds.
	sent, err := p.send(p.ring, unix.MSG_DONTWAIT)
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		p.t.Fatal(err)
	}
	if p.writable() {
		p.t.Fatalf("more can be sent after %d bytes", p.ring+max(sent, 0))
	}
	for left := p.ring + max(sent, 0); left > 0; {
		p.readable(unix.POLLIN)
		left -= p.must(p.recv(2*p.ring, 0))
	}
	p.must(0, ready(p.client, unix.POLLOUT))
	p.exchange(1)
}

// fill fills the receiver's buffer and waits until the sender has nothing left to send.
func (p *pair) fill() {
	p.t.Helper()
	if n := p.must(p.send(p.ring, 0)); n != p.ring {
		p.t.Fatalf("%d of %d bytes were sent", n, p.ring)
	}
	p.arrived(p.ring)
	if ours() {
		return
	}
	guest.Await(p.t, waitLimit, func() string {
		if n, err := unix.IoctlGetInt(p.client, unix.SIOCOUTQ); n != 0 || err != nil {
			return fmt.Sprintf("the client's adapter has yet to acknowledge %d bytes, %v", n, err)
		}
		return ""
	})
}

func (p *pair) writable() bool {
	fds := []unix.PollFd{{Fd: int32(p.client), Events: unix.POLLOUT}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1
}

// options sets and clears the two options that delay sending.
func options(p *pair) {
	for _, o := range []struct{ name, value int }{
		{unix.TCP_NODELAY, 1}, {unix.TCP_NODELAY, 0}, {unix.TCP_NODELAY, 1}, {unix.TCP_CORK, 1}, {unix.TCP_CORK, 0},
	} {
		if err := unix.SetsockoptInt(p.client, unix.SOL_TCP, o.name, o.value); err != nil {
			p.t.Fatal(err)
		}
	}
	p.must(p.send(10, unix.MSG_MORE))
	p.must(p.send(10, 0))
	p.arrived(20)
	p.must(p.recv(20, 0))
}

// urgent sends and receives an urgent byte.
func urgent(p *pair) {
	p.must(p.send(1, unix.MSG_OOB))
	p.readable(unix.POLLPRI)
	p.must(p.recv(1, unix.MSG_OOB))
	if _, err := p.recv(1, unix.MSG_OOB); !errors.Is(err, unix.EINVAL) {
		p.t.Fatalf("the urgent byte again: %v", err)
	}
}

// splice moves data to a pipe.
func splice(p *pair) {
	p.must(p.send(1000, 0))
	p.arrived(1000)
	p.must(p.ask("Splice", 1000, 0))
}

// halfClosed reads the end of the stream.
func halfClosed(p *pair) {
	p.must(p.send(10, 0))
	if err := unix.Shutdown(p.client, unix.SHUT_WR); err != nil {
		p.t.Fatal(err)
	}
	p.readable(unix.POLLRDHUP)
	p.must(p.recv(10, 0))
	if n := p.must(p.recv(10, 0)); n != 0 {
		p.t.Fatalf("%d bytes after the end", n)
	}
	if _, err := p.send(10, unix.MSG_NOSIGNAL); !errors.Is(err, unix.EPIPE) {
		p.t.Fatalf("send() after shutdown(): %v", err)
	}
}
