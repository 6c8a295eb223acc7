// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package supervise runs programs that make system calls without a C library under the supervisor, which gives them AF_SMC
// sockets.
package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// Paths of the programs in the guest.
const place = "/run/supervise/"

// TestSupervisor connects all its programs to a Go server in one guest, first with our module, then without AF_SMC.
func TestSupervisor(t *testing.T) {
	lab.Need(t)
	all := lab.TestSeries()
	kernel := all[len(all)-1]
	if err := lab.CheckModule(t.Context(), kernel, lab.ModuleOurs, nil); err != nil {
		t.Fatal(err)
	}
	programs := build(t)
	dir, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g := guest{lab.Start(t, lab.Options{Kernel: kernel, CPUs: 2, Programs: []string{dir}})}
	g.Must("a", "mkdir "+place)
	for name, program := range programs {
		if err := g.Host("a").WriteFile(t.Context(), place+name, program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.LoadSMC(t.Context(), lab.ModuleOurs); err != nil {
		t.Fatal(err)
	}
	g.Must("a", "ip link set lo up; ulimit -n 4096")
	g.serve(t, "", "7000")
	for _, s := range sessions {
		t.Run(s.name, func(t *testing.T) { g.runSession(t, s) })
	}
	t.Run("a server within the rules and one outside", g.servers)
	t.Run("in a network namespace of its own", g.namespace)
	t.Run("where Yama restricts ptrace", g.yama)
	t.Run("a socket of each user", g.owners)
	g.end(t)
	t.Run("without AF_SMC", g.without)
}

// build compiles the programs, for the guest.
func build(t *testing.T) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	static := []string{"-static", "-O2", "-Wall", "-Wextra", "-Werror"}
	bare := append([]string{"-m32", "-nostdlib", "-ffreestanding", "-fno-pie", "-no-pie", "-fno-stack-protector"}, static...)
	commands := map[string][]string{
		"under": {"go", "build", "-o", dir + "/under", "./under"},
		"talk":  {"go", "build", "-o", dir + "/talk", "./talk"},
		"ask":   append([]string{"cc", "-pthread", "-o", dir + "/ask", "src/ask.c"}, static...),
		"ask32": append([]string{"cc", "-o", dir + "/ask32", "src/ask32.c"}, bare...),
	}
	programs := map[string][]byte{}
	for name, argv := range commands {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		programs[name] = data
	}
	return programs
}

// session is an act of a client, and the outcomes of its connections to the server, which is under a supervisor too.
type session struct {
	name string
	// script runs in the directory of the programs.
	script string
	// smc is how many connections are SMC-D. fell is how many AF_SMC sockets fall back because of the rules.
	smc, fell int
	// says is in the output; if it is empty, there is no output.
	says string
}

const nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups "

var sessions = []session{
	{name: "a static program", script: "./under -require ./ask 7000 1 1", smc: 1},
	{name: "a Go program", script: "./under -require ./talk ask 127.0.0.1:7000 3 3", smc: 3},
	{name: "a Go program by IPv6", script: "./under -require ./talk ask [::1]:7000 2 1", smc: 2},
	{name: "a program for i386", script: "./under -require ./ask32 7000 d", smc: 1},
	{name: "a program for i386 by socketcall", script: "./under -require ./ask32 7000 s", smc: 1},
	{name: "busy: 200 sockets of 8 threads", script: "./under -require ./ask 7000 200 8", smc: 200},
	{name: "a busy Go program", script: "./under -require ./talk ask 127.0.0.1:7000 64 16", smc: 64},
	{
		name:   "children",
		script: `./under -require sh -euc './ask 7000 1 1 & ./talk ask 127.0.0.1:7000 1 1; wait $!; sh -c "./ask32 7000 s"'`,
		smc:    3,
	},
	{name: "exec", script: "./under -require sh -c 'exec env ./ask 7000 1 1'", smc: 1},
	{name: "without privileges", script: nobody + "./under -require ./ask 7000 4 2", smc: 4},
	{name: "privileges given up later", script: "./under -require " + nobody + "./talk ask 127.0.0.1:7000 2 2", smc: 2},
	{name: "the log", script: "./under -verbose ./ask 7000 1 1 2>&1", smc: 1, says: "]: a socket is AF_SMC\n"},
	{name: "inside of the rules", script: "./under -ports 6999,7000 ./ask 7000 2 1", smc: 2},
	{name: "outside of the rules", script: "./under -ports 6999 ./ask 7000 2 1", fell: 2},
	{
		name:   "outside of the rules, a Go program",
		script: "./under -ports 6999 -verbose ./talk ask 127.0.0.1:7000 1 1 2>&1",
		fell:   1,
		says:   ": 127.0.0.1:7000 is outside of the rules: TCP\n",
	},
	{name: "outside of the rules, for i386", script: "./under -ports 6999 ./ask32 7000 d", fell: 1},
	{name: "outside of the rules, for i386 by socketcall", script: "./under -ports 6999 ./ask32 7000 s", fell: 1},
	{name: "rules without privileges", script: nobody + "./under -ports 6999 sh -c './ask 7000 1 1'", fell: 1},
	{name: "rules, and children without privileges", script: "./under -ports 6999 " + nobody + "./ask 7000 1 1", fell: 1},
}

// guest is a booted kernel with our module.
type guest struct{ *lab.Test }

// serve starts the server, under a supervisor with some options, and waits until it listens.
func (g guest) serve(t *testing.T, options, port string) {
	t.Helper()
	g.Must("a", "cd "+place+"; ulimit -n 4096; ./under "+options+" ./talk serve :"+port+" >/run/serve."+port+" 2>&1 &")
	g.await(t, "cat /run/serve."+port+"; ss -Hltn 'sport = :"+port+"' | grep -q .")
}

// await waits until a script succeeds.
func (g guest) await(t *testing.T, script string) {
	t.Helper()
	if err := g.Host("a").WaitFor(t.Context(), script); err != nil {
		t.Fatal(err)
	}
}

// runSession makes a client act, and compares the kernel's counters.
func (g guest) runSession(t *testing.T, s session) {
	before := g.Counters("a")
	out := g.Must("a", "cd "+place+"; "+s.script)
	if s.says == "" && out != "" || !strings.Contains(out, s.says) {
		t.Errorf("it says %q", out)
	}
	now := g.Counters("a")
	client := now.Connections.ClientV2 - before.Connections.ClientV2
	server := now.Connections.ServerV2 - before.Connections.ServerV2
	fell := now.Fallback.Client.Total - before.Fallback.Client.Total
	rules := now.Fallback.Client.Of("OPTUNSUPP") - before.Fallback.Client.Of("OPTUNSUPP")
	if client != s.smc || server != s.smc || fell != s.fell || rules != s.fell {
		t.Errorf("client: %d by SMC-D, server: %d, %d expected; %d sockets fell back, %d because of rules, %d expected",
			client, server, s.smc, fell, rules, s.fell)
	}
}

// servers runs a server that listens within the rules, and one that does not.
func (g guest) servers(t *testing.T) {
	g.serve(t, "-ports 7001", "7001")
	g.serve(t, "-ports 7001", "7002")
	g.runSession(t, session{script: "./under ./ask 7001 1 1", smc: 1})
	before := g.Counters("a")
	g.runSession(t, session{script: "./ask 7002 1 1"})
	g.Must("a", "cd "+place+"; ./under ./ask 7002 1 1")
	if now := g.Counters("a"); now.Fallback.Client.Of("PEER_NO_SMC") != before.Fallback.Client.Of("PEER_NO_SMC")+1 {
		t.Errorf("a server outside of the rules is SMC: %+v", now)
	}
}

// namespace has a client and a server in a network namespace that they enter under the supervisor.
func (g guest) namespace(t *testing.T) {
	const inside = "ip netns exec other "
	g.Must("a", "ip netns add other; "+inside+"ip link set lo up")
	g.Must("a", "cd "+place+"; ./under -require "+inside+"./talk serve :7003 >/run/serve.7003 2>&1 &")
	g.await(t, inside+"ss -Hltn 'sport = :7003' | grep -q .; smcss -N other -l | grep -q :7003")
	const count = "smcd -N other -a stats --json"
	g.Must("a", "cd "+place+"; ./under -require "+inside+"./ask 7003 3 3")
	if out := g.Must("a", count); !strings.Contains(strings.Join(strings.Fields(out), ""), `"client_v2":3`) {
		t.Errorf("no three connections in the namespace:\n%s", out)
	}
}

// yama restricts which process may read another one's memory. Rules then work for the program that was started, and not for
// its children, which get TCP sockets.
func (g guest) yama(t *testing.T) {
	if r := g.Run("a", "sysctl", "-qw", "kernel.yama.ptrace_scope=1"); r.Code != 0 {
		t.Skip("this kernel has no Yama: " + r.Stderr)
	}
	defer g.Must("a", "sysctl -qw kernel.yama.ptrace_scope=0")
	g.runSession(t, session{script: nobody + "./under -ports 7000 ./ask 7000 1 1", smc: 1})
	g.runSession(t, session{script: nobody + "./under -ports 6999 ./ask 7000 1 1", fell: 1})
	// The supervisor has no access to their standard error either, so it uses that of the first program.
	const child = `sh -c './under -ports 7000 sh -c "./ask 7000 1 1; :" 2>/tmp/yama; cat /tmp/yama'`
	g.runSession(t, session{script: nobody + child, says: "kernel.yama.ptrace_scope"})
	g.runSession(t, session{script: nobody + "./under -require ./ask 7000 2 2", smc: 2})
	g.runSession(t, session{script: "./under -ports 7000 sh -c '" + nobody + "./ask 7000 1 1; :'", smc: 1})
}

// owners checks the owners of sockets that one supervisor makes.
func (g guest) owners(t *testing.T) {
	const servers = "./talk serve :7004 & exec " + nobody + "./talk serve :7005"
	g.Must("a", "cd "+place+"; ./under -require sh -c '"+servers+"' >/run/serve.7004 2>&1 &")
	for port, uid := range map[string]string{"7004": "00000", "7005": "65534"} {
		g.await(t, fmt.Sprintf("smcss -l; smcss -l | grep -q '^LISTEN *%s .*:%s '", uid, port))
	}
}

// end stops the servers, and checks that no supervisor, no socket and no reference to the module is left.
func (g guest) end(t *testing.T) {
	t.Helper()
	g.Must("a", "pkill -x talk")
	g.await(t, `smcss -a; ! pgrep -a smc_supervisor; test "$(smcss -a | wc -l)" = 1`)
	g.await(t, "rmmod smc_diag 2>&1 || test ! -e /sys/module/smc_diag; rmmod smc")
}

// without runs the programs on a kernel that cannot load the module.
func (g guest) without(t *testing.T) {
	g.Must("a", "mkdir -p /run/modprobe.d; echo 'install smc /bin/false' >/run/modprobe.d/none.conf")
	g.Must("a", "cd "+place+"; ./talk serve :7000 >/run/serve.7000 2>&1 &")
	g.await(t, "ss -Hltn 'sport = :7000' | grep -q .")
	for _, client := range []string{
		"./ask 7000 4 2", "./talk ask 127.0.0.1:7000 4 2", "./ask32 7000 s", "sh -c './ask 7000 1 1; ./ask 7000 1 1'",
	} {
		out := g.Must("a", "cd "+place+"; ./under "+client+" 2>&1")
		if strings.Count(out, "\n") != 1 || !strings.Contains(out, "AF_SMC is not available") {
			t.Errorf("%s says %q", client, out)
		}
		r := g.Run("a", "sh", "-c", "cd "+place+"; ./under -require "+client)
		if r.Code == 0 || !strings.Contains(r.Stderr, "sockets are refused") {
			t.Errorf("%s, which requires AF_SMC: %+v", client, r)
		}
	}
	g.Must("a", "pkill -x talk")
}
