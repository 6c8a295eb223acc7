// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeNames are the users and groups of these tests.
type fakeNames map[string]uint32

func (f fakeNames) User(name string) (uint32, error) {
	if id, ok := f[name]; ok {
		return id, nil
	}
	return 0, errors.New("unknown")
}
func (f fakeNames) Group(name string) (uint32, error) { return f.User(name) }
func (f fakeNames) UserName(id uint32) string {
	for name, n := range f {
		if n == id {
			return name
		}
	}
	return ""
}
func (f fakeNames) GroupName(id uint32) string { return f.UserName(id) }

var comparePrefixes = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })

var names = fakeNames{"www-data": 33, "root": 0}

func parse(t *testing.T, text string) Rule {
	t.Helper()
	r, err := Parse(strings.Fields(text), names)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

// TestMatches has the table of tests/wire/src/test_policy.c, whose rules the module matches.
func TestMatches(t *testing.T) {
	who := Who{User: 33, Group: 44, Cgroup: "/system.slice/redis.service"}
	client := Use{Role: Connect, Remote: 6379, Peer: netip.MustParseAddr("10.9.1.2")}
	bound := client
	bound.Local = 700
	server := Use{Role: Listen, Local: 6379}
	for text, want := range map[string][3]bool{
		"smc":                                     {true, true, true},
		"smc role connect":                        {true, true, false},
		"smc role listen":                         {false, false, true},
		"smc port 6379":                           {true, true, true},
		"smc port 1-9,6000-6379":                  {true, true, true},
		"smc port 6380-65535":                     {false, false, false},
		"smc local 700-6379":                      {false, true, true},
		"smc remote 6379":                         {true, true, false},
		"smc to 10.9.0.0/16":                      {true, true, false},
		"smc to 10.9.128.0/17":                    {false, false, false},
		"smc to 10.9.1.2":                         {true, true, false},
		"smc to ::/0":                             {false, false, false},
		"smc to 0.0.0.0/0":                        {true, true, false},
		"smc user www-data":                       {true, true, true},
		"smc user 0":                              {false, false, false},
		"smc group 44":                            {true, true, true},
		"smc group www-data":                      {false, false, false},
		"smc cgroup system.slice/redis.service":   {true, true, true},
		"smc cgroup system.slice":                 {true, true, true},
		"smc cgroup /":                            {true, true, true},
		"smc cgroup system.slice/redis":           {false, false, false},
		"smc cgroup system.slice/redis.service/x": {false, false, false},
		"smc role connect user 33 cgroup system.slice port 6379 to 10.9.0.0/16":   {true, true, false},
		"smc role connect user 33 cgroup system.slice port 6379 to 10.9.128.0/17": {false, false, false},
		"smc from 10.9.0.0/16": {false, false, false},
		"smc peer 10.9.0.0/16": {true, true, false},
	} {
		r := parse(t, text)
		if got := [3]bool{r.Matches(who, client), r.Matches(who, bound), r.Matches(who, server)}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	accepted := server
	accepted.Peer = client.Peer
	for text, want := range map[string]bool{
		"smc from 10.9.0.0/16": true, "smc peer 10.9.0.0/16": true, "smc to 10.9.0.0/16": false, "smc from ::/0": false, "smc": true,
	} {
		if parse(t, text).Matches(who, accepted) != want {
			t.Errorf("%s: an accepted connection", text)
		}
	}
	if parse(t, "smc cgroup /").Matches(Who{}, client) {
		t.Error("a rule that asks for a control group matches without one")
	}
	v6 := Use{Role: Connect, Remote: 1, Peer: netip.MustParseAddr("fd00::1")}
	v6.Peer = v6.Peer.WithZone("eth0")
	if !parse(t, "smc to fd00::/8").Matches(who, v6) || parse(t, "smc to 0.0.0.0/0").Matches(who, v6) || !parse(t, "smc to ::/0").Matches(who, v6) {
		t.Error("networks of IPv6")
	}
}

func TestDecide(t *testing.T) {
	p := Policy{Enabled: true, Rules: []Rule{parse(t, "tcp to 10.9.0.0/16"), parse(t, "smc port 6379"), parse(t, "tcp")}}
	use := func(addr string, port uint16) Use {
		return Use{Role: Connect, Remote: port, Peer: netip.MustParseAddr(addr)}
	}
	for _, tt := range []struct {
		use  Use
		want Verdict
		rule int
	}{
		{use("10.9.1.2", 6379), TCP, 0}, {use("10.8.1.2", 6379), SMC, 1}, {use("10.8.1.2", 80), TCP, 2}, {Use{Role: Listen, Local: 6379}, SMC, 1},
	} {
		if v, i := p.Decide(Who{}, tt.use); v != tt.want || i != tt.rule {
			t.Errorf("%+v: %v by %d", tt.use, v, i)
		}
	}
	p.Enabled = false
	if v, i := p.Decide(Who{}, use("10.8.1.2", 6379)); v != TCP || i != -1 {
		t.Errorf("off: %v by %d", v, i)
	}
	if v, i := (Policy{Enabled: true}).Decide(Who{}, use("10.8.1.2", 6379)); v != None || i != -1 {
		t.Errorf("no rules: %v by %d", v, i)
	}
}

// TestPlan has rules that ask for the address of a listener's peers.
func TestPlan(t *testing.T) {
	p := Policy{Enabled: true}
	for _, text := range []string{
		"tcp from 10.9.0.0/16", "smc port 80 from 10.0.0.0/8", "smc to 10.0.0.0/8", "tcp port 80", "smc peer fd00::/8", "smc role listen",
	} {
		p.Rules = append(p.Rules, parse(t, text))
	}
	if got := p.Plan(Who{}, 80); !slices.Equal(got, []int{0, 1, 3}) {
		t.Errorf("port 80: %v", got)
	}
	if got := p.Plan(Who{}, 81); !slices.Equal(got, []int{0, 4, 5}) {
		t.Errorf("port 81: %v", got)
	}
	p.Enabled = false
	if got := p.Plan(Who{}, 81); len(got) > 0 {
		t.Errorf("off: %v", got)
	}
}

// TestText has rules as they are written, and what they are written as.
func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"smc":                        "smc",
		"tcp port 8000-8100,6379":    "tcp port 6379,8000-8100",
		"tcp port 80,82-90,81":       "tcp port 80-90",
		"tcp to fd00::/8,10.0.0.0/8": "tcp to 10.0.0.0/8,fd00::/8",
		"tcp cgroup foo..bar.slice":  "tcp cgroup foo..bar.slice",
		"smc to 10.9.0.0/16,fd00::/8 role connect name a.b-c_1": "smc name a.b-c_1 to 10.9.0.0/16,fd00::/8",
		"smc role listen peer 10.9.0.0/16":                      "smc from 10.9.0.0/16",
		"smc from 10.9.0.0/16":                                  "smc from 10.9.0.0/16",
		"smc peer 10.9.0.0/16 remote 1":                         "smc remote 1 peer 10.9.0.0/16",
		"auto port 80 name web":                                 "auto name web port 80",
		"smc user 33 group 5":                                   "smc user www-data group 5",
		"smc cgroup /system.slice/redis.service/":               "smc cgroup system.slice/redis.service",
		"smc cgroup /":                                          "smc cgroup /",
		"smc remote 1 local 65535 to ::ffff:1.2.3.4":            "smc local 65535 remote 1 to 1.2.3.4/32",
	} {
		r := parse(t, text)
		if got := r.Text(names); got != want {
			t.Errorf("%s: %s", text, got)
		}
		if diff := cmp.Diff(r, parse(t, r.Text(names)), comparePrefixes); diff != "" {
			t.Errorf("%s: read again: %s", text, diff)
		}
	}
}

