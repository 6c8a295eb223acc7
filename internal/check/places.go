// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"sync"
)

// places are the connections that a server serves at a time.
type places struct {
	mu sync.Mutex
	// taken has the oldest first.
	taken []*place
	ended bool
}

// place is a connection that is served.
type place struct {
	conn conn
	// open says that conn is; waking protects it.
	waking sync.Mutex
	open   bool
	// kept is set for a client that has greeted as ours do. Others make room for newcomers.
	kept bool
}

// take gives a connection a place; nil if there is none. If all are taken, the oldest connection that has not greeted ends, so
// that strangers who keep silent do not keep clients out.
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
		// Not here: a socket whose peer does not read may take seconds to shut down.
		go ps.taken[i].wake()
		ps.taken = slices.Delete(ps.taken, i, i+1)
	}
	p := &place{conn: c, open: true}
	ps.taken = append(ps.taken, p)
	return p
}

// keep says that a connection is a client's.
func (ps *places) keep(p *place) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.kept = true
}

// leave closes a connection and gives its place up.
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

// wake ends whatever the server waits for on a connection, if it is still open: its descriptor may be another's soon.
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
