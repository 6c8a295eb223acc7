// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

// item is a socket to sort, with the facts of -i.
type item struct {
	socket netlinksmc.Socket
	info   *jsonInfo
}

// sortKey is a value by which sockets are sorted.
type sortKey struct {
	name string
	// facts reports whether the value is one of the facts of -i.
	facts   bool
	compare func(a, b item) int
}

// by makes the order of a value that increases.
func by[T cmp.Ordered](value func(*netlinksmc.Socket) T) func(a, b item) int {
	return func(a, b item) int { return cmp.Compare(value(&a.socket), value(&b.socket)) }
}

// most makes the order of a fact that decreases. Sockets without it come last.
func most[T cmp.Ordered](value func(*jsonInfo) netlinksmc.Optional[T]) func(a, b item) int {
	of := func(i item) (v T, ok bool) {
		if i.info == nil {
			return v, false
		}
		return value(i.info).Get()
	}
	return func(a, b item) int {
		x, xok := of(a)
		y, yok := of(b)
		if xok != yok {
			if xok {
				return -1
			}
			return 1
		}
		return cmp.Compare(y, x)
	}
}

// The keys, in the order of the manual.
var sortKeys = []sortKey{
	{"state", false, by(func(s *netlinksmc.Socket) netlinksmc.SocketState { return s.State })},
	{"mode", false, by(func(s *netlinksmc.Socket) string { return s.Mode.String() })},
	{"uid", false, by(func(s *netlinksmc.Socket) uint32 { return s.UID })},
	{"local", false, func(a, b item) int { return a.socket.Local.Compare(b.socket.Local) }},
	{"peer", false, func(a, b item) int { return a.socket.Peer.Compare(b.socket.Peer) }},
	{"age", true, most(func(i *jsonInfo) netlinksmc.Optional[float64] { return i.AgeSeconds })},
	{"sent", true, most(func(i *jsonInfo) netlinksmc.Optional[uint64] { return i.BytesSent })},
	{"received", true, most(func(i *jsonInfo) netlinksmc.Optional[uint64] { return i.BytesReceived })},
	{"send-rate", true, most(func(i *jsonInfo) netlinksmc.Optional[float64] { return i.SentPerSecond })},
	{"recv-rate", true, most(func(i *jsonInfo) netlinksmc.Optional[float64] { return i.ReceivedPerSecond })},
	{"sendq", true, most(func(i *jsonInfo) netlinksmc.Optional[uint64] { return i.SendQueue })},
	{"peerq", true, most(func(i *jsonInfo) netlinksmc.Optional[uint64] { return i.PeerQueue })},
	{"recvq", true, most(func(i *jsonInfo) netlinksmc.Optional[uint64] { return i.ReceiveQueue })},
}

// sortNames lists the names of the keys.
func sortNames() []string {
	names := make([]string, len(sortKeys))
	for i, k := range sortKeys {
		names[i] = k.name
	}
	return names
}

// order is the value of --sort.
type order struct {
	key     *sortKey
	reverse bool
}

func (o *order) String() string {
	switch {
	case o.key == nil:
		return ""
	case o.reverse:
		return "-" + o.key.name
	}
	return o.key.name
}

func (o *order) Set(text string) error {
	name, reverse := strings.CutPrefix(text, "-")
	at := slices.IndexFunc(sortKeys, func(k sortKey) bool { return k.name == name })
	if at < 0 {
		return fmt.Errorf("%q is not a key: choose %s, or - and a key", text, strings.Join(sortNames(), ", "))
	}
	*o = order{&sortKeys[at], reverse}
	return nil
}

func (o *order) Type() string { return "key" }

// sort sorts sockets. Those with the same value keep the kernel's order.
func (o *order) sort(list []item) {
	slices.SortStableFunc(list, func(a, b item) int {
		if o.reverse {
			return o.key.compare(b, a)
		}
		return o.key.compare(a, b)
	})
}
