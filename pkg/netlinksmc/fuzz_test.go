// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/genetlink"
)

// addSeeds adds the inputs of testdata/fuzz that earlier runs found interesting. A line is one input: a quoted string for each
// argument.
func addSeeds(f *testing.F) {
	f.Helper()
	data, err := os.ReadFile("testdata/fuzz/" + f.Name() + ".txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var args []any
		for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimSpace(rest) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				f.Fatalf("%v: %s", err, line)
			}
			arg, err := strconv.Unquote(quoted)
			if err != nil {
				f.Fatalf("%v: %s", err, line)
			}
			args = append(args, []byte(arg))
			rest = rest[len(quoted):]
		}
		f.Add(args...)
	}
}

// fuzz runs a decoder on the attributes of two messages, of which the second is often empty. It must not panic, must
// give the same result twice, and what it gives must pass check.
func fuzz[T any](f *testing.F, parse func([]genetlink.Message) (T, error), check func(t *testing.T, v T, n int)) {
	f.Helper()
	for _, d := range decoders {
		f.Add(d.full, []byte{})
		f.Add(d.full, d.full)
		f.Add(d.full[:len(d.full)/2], []byte{})
	}
	addSeeds(f)
	f.Fuzz(func(t *testing.T, first, second []byte) {
		msgs := replies(reply(first))
		if len(second) > 0 {
			msgs = append(msgs, reply(second))
		}
		v, err := parse(msgs)
		again, errAgain := parse(msgs)
		if (err == nil) != (errAgain == nil) || !cmp.Equal(v, again, optionals...) {
			t.Errorf("two results: %v, %v and %v, %v", v, err, again, errAgain)
		}
		if err == nil {
			check(t, v, len(first)+len(second))
		}
	})
}

func FuzzSystemInfo(f *testing.F) {
	fuzz(f, parseSystemInfo, func(t *testing.T, v *SystemInfo, n int) {
		if v == nil || len(v.Hostname)+len(v.SEID) > n {
			t.Errorf("%+v out of %d bytes", v, n)
		}
	})
}

func FuzzLinkGroupsR(f *testing.F) {
	fuzz(f, parseLinkGroupsR, func(t *testing.T, v []LinkGroupR, n int) {
		objects := len(v)
		for _, g := range v {
			objects += len(g.Links)
			if g.Direct.IsSet() && g.MaxConns.IsSet() && n < 40 {
				t.Errorf("%+v out of %d bytes", g, n)
			}
		}
		// An object takes a nest and an attribute with its ID.
		if objects > n/12 {
			t.Errorf("%d objects out of %d bytes", objects, n)
		}
	})
}

func FuzzLinkGroupsD(f *testing.F) {
	fuzz(f, parseLinkGroupsD, func(t *testing.T, v []LinkGroupD, n int) {
		if len(v) > n/12 {
			t.Errorf("%d groups out of %d bytes", len(v), n)
		}
	})
}

func FuzzDevicesR(f *testing.F) {
	fuzz(f, parseDevicesR, checkDevices)
}

func FuzzDevicesD(f *testing.F) {
	fuzz(f, parseDevicesD, checkDevices)
}

func checkDevices(t *testing.T, v []Device, n int) {
	ports := 0
	for _, d := range v {
		ports += len(d.Ports)
		for _, p := range d.Ports {
			if p.Number != 1 && p.Number != 2 {
				t.Errorf("port %d", p.Number)
			}
		}
	}
	if len(v)*8+ports*4 > n {
		t.Errorf("%d devices, %d ports out of %d bytes", len(v), ports, n)
	}
}

func FuzzStats(f *testing.F) {
	fuzz(f, parseStats, func(t *testing.T, v *Stats, n int) {
		if v == nil || n < 12 {
			t.Errorf("%+v out of %d bytes", v, n)
		}
	})
}

func FuzzFallbackStats(f *testing.F) {
	fuzz(f, parseFallbackStats, func(t *testing.T, v *FallbackStats, n int) {
		if v.Server == nil || v.Client == nil || len(v.Server)+len(v.Client) > n/20 {
			t.Errorf("%+v out of %d bytes", v, n)
		}
		for _, c := range append(v.Server, v.Client...) {
			if c.Reason == 0 {
				t.Error("a reason of zero")
			}
		}
	})
}

func FuzzUEIDs(f *testing.F) {
	fuzz(f, parseUEIDs, func(t *testing.T, v []string, n int) {
		for _, eid := range v {
			if len(eid) > n {
				t.Errorf("%q out of %d bytes", eid, n)
			}
		}
	})
}

func FuzzSEID(f *testing.F) {
	fuzz(f, parseSEID, func(t *testing.T, v *SEID, n int) {
		if v != nil && (v.EID == "" || len(v.EID) > n) {
			t.Errorf("%+v out of %d bytes", v, n)
		}
	})
}

func FuzzHandshakeLimitation(f *testing.F) {
	fuzz(f, parseHandshakeLimitation, func(t *testing.T, _ bool, n int) {
		if n < 5 {
			t.Errorf("an answer out of %d bytes", n)
		}
	})
}

func FuzzSocket(f *testing.F) {
	header := socketHeader(StateActive, ModeSMCR, 1)
	f.Add(header)
	f.Add(join(header, u8(3, 1), attr(1, connInfoValue), attr(2, linkGroupValue), attr(5, numbers(1, 2))))
	f.Add(join(socketHeader(StateActive, ModeSMCD, 1), attr(4, join(dmbValue, make([]byte, 16)))))
	f.Add(join(socketHeader(StateActive, ModeTCP, 1), attr(5, numbers(1, 2))))
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseSocket(b)
		if err != nil {
			return
		}
		if len(b) < socketLen || !s.Local.IsValid() || !s.Peer.IsValid() {
			t.Errorf("%+v out of %d bytes", s, len(b))
		}
		if (s.Mode == ModeTCP) != (s.Fallback != nil) {
			t.Errorf("mode %v with fallback %v", s.Mode, s.Fallback)
		}
		if s.DMB != nil && s.DMB.ExtGID.IsSet() != s.DMB.PeerExtGID.IsSet() {
			t.Errorf("half of an extended GID: %+v", s.DMB)
		}
	})
}
