// SPDX-License-Identifier: Apache-2.0

//go:build linux

package preload

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/convert"
)

// question consists of rules and an address to match.
type question struct {
	ports, networks, not string
	addr                 netip.AddrPort
}

// line returns the question in the format of the C program.
func (q question) line() string {
	family := 10
	if q.addr.Addr().Is4() {
		family = 2
	}
	return fmt.Sprintf("%s|%s|%s|%d|%x|%d\n", q.ports, q.networks, q.not, family, q.addr.Addr().AsSlice(), q.addr.Port())
}

// answer returns the decision of smc_run.
func (q question) answer() string {
	var r convert.Rules
	for text, add := range map[*string]func(string) error{
		&q.ports: r.Only.AddPorts, &q.networks: r.Only.AddNetworks, &q.not: r.Not.AddEither,
	} {
		if *text != "" && add(*text) != nil {
			return "bad"
		}
	}
	if r.Match(q.addr) {
		return "1"
	}
	return "0"
}

// pieces are parts from which questions are composed, so that many of the questions are valid.
var pieces = struct{ ports, networks, addrs []string }{
	ports: []string{"1", "80", "443", "8000-8100", "65535", "1-65535", "80-79", "0", "65536", "080", "-1", "1-", "x", "", " 80", "80,443"},
	networks: []string{
		"10.0.0.0/8", "10.1.2.3", "10.1.2.3/32", "0.0.0.0/0", "10.1.2.3/9", "127.0.0.1", "::/0", "::", "::1", "fd00::/8", "fd00:1:2::3",
		"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::8/127", "::ffff:10.0.0.0/104", "::ffff:10.1.2.3", "::ffff:0:0/90",
		"1:2:3:4:5:6:1.2.3.4", "::1.2.3.4", "FD00::AbCd", "10.0.0/8", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/", "10.0.0.256", "01.2.3.4",
		"1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", ":1", "1:", ":::", "12345::", "fe80::1%eth0", "::/129", "g::", "1.2.3.4.5", "::1/", "",
		"1:2:3:4:5:6:7:1.2.3.4", "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "1::1.2.3", "10.1.2.3,fd00::/8",
	},
	addrs: []string{
		"10.1.2.3", "10.2.0.0", "11.0.0.0", "127.0.0.1", "0.0.0.0", "255.255.255.255", "::", "::1", "fd00::1", "fd00:1:2::3", "fd00::abcd", "fc00::",
		"::ffff:10.1.2.3", "::ffff:0.0.0.0", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:0", "0:2:3:4:5:6:7:8", "1::8", "1::9", "::1.2.3.4", "::fffe:10.1.2.3",
	},
}

// TestRulesAreThoseOfSMCRun checks that the library and smc_run accept the same rules, and match the same addresses.
func TestRulesAreThoseOfSMCRun(t *testing.T) {
	var questions []question
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	list := func(from ...string) string {
		var items []string
		for range random.IntN(3) {
			items = append(items, pick(from))
		}
		return strings.Join(items, ",")
	}
	addr := func() netip.AddrPort {
		ports := []uint16{0, 1, 79, 80, 443, 7999, 8000, 8100, 8101, 65535}
		return netip.AddrPortFrom(netip.MustParseAddr(pick(pieces.addrs)), ports[random.IntN(len(ports))])
	}
	// Test each piece alone, with all addresses, so that no mistake hides another.
	for _, a := range pieces.addrs {
		for _, n := range pieces.networks {
			at := netip.AddrPortFrom(netip.MustParseAddr(a), 80)
			questions = append(questions, question{networks: n, addr: at}, question{not: n, addr: at})
		}
	}
	for range 20_000 {
		q := question{list(pieces.ports...), list(pieces.networks...), list(append(pieces.ports, pieces.networks...)...), addr()}
		questions = append(questions, q)
	}
	for n := convert.MostRules - 1; n < convert.MostRules+2; n++ {
		many := strings.TrimSuffix(strings.Repeat("80,", n), ",")
		questions = append(questions, question{ports: many, addr: addr()}, question{not: many + ",::1", addr: addr()})
	}

	var input strings.Builder
	for _, q := range questions {
		input.WriteString(q.line())
	}
	cmd := exec.CommandContext(t.Context(), compile(t, "cc", "rules", "-I../../preload", "src/rules.c", "../../preload/rules.c"))
	cmd.Stdin = strings.NewReader(input.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := strings.Fields(string(out))
	if len(answers) != len(questions) {
		t.Fatalf("%d answers to %d questions", len(answers), len(questions))
	}
	seen := map[string]int{}
	for i, q := range questions {
		want := q.answer()
		seen[want]++
		if answers[i] != want {
			t.Errorf("%s: the library says %s, smc_run %s", strings.TrimSpace(q.line()), answers[i], want)
		}
	}
	if seen["0"] < 1000 || seen["1"] < 1000 || seen["bad"] < 1000 {
		t.Errorf("questions that are not worth asking: %v", seen)
	}
}
