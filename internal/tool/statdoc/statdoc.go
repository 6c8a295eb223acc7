// SPDX-License-Identifier: Apache-2.0

// Package statdoc is the JSON form of statistics, which smcr, smcd and smcr-stats share.
package statdoc

import (
	"time"

	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcstats"
)

// Fields documents the fields of Tech, for the help of a command.
const Fields = `connection_counts {total, client_v1, client_v2, server_v1,
  server_v2}; rx and tx {bytes, requests, buffer_usage_bytes, buffers {full,
  full_peer, too_small, too_small_peer, reused, allocated, downgraded},
  buffers_by_size and requests_by_size {8k, 16k, 32k, 64k, 128k, 256k, 512k,
  1024k, larger}}; special_calls {cork, nodelay, sendpage, splice, urgent};
  link_events, only of SMC-R with smckit's module {added, refused,
  refused_by_peer, not_added, connections_moved, connections_not_moved, lost
  {total, not_sent, not_received, not_posted, not_registered, no_message, event,
  no_port, deleted, silent, stuck, flooded, forgetful, ahead, bad_immediate,
  unused, bad_llc, operator, replaced}}`

// HostFields documents the fields of Host.
const HostFields = `since (when the baseline was taken; left out when counting from module load);
  baseline_note (why a baseline was not used); handshake_errors {client_errors,
  server_errors}; fallback_counts {client and server {total, reasons [{code, name,
  text, remedy, connections}]}}`

// Host contains the kernel's counters for both technologies together, and the start of the counting.
type Host struct {
	// of the baseline; left out when figures count from module load
	Since           time.Time       `json:"since,omitzero"`
	BaselineNote    string          `json:"baseline_note,omitempty"`
	HandshakeErrors HandshakeErrors `json:"handshake_errors"`
	Fallback        Fallback        `json:"fallback_counts" schema1:"fallback"`
}

// HandshakeErrors counts failed handshakes by role.
type HandshakeErrors struct {
	Client uint64 `json:"client_errors" schema1:"client"`
	Server uint64 `json:"server_errors" schema1:"server"`
}

// Fallback counts connections that fell back to TCP by role.
type Fallback struct {
	Client Side `json:"client"`
	Server Side `json:"server"`
}

// Side is one role of Fallback.
type Side struct {
	Total   uint64   `json:"total"`
	Reasons []Reason `json:"reasons"`
}

// Reason is one fallback reason with how often it occurred.
type Reason struct {
	jsondoc.Reason
	Count uint16 `json:"connections" schema1:"count"`
}

// NewHost returns the host-wide part of r, with the reasons that newReason makes.
func NewHost(r smcstats.Reading, newReason func(netlinksmc.Reason) jsondoc.Reason) Host {
	h := Host{
		Since:           r.Since,
		HandshakeErrors: HandshakeErrors{r.ClientHandshakeErrors, r.ServerHandshakeErrors},
		Fallback: Fallback{
			Client: newSide(r.Fallback.ClientTotal, r.Fallback.Client, newReason),
			Server: newSide(r.Fallback.ServerTotal, r.Fallback.Server, newReason),
		},
	}
	if r.Note != nil {
		h.BaselineNote = r.Note.Error()
	}
	return h
}

func newSide(total uint64, counts []netlinksmc.FallbackCount, newReason func(netlinksmc.Reason) jsondoc.Reason) Side {
	return Side{Total: total, Reasons: NewReasons(counts, newReason)}
}

// NewReasons explains counted reasons by newReason.
func NewReasons(counts []netlinksmc.FallbackCount, newReason func(netlinksmc.Reason) jsondoc.Reason) []Reason {
	reasons := make([]Reason, 0, len(counts))
	for _, c := range counts {
		reasons = append(reasons, Reason{Reason: newReason(c.Reason), Count: c.Count})
	}
	return reasons
}

// Tech contains the kernel's counters for one technology.
type Tech struct {
	Connections  Connections  `json:"connection_counts" schema1:"connections"`
	RX           Direction    `json:"rx"`
	TX           Direction    `json:"tx"`
	SpecialCalls SpecialCalls `json:"special_calls"`
	// SMC-R with smckit's module
	Links *Links `json:"link_events,omitempty" schema1:"links"`
}

// Connections counts connections that use the technology.
type Connections struct {
	Total    uint64 `json:"total"`
	ClientV1 uint64 `json:"client_v1"`
	ClientV2 uint64 `json:"client_v2"`
	ServerV1 uint64 `json:"server_v1"`
	ServerV2 uint64 `json:"server_v2"`
}

// Direction is receiving or sending.
type Direction struct {
	Bytes          uint64                      `json:"bytes"`
	Requests       uint64                      `json:"requests"`
	BufferUsage    netlinksmc.Optional[uint64] `json:"buffer_usage_bytes,omitzero"`
	Buffers        Buffers                     `json:"buffers"`
	BuffersBySize  BySize                      `json:"buffers_by_size"`
	RequestsBySize BySize                      `json:"requests_by_size"`
}

// Buffers counts events of ring buffers.
type Buffers struct {
	Full         uint64 `json:"full"`
	FullPeer     uint64 `json:"full_peer"`
	TooSmall     uint64 `json:"too_small"`
	TooSmallPeer uint64 `json:"too_small_peer"`
	Reused       uint64 `json:"reused"`
	Allocated    uint64 `json:"allocated"`
	Downgraded   uint64 `json:"downgraded"`
}

// BySize is a histogram. Each field counts sizes above the limit of the previous one.
type BySize struct {
	K8     uint64 `json:"8k"`
	K16    uint64 `json:"16k"`
	K32    uint64 `json:"32k"`
	K64    uint64 `json:"64k"`
	K128   uint64 `json:"128k"`
	K256   uint64 `json:"256k"`
	K512   uint64 `json:"512k"`
	K1024  uint64 `json:"1024k"`
	Larger uint64 `json:"larger"`
}

// SpecialCalls counts socket calls that SMC handles specially.
type SpecialCalls struct {
	Cork     uint64 `json:"cork"`
	NoDelay  uint64 `json:"nodelay"`
	Sendpage uint64 `json:"sendpage"`
	Splice   uint64 `json:"splice"`
	Urgent   uint64 `json:"urgent"`
}

// NewTech returns the JSON form of t.
func NewTech(t *netlinksmc.TechStats) Tech {
	return Tech{
		Connections: Connections{smcstats.Connections(t), t.ClientV1, t.ClientV2, t.ServerV1, t.ServerV2},
		RX: Direction{
			t.RxBytes, t.RxCount, t.RxBufUsage, newBuffers(t.RxBuf), newBySize(t.RxBufSizes), newBySize(t.RxSizes),
		},
		TX: Direction{
			t.TxBytes, t.TxCount, t.TxBufUsage, newBuffers(t.TxBuf), newBySize(t.TxBufSizes), newBySize(t.TxSizes),
		},
		SpecialCalls: SpecialCalls{t.Cork, t.NoDelay, t.Sendpage, t.Splice, t.Urgent},
		Links:        newLinks(t.Links),
	}
}

func newBuffers(b netlinksmc.BufferStats) Buffers {
	return Buffers{b.Full, b.FullPeer, b.TooSmall, b.TooSmallPeer, b.Reused, b.Allocated, b.Downgraded}
}

func newBySize(h netlinksmc.SizeHistogram) BySize {
	return BySize{h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7], h[8]}
}
