// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

// jsonInfo has the facts of -i. A value that the kernel does not provide is left out: a stock module counts no bytes.
type jsonInfo struct {
	// since the handshake; smckit's module, SMC connections
	AgeSeconds netlinksmc.Optional[float64] `json:"age_seconds,omitzero"`
	// written by the application; smckit's module, or TCP's count
	BytesSent netlinksmc.Optional[uint64] `json:"bytes_sent,omitzero"`
	// of these, reported as read by the peer; TCP: acknowledged
	BytesAcked netlinksmc.Optional[uint64] `json:"bytes_acked,omitzero"`
	// written by the peer
	BytesReceived netlinksmc.Optional[uint64] `json:"bytes_received,omitzero"`
	// of these, read by the application
	BytesRead netlinksmc.Optional[uint64] `json:"bytes_read,omitzero"`
	// with `--watch`, since the last round; otherwise, since the handshake
	SentPerSecond     netlinksmc.Optional[float64] `json:"bytes_sent_per_second,omitzero"`
	ReceivedPerSecond netlinksmc.Optional[float64] `json:"bytes_received_per_second,omitzero"`
	// written, and not sent yet
	SendQueue netlinksmc.Optional[uint64] `json:"send_queue_bytes,omitzero"`
	// sent, and not reported as read by the peer; SMC
	PeerQueue netlinksmc.Optional[uint64] `json:"peer_queue_bytes,omitzero"`
	// received, and not read
	ReceiveQueue netlinksmc.Optional[uint64] `json:"receive_queue_bytes,omitzero"`
	// the buffers; SMC
	SndbufBytes     netlinksmc.Optional[uint64] `json:"sndbuf_bytes,omitzero"`
	RcvbufBytes     netlinksmc.Optional[uint64] `json:"rcvbuf_bytes,omitzero"`
	PeerRcvbufBytes netlinksmc.Optional[uint64] `json:"peer_rcvbuf_bytes,omitzero"`
	// a writer here waits for room
	SendBlocked bool `json:"send_blocked,omitzero"`
	// how often the connection has changed to another link; smckit's module
	Failovers netlinksmc.Optional[uint64] `json:"failovers,omitzero"`
	// of the TCP connection, which SMC uses for the handshake only
	TCP *jsonTCP `json:"tcp,omitzero"`
}

// jsonTCP has facts of a TCP connection, from TCP_INFO.
type jsonTCP struct {
	RTTMilliseconds         float64 `json:"rtt_milliseconds"`
	RTTVarianceMilliseconds float64 `json:"rtt_variance_milliseconds"`
	// segments that were sent again, in all
	Retransmits   uint64 `json:"retransmits"`
	BytesSent     uint64 `json:"bytes_sent"`
	BytesAcked    uint64 `json:"bytes_acked"`
	BytesReceived uint64 `json:"bytes_received"`
	// bytes that were sent again
	BytesRetransmitted uint64 `json:"bytes_retransmitted"`
	// in its queues
	SendQueueBytes    uint64 `json:"send_queue_bytes"`
	ReceiveQueueBytes uint64 `json:"receive_queue_bytes"`
}

// ends are the addresses of a TCP connection.
type ends struct{ local, peer netip.AddrPort }

func newEnds(local, peer netip.AddrPort) ends { return ends{unmap(local), unmap(peer)} }

// unmap returns an address as IPv4 if it is a mapped one.
func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// sample is what a connection had sent and received.
type sample struct{ sent, received uint64 }

// infoReader finds the facts of connections in one round, and remembers what the next one needs.
type infoReader struct {
	tcp map[ends]jsonTCP
	// at is the time of this round, before that of the one before, with its samples by cookie.
	at, before time.Time
	old, new   map[uint64]sample
}

// nextRound returns the reader of the round after r, which may be nil.
func (r *infoReader) nextRound(at time.Time, tcp map[ends]jsonTCP) *infoReader {
	next := &infoReader{tcp: tcp, at: at, new: map[uint64]sample{}}
	if r != nil {
		next.before, next.old = r.at, r.new
	}
	return next
}

// info returns the facts of a socket, nil if it has none.
func (r *infoReader) info(s *netlinksmc.Socket) *jsonInfo {
	if s.State == netlinksmc.StateInit || s.State == netlinksmc.StateListen {
		return nil
	}
	i := &jsonInfo{}
	tcp, found := r.tcp[newEnds(s.Local, s.Peer)]
	if found {
		i.TCP = &tcp
	}
	switch {
	case s.Conn != nil:
		i.setRings(s)
		i.setProgress(s.Progress)
	case s.Mode == netlinksmc.ModeTCP && found:
		i.BytesSent, i.BytesAcked = netlinksmc.Some(tcp.BytesSent), netlinksmc.Some(tcp.BytesAcked)
		i.BytesReceived = netlinksmc.Some(tcp.BytesReceived)
		i.SendQueue, i.ReceiveQueue = netlinksmc.Some(tcp.SendQueueBytes), netlinksmc.Some(tcp.ReceiveQueueBytes)
	}
	r.setRates(s, i)
	return i
}

// writeBlocked is the flag of a producer that has no room: RFC 7609, appendix A.4.
const writeBlocked = 0x80

