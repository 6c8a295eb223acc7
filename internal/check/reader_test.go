// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/internal/rootdir"
	"github.com/smckit/smckit/internal/sysfstest"
	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/pnet"
)

// tree creates files in a temporary directory and returns a Reader for it.
func tree(t *testing.T, files map[string]string) Reader {
	t.Helper()
	return Reader{Root: rootdir.Dir(sysfstest.Files(t, files))}
}

// TestReadSettings reads the sysctls that exist.
func TestReadSettings(t *testing.T) {
	r := tree(t, map[string]string{
		"proc/sys/net/smc/rmem": "65536\n", "proc/sys/net/smc/odd": "a b\n", "proc/sys/net/ipv4/tcp_syncookies": "2\n",
	})
	want := map[string]int{"net.smc.rmem": 65536, "net.ipv4.tcp_syncookies": 2}
	if diff := cmp.Diff(want, r.readSettings()); diff != "" {
		t.Error(diff)
	}
}

// TestPNETOfInterface checks that an ID of the firmware takes precedence over the table.
func TestPNETOfInterface(t *testing.T) {
	table := pnet.Table{{ID: "NET1", Eth: "eth0"}, {ID: "NET2", IB: "eth1", Port: 1}}
	for name, want := range map[string]ism.PNETID{"eth0": {ID: "NET1", Source: ism.SourceTable}, "eth1": {}, "": {}} {
		if got := pnetOfInterface(pnet.Sysfs{Root: t.TempDir()}, table, name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// expression encodes an expression of a rule. Attributes of its data are numbers in network byte order, or bytes.
func expression(t *testing.T, name string, attrs map[uint16]any) []byte {
	t.Helper()
	return encode(t, func(ae *netlink.AttributeEncoder) {
		ae.String(exprName, name)
		ae.Nested(exprData, func(data *netlink.AttributeEncoder) error {
			for number, v := range attrs {
				switch v := v.(type) {
				case int:
					data.Uint32(number, uint32(v))
				case []byte:
					data.Bytes(number, v)
				}
			}
			return nil
		})
	})
}

func encode(t *testing.T, fill func(ae *netlink.AttributeEncoder)) []byte {
	t.Helper()
	ae := netlink.NewAttributeEncoder()
	ae.ByteOrder = binary.BigEndian
	fill(ae)
	b, err := ae.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRules checks which rules are recognised as affecting SMC.
func TestRules(t *testing.T) {
	inData := func(inner uint16, b []byte) []byte {
		return encode(t, func(ae *netlink.AttributeEncoder) { ae.Bytes(inner, b) })
	}
	drop := expression(t, "immediate", map[uint16]any{1: 0, immediateData: inData(dataVerdict, inData(verdictCode, []byte{0, 0, 0, 0}))})
	accept := expression(t, "immediate", map[uint16]any{1: 0, immediateData: inData(dataVerdict, inData(verdictCode, []byte{0, 0, 0, 1}))})
	port := func(offset int) []byte {
		return expression(t, "payload", map[uint16]any{1: 1, payloadBase: payloadTransport, payloadOffset: offset, 4: 2})
	}
	is := func(b ...byte) []byte {
		return expression(t, "cmp", map[uint16]any{1: 1, 2: 0, cmpData: inData(dataValue, b)})
	}
	reset := func(kind byte, more map[uint16]any) []byte {
		attrs := map[uint16]any{exthdrType: []byte{kind}, exthdrOp: exthdrOpTCPOption}
		maps.Copy(attrs, more)
		return expression(t, "exthdr", attrs)
	}
	target := func(name string, option int) []byte {
		bits := make([]byte, 32)
		binary.NativeEndian.PutUint32(bits[option/32*4:], 1<<(option%32))
		return expression(t, "target", map[uint16]any{targetName: append([]byte(name), 0), targetInfo: bits})
	}
	tests := []struct {
		name         string
		expressions  [][]byte
		strips, drop bool
	}{
		{name: "an empty rule"},
		{name: "reset tcp option 254", expressions: [][]byte{reset(254, nil)}, strips: true},
		{name: "reset tcp option 253", expressions: [][]byte{reset(253, nil)}},
		{name: "an option is read", expressions: [][]byte{reset(254, map[uint16]any{exthdrDreg: 1})}},
		{name: "an option is set", expressions: [][]byte{reset(254, map[uint16]any{exthdrSreg: 1})}},
		{name: "iptables strips 254", expressions: [][]byte{target("TCPOPTSTRIP", 254)}, strips: true},
		{name: "iptables strips 30", expressions: [][]byte{target("TCPOPTSTRIP", 30)}},
		{name: "another target", expressions: [][]byte{target("LOG", 254)}},
		{name: "udp dport 4791 drop", expressions: [][]byte{port(2), is(0x12, 0xb7), drop}, drop: true},
		{name: "udp dport 4791 reject", expressions: [][]byte{port(2), is(0x12, 0xb7), expression(t, "reject", map[uint16]any{1: 0})}, drop: true},
		{name: "udp dport 4791 accept", expressions: [][]byte{port(2), is(0x12, 0xb7), accept}},
		{name: "udp sport 4791 drop", expressions: [][]byte{port(0), is(0x12, 0xb7), drop}},
		{name: "udp dport 53 drop", expressions: [][]byte{port(2), is(0, 53), drop}},
		{name: "drop all", expressions: [][]byte{drop}},
		{name: "a broken expression", expressions: [][]byte{{1, 2}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := append([]byte{1, 0, 0, 0}, encode(t, func(ae *netlink.AttributeEncoder) {
				ae.String(ruleTable, "filter")
				ae.String(ruleChain, "in")
				ae.Uint64(ruleHandle, 7)
				ae.Nested(ruleExpressions, func(list *netlink.AttributeEncoder) error {
					for _, e := range tt.expressions {
						list.Bytes(listElem, e)
					}
					return nil
				})
			})...)
			var got Rules
			_ = got.add(m)
			want := Rules{}
			this := []Rule{{"inet", "filter", "in", 7}}
			if tt.strips {
				want.Strips = this
			}
			if tt.drop {
				want.Drops = this
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzRule(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 8, 0, 1, 0, 'a', 0, 0, 0})
	f.Fuzz(func(_ *testing.T, b []byte) {
		var r Rules
		_ = r.add(b)
	})
}

// TestReadHere reads the host that runs the test. It checks that nothing panics and that the facts are consistent.
func TestReadHere(t *testing.T) {
	s, err := Reader{}.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Kernel.Release == "" || s.Interface("lo") == nil {
		t.Errorf("%+v", s)
	}
	Reader{}.ReadPath(s, "localhost", netip.MustParseAddr("127.0.0.1"))
	if !s.Path.Local || s.Path.RouteErr != nil || s.Path.Interface != "lo" {
		t.Errorf("%+v", s.Path)
	}
	if able := Able(s.Findings()); able != (len(s.Choices()) > 0) {
		t.Errorf("able: %t, choices: %v, %v", able, s.Choices(), s.Findings())
	}
}
