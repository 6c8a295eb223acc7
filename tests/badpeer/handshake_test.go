// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

const (
	// handshakeWait is how long our module waits for a message.
	handshakeWait = 6 * time.Second
	// slack is what an emulated and busy machine may add to any deadline.
	slack = 9 * time.Second
	// promptTCP is less than that: what takes less has not waited for another handshake.
	promptTCP = 5 * time.Second
)

// The network of the peers, and the services in it.
const (
	device  = "peers0"
	subnet  = "10.99.0.1/16"
	subnet6 = "fd99::1/64"
)

var (
	service  = netip.MustParseAddrPort("10.99.0.1:7000")
	service6 = netip.MustParseAddrPort("[fd99::1]:7001")
	network  = [4]byte{10, 99}
	network6 = [16]byte{0xfd, 0x99}
)

// handshakeOutcome is how a connection ends for the application, and for the peer.
type handshakeOutcome struct {
	works   bool         // the application gets it, and data passes both ways unharmed
	never   bool         // the application gets no connection, and the peer sees no end of one
	expires bool         // the connection ends after handshakeWait, not before
	errno   []unix.Errno // of connect(), any of them
}

var (
	works   = handshakeOutcome{works: true}
	never   = handshakeOutcome{never: true}
	dropped = handshakeOutcome{}
	expired = handshakeOutcome{expires: true}
)

func fails(errno ...unix.Errno) handshakeOutcome { return handshakeOutcome{errno: errno} }

// tcpSession is the connection of a case.
type tcpSession struct {
	ctx context.Context
	*peer.TCP
	service netip.AddrPort
	hello   []byte // text that application and peer send to each other
	said    bool   // the peer has sent it
	opened  time.Time
}

// step is what the peer does next.
type step func(s *tcpSession) error

// handshakeCase is what a peer does in the handshake, and its outcome.
type handshakeCase struct {
	name  string
	want  handshakeOutcome
	steps []step
	ipv6  bool
}

