// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/mdlayher/genetlink"
)

// decoders lists every decoder of the generic netlink family with a full answer of one message.
var decoders = []struct {
	name  string
	parse func([]genetlink.Message) (any, error)
	full  []byte
}{
	{
		"SystemInfo", erase(parseSystemInfo),
		nested(AttrGenSysInfo, u8(1, 2), u8(2, 1), u8(3, 1), str(4, "host.example"), str(5, testSEID), u8(6, 1)),
	},
	{
		"LinkGroupsR", erase(parseLinkGroupsR),
		nested(AttrGenLGRSMCR, lgrR61, nested(8, u8(1, 0), u8(2, 16), u8(3, 2)), u64(12, 1), u64(13, 2)),
	},
	{
		"Links", erase(parseLinkGroupsR), join(nested(AttrGenLGRSMCR, u32(1, 1)), nested(AttrGenLinkSMCR,
			u8(1, 1), str(2, "rxe0"), u8(3, 1), str(4, testGID), str(5, peerGID), u32(6, 1), u32(7, 2), u32(8, 3), u32(9, 4),
			u32(10, 3))),
	},
	{
		"LinkGroupsD", erase(parseLinkGroupsD),
		nested(AttrGenLGRSMCD, u32(1, 1), u64(2, 2), u64(3, 3), u8(4, 4), u32(5, 5), str(6, "NET1"), u32(7, 7), v2Common(9),
			u64(10, 1), u64(11, 2), u32(12, 3), u32(13, 4)),
	},
	{
		"DevicesR", erase(parseDevicesR),
		nested(AttrGenDevSMCR, u32(1, 1), u8(2, 1), u32(3, 1), u16(4, 1), u16(5, 1), u16(6, 1), str(7, "0:0"),
			nested(8, u8(1, 1), str(2, "N"), u32(3, 1), u8(4, 1), u8(5, 1), u32(6, 1)), nested(9, u8(1, 1)), str(10, "rxe0")),
	},
	{
		"DevicesD", erase(parseDevicesD),
		nested(AttrGenDevSMCD, u32(1, 1), u8(2, 1), u32(3, 1), u16(4, 1), u16(5, 1), u16(6, 1), str(7, "0:0"), nested(8, u8(1, 1))),
	},
	{
		"Stats", erase(parseStats),
		nested(AttrGenStats, nested(1, tech(1), u32(20, 1), u32(21, 1)), nested(2, tech(2), u64(20, 1), u64(21, 1)), u64(3, 1), u64(4, 1)),
	},
	{
		"FallbackStats", erase(parseFallbackStats),
		nested(AttrGenFbackStats, u8(1, 1), u64(2, 1), u64(3, 1), u32(4, 1), u16(5, 1)),
	},
	{"UEIDs", erase(parseUEIDs), str(1, pad("LAB.ONE"))},
	{"SEID", erase(parseSEID), join(str(1, testSEID), u8(2, 1))},
	{"HandshakeLimitation", erase(parseHandshakeLimitation), u8(1, 1)},
}

func erase[T any](parse func([]genetlink.Message) (T, error)) func([]genetlink.Message) (any, error) {
	return func(msgs []genetlink.Message) (any, error) {
		v, err := parse(msgs)
		return v, err
	}
}

// TestTruncated cuts every message at every length. Where the cut is not between two attributes that must be an error.
func TestTruncated(t *testing.T) {
	for _, d := range decoders {
		if _, err := d.parse(replies(reply(d.full))); err != nil {
			t.Errorf("%s: the full message: %v", d.name, err)
		}
		ends := map[int]bool{}
		for b := d.full; len(b) > 0; {
			_, value, rest, err := nextAttr(b)
			if err != nil {
				t.Fatal(err)
			}
			// Neither the padding nor the end of an attribute is missed.
			for i := len(d.full) - len(b) + attrHeaderLen + len(value); i <= len(d.full)-len(rest); i++ {
				ends[i] = true
			}
			b = rest
		}
		for n := 1; n < len(d.full); n++ {
			if _, err := d.parse(replies(reply(d.full[:n]))); err == nil && !ends[n] {
				t.Errorf("%s: no error for %d of %d bytes", d.name, n, len(d.full))
			}
		}
	}
}

