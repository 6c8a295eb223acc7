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

// outcome is what becomes of a connection whose peer misbehaves.
type outcome int

const (
	ignored outcome = iota // it goes on as if nothing had been, and ends cleanly
	lost                   // the link group ends, and the application hears of an error
	dead                   // the connection ends by an error, and the group goes on
	ended                  // the connection is over, as the peer has said so, and the group goes on
)

// connCase is something that a peer does on a connection that works.
type connCase struct {
	name string
	want outcome
	do   func(ctx context.Context, s *session) error
	skip string // the defect for which the case cannot be run

	clientOnly bool // a server cannot do it
}

// session is where it happens.
type session struct {
	*peer.Conn
	wellBehaved *peer.Conn // of another group
}

// finish checks that the outcome is as wanted.
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
			return errors.New("the application has heard of no error")
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

// env is a test of many cases, with a peer that has done no wrong all along.
type env struct {
	*peer.RoCENet
	agrees      bool       // the peers that misbehave agree to messages as immediate data
	v1          bool       // they speak version 1
	mu          sync.Mutex // for who deals with it
	wellBehaved *peer.Conn
}

func openEnv(t *testing.T, third byte) *env {
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
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
	ctx, cancel := context.WithTimeout(ctx, peer.Patience)
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

// run has peers misbehave, one after the other, as clients and as servers.
func (s *env) run(t *testing.T, third byte, cases []connCase) {
	roles := []bool{false, true}
	for i, b := range cases {
		for r, server := range roles {
			if b.clientOnly && server || !b.clientOnly && !peer.RoCEGuest.Full() && r != i%2 {
				continue
			}
			t.Run(fmt.Sprintf("%s, server %v", b.name, server), func(t *testing.T) {
				if b.skip != "" {
					t.Skip(b.skip)
				}
				ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
				defer cancel()
				g := peer.NewLinkGroup(t, s.RoCENet, peer.Address(third+byte(r), byte(i+1)), server)
				g.Immediate, g.V1 = s.agrees, s.v1
				c, err := g.Open(ctx)
				if err == nil {
					err = c.Exchange(ctx, 1000)
				}
				if err != nil {
					t.Fatalf("before: %v", err)
				}
				here := &session{Conn: c, wellBehaved: s.wellBehaved}
				err = b.do(ctx, here)
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
