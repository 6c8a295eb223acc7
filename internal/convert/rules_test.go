// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parse parses rules from "port=… to=… not=…".
func parse(text string) (Rules, error) {
	var r Rules
	for word := range strings.FieldsSeq(text) {
		kind, list, _ := strings.Cut(word, "=")
		add := map[string]func(string) error{"port": r.Only.AddPorts, "to": r.Only.AddNetworks, "not": r.Not.AddEither}[kind]
		if err := add(list); err != nil {
			return r, err
		}
	}
	return r, nil
}

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		rules string
		yes   string
		no    string
	}{
		{"", "127.0.0.1:1 [::1]:65535 0.0.0.0:0", ""},
		{"port=6379,8000-8100", "10.0.0.1:6379 10.0.0.1:8000 [fd00::1]:8100 0.0.0.0:8050", "10.0.0.1:7999 10.0.0.1:8101 10.0.0.1:0"},
		{"port=80 port=443", "10.0.0.1:80 10.0.0.1:443", "10.0.0.1:81"},
		{"to=10.0.0.0/8", "10.255.0.1:1 [::ffff:10.0.0.1]:1 0.0.0.0:1 [::]:1", "11.0.0.1:1 [::1]:1 [::a00:1]:1"},
		{"to=::/0", "[::1]:1 [fd00::1%eth0]:1 0.0.0.0:1", "10.0.0.1:1 [::ffff:10.0.0.1]:1"},
		{"to=0.0.0.0/0", "10.0.0.1:1 [::ffff:10.0.0.1]:1", "[::1]:1"},
		{"to=::ffff:10.0.0.0/104", "10.2.3.4:1", "11.0.0.1:1"},
		{"to=10.0.0.7", "10.0.0.7:1", "10.0.0.6:1"},
		{"to=fd00:0:0:1::77/64", "[fd00:0:0:1:ffff::]:1", "[fd00:0:0:2::]:1"},
		{"not=22,10.1.0.0/16,::1", "10.0.0.1:80 [::]:80", "10.0.0.1:22 10.1.2.3:80 [::1]:80 0.0.0.0:22"},
		{"port=80 to=10.0.0.0/8 not=10.0.0.1", "10.0.0.2:80 0.0.0.0:80", "10.0.0.1:80 10.0.0.2:81 11.0.0.1:80"},
		{"port=80-90 not=85", "10.0.0.1:84", "10.0.0.1:85"},
	} {
		r, err := parse(test.rules)
		if err != nil {
			t.Errorf("%s: %v", test.rules, err)
		}
		if r.Any() != (test.rules != "") {
			t.Errorf("%q has rules: %t", test.rules, r.Any())
		}
		for want, addrs := range map[bool]string{true: test.yes, false: test.no} {
			for addr := range strings.FieldsSeq(addrs) {
				if got := r.Match(netip.MustParseAddrPort(addr)); got != want {
					t.Errorf("%q: %s matches: %t", test.rules, addr, got)
				}
			}
		}
	}
}

func TestBadRules(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat("80,", MostRules+1), ",")
	for rules, want := range map[string]string{
		"port=":           `"" is not a port from 1 to 65535, nor a range such as 8000-8100`,
		"port=0":          `"0" is not a port`,
		"port=65536":      `"65536" is not a port`,
		"port=080":        `"080" is not a port`,
		"port=+80":        `"+80" is not a port`,
		"port=http":       `"http" is not a port`,
		"port=80,":        `"" is not a port`,
		"port=80-":        `"80-" is not a port`,
		"port=-80":        `"-80" is not a port`,
		"port=1-2-3":      `"1-2-3" is not a port`,
		"port=90-80":      `"90-80" ends before it begins: give the lower port first`,
		"port=" + many:    `more than 64 ports and ranges: combine ports into ranges`,
		"to=":             `"" is not an address, nor a network such as 10.0.0.0/8 or fd00::/8`,
		"to=10":           `"10" is not an address`,
		"to=10.0.0.0/33":  `"10.0.0.0/33" is not an address`,
		"to=10.0.0.0/":    `"10.0.0.0/" is not an address`,
		"to=fe80::1%eth0": `"fe80::1%eth0" is not an address`,
		"to=host.example": `"host.example" is not an address`,
		"to=" + strings.ReplaceAll(many, "80", "::"): `more than 64 networks: merge them`,
		"not=1.2.3": `"1.2.3" is not an address`,
		"not=x":     `"x" is not a port`,
	} {
		if _, err := parse(rules); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", rules, err, want)
		}
	}
}

// TestEnvironmentMeansTheSame checks that parsing the environment variables returns the same rules.
func TestEnvironmentMeansTheSame(t *testing.T) {
	for rules, want := range map[string][]string{
		"":                   nil,
		"port=80 port=90-99": {"SMC_PORT=80,90-99"},
		"to=10.1.2.3/8":      {"SMC_TO=10.0.0.0/8"},
		"not=::1,22":         {"SMC_NOT=22,::1/128"},
		"not=10.0.0.1 port=1 to=::ffff:10.0.0.1,FD00::/8": {"SMC_PORT=1", "SMC_TO=10.0.0.1/32,fd00::/8", "SMC_NOT=10.0.0.1/32"},
	} {
		r, err := parse(rules)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.Env()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", rules, diff)
		}
	}
}

// FuzzRules checks that accepted lists mean the same after they were passed by the environment.
func FuzzRules(f *testing.F) {
	for _, seed := range []string{"80", "80,90-99", "::1", "10.0.0.0/8,22", "::ffff:1.2.3.4/97", "1-2-3", "fe80::1%x", ","} {
		f.Add(seed, []byte{127, 0, 0, 1}, uint16(80))
	}
	f.Fuzz(func(t *testing.T, list string, address []byte, port uint16) {
		var r Rules
		if r.Not.AddEither(list) != nil {
			return
		}
		env := r.Env()
		if len(env) != 1 {
			t.Fatalf("%q becomes %q", list, env)
		}
		var again Rules
		if err := again.Not.AddEither(strings.TrimPrefix(env[0], EnvNot+"=")); err != nil {
			t.Fatalf("%q becomes %q: %v", list, env, err)
		}
		// Env writes networks after ports; nothing else changes.
		if !slices.Equal(r.Not.Ports, again.Not.Ports) || !slices.Equal(r.Not.Networks, again.Not.Networks) {
			t.Errorf("%q becomes %q", list, env)
		}
		if addr, ok := netip.AddrFromSlice(address); ok {
			if at := netip.AddrPortFrom(addr, port); r.Match(at) != again.Match(at) {
				t.Errorf("%q and %q differ at %v", list, env, at)
			}
		}
	})
}
