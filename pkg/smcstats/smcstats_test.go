// SPDX-License-Identifier: Apache-2.0

package smcstats

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcerr"
)

// cmpOpts compares Optional values and takes an empty list for a missing one.
var cmpOpts = cmp.Options{cmp.AllowUnexported(netlinksmc.Optional[uint64]{}), cmpopts.EquateEmpty()}

// numbered returns a snapshot in which every counter has another value, from first on.
func numbered(first uint64) *Snapshot {
	s := &Snapshot{}
	for _, t := range []*netlinksmc.TechStats{&s.SMCR, &s.SMCD} {
		for _, c := range counters {
			*c.ptr(t) = first
			first++
		}
	}
	s.SMCR.Links = &netlinksmc.LinkStats{}
	for _, c := range linkCounters {
		*c.ptr(s.SMCR.Links) = first
		first++
	}
	s.SMCR.RxBufUsage = netlinksmc.Some[uint64](1)
	s.ClientHandshakeErrors, s.ServerHandshakeErrors = first, first+1
	s.Fallback = netlinksmc.FallbackStats{
		ClientTotal: first + 2, ServerTotal: first + 3,
		Client: []netlinksmc.FallbackCount{{Reason: 0x03010000, Count: uint16(first)}, {Reason: 0x05000000, Count: 1}},
		Server: []netlinksmc.FallbackCount{{Reason: 0x03030000, Count: 2}},
	}
	return s
}

// TestCounters checks that the counters are all different fields, under different names.
func TestCounters(t *testing.T) {
	if len(counters) != 63 {
		t.Errorf("%d counters, not 63", len(counters))
	}
	var tech netlinksmc.TechStats
	names := map[string]bool{}
	for i, c := range counters {
		*c.ptr(&tech) = uint64(i + 1)
		names[c.Name] = true
	}
	for i, c := range counters {
		if got := c.Value(&tech); got != uint64(i+1) {
			t.Errorf("%s is %d, not %d: two counters share a field", c.Name, got, i+1)
		}
	}
	if len(names) != len(counters) {
		t.Errorf("%d names for %d counters", len(names), len(counters))
	}
	for i, want := range map[int]string{
		0: "SMC_INT_TX_BUF_8K", 8: "SMC_INT_TX_BUF_G_1024K", 9: "SMC_INT_RX_BUF_8K", 18: "SMC_USR_TX_BUF_8K",
		35: "SMC_USR_RX_BUF_G_1024K", 36: "SMC_INT_TX_BUF_SIZE_SM_PEER_CNT", 49: "SMC_INT_RX_BUF_DGRADE_CNT",
		50: "SMC_CLNT_V1_SUCC_CNT", 54: "SMC_SENDPAGE_CNT", 62: "SMC_TX_CNT",
	} {
		if counters[i].Name != want {
			t.Errorf("counter %d is %s, not %s", i, counters[i].Name, want)
		}
	}
}

// TestLinkCounters checks that the counters of links are all fields of LinkStats, under different names.
func TestLinkCounters(t *testing.T) {
	names := map[string]bool{}
	for _, c := range linkCounters {
		names[c.Name] = true
	}
	fields := reflect.TypeFor[netlinksmc.LinkStats]().NumField() - 1 + reflect.TypeFor[netlinksmc.LostLinks]().NumField()
	if len(names) != fields || len(linkCounters) != fields {
		t.Errorf("%d names of %d counters, not %d", len(names), len(linkCounters), fields)
	}
	var links netlinksmc.LinkStats
	for i, c := range linkCounters {
		*c.ptr(&links) = uint64(i + 1)
	}
	for i, c := range linkCounters {
		if got := c.Value(&links); got != uint64(i+1) {
			t.Errorf("%s is %d, not %d: two counters share a field", c.Name, got, i+1)
		}
	}
	n := uint64(len(LostReasons()))
	if got := LostLinks(&links.Lost); got != 7*n+n*(n-1)/2 {
		t.Errorf("%d links are lost", got)
	}
	lost := reflect.ValueOf(&links.Lost).Elem()
	for i, r := range LostReasons() {
		name := strings.ReplaceAll(r.Name, "_", "")
		if field := lost.Type().Field(i).Name; !strings.EqualFold(name, field) || r.Value(&links.Lost) != lost.Field(i).Uint() {
			t.Errorf("reason %d is %s, and the field %s", i, r.Name, field)
		}
	}
}

