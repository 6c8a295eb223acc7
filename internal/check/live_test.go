// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"golang.org/x/sys/unix"
)

// overTCP returns a client with short timeouts that uses a TCP socket.
func overTCP(target netip.AddrPort) Client {
	return Client{
		Target: target, TCP: true, Timeout: time.Second, Rounds: 5, Stream: 20 * time.Millisecond,
		Inspect: func(context.Context, uint64) (Transport, error) { return Transport{Mode: "TCP"}, nil },
	}
}

// startServer serves on a free port until the test ends.
func startServer(t *testing.T, s *Server) netip.AddrPort {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), s.Port)
}

func listenTCP(t *testing.T) *Server {
	t.Helper()
	s, err := listen(netip.MustParseAddrPort("127.0.0.1:0"), false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestClientAndServer measures a connection, and checks what each end learns about the other.
func TestClientAndServer(t *testing.T) {
	s := listenTCP(t)
	type client struct {
		from netip.AddrPort
		mode string
	}
	served := make(chan client, 1)
	s.Served = func(from netip.AddrPort, c Transport, _ error) { served <- client{from, c.Mode} }
	live := overTCP(startServer(t, s)).Run(t.Context())
	if live.Failure != NotFailed || live.Err != nil || live.Latency <= 0 || live.Throughput <= 0 || live.Transport.Mode != "TCP" {
		t.Errorf("%+v", live)
	}
	if diff := cmp.Diff(&Hello{Transport: Transport{Mode: "TCP"}}, live.Peer); diff != "" {
		t.Error(diff)
	}
	if c := <-served; !c.from.Addr().IsLoopback() || c.mode != "TCP" {
		t.Errorf("served %+v", c)
	}
}

// TestServerReportsItsReason checks that a server with AF_SMC reports to its clients why their connections use TCP.
func TestServerReportsItsReason(t *testing.T) {
	s := listenTCP(t)
	s.AFSMC = true
	want := Transport{Mode: "TCP", Fallback: &netlinksmc.Fallback{Reason: netlinksmc.ReasonPeerNoSMC, PeerDiagnosis: 7}}
	s.Inspect = func(_ context.Context, inode uint64) (Transport, error) {
		if inode == 0 {
			t.Error("the server's socket has no inode")
		}
		return want, nil
	}
	live := overTCP(startServer(t, s)).Run(t.Context())
	if diff := cmp.Diff(&Hello{AFSMC: true, Transport: want}, live.Peer); diff != "" || live.Failure != NotFailed {
		t.Errorf("%q %v %s", live.Failure, live.Err, diff)
	}
}

// TestServerTakesTheNextPort starts a server on a port that is taken.
func TestServerTakesTheNextPort(t *testing.T) {
	first := listenTCP(t)
	defer first.Close()
	second, err := listen(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), first.Port), false)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if second.Port <= first.Port || second.Port > first.Port+100 {
		t.Errorf("ports %d and %d", first.Port, second.Port)
	}
}

// TestServerEchoesToStrangers checks that other programs get their data back.
func TestServerEchoesToStrangers(t *testing.T) {
	addr := startServer(t, listenTCP(t))
	for _, text := range []string{"hello", "smc_chk 2 something\n", strings.Repeat("x", 5000)} {
		c, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, len(text))
		if _, err := io.ReadFull(c, b); err != nil || string(b) != text {
			t.Errorf("%.20q: %.20q, %v", text, b, err)
		}
		c.Close()
	}
}

// TestServerSurvivesItsClients makes accept(2) fail with the errors that a client, a packet filter or a lack of memory cause.
func TestServerSurvivesItsClients(t *testing.T) {
	s := listenTCP(t)
	failures := []error{
		unix.ECONNRESET, unix.ECONNABORTED, unix.EPIPE, unix.EPROTO, unix.EPERM, unix.ETIMEDOUT, unix.ENETDOWN, unix.EHOSTUNREACH,
		unix.EMFILE, unix.ENOBUFS, unix.EAGAIN, unix.EINTR,
	}
	s.accept = func() (int, error) {
		if len(failures) > 0 {
			err := failures[0]
			failures = failures[1:]
			return -1, err
		}
		fd, _, err := unix.Accept4(s.fd, unix.SOCK_CLOEXEC)
		return fd, err
	}
	c := overTCP(startServer(t, s))
	c.Timeout = 20 * time.Second
	if live := c.Run(t.Context()); live.Failure != NotFailed {
		t.Errorf("%q, %v", live.Failure, live.Err)
	}
}

