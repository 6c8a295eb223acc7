// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package conf checks smc_conf on real kernels: it applies files, and saves the configuration to files.
package conf

import (
	"regexp"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// state shows all that smc_conf keeps.
const state = "smc_pnet; smcr ueid; smcr handshake-limit; grep . /proc/sys/net/smc/*"

// guest is a guest with our files.
type guest struct {
	*lab.Test
	t *testing.T
}

func (g *guest) write(path, text string) {
	g.t.Helper()
	if err := g.Host("a").WriteFile(g.t.Context(), path, []byte(text), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// expect runs a script, and compares its exit status and its output. Each line on stderr must match a pattern.
func (g *guest) expect(script string, code int, stdout, stderr string) {
	g.t.Helper()
	r := g.Run("a", "/bin/sh", "-c", script)
	if r.Code != code || r.Stdout != stdout || !regexp.MustCompile(`^(`+stderr+`\n)*$`).MatchString(r.Stderr) || stderr != "" && r.Stderr == "" {
		g.t.Errorf("%s: status %d\n%s%s\nwant %d\n%s%s", script, r.Code, r.Stdout, r.Stderr, code, stdout, stderr)
	}
}

// same runs f and checks that it changes nothing in the kernel.
func (g *guest) same(f func()) {
	g.t.Helper()
	before := g.Must("a", state)
	f()
	if after := g.Must("a", state); after != before {
		g.t.Errorf("something was changed: before\n%safter\n%s", before, after)
	}
}

// The configuration, its changes in a kernel without any, and those when the RDMA device appears.
const (
	pnetConf = "# fabric A\nadd LAB0 eth eth0\nadd LAB0 ib rxe0\n"
	eidConf  = "SMCKIT.LAB\n"
	smcConf  = "rmem = 131072\nloopback = namespace\nhandshake_limit = on\n"

	changes = `smc: set rmem to 131072 (from 65536)
smc: set loopback to namespace (from on)
smc: set handshake_limit to on (from off)
eid: added SMCKIT.LAB
pnet: added LAB0 eth eth0
`
	later   = "pnet: added LAB0 ib rxe0 1\n"
	waiting = `smc_conf: warning: /etc/smc/pnet.conf: LAB0 ib rxe0 1 is left out until the next apply: rxe0: no such RDMA or ISM device`
	reset   = "smc_pnet flush >/dev/null; smcr ueid flush; smcr handshake-limit disable; sysctl -qw net.smc.rmem=65536 net.smc.loopback=2\n"
)

func TestConf(t *testing.T) {
	lab.EachKernel(t, func(t *testing.T, kernel string, _ lab.Length) {
		g := start(t, kernel, lab.ModuleOurs)
		steps := []struct {
			name string
			run  func(g *guest)
		}{
			{"apply", apply},
			{"hotplug", hotplug},
			{"bad file", badFile},
			{"save", save},
			{"crossing", concurrent},
			{"namespaces", namespaces},
			{"nobody", nobody},
		}
		for _, s := range steps {
			t.Run(s.name, func(t *testing.T) { s.run(&guest{g.Test, t}) })
		}
	})
}

func start(t *testing.T, kernel string, module lab.Module) *guest {
	t.Helper()
	dir, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lt := lab.Start(t, lab.Options{Kernel: kernel, Programs: []string{dir}})
	if err := lt.LoadSMC(t.Context(), module); err != nil {
		t.Fatal(err)
	}
	g := &guest{lt, t}
	lt.Must("a", "mkdir -p /etc/smc")
	g.write("/etc/smc/pnet.conf", pnetConf)
	g.write("/etc/smc/eid.conf", eidConf)
	g.write("/etc/smc/smc.conf", smcConf)
	return g
}

// apply does so twice, after it was predicted.
func apply(g *guest) {
	g.same(func() {
		predicted := strings.NewReplacer("added", "would add", "set", "would set").Replace(changes)
		g.expect("smc_conf apply --check", 0, predicted, waiting)
	})
	g.expect("smc_conf apply", 0, changes, waiting)
	g.expect("smc_conf apply", 0, "", waiting)
	if got := g.Must("a", "smc_pnet; smcr ueid; smcr handshake-limit; sysctl -n net.smc.rmem net.smc.loopback"); !regexp.MustCompile(
		`^LAB0 eth0 n/a 255\nSMCKIT\.LAB +\nHandshake limit: enabled\n131072\n1\n$`).MatchString(got) {
		g.t.Errorf("the kernel has %s", got)
	}
}

// hotplug adds, removes and adds the RDMA device again.
func hotplug(g *guest) {
	const add = "modprobe rdma_rxe && ip link set eth0 up && rdma link add rxe0 type rxe netdev eth0"
	g.Must("a", add)
	g.expect("smc_conf apply", 0, later, "")
	g.expect("smc_conf apply", 0, "", "")
	g.expect("smcr device | grep -c LAB0", 0, "1\n", "")
	g.Must("a", "rdma link del rxe0")
	g.expect("smc_conf apply", 0, "", "")
	g.Must("a", add)
	g.expect("smc_conf apply; smcr device | grep -c LAB0", 0, "1\n", "")
}

// badFile has a mistake in one file and changes in the others.
func badFile(g *guest) {
	g.Must("a", "cp -r /etc/smc /run/bad && rm /run/bad/pnet.conf")
	for _, bad := range []struct{ name, text, message string }{
		{"eid.conf", "OTHER\nsmall\n", `smc_conf: /run/bad/eid\.conf:2: invalid user EID "small": .*`},
		{"smc.conf", "\nrmem = 1\n", `smc_conf: /run/bad/smc\.conf:2: rmem = "1": .*`},
		{"pnet.conf", "add NET1 eth lo\nadd NET1\n", `smc_conf: /run/bad/pnet\.conf:2:9: .*`},
	} {
		g.write("/run/bad/"+bad.name, bad.text)
		g.same(func() {
			for _, command := range []string{"apply", "apply --check", "check", "save"} {
				g.expect("smc_conf "+command+" /run/bad", 1, "", bad.message)
			}
		})
		g.Must("a", "rm /run/bad/"+bad.name)
	}
}

// save writes the configuration, and apply restores it.
func save(g *guest) {
	g.expect("smc_conf save", 0, "", "")
	g.Must("a", "smc_pnet add NET9 eth lo; smcr ueid add OTHER; sysctl -qw net.smc.wmem=131072")
	g.expect("smc_conf save --check", 0, "would write /etc/smc/pnet.conf\nwould write /etc/smc/eid.conf\nwould write /etc/smc/smc.conf\n", "")
	g.expect("smc_conf save /run/saved", 0, "wrote /run/saved/pnet.conf\nwrote /run/saved/eid.conf\nwrote /run/saved/smc.conf\n", "")
	g.same(func() {
		g.Must("a", reset+"sysctl -qw net.smc.wmem=65536")
		g.Must("a", "smc_conf apply /run/saved")
	})
	// apply restores the content of the files.
	g.expect("smc_conf apply", 0, "eid: deleted OTHER\npnet: deleted NET9 eth lo\n", "")
	g.Must("a", "sysctl -qw net.smc.wmem=65536")
}

// concurrent starts several commands at once: one makes all changes, and none fails.
func concurrent(g *guest) {
	want := len(strings.Split(changes+later, "\n")) - 1
	for range 5 {
		got := g.Must("a", reset+`pids=
for i in 1 2 3 4; do smc_conf apply >/run/crossing.$i & pids="$pids $!"; done
for p in $pids; do wait $p || exit; done
cat /run/crossing.*`)
		if n := strings.Count(got, "\n"); n != want {
			g.t.Errorf("%d changes, not %d:\n%s", n, want, got)
		}
	}
}

// namespaces has settings of a network namespace, and an entry that the kernel refuses there after it has taken the rest.
func namespaces(g *guest) {
	g.Must("a", "ip netns add blue && mkdir -p /run/blue")
	g.write("/run/blue/smc.conf", "loopback = off\n")
	g.same(func() { g.expect("smc_conf -N blue apply /run/blue", 0, "smc: set loopback to off (from on)\n", "") })
	g.expect("ip netns exec blue cat /proc/sys/net/smc/loopback", 0, "0\n", "")
	g.write("/run/blue/smc.conf", "loopback = on\n")
	g.write("/run/blue/eid.conf", "SMCKIT.LAB\nOTHER\n")
	g.write("/run/blue/pnet.conf", "add NET1 eth lo\nadd NET1 ib rxe0\n")
	g.Must("a", "rdma system show | grep -q 'netns shared'")
	g.same(func() {
		g.expect("smc_conf -N blue apply /run/blue", 1, "", `smc_conf: adding NET1 ib rxe0 1: .*; the changes before it were undone`)
	})
	g.expect("ip netns exec blue cat /proc/sys/net/smc/loopback; smc_pnet -N blue", 0, "0\n", "")
}

// nobody may read the configuration, but not change it.
func nobody(g *guest) {
	const as = "setpriv --reuid 65534 --regid 65534 --clear-groups $(which smc_conf) "
	g.expect("rm -f /run/smc_conf.lock; "+as+"apply", 1, "", "smc_conf: .*: run as root")
	g.expect(as+"apply --check", 0, "", "")
	g.expect(as+"check", 0, "", "")
	g.write("/etc/smc/eid.conf", "OTHER\n")
	g.expect(as+"apply --check", 0, "eid: would add OTHER\neid: would delete SMCKIT.LAB\n", "")
	g.write("/etc/smc/eid.conf", eidConf)
}

// TestStock applies the files to the stock module, which lacks some settings: the command must name them, and apply the rest.
func TestStock(t *testing.T) {
	lab.Need(t)
	g := start(t, "6.12", lab.ModuleStock)
	g.write("/etc/smc/pnet.conf", "add LAB0 eth eth0\n")
	const missing = `smc_conf: warning: /etc/smc/smc.conf: loopback = namespace is left out: the SMC module of this kernel has no such setting`
	g.expect("smc_conf apply", 0, strings.Replace(changes, "smc: set loopback to namespace (from on)\n", "", 1), missing)
	g.expect("smc_conf apply", 0, "", missing)
	// Lines that are left out stay in the file.
	g.expect("smc_conf save; cat /etc/smc/smc.conf", 0, smcConf, "")
}