// TestOddNames has names of users that a file cannot have, or that are read as others: the rule has the number.
func TestOddNames(t *testing.T) {
	odd := fakeNames{"a b": 1, "a#b": 2, "a\x01": 3, "a\xff": 4, "6": 5, "plain": 6, "": 7}
	for id := range uint32(8) {
		want := fmt.Sprintf("smc user %d", id)
		if id == 6 {
			want = "smc user plain"
		}
		if got := (Rule{Verdict: SMC, User: &id}).Text(odd); got != want {
			t.Errorf("%d: %q", id, got)
		}
	}
}

// TestNonsense has invalid rules: each mistake is named by its word.
func TestNonsense(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "a rule begins with smc, tcp or auto",
		"udp":                                    `word 1: "udp": a rule begins with smc, tcp or auto`,
		"port 80":                                `word 1: "port": a rule begins with smc, tcp or auto`,
		"smc prot 80":                            `word 2: "prot": conditions are name, role, user, group, cgroup, port, local, remote, to, from, peer`,
		"smc port":                               "word 2: the value of port is missing",
		"smc port 80 port 81":                    "word 4: port is there already: a list has commas",
		"smc port 0":                             `word 3: port "0": ports are numbers from 1 to 65535, ranges of them, and lists: 6379,8000-8100`,
		"smc port 65536":                         `word 3: port "65536": ports are numbers`,
		"smc port 9-1":                           `word 3: port "9-1": ports are numbers`,
		"smc port 1,,2":                          `word 3: port "1,,2": ports are numbers`,
		"smc port http":                          `word 3: port "http": ports are numbers`,
		"smc port 1-9,5":                         `word 3: port "1-9,5": port 5 is in it twice`,
		"smc to 10.9.0.1/16":                     `word 3: to "10.9.0.1/16": 10.9.0.1/16 has bits behind its prefix: write 10.9.0.0/16`,
		"smc to 10.9.0.0/33":                     `word 3: to "10.9.0.0/33": networks are addresses`,
		"smc to fe80::1%eth0":                    `word 3: to "fe80::1%eth0": networks are addresses`,
		"smc to host":                            `word 3: to "host": networks are addresses`,
		"smc to 10.0.0.0/8,10.9.0.0/16":          `word 3: to "10.0.0.0/8,10.9.0.0/16": 10.9.0.0/16 overlaps with another one`,
		"smc to ::ffff:10.0.0.0/104":             `word 3: to "::ffff:10.0.0.0/104": write it as a network of IPv4: 10.0.0.0/8`,
		"smc user nobody-here":                   `word 3: user "nobody-here": there is no such user in /etc/passwd: if another service knows it, give the number, from 'id -u'`,
		"smc user -1":                            `word 3: user "-1": there is no such user in /etc/passwd: if another service knows it, give the number, from 'id -u'`,
		"smc group 4294967295":                   `word 3: group "4294967295": there is no such group in /etc/group`,
		"smc cgroup a/../b":                      `word 3: cgroup "a/../b": the path is that below /sys/fs/cgroup`,
		"smc cgroup a#b":                         `word 3: cgroup "a#b": the path is that below /sys/fs/cgroup`,
		"smc cgroup a\x01":                       `word 3: cgroup "a\x01": the path is that below /sys/fs/cgroup`,
		"smc cgroup a\xff":                       `word 3: cgroup "a\xff": the path is that below /sys/fs/cgroup`,
		"smc role both":                          `word 3: role "both": a role is connect or listen`,
		"smc name 17":                            `word 3: name "17": a name has up to 31 letters`,
		"smc name -b":                            `word 3: name "-b": a name has up to 31 letters`,
		"smc name a/b":                           `word 3: name "a/b": a name has up to 31 letters`,
		"smc role listen to 10.0.0.0/8":          "to is for clients (role connect), from is for servers (role listen), peer is for both",
		"smc from 10.0.0.0/8 role connect":       "to is for clients (role connect), from is for servers",
		"smc from 10.0.0.0/8 to 10.0.0.0/8":      `word 5: to "10.0.0.0/8": a rule has one of to, from and peer`,
		"smc from 10.0.0.0/8 remote 1":           "remote is for clients: the ports of a server's clients are not asked for",
		"smc role listen remote 1":               "remote is for clients",
		"smc cgroup " + strings.Repeat("x", 255): "word 3: cgroup",
		"smc name " + strings.Repeat("x", 32):    "word 3: name",
		"smc port " + manyPorts(65):              "word 3: port",
	} {
		r, err := Parse(strings.Fields(text), names)
		if _, ok := errors.AsType[*SyntaxError](err); !ok || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
	}
	if r := parse(t, "smc port "+manyPorts(64)); len(r.Ports) != 64 {
		t.Errorf("%d ports", len(r.Ports))
	}
}

