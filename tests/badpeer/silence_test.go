// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// silenceCase is a peer that is well-behaved up to some point, and silent from then on.
type silenceCase struct {
	name      string
	server    bool // the peer's role
	further   bool // it has a connection already, and falls silent in the handshake of another
	handshake bool // that is when it falls silent
	// until has it do as it should, the rest then waits for what our module does.
	until, rest func(ctx context.Context, c *peer.Conn) error
	takes       time.Duration // the least that our module waits; at most, slack more
	skip        string
}

// deaf has the peer acknowledge nothing from now on.
func deaf(_ context.Context, c *peer.Conn) error {
	c.Group.QP.SetManner(peer.Deaf)
	return nil
}

// full has the peer receive no messages from now on.
func full(_ context.Context, c *peer.Conn) error {
	c.Group.QP.SetManner(peer.Busy)
	return nil
}

func mute(_ context.Context, c *peer.Conn) error {
	c.Group.Locked(func() { c.Group.Mute = true })
	return nil
}

// sequence takes steps, one after the other.
func sequence(steps ...func(context.Context, *peer.Conn) error) func(context.Context, *peer.Conn) error {
	return func(ctx context.Context, c *peer.Conn) error {
		for _, step := range steps {
			if err := step(ctx, c); err != nil {
				return err
			}
		}
		return nil
	}
}

func begin(ctx context.Context, c *peer.Conn) error   { return c.Begin(ctx) }
func confirm(ctx context.Context, c *peer.Conn) error { return c.Confirm(ctx) }
func settle(ctx context.Context, c *peer.Conn) error  { return c.Finish(ctx) }
func answer(ctx context.Context, c *peer.Conn) error  { return c.Answer(ctx) }

// announce sends CONFIRM RKEY, which our module expects before ACCEPT or CONFIRM.
func announce(ctx context.Context, c *peer.Conn) error { return c.AnnounceRMB(ctx) }

// accepted waits for the ACCEPT of our module.
func accepted(ctx context.Context, c *peer.Conn) error { return c.RecvAccept(ctx) }

// askLink sends CONFIRM LINK, and does not wait.
func askLink(_ context.Context, c *peer.Conn) error {
	return c.Group.QP.Send(c.Group.ConfirmLink(0, 1))
}

// tcpEnds waits for the end of the TCP connection.
func tcpEnds(ctx context.Context, c *peer.Conn) error { return c.TCP.Ended(ctx) }

// timedOut waits for connect() to give up.
func timedOut(ctx context.Context, c *peer.Conn) error {
	stop := make(chan struct{})
	var result error
	go func() {
		result = <-c.Connected
		close(stop)
	}()
	if err := c.TCP.Serve(ctx, stop); err != nil {
		return fmt.Errorf("connect(): %w", err)
	}
	if !errors.Is(result, unix.ETIMEDOUT) {
		return fmt.Errorf("connect(): %w", result)
	}
	return nil
}

// falls waits for DECLINE.
func falls(reasons ...uint32) func(ctx context.Context, c *peer.Conn) error {
	return func(ctx context.Context, c *peer.Conn) error { return c.RecvDecline(ctx, reasons...) }
}

// breaks waits for the application's error.
func breaks(ctx context.Context, c *peer.Conn) error {
	defer c.HangUp()
	return c.AwaitError(ctx)
}

// settled waits until the application has its connection.
func settled(ctx context.Context, c *peer.Conn) error { return c.AwaitApp(ctx) }

// busy has the application write data that does not arrive.
func busy(ctx context.Context, c *peer.Conn) error {
	if err := c.Put([]byte("hello")); err != nil {
		return err
	}
	return c.SendCDC(ctx)
}

var (
	opened   = sequence(begin, confirm, settle)
	unproven = falls(reasonTimeout, reasonLink)
)

var silences = []silenceCase{
	{name: "client, instead of PROPOSAL", handshake: true, until: func(ctx context.Context, c *peer.Conn) error {
		return c.TCP.Connect(ctx, peer.Service, append(peer.MSS[:4:4], peer.Option...))
	}, rest: tcpEnds, takes: 6 * time.Second},
	{name: "client, after PROPOSAL", handshake: true, until: sequence(begin, accepted), rest: tcpEnds, takes: 6 * time.Second},
	{name: "client, at CONFIRM LINK", handshake: true, until: sequence(begin, confirm), rest: falls(reasonTimeout), takes: 3 * time.Second},
	{name: "client, deaf at CONFIRM LINK", handshake: true, until: sequence(begin, accepted, deaf, answer), rest: unproven, takes: time.Second},
	{name: "client, without room at CONFIRM LINK", handshake: true, until: sequence(begin, accepted, full, answer), rest: unproven, takes: 3 * time.Second},
	{name: "client, at CONFIRM RKEY", handshake: true, further: true, until: sequence(mute, begin), rest: falls(reasonBuffer), takes: 2 * time.Second},
	{name: "client, deaf at CONFIRM RKEY", handshake: true, further: true, until: sequence(deaf, begin), rest: falls(reasonBuffer, reasonLink), takes: time.Second / 2},
	{name: "server, instead of ACCEPT", handshake: true, server: true, until: begin, rest: timedOut, takes: 6 * time.Second},
	{name: "server, at CONFIRM LINK", handshake: true, server: true, until: sequence(begin, confirm), rest: falls(reasonTimeout), takes: 5 * time.Second},
	{name: "server, deaf after CONFIRM LINK", server: true, until: sequence(begin, confirm, deafAfterLink, settled), rest: breaks},
	{name: "server, at CONFIRM RKEY", handshake: true, server: true, further: true, until: sequence(begin, announce, mute, answer), rest: falls(reasonBuffer), takes: 2 * time.Second},
	{name: "server, deaf at CONFIRM RKEY", handshake: true, server: true, further: true, until: sequence(begin, announce, deaf, answer), rest: falls(reasonBuffer, reasonLink), takes: time.Second / 2},
	{name: "client, at TEST LINK", until: sequence(opened, mute), rest: breaks, takes: 2 * time.Second},
	{name: "server, at TEST LINK", server: true, until: sequence(opened, mute), rest: breaks, takes: 2 * time.Second},
	{name: "client, deaf", until: sequence(opened, deaf), rest: breaks, takes: time.Second},
	{name: "server, deaf", server: true, until: sequence(opened, deaf), rest: breaks, takes: time.Second},
	{name: "client, deaf for data", until: sequence(opened, deafTo), rest: breaks},
	{name: "client, without room for data", until: sequence(opened, noRoom), rest: breaks, takes: time.Second},
}

