// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
)

// outcome is what becomes of a connection of SMC-R after its peer has broken a rule.
type outcome int

const (
	ignored outcome = iota // it goes on, and closes cleanly
	lost                   // the link group ends, and the application gets an error
	dead                   // the application gets an error, and the group goes on
	ended                  // the peer has closed the connection, and the group goes on
)

// connCase is what a peer does on a connection that works.
type connCase struct {
	name string
	want outcome
	do   func(ctx context.Context, s *session) error
	skip string // the defect for which the case cannot be run

	clientOnly bool // a server cannot do it
	serverOnly bool // a client cannot do it
}

// session is the connection of a case.
type session struct {
	*peer.Conn
	wellBehaved *peer.Conn // of another group
}

// finish checks the outcome.
func (s *session) finish(ctx context.Context, want outcome) error {
	switch want {
	case ignored:
		if err := s.Exchange(ctx, 3000); err != nil {
			return fmt.Errorf("afterwards: %w", err)
		}
		return s.Conn.Close(ctx)
	case lost, dead:
		if err := s.App.Wait(ctx); err != nil {
			return err
		}
		if s.App.Err == nil {
			return errors.New("the application has got no error")
		}
	case ended:
		if err := s.App.Wait(ctx); err != nil {
			return err
		}
	}
	s.HangUp()
	if want == lost {
		return nil
	}
	return s.Group.UseNewConn(ctx)
}

// env runs many cases beside a well-behaved peer, whose connection stays open.
type env struct {
	*peer.RoCENet
	agrees      bool       // the bad peers agree to messages as immediate data
	v1          bool       // they speak version 1
	wire        *peer.Net  // if not nil, they agree to a second link over this network
	linked      bool       // they have that link when a case begins
	mu          sync.Mutex // of wellBehaved
	wellBehaved *peer.Conn
}

func openEnv(t *testing.T, third byte) *env {
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
	defer cancel()
	c, err := peer.NewLinkGroup(t, n, peer.Address(third, 250), false).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.HangUp() })
	return &env{RoCENet: n, wellBehaved: c}
}

// unharmed checks that the well-behaved peer's connection works, and that it gets another one at once.
func (s *env) unharmed(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, peer.Timeout)
	defer cancel()
	if err := s.wellBehaved.Exchange(ctx, 2000); err != nil {
		return fmt.Errorf("the well-behaved peer: %w", err)
	}
	begin := time.Now()
	if err := s.wellBehaved.Group.UseNewConn(ctx); err != nil {
		return fmt.Errorf("the well-behaved peer: %w", err)
	}
	if took := time.Since(begin); took > peer.Prompt {
		return fmt.Errorf("the well-behaved peer had to wait %v for its connection", took)
	}
	return nil
}

// open opens the connection of a case, and uses it, unless a second link is being added: our server allows little time for that.
func (s *env) open(ctx context.Context, g *peer.LinkGroup) (*session, error) {
	g.Immediate, g.V1, g.Wire = s.agrees, s.v1, s.wire
	c, err := g.Open(ctx)
	here := &session{Conn: c, wellBehaved: s.wellBehaved}
	if err != nil || s.wire != nil && !s.linked {
		return here, err
	}
	if s.linked {
		err = g.AddSecondLink(ctx)
	}
	if err == nil {
		err = c.Exchange(ctx, 1000)
	}
	return here, err
}

// run runs cases one after the other, with the peer as client or server; in full runs, as both.
func (s *env) run(t *testing.T, third byte, cases []connCase) {
	roles := []bool{false, true}
	for i, b := range cases {
		for r, server := range roles {
			one := b.clientOnly || b.serverOnly
			if b.clientOnly && server || b.serverOnly && !server || !one && !peer.RoCEGuest.Full() && r != i%2 {
				continue
			}
			t.Run(fmt.Sprintf("%s, server %v", b.name, server), func(t *testing.T) {
				if b.skip != "" {
					t.Skip(b.skip)
				}
				ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
				defer cancel()
				here, err := s.open(ctx, peer.NewLinkGroup(t, s.RoCENet, peer.Address(third+byte(r), byte(i+1)), server))
				if err != nil {
					t.Fatalf("before: %v", err)
				}
				err = b.do(ctx, here)
				// After the case, the group needs no other link.
				here.Group.Locked(func() { here.Group.RefuseLinks = s.wire != nil })
				slow := errors.Is(err, errTooSlow)
				if err == nil {
					err = here.finish(ctx, b.want)
				} else if !slow {
					err = fmt.Errorf("it cannot: %w", err)
				}
				if err != nil && !slow {
					t.Error(err)
				}
				if err := s.unharmed(t.Context()); err != nil {
					t.Fatal(err)
				}
				if slow {
					t.Skip(err)
				}
			})
		}
	}
	guest.Run(t, "! dmesg | grep -E 'WARNING|BUG:|Oops'")
}