func TestSub(t *testing.T) {
	base, cur := numbered(10), numbered(1000)
	cur.SMCR.RxBufUsage = netlinksmc.Some[uint64](0) // a gauge below its old value
	got, err := Sub(cur, base)
	if err != nil {
		t.Fatal(err)
	}
	for _, tech := range []*netlinksmc.TechStats{&got.SMCR, &got.SMCD} {
		for _, c := range counters {
			if c.Value(tech) != 990 {
				t.Errorf("%s: %d, not 990", c.Name, c.Value(tech))
			}
		}
	}
	for _, c := range linkCounters {
		if c.Value(got.SMCR.Links) != 990 {
			t.Errorf("links %s: %d, not 990", c.Name, c.Value(got.SMCR.Links))
		}
	}
	if got.SMCD.Links != nil {
		t.Error("SMC-D has links")
	}
	if v, ok := got.SMCR.RxBufUsage.Get(); !ok || v != 0 {
		t.Errorf("the gauge is %d, %v", v, ok)
	}
	if got.HandshakeErrors() != 2*990 || got.Fallbacks() != 2*990 {
		t.Errorf("%d errors, %d fallbacks", got.HandshakeErrors(), got.Fallbacks())
	}
	want := []netlinksmc.FallbackCount{{Reason: 0x03010000, Count: 990}, {Reason: 0x05000000}}
	if diff := cmp.Diff(want, got.Fallback.Client); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	if cur.SMCR.TxCount == got.SMCR.TxCount || *cur.SMCR.Links == *got.SMCR.Links || cur.Fallback.Client[1].Count != 1 {
		t.Error("Sub has changed its argument")
	}
}

// TestSubWithoutLinks checks readings of which only one has counters of links.
func TestSubWithoutLinks(t *testing.T) {
	without := numbered(10)
	without.SMCR.Links = nil
	cur := numbered(10)
	if got, err := Sub(cur, without); err != nil || *got.SMCR.Links != *cur.SMCR.Links || got.SMCR.TxCount != 0 {
		t.Errorf("a baseline without: %+v, %v", got, err)
	}
	if _, err := Sub(without, cur); !errors.Is(err, ErrBelowBaseline) {
		t.Errorf("a baseline with, and a module without: %v", err)
	}
	if got, err := Sub(without, without); err != nil || got.SMCR.Links != nil {
		t.Errorf("both without: %+v, %v", got, err)
	}
}

