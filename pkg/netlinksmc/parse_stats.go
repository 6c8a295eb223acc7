// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"github.com/mdlayher/genetlink"
)

// fallbackServer is the type of a fallback reason of the server side; the other side has zero.
const fallbackServer = 1

func parseStats(replies []genetlink.Message) (*Stats, error) {
	var s Stats
	attrs := fields{
		1: required(nest("STATS_SMCD_TECH", s.SMCD.parse)),
		2: required(nest("STATS_SMCR_TECH", s.SMCR.parse)),
		3: to("STATS_CLNT_HS_ERR_CNT", getU64, &s.ClientHandshakeErrors),
		4: to("STATS_SRV_HS_ERR_CNT", getU64, &s.ServerHandshakeErrors),
	}
	found := false
	err := forEach(replies, fields{genStats: nest("STATS", func(b []byte) error {
		found = true
		return attrs.parse(b)
	})})
	if err == nil && !found {
		err = errNoReply
	}
	if err != nil {
		return nil, err
	}
	return &s, nil
}

func (t *TechStats) parse(b []byte) error {
	return fields{
		1:  nest("STATS_T_TX_RMB_SIZE", t.TxBufSizes.parse),
		2:  nest("STATS_T_RX_RMB_SIZE", t.RxBufSizes.parse),
		3:  nest("STATS_T_TXPLOAD_SIZE", t.TxSizes.parse),
		4:  nest("STATS_T_RXPLOAD_SIZE", t.RxSizes.parse),
		5:  nest("STATS_T_TX_RMB_STATS", t.TxBuf.parse),
		6:  nest("STATS_T_RX_RMB_STATS", t.RxBuf.parse),
		7:  to("STATS_T_CLNT_V1_SUCC", getU64, &t.ClientV1),
		8:  to("STATS_T_CLNT_V2_SUCC", getU64, &t.ClientV2),
		9:  to("STATS_T_SRV_V1_SUCC", getU64, &t.ServerV1),
		10: to("STATS_T_SRV_V2_SUCC", getU64, &t.ServerV2),
		11: to("STATS_T_SENDPAGE_CNT", getU64, &t.Sendpage),
		12: to("STATS_T_SPLICE_CNT", getU64, &t.Splice),
		13: to("STATS_T_CORK_CNT", getU64, &t.Cork),
		14: to("STATS_T_NDLY_CNT", getU64, &t.NoDelay),
		15: to("STATS_T_URG_DATA_CNT", getU64, &t.Urgent),
		16: to("STATS_T_RX_BYTES", getU64, &t.RxBytes),
		17: to("STATS_T_TX_BYTES", getU64, &t.TxBytes),
		18: to("STATS_T_RX_CNT", getU64, &t.RxCount),
		19: to("STATS_T_TX_CNT", getU64, &t.TxCount),
		20: opt("STATS_T_RX_RMB_USAGE", getUint, &t.RxBufUsage),
		21: opt("STATS_T_TX_RMB_USAGE", getUint, &t.TxBufUsage),
	}.parse(b)
}

// sizeNames are the kernel's names of the size classes.
var sizeNames = [SizeClasses]string{
	"STATS_PLOAD_8K", "STATS_PLOAD_16K", "STATS_PLOAD_32K", "STATS_PLOAD_64K", "STATS_PLOAD_128K",
	"STATS_PLOAD_256K", "STATS_PLOAD_512K", "STATS_PLOAD_1024K", "STATS_PLOAD_G_1024K",
}

func (h *SizeHistogram) parse(b []byte) error {
	fs := make(fields, SizeClasses)
	for i := range h {
		fs[uint16(i+1)] = to(sizeNames[i], getU64, &h[i])
	}
	return fs.parse(b)
}

func (s *BufferStats) parse(b []byte) error {
	return fields{
		1: to("STATS_RMB_SIZE_SM_PEER_CNT", getU64, &s.TooSmallPeer),
		2: to("STATS_RMB_SIZE_SM_CNT", getU64, &s.TooSmall),
		3: to("STATS_RMB_FULL_PEER_CNT", getU64, &s.FullPeer),
		4: to("STATS_RMB_FULL_CNT", getU64, &s.Full),
		5: to("STATS_RMB_REUSE_CNT", getU64, &s.Reused),
		6: to("STATS_RMB_ALLOC_CNT", getU64, &s.Allocated),
		7: to("STATS_RMB_DGRADE_CNT", getU64, &s.Downgraded),
	}.parse(b)
}

// parseFallbackStats decodes one message per reason, of which only the first has the totals. Without any fallback the
// kernel sends nothing.
func parseFallbackStats(replies []genetlink.Message) (*FallbackStats, error) {
	s := FallbackStats{Server: []FallbackCount{}, Client: []FallbackCount{}}
	err := forEach(replies, fields{genFallbackStats: nest("FBACK_STATS", s.add)})
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// add decodes one reason and adds it to its side. A reason of zero is an empty slot of the kernel's table.
func (s *FallbackStats) add(b []byte) error {
	var typ uint8
	var c FallbackCount
	err := fields{
		1: required(to("FBACK_STATS_TYPE", getU8, &typ)),
		2: to("FBACK_STATS_SRV_CNT", getU64, &s.ServerTotal),
		3: to("FBACK_STATS_CLNT_CNT", getU64, &s.ClientTotal),
		4: enum("FBACK_STATS_RSN_CODE", getU32, &c.Reason),
		5: to("FBACK_STATS_RSN_CNT", getU16, &c.Count),
	}.parse(b)
	if err != nil || c.Reason == 0 {
		return err
	}
	if typ == fallbackServer {
		s.Server = append(s.Server, c)
	} else {
		s.Client = append(s.Client, c)
	}
	return nil
}
