// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestStrings(t *testing.T) {
	for want, v := range map[string]fmt.Stringer{
		"SERV": RoleServer, "CLNT": RoleClient,
		"NONE": LinkGroupNone, "SINGLE": LinkGroupSingle, "SYM": LinkGroupSymmetric, "ASYMP": LinkGroupAsymmetricPeer,
		"ASYML": LinkGroupAsymmetricLocal, "0x5?": LinkGroupType(5),
		"LINK_UNUSED": LinkUnused, "LINK_INACTIVE": LinkInactive, "LINK_ACTIVATING": LinkActivating,
		"LINK_ACTIVE": LinkActive, "0xdeadbeef?": LinkState(0xdeadbeef),
		"PHYS": BufferPhysContiguous, "VIRT": BufferVirtContiguous, "MIXED": BufferMixed, "0x3?": BufferType(3),
		"ZOS": PeerOSZOS, "LINUX": PeerOSLinux, "AIX": PeerOSAIX, "Unknown (0x0)": PeerOS(0),
		"INACTIVE": PortInactive, "0x2?": PortState(2),
		"ACTIVE": StateActive, "INIT": StateInit, "CLOSED": StateClosed, "LISTEN": StateListen,
		"PEERCLOSEWAIT1": StatePeerCloseWait1, "PEERCLOSEWAIT2": StatePeerCloseWait2,
		"APPCLOSEWAIT1": StateAppCloseWait1, "APPCLOSEWAIT2": StateAppCloseWait2,
		"APPFINCLOSEWAIT1": StateAppFinCloseWait, "PEERFINCLOSEWAIT": StatePeerFinCloseWait,
		"PEERABORTWAIT": StatePeerAbortWait, "PROCESSABORT": StateProcessAbort, "0x1c?": SocketState(28),
		"SMCR": ModeSMCR, "TCP": ModeTCP, "SMCD": ModeSMCD, "0x7?": Mode(7),
		"<->": Shutdown(0), "R->": ShutdownReceive, "<-W": ShutdownSend, "R-W": ShutdownReceive | ShutdownSend,
		"0x03010000": Reason(0x03010000), "0x00000000": Reason(0), "0xffffffff": Reason(0xffffffff),
	} {
		diff(t, want, v.String())
		b, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		quoted, err := json.Marshal(want)
		if err != nil {
			t.Error(err)
		}
		diff(t, string(quoted), string(b))
	}
	diff(t, "ACTIVE", PortActive.String())
}

func TestReasons(t *testing.T) {
	all := Reasons()
	spec, err := os.ReadFile("../../specs/reasons.yaml")
	if err != nil {
		t.Fatal(err)
	}
	diff(t, bytes.Count(spec, []byte("\n    value: 0x")), len(all))
	if len(all) < 36 {
		t.Errorf("only %d reasons: Linux has 36", len(all))
	}
	if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Error("the table is not in strictly ascending order")
	}
	names := map[string]bool{}
	for _, r := range all {
		if !r.Known() || r.Name() == "" || r.Text() == "" || r.Remedy() == "" {
			t.Errorf("%v is incomplete", r)
		}
		for _, s := range []string{r.Text(), r.Remedy()} {
			if strings.HasSuffix(s, ".") || strings.ContainsAny(s, "\n\t") {
				t.Errorf("%v: %q is not one phrase", r, s)
			}
		}
		if names[r.Name()] {
			t.Errorf("%v: name %s is taken", r, r.Name())
		}
		names[r.Name()] = true
	}
	diff(t, "PEER_NO_SMC", Reason(0x03010000).Name())
	diff(t, "MAXLINKERR", Reason(0x0303000b).Name())
	for _, r := range []Reason{0, 0x03010001, 0xffffffff} {
		if r.Known() || r.Name()+r.Text()+r.Remedy() != "" {
			t.Errorf("%v is not in the table and yet known", r)
		}
	}
}

func TestOptional(t *testing.T) {
	v := struct {
		Zero   Optional[uint64] `json:"zero,omitzero"`
		Absent Optional[uint64] `json:"absent,omitzero"`
		Null   Optional[bool]   `json:"null"`
	}{Zero: Some(uint64(0))}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, `{"zero":0,"null":null}`, string(b))
	diff(t, uint64(0), v.Zero.Or(7))
	diff(t, uint64(7), v.Absent.Or(7))
	if got, ok := v.Zero.Get(); got != 0 || !ok || !v.Zero.IsSet() || v.Absent.IsSet() {
		t.Error("set and absent values are mixed up")
	}
	w := v
	w.Zero, w.Absent, w.Null = Optional[uint64]{}, Some(uint64(1)), Some(true)
	if err := json.Unmarshal([]byte(`{"zero":0,"absent":null,"null":null}`), &w); err != nil || w != v {
		t.Errorf("decoded: %+v, %v, want %+v", w, err, v)
	}
	if err := json.Unmarshal([]byte(`{"zero":"x"}`), &w); err == nil {
		t.Error("a string was taken for a number")
	}
}

func TestCheckEID(t *testing.T) {
	for eid, rule := range map[string]string{
		"A": "", "0": "", "LAB.ONE": "", "A.B.C": "", "A-": "", "A.": "", "A--B": "", strings.Repeat("A", 32): "",
		"":                      "it is empty",
		strings.Repeat("A", 33): "it is longer than 32 characters",
		".A":                    "the first character must be A-Z or 0-9",
		"-A":                    "the first character must be A-Z or 0-9",
		" A":                    "the first character must be A-Z or 0-9",
		"a":                     "the first character must be A-Z or 0-9",
		"A..B":                  "it has two dots in a row",
		"ABc":                   "character 3 is not one of A-Z, 0-9, '.' and '-'",
		"A B":                   "character 2 is not one of A-Z, 0-9, '.' and '-'",
		"A\x00":                 "character 2 is not one of A-Z, 0-9, '.' and '-'",
		"A\xff":                 "character 2 is not one of A-Z, 0-9, '.' and '-'",
	} {
		want := ""
		if rule != "" {
			want = fmt.Sprintf("user EID %q: invalid user EID: %s", eid, rule)
		}
		got := ""
		if err := CheckEID(eid); err != nil {
			got = err.Error()
		}
		diff(t, want, got)
	}
}
