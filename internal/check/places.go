// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"sync"
)

// places are the connections that a server serves at the same time, at most maxClients.
type places struct {
	mu sync.Mutex
	// taken has the oldest first.
	taken []*place
	ended bool
}

// place is a connection that the server serves.
type place struct {
	conn conn
	// open is true until conn is closed. waking protects it.
	waking sync.Mutex
	open   bool
	// kept is set for a connection that has sent clientLine. Others are closed if a new connection needs the place.
	kept bool
}

// take returns a place for a connection, or nil if there is none. If all are taken, it ends the oldest connection that has not
// sent clientLine, so that connections that send nothing cannot lock clients out.
func (ps *places) take(c conn) *place {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.ended {
		return nil
	}
	if len(ps.taken) >= maxClients {
		i := slices.IndexFunc(ps.taken, func(p *place) bool { return !p.kept })
		if i < 0 {
			return nil
		}
		// Use another goroutine: if the peer does not read, shutdown() may take seconds.
		go ps.taken[i].wake()
		ps.taken = slices.Delete(ps.taken, i, i+1)
	}
	p := &place{conn: c, open: true}
	ps.taken = append(ps.taken, p)
	return p
}

// keep marks a connection as that of a client.
func (ps *places) keep(p *place) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.kept = true
}

// leave closes a connection and frees its place.
func (ps *places) leave(p *place) {
	ps.mu.Lock()
	if i := slices.Index(ps.taken, p); i >= 0 {
		ps.taken = slices.Delete(ps.taken, i, i+1)
	}
	ps.mu.Unlock()
	p.waking.Lock()
	defer p.waking.Unlock()
	p.conn.close()
	p.open = false
}

// wake shuts a connection down, which ends calls that block on it. It does so only while the connection is open, because
// another file may get its descriptor afterwards.
func (p *place) wake() {
	p.waking.Lock()
	defer p.waking.Unlock()
	if p.open {
		p.conn.wake()
	}
}

// end ends all connections.
func (ps *places) end() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.ended = true
	for _, p := range ps.taken {
		go p.wake()
	}
}
