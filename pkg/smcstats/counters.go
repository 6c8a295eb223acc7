// SPDX-License-Identifier: Apache-2.0

package smcstats

import (
	"slices"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

// Counter is one of the counters that a T has.
type Counter[T any] struct {
	// Name is the counter's name where it is printed or stored.
	Name string
	ptr  func(*T) *uint64
}

// Value returns the counter's value in t.
func (c Counter[T]) Value(t *T) uint64 { return *c.ptr(t) }

// counters lists all counters that the kernel keeps for each technology, in the order of smc-tools' JSON, which is also the
// order of its baseline file.
var counters = makeCounters()

// Counters lists the counters of one technology in the order of smc-tools' JSON output, by their names there, such as
// "SMC_TX_CNT". Gauges and counters of links are not among them.
func Counters() []Counter[netlinksmc.TechStats] { return slices.Clone(counters) }

func makeCounters() []Counter[netlinksmc.TechStats] {
	type tech = netlinksmc.TechStats
	sizes := [netlinksmc.SizeClasses]string{"8K", "16K", "32K", "64K", "128K", "256K", "512K", "1024K", "G_1024K"}
	var all []Counter[tech]
	add := func(name string, ptr func(*tech) *uint64) { all = append(all, Counter[tech]{name, ptr}) }

	for _, h := range []struct {
		prefix string
		of     func(*tech) *netlinksmc.SizeHistogram
	}{
		{"SMC_INT_TX_BUF_", func(t *tech) *netlinksmc.SizeHistogram { return &t.TxBufSizes }},
		{"SMC_INT_RX_BUF_", func(t *tech) *netlinksmc.SizeHistogram { return &t.RxBufSizes }},
		{"SMC_USR_TX_BUF_", func(t *tech) *netlinksmc.SizeHistogram { return &t.TxSizes }},
		{"SMC_USR_RX_BUF_", func(t *tech) *netlinksmc.SizeHistogram { return &t.RxSizes }},
	} {
		for i, size := range sizes {
			add(h.prefix+size, func(t *tech) *uint64 { return &h.of(t)[i] })
		}
	}
	for _, b := range []struct {
		prefix string
		of     func(*tech) *netlinksmc.BufferStats
	}{
		{"SMC_INT_TX_BUF_", func(t *tech) *netlinksmc.BufferStats { return &t.TxBuf }},
		{"SMC_INT_RX_BUF_", func(t *tech) *netlinksmc.BufferStats { return &t.RxBuf }},
	} {
		add(b.prefix+"SIZE_SM_PEER_CNT", func(t *tech) *uint64 { return &b.of(t).TooSmallPeer })
		add(b.prefix+"SIZE_SM_CNT", func(t *tech) *uint64 { return &b.of(t).TooSmall })
		add(b.prefix+"FULL_PEER_CNT", func(t *tech) *uint64 { return &b.of(t).FullPeer })
		add(b.prefix+"FULL_CNT", func(t *tech) *uint64 { return &b.of(t).Full })
		add(b.prefix+"REUSE_CNT", func(t *tech) *uint64 { return &b.of(t).Reused })
		add(b.prefix+"ALLOC_CNT", func(t *tech) *uint64 { return &b.of(t).Allocated })
		add(b.prefix+"DGRADE_CNT", func(t *tech) *uint64 { return &b.of(t).Downgraded })
	}
	add("SMC_CLNT_V1_SUCC_CNT", func(t *tech) *uint64 { return &t.ClientV1 })
	add("SMC_CLNT_V2_SUCC_CNT", func(t *tech) *uint64 { return &t.ClientV2 })
	add("SMC_SRV_V1_SUCC_CNT", func(t *tech) *uint64 { return &t.ServerV1 })
	add("SMC_SRV_V2_SUCC_CNT", func(t *tech) *uint64 { return &t.ServerV2 })
	add("SMC_SENDPAGE_CNT", func(t *tech) *uint64 { return &t.Sendpage })
	add("SMC_URG_DATA_CNT", func(t *tech) *uint64 { return &t.Urgent })
	add("SMC_SPLICE_CNT", func(t *tech) *uint64 { return &t.Splice })
	add("SMC_CORK_CNT", func(t *tech) *uint64 { return &t.Cork })
	add("SMC_NDLY_CNT", func(t *tech) *uint64 { return &t.NoDelay })
	add("SMC_RX_BYTES", func(t *tech) *uint64 { return &t.RxBytes })
	add("SMC_TX_BYTES", func(t *tech) *uint64 { return &t.TxBytes })
	add("SMC_RX_CNT", func(t *tech) *uint64 { return &t.RxCount })
	add("SMC_TX_CNT", func(t *tech) *uint64 { return &t.TxCount })
	return all
}
