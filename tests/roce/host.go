// SPDX-License-Identifier: Apache-2.0

//go:build linux

package roce

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/smckit/smckit/tests/peer"
)

// Host is an adapter with one address.
type Host struct {
	Addr netip.Addr

	net  *peer.Net
	mu   sync.Mutex
	qps  map[uint32]*QP
	next uint32
	done chan struct{}
}

// NewHost makes an adapter with an address of the network.
func NewHost(n *peer.Net, addr netip.Addr) *Host {
	h := &Host{Addr: addr, net: n, qps: map[uint32]*QP{}, next: 0x100, done: make(chan struct{})}
	n.Take(addr, h.receive)
	go h.repeat()
	return h
}

// Close has the adapter fall silent.
func (h *Host) Close() {
	h.net.Take(h.Addr, func([]byte) {})
	close(h.done)
}

// repeat has all queue pairs send again what was lost.
func (h *Host) repeat() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-h.done:
			return
		}
		h.mu.Lock()
		all := slices.Collect(maps.Values(h.qps))
		h.mu.Unlock()
		for _, q := range all {
			q.repeat()
		}
	}
}

// QP makes a queue pair of a connection that is yet to be: Connect says with whom.
func (h *Host) QP(psn uint32) *QP {
	h.mu.Lock()
	defer h.mu.Unlock()
	q := &QP{Number: h.next, host: h, send: psn, regions: map[uint32]*Region{}}
	h.qps[q.Number] = q
	h.next++
	return q
}

// receive hands a packet to the queue pair that it is for.
func (h *Host) receive(packet []byte) {
	p, err := Parse(packet)
	if err != nil {
		return
	}
	h.mu.Lock()
	q := h.qps[p.QPN]
	h.mu.Unlock()
	if q != nil {
		q.receive(p)
	}
}

// Region is memory that the other side may write to.
type Region struct {
	Addr  uint64
	Rkey  uint32
	Bytes []byte
}

// has is whether some bytes are in the region, all of them.
func (r *Region) has(addr uint64, length uint32) bool {
	size, off := uint64(len(r.Bytes)), addr-r.Addr
	return addr >= r.Addr && off <= size && uint64(length) <= size-off
}
