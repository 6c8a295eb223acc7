// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/jsondoc/jsontest"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/pkg/smcerr"
	"github.com/spf13/cobra"
	"github.com/vishvananda/netlink"
)

// fakeKernel is a policy in memory. busy is how many changes find that another program was faster.
type fakeKernel struct {
	policy policy.Policy
	memory policy.Memory
	lastID uint32
	busy   int
	insert *policy.Rule // that the other program adds at the top
	err    error
	sets   int

	services []policy.Service
	peers    []policy.Peer
}

func (k *fakeKernel) Peers(context.Context) ([]policy.Peer, error) { return k.peers, k.err }

func (k *fakeKernel) ForgetPeers(context.Context) error {
	k.peers = nil
	return k.err
}

func (k *fakeKernel) Get(context.Context) (policy.Policy, error) {
	p := k.policy
	p.Rules = slices.Clone(p.Rules)
	return p, k.err
}

func (k *fakeKernel) set(generation uint32, change func()) error {
	if k.busy > 0 {
		k.busy--
		k.policy.Generation++
		if k.insert != nil {
			k.policy.Rules = slices.Insert(k.policy.Rules, 0, *k.insert)
			k.insert = nil
		}
	}
	if generation != k.policy.Generation {
		return &smcerr.Error{Op: "change the policy", Kind: policy.ErrChanged, Remedy: "try again"}
	}
	k.sets++
	k.policy.Generation++
	change()
	return nil
}

func (k *fakeKernel) SetRules(_ context.Context, generation uint32, rules []policy.Rule) error {
	return k.set(generation, func() {
		k.policy.Rules = slices.Clone(rules)
		for i := range k.policy.Rules {
			if k.policy.Rules[i].ID == 0 {
				k.lastID++
				k.policy.Rules[i].ID = k.lastID
			}
		}
	})
}

func (k *fakeKernel) Enable(_ context.Context, generation uint32, on bool) error {
	return k.set(generation, func() { k.policy.Enabled = on })
}

func (k *fakeKernel) Services(context.Context) ([]policy.Service, error) { return k.services, k.err }

func (k *fakeKernel) FlushServices(context.Context) error {
	k.services = nil
	return k.err
}

func (k *fakeKernel) Memory(context.Context) (policy.Memory, error) { return k.memory, k.err }

func (k *fakeKernel) Close() error { return nil }

// fakeNames are two users.
type fakeNames struct{}

func (fakeNames) User(name string) (uint32, error) {
	id, ok := map[string]uint32{"root": 0, "www-data": 33}[name]
	if !ok {
		return 0, errors.New("unknown")
	}
	return id, nil
}
func (f fakeNames) Group(name string) (uint32, error) { return f.User(name) }
func (fakeNames) UserName(id uint32) string           { return map[uint32]string{0: "root", 33: "www-data"}[id] }
func (f fakeNames) GroupName(id uint32) string        { return f.UserName(id) }

// harness runs the command with a fake kernel.
type harness struct {
	t        *testing.T
	kernel   *fakeKernel
	sys      system
	in       string
	out, err bytes.Buffer
}

func newHarness(t *testing.T, rules ...string) *harness {
	h := &harness{t: t, kernel: &fakeKernel{policy: policy.Policy{Enabled: true}}}
	cgroups := t.TempDir()
	if err := os.MkdirAll(filepath.Join(cgroups, "system.slice/redis.service"), 0o755); err != nil {
		t.Fatal(err)
	}
	h.sys = system{
		dial:    func(context.Context) (kernel, error) { return h.kernel, nil },
		names:   fakeNames{},
		cgroups: cgroups,
		lookUp: func(_ context.Context, host string) ([]string, error) {
			if host != "hostb" {
				return nil, fmt.Errorf("lookup %s: no such host", host)
			}
			return []string{"10.1.0.2", "fd00::2"}, nil
		},
		primaryGroup: func(user uint32) (uint32, error) {
			if (fakeNames{}).UserName(user) == "" {
				return 0, errors.New("unknown")
			}
			return user, nil
		},
		self: func() policy.Who { return policy.Who{User: 33, Group: 33, Cgroup: "/user.slice"} },
	}
	for _, text := range rules {
		r, err := policy.Parse(strings.Fields(text), fakeNames{})
		if err != nil {
			t.Fatal(err)
		}
		h.kernel.lastID++
		r.ID = h.kernel.lastID
		h.kernel.policy.Rules = append(h.kernel.policy.Rules, r)
	}
	return h
}

