// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/internal/attrtest"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcerr"
)

const familyID = 0x77

// client returns a Client of a kernel in which fn answers requests.
func client(t *testing.T, fn genltest.Func) *Client {
	t.Helper()
	c, err := NewFromConn(genltest.Dial(genltest.ServeFamily(genetlink.Family{ID: familyID, Name: Family, Version: familyVersion}, fn)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// attributes encodes what put puts.
func attributes(t *testing.T, put func(ae *netlink.AttributeEncoder)) []byte {
	t.Helper()
	ae := netlink.NewAttributeEncoder()
	put(ae)
	data, err := ae.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGet(t *testing.T) {
	// In the order in which the module has them, with counters.
	rules := []Rule{
		parse(t, "tcp name one to 10.9.0.0/16,fd00::/8 port 1-9,700 user 5"),
		parse(t, "smc cgroup a/b group 6 role listen local 8 "),
		parse(t, "smc remote 9"),
	}
	rules[0].ID, rules[1].ID, rules[2].ID = 7, 1, 300
	rules[1].Counters = Counters{Decisions: 1, SMC: 2, TCP: 3, Bytes: 1 << 40}
	message := func(rules ...Rule) genetlink.Message {
		return genetlink.Message{Data: attributes(t, func(ae *netlink.AttributeEncoder) {
			ae.Uint32(netlinksmc.AttrPolicyGeneration, 12)
			ae.Uint8(netlinksmc.AttrPolicyEnabled, 1)
			ae.Uint8(netlinksmc.AttrPolicyInherited, 1)
			for _, r := range rules {
				ae.Nested(netlinksmc.AttrPolicyRule, func(nae *netlink.AttributeEncoder) error {
					nae.Uint64(netlinksmc.AttrRuleDecisions, r.Counters.Decisions)
					nae.Uint64(netlinksmc.AttrRuleConnsSMC, r.Counters.SMC)
					nae.Uint64(netlinksmc.AttrRuleConnsTCP, r.Counters.TCP)
					nae.Uint64(netlinksmc.AttrRuleBytes, r.Counters.Bytes)
					nae.Uint32(netlinksmc.AttrRuleID, r.ID)
					r.ID = 0
					return encodeRule(nae, r)
				})
			}
		})}
	}
	c := client(t, func(greq genetlink.Message, nreq netlink.Message) ([]genetlink.Message, error) {
		if greq.Header.Command != netlinksmc.CmdPolicyGet || nreq.Header.Flags != netlink.Request|netlink.Dump {
			t.Errorf("%+v, %+v", greq, nreq)
		}
		return []genetlink.Message{message(rules[:2]...), message(rules[2])}, nil
	})
	got, err := c.Get(t.Context())
	if diff := cmp.Diff(Policy{Generation: 12, Enabled: true, Inherited: true, Rules: rules}, got, comparePrefixes); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

// TestSet checks the bytes of requests.
func TestSet(t *testing.T) {
	var got []byte
	c := client(t, func(greq genetlink.Message, nreq netlink.Message) ([]genetlink.Message, error) {
		if greq.Header.Command != netlinksmc.CmdPolicySet || nreq.Header.Flags != netlink.Request|netlink.Acknowledge {
			t.Errorf("%+v, %+v", greq, nreq)
		}
		got = greq.Data
		return nil, io.EOF
	})
	generation := attrtest.Attr(1, "\x01\x01\x01\x01")
	if err := c.Enable(t.Context(), 0x01010101, false); err != nil || string(got) != generation+attrtest.Attr(2, "\x00") {
		t.Errorf("%q, %v", got, err)
	}
	old := Rule{ID: 0x02020202}
	if err := c.SetRules(t.Context(), 0x01010101, []Rule{old, parse(t, "tcp to 10.9.0.0/16 port 258")}); err != nil {
		t.Fatal(err)
	}
	// Ports are in the byte order of the host: 258 is the same number in both.
	port := string(binary.NativeEndian.AppendUint16(nil, 258))
	two := string(binary.NativeEndian.AppendUint32(nil, 2))
	to := "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x09\x00\x00\x70"
	want := generation + attrtest.Attr(3, two) +
		attrtest.Attr(netlink.Nested|4, attrtest.Attr(1, "\x02\x02\x02\x02")) +
		attrtest.Attr(netlink.Nested|4, attrtest.Attr(3, "\x02")+attrtest.Attr(4, "\x01")+attrtest.Attr(8, port+port)+attrtest.Attr(11, to))
	if string(got) != want {
		t.Errorf("\n%q\n%q", got, want)
	}
	if err := c.SetRules(t.Context(), 1, nil); err != nil || len(got) != 16 {
		t.Errorf("no rules: %q, %v", got, err)
	}
	// The same rule is the same request.
	many := []Rule{parse(t, "smc port 1 local 2 remote 3")}
	for range 20 {
		before := string(got)
		if err := c.SetRules(t.Context(), 1, many); err != nil || len(before) > 16 && before != string(got) {
			t.Fatalf("\n%q\n%q, %v", before, got, err)
		}
	}
	got = nil
	for _, bad := range []Rule{
		{},
		{Verdict: SMC},
		{Verdict: 4, Role: Any},
		{Verdict: SMC, Role: 4},
		{Verdict: SMC, Role: Any, Cgroup: "a"},
		{Verdict: SMC, Role: Any, Ports: []PortRange{{First: 2, Last: 1}}},
		{Verdict: SMC, Role: Any, Networks: make([]netip.Prefix, 1)},
		{Verdict: SMC, Role: Any, LocalPorts: make([]PortRange, MaxList+1)},
		{Verdict: SMC, Role: Any, Name: strings.Repeat("x", 32)},
	} {
		err := c.SetRules(t.Context(), 1, []Rule{old, bad})
		if _, ok := errors.AsType[*SyntaxError](err); !ok || !strings.HasPrefix(err.Error(), "rule 2: ") || got != nil {
			t.Errorf("%+v: %v, sent %q", bad, err, got)
		}
	}
}

func TestErrors(t *testing.T) {
	for errno, want := range map[syscall.Errno]struct {
		is   error
		text string
	}{
		syscall.ESTALE:     {ErrChanged, "the policy has been changed meanwhile: try again"},
		syscall.EOPNOTSUPP: {smcerr.ErrNotSupported, "not supported: the module is older than this command, or the kernel cannot convert sockets"},
		syscall.EPERM:      {os.ErrPermission, "permission denied: run as root, that is with CAP_NET_ADMIN in the user namespace that owns the network namespace"},
		syscall.ENOMEM:     {syscall.ENOMEM, "cannot allocate memory"},
	} {
		c := client(t, func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
			return nil, genltest.Error(int(errno))
		})
		err := c.SetRules(t.Context(), 1, nil)
		if !errors.Is(err, want.is) || err.Error() != "change the policy: "+want.text {
			t.Errorf("%v: %v", errno, err)
		}
	}
	_, err := NewFromConn(genltest.Dial(func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
		return nil, genltest.Error(int(syscall.ENOENT))
	}))
	if !errors.Is(err, smcerr.ErrNoModule) || !strings.Contains(err.Error(), "only smckit's module has a policy") {
		t.Errorf("no module: %v", err)
	}
}

// FuzzParsePolicy has answers of a kernel that cannot be trusted.
func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte("\x08\x00\x01\x00\x01\x01\x01\x01\x05\x00\x02\x00\x01\x00\x00\x00"))
	f.Add([]byte("\x0c\x00\x04\x80\x08\x00\x08\x00\x01\x00\x02\x00"))
	f.Add([]byte("\x1c\x00\x04\x80\x15\x00\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x09\x00\x00\x70\x00\x00\x00"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		p, err := parsePolicy([]genetlink.Message{{Data: data}})
		if err == nil {
			p.Decide(Who{}, Use{Role: Connect})
		}
	})
}