// TestStrangersDoNotKeepClientsOut fills all places with connections that send nothing, or not what a client sends.
func TestStrangersDoNotKeepClientsOut(t *testing.T) {
	s := listenTCP(t)
	s.Timeout = time.Hour
	addr := startServer(t, s)
	var strangers []net.Conn
	for i := range 2 * maxClients {
		c, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 {
			// The echo proves that the server serves this connection.
			if _, err := io.WriteString(c, "x"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		strangers = append(strangers, c)
	}
	if live := overTCP(addr).Run(t.Context()); live.Failure != NotFailed {
		t.Errorf("%q, %v", live.Failure, live.Err)
	}
	// The server has ended the oldest connections.
	for _, c := range strangers[:maxClients] {
		if n, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("%d bytes instead of the end", n)
		}
	}
}

// TestClientsKeepTheirPlaces fills all places with clients, and checks that the next one is refused.
func TestClientsKeepTheirPlaces(t *testing.T) {
	s := listenTCP(t)
	addr := startServer(t, s)
	for range maxClients {
		c, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, clientLine); err != nil {
			t.Fatal(err)
		}
		if _, err := readLine(c, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if live := overTCP(addr).Run(t.Context()); live.Failure == NotFailed {
		t.Error("one more was served")
	}
}

// TestSlowGreeting sends the first line byte by byte, each within the timeout, and checks that the server gives up.
func TestSlowGreeting(t *testing.T) {
	s := listenTCP(t)
	s.Timeout = 300 * time.Millisecond
	c, err := net.Dial("tcp", startServer(t, s).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.Read(make([]byte, 1))
	}()
	tick := time.NewTicker(s.Timeout / 3)
	defer tick.Stop()
	for _, b := range []byte(clientLine) {
		if _, err := c.Write([]byte{b}); err != nil {
			break
		}
		select {
		case <-ended:
			return
		case <-tick.C:
		}
	}
	t.Error("the server has waited for all of it")
}

// peers are servers that violate the protocol.
var peers = []struct {
	name string
	do   func(c net.Conn)
	want Failure
}{
	{"an echo", func(c net.Conn) { _, _ = io.Copy(c, c) }, NotFailed},
	{"a banner", func(c net.Conn) { readClientLine(c); _, _ = io.WriteString(c, "SSH-2.0-x\r\n") }, FailStranger},
	{"a long line", func(c net.Conn) { readClientLine(c); _, _ = io.WriteString(c, strings.Repeat("x", 1<<20)) }, FailStranger},
	{"an answer without end", func(c net.Conn) {
		readClientLine(c)
		for {
			if _, err := io.WriteString(c, "\x1b[2J"); err != nil {
				return
			}
		}
	}, FailStranger},
	{"silence", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, FailSilent},
	{"an end", func(c net.Conn) { readClientLine(c) }, FailStranger},
	{"a reset", func(c net.Conn) { readClientLine(c); _ = c.(*net.TCPConn).SetLinger(0) }, FailBroken},
	{"one byte now and then", func(c net.Conn) {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := c.Write([]byte("x")); err != nil {
				return
			}
		}
	}, FailStranger},
	{"silence after the greeting", func(c net.Conn) { greetAs(c); _, _ = io.Copy(io.Discard, c) }, FailSilent},
	{"an end after the greeting", func(c net.Conn) { greetAs(c); _, _ = c.Read(make([]byte, 1)) }, FailBroken},
	{"another byte", func(c net.Conn) { greetAs(c); _, _ = io.WriteString(c, "zzz"); _, _ = io.Copy(io.Discard, c) }, FailCorrupt},
	{"wrong bytes in the stream", func(c net.Conn) {
		greetAs(c)
		for b, n := make([]byte, 1<<16), 0; ; n++ {
			k, err := c.Read(b)
			if err != nil {
				return
			}
			if n >= 5 { // the first reads measure the latency
				b[0]++
			}
			if _, err := c.Write(b[:k]); err != nil {
				return
			}
		}
	}, FailCorrupt},
	{"less than was sent", func(c net.Conn) {
		greetAs(c)
		b := make([]byte, 5)
		for i := range b {
			_, _ = io.ReadFull(c, b[i:i+1])
			_, _ = c.Write(b[i : i+1])
		}
		_, _ = io.Copy(c, io.LimitReader(c, 1000))
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	}, FailBroken},
}

// readClientLine reads the client's line: closing a connection with unread data would reset it.
func readClientLine(c net.Conn) { _, _ = io.ReadFull(c, make([]byte, len(clientLine))) }

// greetAs answers like an smc_chk server.
func greetAs(c net.Conn) {
	readClientLine(c)
	_, _ = io.WriteString(c, Hello{AFSMC: true}.String()+"\n")
}

// TestOddPeers checks that the client ends with the right failure for each of these peers.
func TestOddPeers(t *testing.T) {
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				if c, err := l.Accept(); err == nil {
					p.do(c)
					c.Close()
				}
			}()
			client := overTCP(l.Addr().(*net.TCPAddr).AddrPort())
			client.Timeout = 5 * time.Second // a busy machine may take a second for the greeting
			live := client.Run(t.Context())
			if live.Failure != p.want || live.Transport.Mode != "TCP" {
				t.Errorf("%q, %v", live.Failure, live.Err)
			}
			l.Close()
			<-done
		})
	}
}