// setRings takes the fill of the buffers from the cursors. "Rx" is what the peer has sent: its producer cursor, and its consumer cursor of
// what it has received. The positions need not be of one moment.
func (i *jsonInfo) setRings(s *netlinksmc.Socket) {
	c := s.Conn
	i.SndbufBytes, i.RcvbufBytes = netlinksmc.Some(uint64(c.SndbufSize)), netlinksmc.Some(uint64(c.RMBESize))
	i.PeerRcvbufBytes = netlinksmc.Some(uint64(c.PeerRMBESize))
	i.SendBlocked = c.TxProdFlags&writeBlocked != 0
	ring := c.SndbufSize
	if s.Progress != nil {
		ring = c.PeerRMBESize // smckit's module shows the send buffer as if it were the peer's
	}
	i.SendQueue = between(c.TxSent, c.TxPrep, ring)
	i.PeerQueue = between(c.RxCons, c.TxProd, c.PeerRMBESize)
	i.ReceiveQueue = between(c.TxCons, c.RxProd, c.RMBESize)
}

// between returns the bytes from one cursor to another, if these are possible in a ring of that size.
func between(from, to netlinksmc.Cursor, size uint32) netlinksmc.Optional[uint64] {
	n := int64(int16(to.Wrap-from.Wrap))*int64(size) + int64(to.Count) - int64(from.Count)
	if n < 0 || n > int64(size) {
		return netlinksmc.Optional[uint64]{}
	}
	return netlinksmc.Some(uint64(n))
}

func (i *jsonInfo) setProgress(p *netlinksmc.Progress) {
	if p == nil {
		return
	}
	i.AgeSeconds = netlinksmc.Some(p.Age.Seconds())
	i.BytesSent, i.BytesAcked = netlinksmc.Some(p.Sent), netlinksmc.Some(p.Acked)
	i.BytesReceived, i.BytesRead = netlinksmc.Some(p.Received), netlinksmc.Some(p.Read)
	i.Failovers = netlinksmc.Some(p.Failovers)
	if p.Received >= p.Read {
		i.ReceiveQueue = netlinksmc.Some(p.Received - p.Read)
	}
}

// setRates compares the counters with those of the round before, or with the age.
func (r *infoReader) setRates(s *netlinksmc.Socket, i *jsonInfo) {
	sent, ok := i.BytesSent.Get()
	received, ok2 := i.BytesReceived.Get()
	if !ok || !ok2 {
		return
	}
	seconds := i.AgeSeconds.Or(0)
	now := sample{sent, received}
	var from sample
	if old, ok := r.old[s.Cookie]; ok && old.sent <= sent && old.received <= received {
		from, seconds = old, r.at.Sub(r.before).Seconds()
	}
	r.new[s.Cookie] = now
	if seconds > 0 {
		i.SentPerSecond = netlinksmc.Some(float64(sent-from.sent) / seconds)
		i.ReceivedPerSecond = netlinksmc.Some(float64(received-from.received) / seconds)
	}
}

// appendInfo appends a line with the facts, in the notation of ss -i.
func appendInfo(b []byte, s *netlinksmc.Socket, i *jsonInfo) []byte {
	if i == nil {
		return b
	}
	b = append(b, '\t')
	if s.Conn != nil {
		b = appendKnown(b, " age:", i.AgeSeconds, "%.1fs")
	}
	b = appendKnown(b, " sent:", i.BytesSent, "%d")
	b = appendKnown(b, " acked:", i.BytesAcked, "%d")
	b = appendKnown(b, " received:", i.BytesReceived, "%d")
	b = appendRate(b, " send_rate:", i.SentPerSecond)
	b = appendRate(b, " recv_rate:", i.ReceivedPerSecond)
	if s.Conn != nil {
		b = appendFill(b, " sendq:", i.SendQueue, i.SndbufBytes)
		b = appendFill(b, " peerq:", i.PeerQueue, i.PeerRcvbufBytes)
		b = appendFill(b, " recvq:", i.ReceiveQueue, i.RcvbufBytes)
		b = appendKnown(b, " failovers:", i.Failovers, "%d")
	} else {
		b = appendKnown(b, " sendq:", i.SendQueue, "%d")
		b = appendKnown(b, " recvq:", i.ReceiveQueue, "%d")
	}
	if i.SendBlocked {
		b = append(b, " blocked"...)
	}
	if t := i.TCP; t != nil {
		b = fmt.Appendf(b, " tcp_rtt:%.3f/%.3fms tcp_retrans:%d tcp_bytes_retrans:%d", t.RTTMilliseconds, t.RTTVarianceMilliseconds, t.Retransmits,
			t.BytesRetransmitted)
	}
	return append(b, '\n')
}

// notKnown stands for a value that the kernel does not provide.
const notKnown = "n/a"

func appendKnown[T any](b []byte, name string, value netlinksmc.Optional[T], format string) []byte {
	b = append(b, name...)
	if v, ok := value.Get(); ok {
		return fmt.Appendf(b, format, v)
	}
	return append(b, notKnown...)
}

func appendFill(b []byte, name string, fill, size netlinksmc.Optional[uint64]) []byte {
	return fmt.Appendf(appendKnown(b, name, fill, "%d"), "/%d", size.Or(0))
}

// appendRate appends a rate in bits per second, as ss does.
func appendRate(b []byte, name string, perSecond netlinksmc.Optional[float64]) []byte {
	rate, ok := perSecond.Get()
	if !ok {
		return append(append(b, name...), notKnown...)
	}
	bits, unit := rate*8, ""
	for _, next := range []string{"K", "M", "G", "T"} {
		if bits < 1000 {
			break
		}
		bits, unit = bits/1000, next
	}
	return fmt.Appendf(b, "%s%.3g%sbps", name, bits, unit)
}