// deafAfterLink sends CONFIRM LINK, and is deaf once that has arrived.
func deafAfterLink(ctx context.Context, c *peer.Conn) error {
	return peer.InTurn(ctx, func(ctx context.Context) error { return askLink(ctx, c) }, c.Group.QP.Flush,
		func(ctx context.Context) error { return deaf(ctx, c) })
}

// deafTo is deaf once data has arrived that the application sends back.
func deafTo(ctx context.Context, c *peer.Conn) error {
	return peer.InTurn(ctx, func(ctx context.Context) error { return busy(ctx, c) }, func(ctx context.Context) error { return deaf(ctx, c) })
}

// noRoom receives no messages from now on, but data arrives.
func noRoom(ctx context.Context, c *peer.Conn) error {
	c.Group.QP.SetManner(peer.Busy)
	return busy(ctx, c)
}

// fall runs a case. A well-behaved peer must not notice, neither while our module waits nor afterwards.
func (s *env) fall(t *testing.T, b silenceCase, g *peer.LinkGroup) {
	ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
	defer cancel()
	if b.further {
		before, err := g.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer before.HangUp()
	}
	c := g.NewConn()
	if err := b.until(ctx, c); err != nil {
		t.Fatalf("before: %v", err)
	}
	since := time.Now()
	meanwhile := make(chan error, 1)
	go func() { meanwhile <- s.unharmed(t.Context()) }()
	err := b.rest(ctx, c)
	took := time.Since(since)
	if err := errors.Join(err, <-meanwhile); err != nil {
		t.Error(err)
	}
	if took < b.takes-b.takes/4 || took > b.takes+slack {
		t.Errorf("our module has waited for %v, not %v", took, b.takes)
	}
	if err := s.unharmed(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSilence has peers fall silent at each step of the handshake, and on established connections.
func TestSilence(t *testing.T) {
	s := openEnv(t, 10)
	peer.RoCEGuest.Set(t, "net.smc.smcr_testlink_time", "1")
	t.Run("all", func(t *testing.T) {
		for i, b := range silences {
			t.Run(b.name, func(t *testing.T) {
				if b.skip != "" {
					t.Skip(b.skip)
				}
				t.Parallel()
				s.fall(t, b, peer.NewLinkGroup(t, s.RoCENet, peer.Address(11, byte(i+1)), b.server))
			})
		}
	})
}

// TestKeepalive has a peer that answers TCP, but not LLC, and an application with SO_KEEPALIVE: its connection ends with
// ETIMEDOUT, although the namespace does not test links.
func TestKeepalive(t *testing.T) {
	peer.RoCEGuest.Set(t, "net.smc.smcr_testlink_time", "0")
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
	defer cancel()
	g := peer.NewLinkGroup(t, n, peer.Address(1, 13), true)
	c := g.NewConn()
	c.Use = func(a *guest.App, fd int) {
		for option, value := range map[int]int{unix.TCP_KEEPIDLE: 1, unix.TCP_KEEPINTVL: 1, unix.TCP_KEEPCNT: 3} {
			a.Err = errors.Join(a.Err, unix.SetsockoptInt(fd, unix.IPPROTO_TCP, option, value))
		}
		if err := errors.Join(a.Err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)); err != nil {
			a.Err = err
			close(a.Done)
			return
		}
		a.Run(fd)
	}
	err := peer.InTurn(ctx, c.Begin, c.Confirm, c.Finish, func(ctx context.Context) error { return c.Exchange(ctx, 1000) },
		func(ctx context.Context) error { return mute(ctx, c) },
		func(ctx context.Context) error { _, err := g.Take(ctx, peer.TestLink, 0); return err },
		func(ctx context.Context) error { return c.App.Wait(ctx) })
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(c.App.Err, unix.ETIMEDOUT) {
		t.Errorf("the application gets %v", c.App.Err)
	}
	c.HangUp()
}