func (h *harness) run(args ...string) int {
	h.t.Helper()
	h.out.Reset()
	h.err.Reset()
	tool := cli.Tool{Name: toolName, New: func(env *cli.Env) *cobra.Command { return newRoot(env, h.sys) }}
	return cli.Run(h.t.Context(), tool, &cli.Env{
		In: strings.NewReader(h.in), Out: &h.out, Err: &h.err, Getenv: func(string) string { return "" },
	}, args)
}

// expect runs the command and checks its status and all that it prints.
func (h *harness) expect(status int, out, stderr string, args ...string) {
	h.t.Helper()
	if got := h.run(args...); got != status || h.out.String() != out || h.err.String() != stderr {
		h.t.Errorf("%q: status %d\n%s%s%s", args, got, h.err.String(), cmp.Diff(out, h.out.String()), cmp.Diff(stderr, h.err.String()))
	}
	if i := slices.Index(args, "--json=1"); i >= 0 {
		h.presentSchema(slices.Replace(slices.Clone(args), i, i+1, "--json"))
	}
}

// presentSchema checks the document of a command in the present schema. A command that changes something only predicts it.
func (h *harness) presentSchema(args []string) {
	h.t.Helper()
	if changes := regexp.MustCompile(`add|del|apply|flush|on|off|none|default|\d+K`); slices.ContainsFunc(args, func(a string) bool {
		return changes.FindString(a) == a
	}) {
		args = append(args, "--check")
	}
	h.run(args...)
	jsontest.Check(h.t, h.out.Bytes())
	doc := map[string]any{"show": new(Rules), "memory": new(Memory)}[args[0]]
	if doc != nil && !slices.Contains(args, "--check") {
		if err := jsondoc.Decode(h.out.Bytes(), doc); err != nil {
			h.t.Error(err)
		}
	}
}

// rules checks the rules in the kernel.
func (h *harness) rules(want ...string) {
	h.t.Helper()
	var got []string
	for _, r := range h.kernel.policy.Rules {
		got = append(got, r.Text(fakeNames{}))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Error(diff)
	}
}