// TestSyntaxErrorRemedy checks that the remedy of a mistake is in a field of its own, and at the end of the text.
func TestSyntaxErrorRemedy(t *testing.T) {
	for text, want := range map[string]SyntaxError{
		"smc port 1 port 2":      {Word: 4, Text: "port is there already", Remedy: "a list has commas"},
		"smc user nobody-at-all": {Word: 3, Text: `user "nobody-at-all": there is no such user in /etc/passwd`, Remedy: "if another service knows it, give the number, from 'id -u'"},
		"smc to 10.0.0.1/8":      {Word: 3, Text: `to "10.0.0.1/8": 10.0.0.1/8 has bits behind its prefix`, Remedy: "write 10.0.0.0/8"},
		"smc port " + manyPorts(65): {
			Word: 3, Text: `port "` + manyPorts(65) + `": a list has 64 entries at most`, Remedy: "use ranges, or several rules",
		},
		"smc port 1,1": {Word: 3, Text: `port "1,1": port 1 is in it twice`},
		"smc port x":   {Word: 3, Text: `port "x": ` + portsHelp},
	} {
		_, err := Parse(strings.Fields(text), names)
		e, ok := errors.AsType[*SyntaxError](err)
		if !ok || *e != want || want.Remedy != "" && !strings.HasSuffix(err.Error(), want.Text+": "+want.Remedy) {
			t.Errorf("%s: %v", text, err)
		}
	}
	_, err := ParseFile("smc\ntcp port 1 port 2\n", "f", names)
	if e, ok := errors.AsType[*SyntaxError](err); !ok || e.Line != 2 || e.Remedy != "a list has commas" {
		t.Errorf("%v", err)
	}
}

