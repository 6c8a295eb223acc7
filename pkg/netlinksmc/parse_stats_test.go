// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"testing"
)

// counters writes n u64 attributes from first on with the values base+1, base+2 and so on.
func counters(first, n uint16, base uint64) []byte {
	var b []byte
	for i := range n {
		b = append(b, u64(first+i, base+1+uint64(i))...)
	}
	return b
}

// tech writes the counters of a technology as Linux 5.14 to 6.11 send them.
func tech(base uint64) []byte {
	return join(
		nested(1, counters(1, 9, base+100)), nested(2, counters(1, 9, base+200)),
		nested(3, counters(1, 9, base+300)), nested(4, counters(1, 9, base+400)),
		nested(5, counters(1, 7, base+500)), nested(6, counters(1, 7, base+600)),
		counters(7, 13, base),
	)
}

func histogram(base uint64) SizeHistogram {
	var h SizeHistogram
	for i := range h {
		h[i] = base + 1 + uint64(i)
	}
	return h
}

func bufferStats(base uint64) BufferStats {
	return BufferStats{
		TooSmallPeer: base + 1, TooSmall: base + 2, FullPeer: base + 3, Full: base + 4,
		Reused: base + 5, Allocated: base + 6, Downgraded: base + 7,
	}
}

func wantTech(base uint64) TechStats {
	return TechStats{
		TxBufSizes: histogram(base + 100), RxBufSizes: histogram(base + 200),
		TxSizes: histogram(base + 300), RxSizes: histogram(base + 400),
		TxBuf: bufferStats(base + 500), RxBuf: bufferStats(base + 600),
		ClientV1: base + 1, ClientV2: base + 2, ServerV1: base + 3, ServerV2: base + 4,
		Sendpage: base + 5, Splice: base + 6, Cork: base + 7, NoDelay: base + 8, Urgent: base + 9,
		RxBytes: base + 10, TxBytes: base + 11, RxCount: base + 12, TxCount: base + 13,
	}
}

func TestParseStats(t *testing.T) {
	v61 := &Stats{SMCD: wantTech(1000), SMCR: wantTech(2000), ClientHandshakeErrors: 3, ServerHandshakeErrors: 1 << 63}
	v72 := *v61
	v72.SMCD.RxBufUsage, v72.SMCD.TxBufUsage = Some(uint64(0)), Some(uint64(5))
	v72.SMCR.RxBufUsage, v72.SMCR.TxBufUsage = Some(uint64(1<<40)), Some(uint64(6))
	ours := *v61
	ours.SMCR.Links = &LinkStats{
		Added: 1, Refused: 2, RefusedByPeer: 3, NotAdded: 4, ConnsMoved: 5, ConnsNotMoved: 6,
		Lost: LostLinks{
			NotSent: 11, NotReceived: 12, NotPosted: 13, NotRegistered: 14, NoMessage: 15, Event: 16, NoPort: 17, Deleted: 18,
			Silent: 19, Stuck: 20, Flooded: 21, Forgetful: 22, Ahead: 23, BadImmediate: 24, Unused: 25, BadLLC: 26, Operator: 27, Replaced: 28,
		},
	}
	errs := join(u64(3, 3), u64(4, 1<<63))
	runParseTests(t, (*Client).Stats, []parseTest[*Stats]{
		{
			"7.2", replies(reply(nested(AttrGenStats, nested(1, tech(1000), u32(20, 0), u32(21, 5)),
				nested(2, tech(2000), u64(20, 1<<40), u32(21, 6)), errs))),
			&v72, "",
		},
		{"6.1", replies(reply(nested(AttrGenStats, nested(1, tech(1000)), nested(2, tech(2000)), errs))), v61, ""},
		{
			"smckit's module", replies(reply(nested(AttrGenStats, nested(1, tech(1000)),
				nested(2, tech(2000), nested(256, counters(1, 6, 0), nested(7, counters(1, 18, 10)))), errs))),
			&ours, "",
		},
		{"nothing", nil, nil, "no data"},
		{"no SMC-R", replies(reply(nested(AttrGenStats, nested(1)))), nil, "STATS_SMCR_TECH is missing"},
		{
			"short counter", replies(reply(nested(AttrGenStats, nested(2, nested(4, u32(9, 1)))))), nil,
			"STATS: STATS_SMCR_TECH: STATS_T_RXPLOAD_SIZE: STATS_PLOAD_G_1024K: value of 4 bytes, want 8",
		},
		{
			"short gauge", replies(reply(nested(AttrGenStats, nested(2, u16(20, 1))))), nil,
			"STATS_T_RX_RMB_USAGE: value of 2 bytes, want 4 or 8",
		},
	})
}

func TestParseFallbackStats(t *testing.T) {
	reason := func(typ uint8, code uint32, count uint16, totals ...[]byte) []byte {
		return nested(AttrGenFbackStats, u8(1, typ), join(totals...), u32(4, code), u16(5, count))
	}
	runParseTests(t, (*Client).FallbackStats, []parseTest[*FallbackStats]{
		{
			"both sides", replies(
				reply(reason(1, 0x03010000, 65535, u64(2, 70000), u64(3, 4))),
				reply(reason(0, 0x03030000, 3)), reply(reason(1, 0x05000000, 2)), reply(reason(0, 0x12345678, 1)),
			),
			&FallbackStats{
				ServerTotal: 70000, ClientTotal: 4,
				Server: []FallbackCount{{0x03010000, 65535}, {0x05000000, 2}},
				Client: []FallbackCount{{0x03030000, 3}, {0x12345678, 1}},
			}, "",
		},
		{"none", nil, &FallbackStats{Server: []FallbackCount{}, Client: []FallbackCount{}}, ""},
		{
			"totals without a reason", replies(reply(nested(AttrGenFbackStats, u8(1, 1), u64(2, 1), u64(3, 2)))),
			&FallbackStats{ServerTotal: 1, ClientTotal: 2, Server: []FallbackCount{}, Client: []FallbackCount{}}, "",
		},
		{"no type", replies(reply(nested(AttrGenFbackStats, u32(4, 1)))), nil, "FBACK_STATS_TYPE is missing"},
		{
			"wide count", replies(reply(nested(AttrGenFbackStats, u8(1, 1), u32(5, 1)))), nil,
			"FBACK_STATS_RSN_CNT: value of 4 bytes, want 2",
		},
	})
}