func (b *handshakeCase) play(s *tcpSession) error {
	s.opened = time.Now()
	for i, step := range b.steps {
		if err := step(s); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// syn opens a connection to the service with these options.
func syn(options ...[]byte) step {
	return func(s *tcpSession) error { return s.Connect(s.ctx, s.service, slices.Concat(options...)) }
}

// synAck waits for the kernel's connection, and answers with these options.
func synAck(options ...[]byte) step {
	return func(s *tcpSession) error {
		if err := s.Accept(s.ctx, slices.Concat(options...)); err != nil {
			return err
		}
		if !peer.Magic(s.Answer.Options) {
			return fmt.Errorf("no option in the SYN: %s", s.Answer)
		}
		return nil
	}
}

// smc opens a connection to the service on which both sides have agreed to SMC; served is the same for a connection of the
// kernel.
var (
	smc    = steps(syn(peer.MSS, peer.Option), agreed)
	plain  = steps(syn(peer.MSS), refused)
	served = synAck(peer.MSS, peer.Option)
)

func steps(all ...step) step {
	return func(s *tcpSession) error {
		for _, step := range all {
			if err := step(s); err != nil {
				return err
			}
		}
		return nil
	}
}

// agreed checks that the kernel has answered with the option; refused, that it has answered without it.
func agreed(s *tcpSession) error {
	if !peer.Magic(s.Answer.Options) {
		return fmt.Errorf("no option in the answer: %s", s.Answer)
	}
	return nil
}

func refused(s *tcpSession) error {
	if peer.Magic(s.Answer.Options) {
		return fmt.Errorf("the option is in the answer: %s", s.Answer)
	}
	return nil
}

// put sends data in one segment, and waits until the kernel's TCP has it.
func put(data ...[]byte) step {
	return func(s *tcpSession) error { return s.Write(s.ctx, slices.Concat(data...)) }
}

// putFlags sends data with further flags, and does not wait.
func putFlags(flags byte, data ...[]byte) step {
	return func(s *tcpSession) error { return s.Push(s.Segment(peer.ACK|flags, slices.Concat(data...)...)) }
}

var (
	fin = putFlags(peer.FIN)
	rst = putFlags(peer.RST)
)

// putHello sends data and, in the same segment, the hello for the application.
func putHello(flags byte, data ...[]byte) step {
	return func(s *tcpSession) error {
		s.said = true
		return s.Send(s.ctx, s.Segment(peer.ACK|peer.PSH|flags, append(slices.Concat(data...), s.hello...)...))
	}
}

// each sends data in segments of this size.
func each(size int, data []byte) step {
	return func(s *tcpSession) error {
		for part := range slices.Chunk(data, size) {
			if err := s.Write(s.ctx, part); err != nil {
				return err
			}
		}
		return nil
	}
}

// slowly sends a byte a second until the kernel ends the connection.
func slowly(data []byte) step {
	return func(s *tcpSession) error {
		for i := range data {
			if err := s.Push(s.Segment(peer.ACK|peer.PSH, data[i])); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(s.ctx, time.Second)
			err := s.Ended(ctx)
			cancel()
			if err == nil {
				return nil
			}
		}
		return errors.New("the kernel waits for ever")
	}
}

// quiet waits for longer than DECLINE messages may take to cross, and wants our module to send nothing.
func quiet(s *tcpSession) error {
	ctx, cancel := context.WithTimeout(s.ctx, 3*time.Second/2)
	defer cancel()
	got, err := s.Read(ctx, 1)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return errors.Join(err, fmt.Errorf("our module sends %x", got))
}

// get waits for a message.
func get(kind byte) step {
	return func(s *tcpSession) error {
		_, err := s.Message(s.ctx, kind)
		return err
	}
}

// declined waits for a DECLINE for that reason.
func declined(reason uint32) step {
	return func(s *tcpSession) error {
		m, err := s.Message(s.ctx, peer.Decline)
		if err == nil && peer.Reason(m) != reason {
			err = fmt.Errorf("declined for %#08x, want %#08x", peer.Reason(m), reason)
		}
		return err
	}
}

// window changes the receive window, and announces it.
func window(n uint16) step {
	return func(s *tcpSession) error {
		s.Window = n
		return s.Put(s.Segment(peer.ACK))
	}
}

// exchange checks that peer and application can exchange data.
func (s *tcpSession) talk() error {
	if !s.said {
		if err := s.Write(s.ctx, s.hello); err != nil {
			return fmt.Errorf("say hello: %w", err)
		}
	}
	if err := s.Expect(s.ctx, s.hello); err != nil {
		return fmt.Errorf("hello from the application: %w", err)
	}
	return nil
}

// ends waits for the kernel to end the connection, and checks how long that takes.
func (s *tcpSession) ends(expires bool) error {
	if err := s.Ended(s.ctx); err != nil {
		return fmt.Errorf("the connection does not end: %w", err)
	}
	took := time.Since(s.opened)
	if took > handshakeWait+slack || expires && took < handshakeWait-time.Second/2 {
		return fmt.Errorf("the connection ended after %v", took)
	}
	return nil
}

// asServer runs a case against our listener.
func (b *handshakeCase) asServer(t *testing.T, s *tcpSession) {
	// The kernel may reset a connection that it drops before the peer has sent everything.
	if err := b.play(s); err != nil && (b.want.works || b.want.never || !errors.Is(err, peer.ErrReset)) {
		t.Fatalf("%v\n%+v", err, s.TCP)
	}
	// The listener must serve others meanwhile.
	if err := guest.Ask(s.service, "a well-behaved client beside "+b.name, promptTCP); err != nil {
		t.Errorf("a well-behaved client: %v", err)
	}
	var err error
	switch {
	case b.want.works:
		err = s.talk()
	case !b.want.never:
		err = s.ends(b.want.expires)
	}
	if err != nil {
		t.Errorf("%v\n%+v", err, s.TCP)
	}
	if b.want.works && !s.Fin {
		if err := s.Push(s.Segment(peer.ACK | peer.FIN)); err != nil {
			t.Error(err)
		}
		if err := s.Ended(s.ctx); err != nil {
			t.Errorf("the server's end: %v", err)
		}
	}
}

// asClient runs a case against our connecting socket.
func (b *handshakeCase) asClient(t *testing.T, s *tcpSession) {
	var result error
	done := make(chan struct{})
	go func() {
		defer close(done)
		result = b.connect(s)
	}()
	err := b.play(s)
	if err != nil && !b.want.works && errors.Is(err, peer.ErrReset) {
		err = nil
	}
	if err == nil && b.want.works {
		err = s.talk()
	}
	if err != nil {
		t.Errorf("%v\n%+v", err, s.TCP)
	}
	if err := s.Serve(s.ctx, done); err != nil {
		t.Errorf("connect() does not return: %v", err)
	}
	<-done
	if result != nil {
		t.Error(result)
	}
	took := time.Since(s.opened)
	if !b.want.works && took > handshakeWait+slack || b.want.expires && took < handshakeWait-time.Second/2 {
		t.Errorf("connect() took %v", took)
	}
}

// connect runs the application of asClient.
func (b *handshakeCase) connect(s *tcpSession) error {
	fd, err := guest.Connect(s.Self, handshakeWait+slack)
	if fd >= 0 {
		defer unix.Close(fd)
	}
	if !b.want.works {
		var errno unix.Errno
		if errors.As(err, &errno) && slices.Contains(b.want.errno, errno) {
			return nil
		}
		return fmt.Errorf("connect: %v, want %v", err, b.want.errno)
	}
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err := guest.WriteAll(fd, s.hello); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	got, err := guest.ReadFull(fd, len(s.hello))
	if err != nil || string(got) != string(s.hello) {
		return fmt.Errorf("got %q, want %q: %w", got, s.hello, err)
	}
	return nil
}

// openPeers makes the TUN device.
func openPeers(t *testing.T) *peer.Net {
	t.Helper()
	return peer.OpenTUN(t, device, subnet, subnet6+" nodad")
}

// runHandshakes runs all cases at the same time.
func runHandshakes(t *testing.T, n *peer.Net, cases []handshakeCase, third byte, run func(b *handshakeCase, t *testing.T, s *tcpSession)) {
	for i, b := range cases {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			self := address(b.ipv6, third, i)
			ctx, cancel := context.WithTimeout(t.Context(), handshakeWait+2*slack)
			defer cancel()
			s := &tcpSession{ctx: ctx, TCP: n.NewTCP(self), service: service, hello: []byte("hello from " + b.name)}
			if b.ipv6 {
				s.service = service6
			}
			run(&b, t, s)
			// Otherwise the kernel would repeat for minutes what is not acknowledged.
			if s.Kernel.IsValid() {
				if err := s.Put(s.Segment(peer.RST | peer.ACK)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// address is the address of the peer of a case.
func address(ipv6 bool, third byte, i int) netip.AddrPort {
	if ipv6 {
		a := network6
		a[14], a[15] = third, byte(i+1)
		return netip.AddrPortFrom(netip.AddrFrom16(a), 6000)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{network[0], network[1], third, byte(i + 1)}), 6000)
}

// runServers runs cases against our listeners. The application must get the connections that work, and no other.
func runServers(t *testing.T, n *peer.Net, cases []handshakeCase, third byte) {
	e, e6 := guest.NewEcho(t, service, 1024), guest.NewEcho(t, service6, 1024)
	t.Run("all", func(t *testing.T) {
		runHandshakes(t, n, cases, third, (*handshakeCase).asServer)
	})
	e.Close(t)
	e6.Close(t)
	for i, b := range cases {
		a := address(b.ipv6, third, i).Addr()
		want := 0
		if b.want.works {
			want = 1
		}
		if got := e.Accepted(a) + e6.Accepted(a); got != want {
			t.Errorf("%s: the application has got %d connections, want %d", b.name, got, want)
		}
	}
}
