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
		AttrStatsSMCDTech:     required(nest("STATS_SMCD_TECH", s.SMCD.parse)),
		AttrStatsSMCRTech:     required(nest("STATS_SMCR_TECH", s.SMCR.parse)),
		AttrStatsClntHSErrCnt: to("STATS_CLNT_HS_ERR_CNT", getU64, &s.ClientHandshakeErrors),
		AttrStatsSrvHSErrCnt:  to("STATS_SRV_HS_ERR_CNT", getU64, &s.ServerHandshakeErrors),
	}
	found := false
	err := forEach(replies, fields{AttrGenStats: nest("STATS", func(b []byte) error {
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

// sizeNames are the kernel's names of the size classes.
var sizeNames = [SizeClasses]string{
	"STATS_PLOAD_8K", "STATS_PLOAD_16K", "STATS_PLOAD_32K", "STATS_PLOAD_64K", "STATS_PLOAD_128K",
	"STATS_PLOAD_256K", "STATS_PLOAD_512K", "STATS_PLOAD_1024K", "STATS_PLOAD_G_1024K",
}

func (h *SizeHistogram) parse(b []byte) error {
	fs := make(fields, SizeClasses)
	for i := range h {
		fs[uint16(AttrStatsPload8k+i)] = to(sizeNames[i], getU64, &h[i])
	}
	return fs.parse(b)
}

// parseFallbackStats decodes one message per reason, of which only the first has the totals. Without any fallback the
// kernel sends nothing.
func parseFallbackStats(replies []genetlink.Message) (*FallbackStats, error) {
	s := FallbackStats{Server: []FallbackCount{}, Client: []FallbackCount{}}
	err := forEach(replies, fields{AttrGenFbackStats: nest("FBACK_STATS", s.add)})
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
		AttrFbackStatsType:    required(to("FBACK_STATS_TYPE", getU8, &typ)),
		AttrFbackStatsSrvCnt:  to("FBACK_STATS_SRV_CNT", getU64, &s.ServerTotal),
		AttrFbackStatsClntCnt: to("FBACK_STATS_CLNT_CNT", getU64, &s.ClientTotal),
		AttrFbackStatsRsnCode: enum("FBACK_STATS_RSN_CODE", getU32, &c.Reason),
		AttrFbackStatsRsnCnt:  to("FBACK_STATS_RSN_CNT", getU16, &c.Count),
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