// TestSubReasons checks the 16-bit counters.
func TestSubReasons(t *testing.T) {
	fall := func(reason netlinksmc.Reason, n uint16) []netlinksmc.FallbackCount {
		return []netlinksmc.FallbackCount{{Reason: reason, Count: n}}
	}
	for _, tc := range []struct {
		name            string
		cur, base, want []netlinksmc.FallbackCount
	}{
		{"wrapped", fall(1, 5), fall(1, 65530), fall(1, 11)},
		{"new", fall(1, 5), nil, fall(1, 5)},
		{"other", fall(1, 5), fall(2, 3), fall(1, 5)},
		{"none", nil, nil, nil},
	} {
		got := subReasons(tc.cur, tc.base)
		if diff := cmp.Diff(tc.want, got, cmpOpts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// TestSubBelow checks that each single counter below the baseline is noticed.
func TestSubBelow(t *testing.T) {
	base := numbered(10)
	for i := range counters {
		for _, smcd := range []bool{false, true} {
			cur := numbered(10)
			tech := &cur.SMCR
			if smcd {
				tech = &cur.SMCD
			}
			*counters[i].ptr(tech)--
			if _, err := Sub(cur, base); !errors.Is(err, ErrBelowBaseline) || !strings.Contains(err.Error(), counters[i].Name) {
				t.Errorf("%s: %v", counters[i].Name, err)
			}
		}
	}
	for _, c := range linkCounters {
		cur := numbered(10)
		*c.ptr(cur.SMCR.Links)--
		if _, err := Sub(cur, base); !errors.Is(err, ErrBelowBaseline) || !strings.Contains(err.Error(), "links "+c.Name) {
			t.Errorf("links %s: %v", c.Name, err)
		}
	}
	for _, lower := range []func(*Snapshot){
		func(s *Snapshot) { s.ClientHandshakeErrors-- }, func(s *Snapshot) { s.ServerHandshakeErrors-- },
		func(s *Snapshot) { s.Fallback.ClientTotal-- }, func(s *Snapshot) { s.Fallback.ServerTotal-- },
	} {
		cur := numbered(10)
		lower(cur)
		if _, err := Sub(cur, base); !errors.Is(err, ErrBelowBaseline) {
			t.Errorf("%v", err)
		}
	}
}

// source answers with fixed errors.
type source struct{ stats, fallback error }

func (s source) Stats(context.Context) (*netlinksmc.Stats, error) {
	return &netlinksmc.Stats{ClientHandshakeErrors: 1}, s.stats
}

func (s source) FallbackStats(context.Context) (*netlinksmc.FallbackStats, error) {
	return &netlinksmc.FallbackStats{ClientTotal: 2}, s.fallback
}

func TestCollect(t *testing.T) {
	boom := errors.New("boom")
	half := &smcerr.Error{Op: "x", Kind: netlinksmc.ErrDumpInterrupted}
	for _, tc := range []struct {
		src    source
		err    error
		result bool
	}{
		{source{}, nil, true},
		{source{stats: boom}, boom, false},
		{source{fallback: boom}, boom, false},
		{source{fallback: half}, netlinksmc.ErrDumpInterrupted, true},
	} {
		got, err := Collect(context.Background(), tc.src)
		if !errors.Is(err, tc.err) || (got != nil) != tc.result {
			t.Errorf("%+v: %v, %v", tc.src, got, err)
		}
		if got != nil && (got.HandshakeErrors() != 1 || got.Fallbacks() != 2) {
			t.Errorf("%+v: %+v", tc.src, got)
		}
	}
}

func TestMarshalBaseline(t *testing.T) {
	want := &Baseline{
		Snapshot: *numbered(7), Taken: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		Origin: Origin{Boot: "b", NetNS: "1", Module: "m"},
	}
	data, err := MarshalBaseline(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := UnmarshalBaseline(data)
	if err != nil {
		t.Fatal(err)
	}
	want.SMCR.RxBufUsage = netlinksmc.Optional[uint64]{} // gauges have no baseline
	if diff := cmp.Diff(want, got, cmpOpts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, change := range map[string][2]string{
		"other schema":    {`"schema":1`, `"schema":2`},
		"missing counter": {`"SMC_TX_CNT":69,`, ``},
		"other counter":   {`"SMC_TX_CNT"`, `"SMC_TX_CNTS"`},
		"missing reason":  {`"lost_no_port":145,`, ``},
		"negative":        {`"SMC_TX_CNT":69`, `"SMC_TX_CNT":-1`},
		"bad reason":      {`"0x03030000"`, `"lunch"`},
		"unknown field":   {`"schema":1`, `"schema":1,"x":1`},
		"trailing":        {"}\n", "}}"},
		"half":            {`"smcd"`, ``},
	} {
		if !strings.Contains(string(data), change[0]) {
			t.Fatalf("%s: no %s in %s", name, change[0], data)
		}
		if b, err := UnmarshalBaseline([]byte(strings.Replace(string(data), change[0], change[1], 1))); err == nil {
			t.Errorf("%s: accepted: %+v", name, b)
		}
	}
}

// TestUnmarshalWithoutLinks decodes a baseline that was stored before there were counters of links, and one of a stock module.
func TestUnmarshalWithoutLinks(t *testing.T) {
	want := &Baseline{Snapshot: *numbered(7)}
	want.SMCR.Links, want.SMCR.RxBufUsage = nil, netlinksmc.Optional[uint64]{}
	data, err := MarshalBaseline(want)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "links") {
		t.Errorf("links in %s", data)
	}
	got, err := UnmarshalBaseline(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpOpts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzUnmarshalBaseline(f *testing.F) {
	data, err := MarshalBaseline(&Baseline{Snapshot: *numbered(7), Origin: Origin{Boot: "b", NetNS: "1"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := UnmarshalBaseline(data)
		if err != nil {
			return
		}
		again, err := MarshalBaseline(b)
		if err != nil {
			t.Fatal(err)
		}
		b2, err := UnmarshalBaseline(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b, b2, cmpOpts); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}