func manyPorts(n int) string {
	var ports []string
	for i := range n {
		ports = append(ports, fmt.Sprint(2*i+1))
	}
	return strings.Join(ports, ",")
}

func TestParseFile(t *testing.T) {
	rules, err := ParseFile("# one\n\n tcp to 10.9.0.0/16 # two\nsmc port 1\n", "policy.conf", names)
	if err != nil || len(rules) != 2 || rules[1].Text(names) != "smc port 1" {
		t.Errorf("%+v, %v", rules, err)
	}
	for text, want := range map[string]string{
		"smc\nsmc port x\n":                  `policy.conf:2: word 3: port "x": ports are numbers from 1 to 65535, ranges of them, and lists: 6379,8000-8100`,
		"smc name a\n#\ntcp port 1 name a\n": "policy.conf:3: rule 1 has the name a already",
		"smc port 1\ntcp port 1\n":           "policy.conf:2: rule 1 has the same conditions",
		strings.Repeat("smc port 1", 200000): "policy.conf:1: the line is longer than a megabyte: write one rule in each line",
		distinctRules(MaxRules + 1):          "policy.conf:1025: there are more than 1024 rules",
	} {
		if _, err := ParseFile(text, "policy.conf", names); err == nil || err.Error() != want {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	if rules, err := ParseFile(distinctRules(MaxRules), "policy.conf", names); err != nil || len(rules) != MaxRules {
		t.Errorf("%d rules, %v", len(rules), err)
	}
}

func distinctRules(n int) (text string) {
	for i := range n {
		text += fmt.Sprintf("smc port %d\n", i+1)
	}
	return text
}

// FuzzParseFile has files that are read: what is read is written, and read again as the same.
func FuzzParseFile(f *testing.F) {
	for _, text := range []string{"smc", "tcp to 10.9.0.0/16,fd00::/8 port 1-9\nsmc user www-data name x cgroup a/b role listen local 7 # c", "smc remote 1", "smc from ::1 port 2\ntcp peer 1.2.3.4", "auto user 33 name x\nauto"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := ParseFile(text, "file", names)
		if err != nil {
			return
		}
		var again string
		for _, r := range rules {
			again += r.Text(names) + "\n"
		}
		second, err := ParseFile(again, "file", names)
		if err != nil || !cmp.Equal(rules, second, comparePrefixes) {
			t.Errorf("%q: %q: %v", text, again, err)
		}
	})
}