func TestAdd(t *testing.T) {
	h := newHarness(t)
	h.expect(0, "added smc port 6379,8000-8100\n", "", "add", "smc", "port", "8000-8100,6379")
	h.expect(0, "unchanged\n", "", "add", "smc", "port", "6379,8000-8100")
	h.expect(0, "added tcp to 10.9.0.0/16\n", "", "add", "tcp", "to", "10.9.0.0/16", "--at", "1")
	h.expect(0, "added smc name redis role listen cgroup system.slice/redis.service\n", "",
		"add", "smc", "cgroup", "system.slice/redis.service", "role", "listen", "name", "redis")
	all := []string{"tcp to 10.9.0.0/16", "smc port 6379,8000-8100", "smc name redis role listen cgroup system.slice/redis.service"}
	h.rules(all...)
	sets := h.kernel.sets
	h.expect(0, "would add smc user www-data\n", "", "add", "--check", "smc", "user", "33")
	h.expect(0, " tcp to 10.9.0.0/16\n smc port 6379,8000-8100\n smc name redis role listen cgroup system.slice/redis.service\n"+
		"+smc user www-data\n", "", "add", "--check", "--diff", "smc", "user", "33")
	h.expect(1, "", "smc_policy: the rule cannot be added: rule 3 has the name redis already: 'smc_policy del' deletes a rule\n",
		"add", "smc", "name", "redis")
	h.expect(1, "", "smc_policy: the rule cannot be added: rule 1 has the same conditions: 'smc_policy del' deletes a rule\n",
		"add", "smc", "to", "10.9.0.0/16")
	h.expect(1, "", "smc_policy: control group system.slice/nginx.service does not exist: 'systemd-cgls' lists them; --force adds a rule for "+
		"one that does not exist yet\n", "add", "smc", "cgroup", "system.slice/nginx.service")
	h.expect(1, "", "smc_policy: there is no position 9: positions are 1 to 4\n", "add", "smc", "--at", "9")
	h.expect(1, "", "smc_policy: there is no position -1: positions are 1 to 4\n", "add", "smc", "--at", "-1")
	h.expect(1, "", "smc_policy: there is no position 0: positions are 1 to 4\n", "add", "smc", "--at", "0")
	h.expect(1, "", "smc_policy: the rule is there already, as number 1: delete it first with 'smc_policy del 1'\n",
		"add", "tcp", "to", "10.9.0.0/16", "--at", "2")
	h.expect(0, "unchanged\n", "", "add", "tcp", "to", "10.9.0.0/16", "--at", "1")
	if h.kernel.sets != sets {
		t.Error("something was changed")
	}
	h.rules(all...)
	// The service has been stopped: its rule is there already.
	if err := os.Remove(filepath.Join(h.sys.cgroups, "system.slice/redis.service")); err != nil {
		t.Fatal(err)
	}
	h.expect(0, "unchanged\n", "", "add", "smc", "cgroup", "system.slice/redis.service", "role", "listen", "name", "redis")
	h.in = strings.Join(all, "\n")
	h.expect(0, "unchanged\n", "", "apply", "-")
	h.expect(0, "added smc cgroup system.slice/nginx.service\n", "", "add", "--force", "smc", "cgroup", "system.slice/nginx.service")
}

// TestAddWrong has command lines that are wrong: one line on standard error, status 2, and nothing changed. pkg/policy has more rules
// that cannot be.
func TestAddWrong(t *testing.T) {
	h := newHarness(t)
	for args, want := range map[string]string{
		"add":                      "a rule begins with smc, tcp or auto",
		"add udp":                  `word 1: "udp": a rule begins with smc, tcp or auto`,
		"add smc port":             "word 2: the value of port is missing",
		"add smc user nobody-here": `word 3: user "nobody-here": there is no such user in /etc/passwd`,
		"del":                      "accepts 1 arg(s), received 0",
		"flush all":                "unknown command",
		"apply":                    "accepts 1 arg(s), received 0",
		"explain hostb":            `"hostb" is no HOST:PORT, nor :PORT for a listener`,
		"explain hostb:0":          `"hostb:0": the port is a number from 1 to 65535`,
		"explain hostb:http":       `"hostb:http": the port is a number from 1 to 65535`,
		"explain --user x hostb:1": `--user "x": there is no such user in /etc/passwd`,
		"on now":                   "unknown command",
		"add --at x smc":           "invalid argument",
		"auto forget":              `"forget" is not one of show, flush`,
		"auto --check":             "--check is for 'auto flush'",
		"frobnicate":               "unknown command",
	} {
		status := h.run(strings.Fields(args)...)
		lines := strings.Count(h.err.String(), "\n")
		if status != 2 || !strings.Contains(h.err.String(), want) || lines != 1 || h.out.Len() > 0 || h.kernel.sets > 0 {
			t.Errorf("%s: status %d, %s%s", args, status, h.out.String(), h.err.String())
		}
	}
}

func TestDel(t *testing.T) {
	h := newHarness(t, "smc port 1 name one", "smc port 2", "tcp")
	h.expect(0, "would delete smc name one port 1\n", "", "del", "one", "--check")
	h.expect(0, "deleted smc name one port 1\n", "", "del", "one")
	h.expect(0, "deleted tcp\n", "", "delete", "2")
	for _, which := range []string{"one", "2", "0", "-1", "+1", "", "99999999999999999999"} {
		h.expect(1, "", fmt.Sprintf("smc_policy: there is no rule %q: 'smc_policy show' lists the rules\n", which), "del", "--", which)
	}
	h.expect(0, "unchanged\n", "", "del", "--ignore-missing", "one")
	h.rules("smc port 2")
	h.expect(0, "deleted smc port 2\n", "", "flush")
	h.expect(0, "unchanged\n", "", "flush")
	h.rules()
}

