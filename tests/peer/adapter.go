// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Adapter is an RDMA adapter with one port and one address.
type Adapter struct {
	Addr netip.Addr

	net  *Net
	mu   sync.Mutex
	qps  map[uint32]*QP
	next uint32
	done chan struct{}
}

// NewAdapter makes an adapter with an address of the network.
func NewAdapter(n *Net, addr netip.Addr) *Adapter {
	h := &Adapter{Addr: addr, net: n, qps: map[uint32]*QP{}, next: 0x100, done: make(chan struct{})}
	n.Take(addr, h.receive)
	go h.repeat()
	return h
}

// Close has the adapter fall silent.
func (h *Adapter) Close() {
	h.net.Take(h.Addr, func([]byte) {})
	close(h.done)
}

// repeat has all queue pairs repeat what is not acknowledged.
func (h *Adapter) repeat() {
	ticker := time.NewTicker(resendTick)
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

// NewQP makes a queue pair. It has no peer before Connect.
func (h *Adapter) NewQP(psn uint32) *QP {
	h.mu.Lock()
	defer h.mu.Unlock()
	q := &QP{Number: h.next, host: h, first: psn, send: psn, regions: map[uint32]*Region{}}
	h.qps[q.Number] = q
	h.next++
	return q
}

// receive passes a packet to its queue pair.
func (h *Adapter) receive(packet []byte) {
	p, err := ParsePacket(packet)
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

// has reports whether a range is inside of the region.
func (r *Region) has(addr uint64, length uint32) bool {
	size, off := uint64(len(r.Bytes)), addr-r.Addr
	return addr >= r.Addr && off <= size && uint64(length) <= size-off
}
