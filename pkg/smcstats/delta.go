// SPDX-License-Identifier: Apache-2.0

package smcstats

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

// ErrBelowBaseline means that a counter is lower than in the baseline. Counters never fall, so the baseline belongs
// to a module that was unloaded since, or to another network namespace.
var ErrBelowBaseline = errors.New("counters are lower than the baseline")

// Sub returns cur minus base: the counts since base was taken. Gauges are those of cur. A single fallback
// reason's counter is 16 bits wide in the kernel and wraps, so its difference is taken modulo 65536; reasons that have
// not occurred since stay in the list with a count of 0. Counters of links that base does not have count as 0 in it. Any
// other counter below its baseline gives ErrBelowBaseline.
func Sub(cur, base *Snapshot) (*Snapshot, error) {
	out := *cur
	var low string
	sub := func(name string, v *uint64, b uint64) {
		if *v < b {
			if low == "" {
				low = fmt.Sprintf("%s is %d and was %d", name, *v, b)
			}
			return
		}
		*v -= b
	}
	for _, t := range []struct {
		name      string
		out, base *netlinksmc.TechStats
	}{
		{"SMC-R", &out.SMCR, &base.SMCR},
		{"SMC-D", &out.SMCD, &base.SMCD},
	} {
		for _, c := range counters {
			sub(t.name+" "+c.Name, c.ptr(t.out), c.Value(t.base))
		}
		t.out.Links = subLinks(t.out.Links, t.base.Links, func(name string, v *uint64, b uint64) {
			sub(t.name+" links "+name, v, b)
		})
	}
	sub("client handshake errors", &out.ClientHandshakeErrors, base.ClientHandshakeErrors)
	sub("server handshake errors", &out.ServerHandshakeErrors, base.ServerHandshakeErrors)
	sub("client fallbacks", &out.Fallback.ClientTotal, base.Fallback.ClientTotal)
	sub("server fallbacks", &out.Fallback.ServerTotal, base.Fallback.ServerTotal)
	if low != "" {
		return nil, fmt.Errorf("%w: %s", ErrBelowBaseline, low)
	}
	out.Fallback.Client = subReasons(cur.Fallback.Client, base.Fallback.Client)
	out.Fallback.Server = subReasons(cur.Fallback.Server, base.Fallback.Server)
	return &out, nil
}

// subLinks subtracts base from a copy of cur. Either may be nil: a stock module has no counters of links, and baselines that
// were stored before smckit's module had them are without.
func subLinks(cur, base *netlinksmc.LinkStats, sub func(name string, v *uint64, b uint64)) *netlinksmc.LinkStats {
	var out, none netlinksmc.LinkStats
	out = *cmp.Or(cur, &none)
	for _, c := range linkCounters {
		sub(c.Name, c.ptr(&out), c.Value(cmp.Or(base, &none)))
	}
	if cur == nil {
		return nil
	}
	return &out
}

func subReasons(cur, base []netlinksmc.FallbackCount) []netlinksmc.FallbackCount {
	was := make(map[netlinksmc.Reason]uint16, len(base))
	for _, b := range base {
		was[b.Reason] = b.Count
	}
	out := make([]netlinksmc.FallbackCount, len(cur))
	for i, c := range cur {
		out[i] = netlinksmc.FallbackCount{Reason: c.Reason, Count: c.Count - was[c.Reason]}
	}
	return out
}