func TestApply(t *testing.T) {
	h := newHarness(t, "smc port 1", "smc port 2", "smc port 3")
	h.kernel.policy.Rules[1].Counters.Decisions = 7
	h.in = "smc port 3\n# a comment\nsmc port 2 # another one\ntcp\n"
	const diff = "-smc port 1\n-smc port 2\n smc port 3\n+smc port 2\n+tcp\n"
	h.expect(0, diff, "", "apply", "-", "--check", "--diff")
	h.rules("smc port 1", "smc port 2", "smc port 3")
	h.expect(0, "would delete smc port 1\nwould move smc port 2\nwould add tcp\n", "", "apply", "-", "--check")
	h.expect(0, "deleted smc port 1\nmoved smc port 2\nadded tcp\n", "", "apply", "-")
	h.rules("smc port 3", "smc port 2", "tcp")
	if r := h.kernel.policy.Rules[1]; r.ID != 2 || r.Counters.Decisions != 7 {
		t.Errorf("a rule that stays has changed: %+v", r)
	}
	h.expect(0, "unchanged\n", "", "apply", "-")
	h.run("export")
	h.in = h.out.String()
	h.expect(0, "unchanged\n", "", "apply", "-")
	file := filepath.Join(t.TempDir(), "policy.conf")
	if err := os.WriteFile(file, []byte("smc\nsmc port x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.expect(1, "", "smc_policy: "+file+`:2: word 3: port "x": ports are numbers from 1 to 65535, ranges of them, and lists: 6379,8000-8100`+"\n",
		"apply", file)
	h.in = "smc cgroup gone.slice\n"
	h.expect(1, "", "smc_policy: standard input: control group gone.slice does not exist: 'systemd-cgls' lists them; --force adds a rule for "+
		"one that does not exist yet\n", "apply", "-")
	h.in = "smc port 6379\n" + strings.Repeat("# comment\n", maxFile/10) + "tcp port 1\n"
	h.expect(1, "", "smc_policy: standard input is larger than 8 MiB: it is no file of rules\n", "apply", "-")
	h.expect(1, "", "smc_policy: cannot read the policy file: open "+file+"x: no such file or directory\n", "apply", file+"x")
	h.rules("smc port 3", "smc port 2", "tcp")
}

// TestApplyOrder has a file with the same rules in another order.
func TestApplyOrder(t *testing.T) {
	h := newHarness(t, "smc port 1", "smc port 2", "smc port 3", "smc port 4", "smc port 5", "smc port 6", "tcp")
	h.in = "tcp\nsmc port 1\nsmc port 2\nsmc port 3\nsmc port 4\nsmc port 5\nsmc port 6\n"
	h.expect(0, "would move tcp\n", "", "apply", "-", "--check")
	h.expect(0, "+tcp\n smc port 1\n smc port 2\n smc port 3\n smc port 4\n smc port 5\n smc port 6\n-tcp\n", "", "apply", "-", "--check", "--diff")
	h.expect(0, "moved tcp\n", "", "apply", "-")
	h.rules("tcp", "smc port 1", "smc port 2", "smc port 3", "smc port 4", "smc port 5", "smc port 6")
	h.expect(0, "...\n smc port 4\n smc port 5\n smc port 6\n+smc port 7\n", "", "add", "smc", "port", "7", "--diff")
}

func TestShow(t *testing.T) {
	h := newHarness(t)
	h.expect(0, "There are no rules.\n", "")
	h = newHarness(t, "smc port 6379 user www-data", "tcp")
	h.kernel.policy.Rules[0].Counters = policy.Counters{Decisions: 12, SMC: 10, TCP: 2, Bytes: 123456}
	const table = "No  Use  Conditions               Decisions  SMC  TCP  Bytes\n" +
		"1   smc  user www-data port 6379  12         10   2    123456\n" +
		"2   tcp  (everything)             0          0    0    0\n"
	h.expect(0, table, "")
	h.expect(0, "smc user www-data port 6379\ntcp\n", "", "export")
	h.expect(0, "", "", "off")
	h.expect(0, "The policy is off: all new connections are TCP.\n"+table, "", "show")
	h.expect(0, `{
  "schema": 1,
  "enabled": false,
  "rules": [
    {
      "number": 1,
      "rule": "smc user www-data port 6379",
      "verdict": "smc",
      "decisions": 12,
      "connections_smc": 10,
      "connections_tcp": 2,
      "bytes": 123456
    },
    {
      "number": 2,
      "rule": "tcp",
      "verdict": "tcp",
      "decisions": 0,
      "connections_smc": 0,
      "connections_tcp": 0,
      "bytes": 0
    }
  ]
}
`, "", "show", "--json=1")
}

func TestSwitch(t *testing.T) {
	h := newHarness(t, "smc")
	h.expect(0, "unchanged\n", "", "on", "--check")
	h.expect(0, "would have all new connections use TCP\n", "", "off", "--check")
	h.expect(0, "{\n  \"schema\": 1,\n  \"changed\": true,\n  \"check\": true,\n  \"enabled\": false\n}\n", "", "off", "--json=1", "--check")
	if !h.kernel.policy.Enabled || h.kernel.sets != 0 {
		t.Errorf("--check has changed something: %+v", h.kernel)
	}
	h.expect(0, "{\n  \"schema\": 1,\n  \"changed\": true,\n  \"check\": false,\n  \"enabled\": false\n}\n", "", "off", "--json=1")
	h.expect(0, "{\n  \"schema\": 1,\n  \"changed\": false,\n  \"check\": false,\n  \"enabled\": false\n}\n", "", "off", "--json=1")
	h.expect(0, "would use the rules again\n", "", "on", "--check")
	h.expect(0, "unchanged\n", "", "off")
	h.kernel.busy = tries - 1
	h.expect(0, "", "", "on")
	if !h.kernel.policy.Enabled || h.kernel.sets != 2 {
		t.Errorf("%+v", h.kernel)
	}
	h.rules("smc")
}

func TestExplain(t *testing.T) {
	h := newHarness(t, "tcp to fd00::/8", "smc port 6379 user www-data", "smc cgroup system.slice/redis.service role listen")
	h.expect(0, "socket of user www-data group www-data cgroup user.slice\n"+
		"10.1.0.2:6379: TCP socket: smc; SMC socket: smc (rule 2: smc user www-data port 6379)\n"+
		"[fd00::2]:6379: TCP socket: tcp; SMC socket: tcp (rule 1: tcp to fd00::/8)\n", "", "explain", "hostb:6379")
	h.expect(0, "socket of user root group root cgroup user.slice\n10.1.0.2:6379: TCP socket: tcp; SMC socket: smc (no rule matches)\n", "", "explain", "--user", "root", "10.1.0.2:6379")
	h.expect(0, "socket of user www-data group www-data cgroup system.slice/redis.service/x\n:80: TCP socket: smc; SMC socket: smc (rule 3: smc role listen cgroup system.slice/redis.service)\n", "",
		"explain", "--cgroup", "system.slice/redis.service/x", ":80")
	h.expect(0, `{
  "schema": 1,
  "enabled": true,
  "user": 33,
  "group": 33,
  "cgroup": "/user.slice",
  "answers": [
    {
      "target": ":80",
      "tcp_socket": "tcp",
      "smc_socket": "smc",
      "number": 0
    }
  ]
}
`, "", "explain", "--json=1", ":80")
	h.expect(0, "socket of user root group www-data cgroup user.slice\n10.1.0.2:6379: TCP socket: tcp; SMC socket: smc (no rule matches)\n", "",
		"explain", "--user", "root", "--group", "www-data", "10.1.0.2:6379")
	h.expect(0, "socket of user 5 group root cgroup user.slice\n:80: TCP socket: tcp; SMC socket: smc (no rule matches)\n", "",
		"explain", "--user", "5", "--group", "root", ":80")
	h.expect(2, "", "smc_policy: --user \"5\": /etc/passwd does not have the group of this user: give it by --group; see 'smc_policy explain --help'\n", "explain", "--user", "5", ":80")
	h = newHarness(t, "tcp from 10.9.0.0/16,fd00::/8", "smc port 80", "smc from 10.0.0.0/8")
	h.expect(0, "socket of user www-data group www-data cgroup user.slice\n"+
		":80 from 10.9.0.0/16,fd00::/8: TCP socket: tcp; SMC socket: tcp (rule 1: tcp from 10.9.0.0/16,fd00::/8)\n"+
		":80: TCP socket: smc; SMC socket: smc (rule 2: smc port 80)\n", "", "explain", ":80")
	h.expect(0, "socket of user www-data group www-data cgroup user.slice\n"+
		":81 from 10.9.0.0/16,fd00::/8: TCP socket: tcp; SMC socket: tcp (rule 1: tcp from 10.9.0.0/16,fd00::/8)\n"+
		":81 from 10.0.0.0/8: TCP socket: smc; SMC socket: smc (rule 3: smc from 10.0.0.0/8)\n"+
		":81: TCP socket: tcp; SMC socket: smc (no rule matches)\n", "", "explain", ":81")
	h.expect(1, "", "smc_policy: lookup hostc: no such host\n", "explain", "hostc:80")
	h.kernel.policy.Enabled = false
	h.expect(0, "socket of user www-data group www-data cgroup user.slice\n10.1.0.2:6379: TCP socket: tcp; SMC socket: tcp (the policy is off)\n", "", "explain", "10.1.0.2:6379")
}

// TestAuto has services that have learned.
func TestAuto(t *testing.T) {
	h := newHarness(t, "auto port 80", "auto to 10.0.0.0/8")
	h.expect(0, "No service has learned anything.\n", "", "auto")
	h.expect(0, "{\n  \"schema\": 1,\n  \"services\": []\n}\n", "", "auto", "--json=1")
	h.expect(0, "unchanged\n", "", "auto", "flush")
	h.kernel.services = []policy.Service{
		{Role: policy.Listen, Port: 80, Verdict: policy.TCP, Unpaid: 12, Open: 1, Left: 10 * time.Minute},
		{Role: policy.Connect, Peer: netip.MustParseAddr("10.1.0.2"), Port: 6379, Verdict: policy.SMC, Paid: 3},
	}
	h.expect(0, "Service        Use  Paid  Unpaid  Open  Left\n"+
		":80            tcp  0     12      1     600\n"+
		"10.1.0.2:6379  smc  3     0       0     0\n", "", "auto")
	h.expect(0, `{
  "schema": 1,
  "services": [
    {
      "service": ":80",
      "role": "listen",
      "use": "tcp",
      "paid": 0,
      "unpaid": 12,
      "open": 1,
      "seconds_left": 600
    },
    {
      "service": "10.1.0.2:6379",
      "role": "connect",
      "use": "smc",
      "paid": 3,
      "unpaid": 0,
      "open": 0,
      "seconds_left": 0
    }
  ]
}
`, "", "auto", "--json=1")
	const who = "socket of user www-data group www-data cgroup user.slice\n"
	h.expect(0, who+":80: TCP socket: tcp; SMC socket: tcp (rule 1: auto port 80)\n", "", "explain", ":80")
	h.expect(0, who+"10.1.0.2:6379: TCP socket: smc; SMC socket: smc (rule 2: auto to 10.0.0.0/8)\n", "", "explain", "10.1.0.2:6379")
	h.expect(0, who+"10.1.0.3:80: TCP socket: smc; SMC socket: smc (rule 1: auto port 80)\n", "", "explain", "10.1.0.3:80")
	h.expect(0, "would forget :80\nwould forget 10.1.0.2:6379\n", "", "auto", "flush", "--check")
	h.expect(0, "{\n  \"schema\": 1,\n  \"changed\": true,\n  \"check\": false,\n  \"forgotten\": [\n    \":80\",\n    \"10.1.0.2:6379\"\n  ]\n}\n", "",
		"auto", "flush", "--json=1")
	h.expect(0, "unchanged\n", "", "auto", "flush")
}

// TestBusy has other programs change the policy meanwhile: the change is made to what they have left, or fails.
func TestBusy(t *testing.T) {
	h := newHarness(t, "smc port 1")
	h.kernel.busy = tries - 1
	h.expect(0, "added smc port 2\n", "", "add", "smc", "port", "2")
	h.rules("smc port 1", "smc port 2")
	h.kernel.busy = tries
	h.expect(1, "", "smc_policy: change the policy: the policy has been changed meanwhile: try again\n", "add", "smc", "port", "3")
	h.rules("smc port 1", "smc port 2")
	// The number is that of the rule that it was at first.
	other, err := policy.Parse([]string{"tcp"}, fakeNames{})
	if err != nil {
		t.Fatal(err)
	}
	h.kernel.busy, h.kernel.insert = 1, &other
	h.expect(0, "deleted smc port 2\n", "", "del", "2")
	h.rules("tcp", "smc port 1")
}

func TestNoModule(t *testing.T) {
	h := newHarness(t)
	h.sys.dial = func(context.Context) (kernel, error) {
		return nil, &smcerr.Error{Op: "look up the netlink family smckit", Kind: smcerr.ErrNoModule, Remedy: "install smckit's module"}
	}
	for _, args := range []string{"", "show", "add smc", "flush", "on", "export", "explain 10.0.0.1:1", "peers", "peers flush"} {
		if status := h.run(strings.Fields(args)...); status != 1 || !strings.Contains(h.err.String(), "not available: install smckit's module") {
			t.Errorf("%s: status %d, %s", args, status, h.err.String())
		}
	}
}

func TestComplete(t *testing.T) {
	h := newHarness(t, "smc name one port 1", "tcp")
	// Servers, one of them with a client, a client of another host's server, and a connection that has ended.
	h.sys.sockets = func() (all []*netlink.Socket) {
		for _, s := range []struct {
			state       uint8
			local, peer uint16
		}{
			{netlink.TCP_LISTEN, 80, 0},
			{netlink.TCP_ESTABLISHED, 80, 49153},
			{netlink.TCP_TIME_WAIT, 49154, 6379},
			{netlink.TCP_LISTEN, 8080, 0},
			{netlink.TCP_ESTABLISHED, 49155, 5432},
		} {
			all = append(all, &netlink.Socket{State: s.state, ID: netlink.SocketID{SourcePort: s.local, DestinationPort: s.peer}})
		}
		return all
	}
	for args, want := range map[string][]string{
		"add ":                         {"smc", "tcp", "auto"},
		"add smc port 1 ":              {"name", "role", "user", "group", "cgroup", "local", "remote", "to", "from", "peer"},
		"add smc role ":                {"connect", "listen"},
		"add smc cgroup ":              {"system.slice"},
		"add smc cgroup system.slice/": {"system.slice/redis.service"},
		"add smc port ":                {"80", "5432", "8080"},
		"add smc local 22,":            {"22,80", "22,8080"},
		"add smc remote ":              {"5432"},
		"explain ":                     {":80", ":8080"},
		"del ":                         {"one", "2"},
		"peers ":                       {"show", "flush"},
	} {
		words := append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Split(args, " ")...)
		h.run(words...)
		lines := strings.Split(strings.TrimSpace(h.out.String()), "\n")
		if diff := cmp.Diff(want, lines[:len(lines)-1]); diff != "" {
			t.Errorf("%s: %s", args, diff)
		}
	}
}