// TestWrongLength gives each attribute with a number a length it cannot have, at any depth.
func TestWrongLength(t *testing.T) {
	for _, d := range decoders {
		damage(d.full, func(damaged []byte, typ uint16) {
			_, err := d.parse(replies(reply(damaged)))
			if err == nil || !strings.Contains(err.Error(), "value of 3 bytes, want") {
				t.Errorf("%s: attribute %d with 3 bytes: got error %v", d.name, typ, err)
			}
		})
	}
}

// damage calls fn with copies of the attributes in b, in each of which one number has got three bytes.
func damage(b []byte, fn func(damaged []byte, typ uint16)) {
	for rest, done := b, 0; len(rest) > 0; {
		typ, value, next, err := nextAttr(rest)
		if err != nil {
			panic(err)
		}
		flagged := binary.NativeEndian.Uint16(rest[2:])
		whole := rest[:len(rest)-len(next)]
		replace := func(a []byte) []byte { return join(b[:done], a, b[done+len(whole):]) }
		switch {
		case flagged != typ:
			damage(value, func(v []byte, inner uint16) { fn(replace(attr(flagged, v)), inner) })
		case len(value) <= 2 || len(value) == 4 && value[len(value)-1] == 0 || len(value) == 8:
			if !isText(value) {
				fn(replace(attr(flagged, []byte{1, 2, 3})), typ)
			}
		}
		done, rest = done+len(whole), next
	}
}

// isText reports whether value is a terminated string, which may have any length.
func isText(value []byte) bool {
	return len(value) > 1 && value[len(value)-1] == 0 && value[0] >= '0'
}

// TestUnknownAttributes adds attributes that a newer kernel may send, on every level.
func TestUnknownAttributes(t *testing.T) {
	extra := join(u32(60, 1), nested(61, u8(1, 1), u8(2, 2)), attr(0x3fff, nil))
	for _, d := range decoders {
		want, err := d.parse(replies(reply(d.full)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.parse(replies(reply(extend(d.full, extra))))
		if err != nil {
			t.Errorf("%s: %v", d.name, err)
		}
		diff(t, want, got)
	}
}

// extend adds extra to the attributes in b and to every nest in it.
func extend(b, extra []byte) []byte {
	out := append([]byte(nil), extra...)
	for len(b) > 0 {
		typ, value, rest, err := nextAttr(b)
		if err != nil {
			panic(err)
		}
		if flagged := binary.NativeEndian.Uint16(b[2:]); flagged != typ {
			out = append(out, attr(flagged, extend(value, extra))...)
		} else {
			out = append(out, attr(typ, value)...)
		}
		b = rest
	}
	return append(out, extra...)
}

func TestNextAttr(t *testing.T) {
	tests := []struct {
		name  string
		in    []byte
		typ   uint16
		value string
		rest  int
		err   bool
	}{
		{"padded", join(str(1, "ab"), u8(2, 1)), 1, "ab\x00", 8, false},
		{"padding missing at the end", str(1, "ab")[:7], 1, "ab\x00", 0, false},
		{"type zero", u8(0, 7), 0, "\x07", 0, false},
		{"flags", attr(0xc005, []byte("x")), 5, "x", 0, false},
		{"empty value", attr(3, nil), 3, "", 0, false},
		{"length zero", []byte{0, 0, 1, 0}, 0, "", 0, true},
		{"length below the header's", []byte{3, 0, 1, 0}, 0, "", 0, true},
		{"length beyond the end", []byte{9, 0, 1, 0, 1, 2, 3, 4}, 0, "", 0, true},
		{"half a header", []byte{4, 0, 1}, 0, "", 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			typ, value, rest, err := nextAttr(tt.in)
			got := fmt.Sprint(typ, string(value), len(rest), err != nil)
			diff(t, fmt.Sprint(tt.typ, tt.value, tt.rest, tt.err), got)
		})
	}
}