// TestBindError checks what a user can do who may not listen on a port.
func TestBindError(t *testing.T) {
	addr := netip.MustParseAddrPort("0.0.0.0:80")
	for errno, want := range map[unix.Errno]string{
		unix.EACCES:     "listening on 0.0.0.0:80: permission denied: run as root, or use a port from 1024 on",
		unix.EADDRINUSE: "listening on 0.0.0.0:80: address already in use",
	} {
		if err := bindError(addr, errno); err.Error() != want || !errors.Is(err, errno) {
			t.Errorf("%v, not %q", err, want)
		}
	}
}

// TestNoListener connects to a port without a listener.
func TestNoListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr).AddrPort()
	l.Close()
	if live := overTCP(addr).Run(t.Context()); live.Failure != FailRefused || live.Err == nil {
		t.Errorf("%+v", live)
	}
}

// TestCancelled checks that cancelling the context ends a client, whatever it waits for.
func TestCancelled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if c, err := l.Accept(); err == nil {
			defer c.Close()
			cancel()
			_, _ = io.Copy(io.Discard, c)
		}
	}()
	c := overTCP(l.Addr().(*net.TCPAddr).AddrPort())
	c.Timeout = time.Minute
	if live := c.Run(ctx); !errors.Is(live.Err, context.Canceled) || live.Failure == NotFailed {
		t.Errorf("%+v", live)
	}
}

// TestHello decodes lines of servers, and checks that unknown words are dropped.
func TestHello(t *testing.T) {
	for line, want := range map[string]*Hello{
		"smc_chk 1 server af_smc=true mode=SMC-R version=2.1":           {AFSMC: true, Transport: Transport{Mode: "SMC-R", Version: "2.1"}},
		"smc_chk 1 server af_smc=false mode=TCP version=-":              {Transport: Transport{Mode: "TCP"}},
		"smc_chk 1 server mode=\x1b[2J version=evil af_smc=1 more=news": {},
		"smc_chk 1 server mode=TCP reason=0x03010000 peer=zzz": {
			Transport: Transport{Mode: "TCP", Fallback: &netlinksmc.Fallback{Reason: netlinksmc.ReasonPeerNoSMC}},
		},
		"smc_chk 1 server":  nil,
		"smc_chk 2 server ": nil,
		"220 mail ESMTP":    nil,
	} {
		got, _ := parseHello(line)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
		if want == nil {
			continue
		}
		if again, ok := parseHello(got.String()); !ok || !cmp.Equal(got, again) || len(got.String()) > helloMax {
			t.Errorf("%q: written as %q", line, got)
		}
	}
}

func FuzzHello(f *testing.F) {
	f.Add("smc_chk 1 server af_smc=true mode=SMC-R version=2.1 reason=0x03010000 peer=0x00000000")
	f.Fuzz(func(t *testing.T, line string) {
		h, ok := parseHello(line)
		if !ok {
			return
		}
		if strings.ContainsFunc(h.String(), func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q: %q", line, h)
		}
	})
}

// TestClassifyConnect checks that a failed SMC handshake is distinguished from a failed TCP connection.
func TestClassifyConnect(t *testing.T) {
	for _, tt := range []struct {
		smc, tcp error
		want     Failure
	}{
		{unix.ETIMEDOUT, nil, FailHandshake},
		{unix.ECONNRESET, nil, FailHandshake},
		{unix.EPROTO, unix.ETIMEDOUT, FailTimeout},
		{unix.EPROTO, unix.EINPROGRESS, FailTimeout},
		{unix.ECONNABORTED, unix.ECONNREFUSED, FailRefused},
		{unix.ETIMEDOUT, unix.EHOSTUNREACH, FailUnreachable},
		{unix.ECONNRESET, unix.ECONNRESET, FailTimeout},
	} {
		if f, err := classifyConnect(tt.smc, tt.tcp); f != tt.want || err == nil {
			t.Errorf("%v, %v: %q, %v", tt.smc, tt.tcp, f, err)
		}
	}
}
