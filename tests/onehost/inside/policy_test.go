// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/pkg/smcerr"
	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

var service = netip.MustParseAddrPort("127.0.0.1:6379")

// needRules skips tests where connections of this host with itself are not SMC-D of our module.
func needRules(t *testing.T) {
	t.Helper()
	ours.Need(t)
	needD(t)
}

// setRules replaces the rules of this thread's namespace, and has them deleted at the end.
func setRules(t *testing.T, texts ...string) {
	t.Helper()
	if err := tryRules(texts...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tryRules(); err != nil {
			t.Error(err)
		}
	})
}

func tryRules(texts ...string) error {
	var rules []policy.Rule
	for _, text := range texts {
		r, err := policy.Parse(strings.Fields(text), policy.SystemNames{})
		if err != nil {
			return err
		}
		rules = append(rules, r)
	}
	return withPolicy(func(c *policy.Client, now policy.Policy) error {
		return c.SetRules(context.Background(), now.Generation, rules)
	})
}

// withPolicy calls f with the policy as it is.
func withPolicy(f func(*policy.Client, policy.Policy) error) error {
	c, err := policy.New()
	if err != nil {
		return err
	}
	defer c.Close()
	now, err := c.Get(context.Background())
	if err != nil {
		return err
	}
	return f(c, now)
}

func counters(t *testing.T) (all []policy.Counters) {
	t.Helper()
	err := withPolicy(func(_ *policy.Client, now policy.Policy) error {
		for _, r := range now.Rules {
			all = append(all, r.Counters)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// exchange has the two ends of a TCP socket's connection to addr exchange bytes, and returns what the connection was: "SMC", "TCP" by
// fallback, or "" if it is no SMC socket. protocol is that of both sockets.
func exchange(t *testing.T, addr netip.AddrPort, protocol int) (client, server string) {
	t.Helper()
	l, c, s := open(t, addr, protocol)
	defer unix.Close(l)
	defer unix.Close(c)
	defer unix.Close(s)
	for _, fds := range [][2]int{{c, s}, {s, c}} {
		if err := guest.WriteAll(fds[0], []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if got, err := guest.ReadFull(fds[1], 5); err != nil || string(got) != "hello" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	return kindOf(t, c), kindOf(t, s)
}

// open opens a listener and a connection to it, of ordinary sockets, or of those with a protocol.
func open(t *testing.T, addr netip.AddrPort, protocol int) (listener, client, server int) {
	t.Helper()
	_, sa := guest.Sockaddr(addr)
	family := unix.AF_INET
	if addr.Addr().Is6() {
		family = unix.AF_INET6
	}
	make := func() int {
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	listener, client = make(), make()
	err := errors.Join(listenOn(listener, sa), unix.Connect(client, sa))
	if err != nil {
		t.Fatalf("%s: %v", addr, err)
	}
	server, err = guest.Accept(listener)
	if err != nil {
		t.Fatal(err)
	}
	return listener, client, server
}

// kindOf looks a socket up among those of SMC, by its inode.
func kindOf(t *testing.T, fd int) string {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	return kindOfInode(t, st.Ino)
}

func kindOfInode(t *testing.T, inode uint64) string {
	t.Helper()
	d, err := netlinksmc.NewDiag()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for s, err := range d.Sockets(t.Context(), 0) {
		switch {
		case err != nil:
			t.Fatal(err)
		case s.Inode != inode:
		case s.Mode == netlinksmc.ModeTCP:
			return "TCP"
		default:
			return "SMC"
		}
	}
	return ""
}

// TestRulesConvert has rules by which ordinary sockets become SMC: of clients, of servers, of both, by ports, networks and users. What a
// rule does not match stays a TCP socket.
func TestRulesConvert(t *testing.T) {
	needRules(t)
	v6, mapped := netip.MustParseAddrPort("[::1]:6379"), netip.MustParseAddrPort("[::ffff:127.0.0.1]:6379")
	for _, tt := range []struct {
		rules          string
		addr           netip.AddrPort
		client, server string
	}{
		{"", service, "", ""},
		{"smc", service, "SMC", "SMC"},
		{"smc", v6, "SMC", "SMC"},
		{"smc port 6379", service, "SMC", "SMC"},
		{"smc port 1-6378,6380-65535", service, "", ""},
		{"smc role connect", service, "TCP", ""},
		{"smc role listen", service, "", "TCP"},
		{"smc local 6379", service, "", "TCP"},
		{"smc to 127.0.0.0/8 remote 6379; smc role listen", service, "SMC", "SMC"},
		{"smc to 127.0.0.0/8; smc role listen", v6, "", "TCP"},
		{"smc to ::1; smc role listen", v6, "SMC", "SMC"},
		{"smc user root", service, "SMC", "SMC"},
		{"smc user 65534", service, "", ""},
		{"smc group root", service, "SMC", "SMC"},
		{"tcp port 6379; smc", service, "", ""},
		{"tcp port 6380; smc", service, "SMC", "SMC"},
		{"tcp user root; smc", service, "", ""},
		{"tcp to 127.0.0.1; smc", service, "", "TCP"},
		{"tcp to ::/0; smc", service, "SMC", "SMC"},
		{"smc from 127.0.0.0/8; smc role connect", service, "SMC", "SMC"},
		{"smc from 10.0.0.0/8; smc role connect", service, "TCP", "TCP"},
		{"smc from ::1; smc role connect", v6, "SMC", "SMC"},
		{"smc from ::1; smc role connect", service, "TCP", "TCP"},
		{"smc peer 127.0.0.0/8", service, "SMC", "SMC"},
		{"tcp peer 127.0.0.0/8; smc", service, "", "TCP"},
		{"tcp from 127.0.0.0/8; smc", service, "TCP", "TCP"},
		{"tcp from 127.0.0.0/8; tcp role listen; smc", service, "TCP", ""},
		{"smc to 127.0.0.0/8; smc role listen", mapped, "SMC", "SMC"},
		{"smc to ::1; smc role listen", mapped, "", "TCP"},
		{"smc from 127.0.0.0/8; smc role connect", mapped, "SMC", "SMC"},
		{"tcp peer 127.0.0.0/8; smc", mapped, "", "TCP"},
	} {
		t.Run(tt.rules+" "+tt.addr.String(), func(t *testing.T) {
			if tt.rules != "" {
				setRules(t, strings.Split(tt.rules, ";")...)
			}
			if c, s := exchange(t, tt.addr, 0); c != tt.client || s != tt.server {
				t.Errorf("client %q, server %q; want %q, %q", c, s, tt.client, tt.server)
			}
		})
	}
}

// TestRulesOfSMCSockets has rules for sockets that were made for SMC: they say which are TCP.
func TestRulesOfSMCSockets(t *testing.T) {
	needRules(t)
	for rules, want := range map[string][2]string{
		"smc port 1": {"SMC", "SMC"}, "tcp port 6379": {"TCP", "TCP"}, "tcp role connect": {"TCP", "TCP"}, "tcp to 10.0.0.0/8": {"SMC", "SMC"},
	} {
		setRules(t, rules)
		before, _, err := fallbacks(netlinksmc.ReasonPolicy)
		if err != nil {
			t.Fatal(err)
		}
		if c, s := exchange(t, service, ipprotoSMC); c != want[0] || s != want[1] {
			t.Errorf("%s: client %q, server %q", rules, c, s)
		}
		now, _, err := fallbacks(netlinksmc.ReasonPolicy)
		if err != nil || (now > before) != (want[0] == "TCP") {
			t.Errorf("%s: %d fallbacks became %d, %v", rules, before, now, err)
		}
	}
}

const ipprotoSMC = 256

// TestRulesOff turns the policy off and on: all connections that begin meanwhile are TCP, and those that there are stay.
func TestRulesOff(t *testing.T) {
	needRules(t)
	setRules(t, "smc")
	l, c, s := open(t, service, 0)
	defer unix.Close(l)
	defer unix.Close(c)
	defer unix.Close(s)
	enable := func(on bool) {
		t.Helper()
		err := withPolicy(func(c *policy.Client, now policy.Policy) error {
			return c.Enable(context.Background(), now.Generation, on)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	enable(false)
	defer enable(true)
	other := netip.AddrPortFrom(service.Addr(), 6380)
	if c, s := exchange(t, other, 0); c != "" || s != "" {
		t.Errorf("an ordinary socket: %q, %q", c, s)
	}
	if c, s := exchange(t, other, ipprotoSMC); c != "TCP" || s != "TCP" {
		t.Errorf("an SMC socket: %q, %q", c, s)
	}
	if err := guest.WriteAll(c, []byte("still")); err != nil || kindOf(t, c) != "SMC" {
		t.Errorf("the connection of before: %q, %v", kindOf(t, c), err)
	}
	if got, err := guest.ReadFull(s, 5); err != nil || string(got) != "still" {
		t.Errorf("%q, %v", got, err)
	}
	enable(true)
	if c, s := exchange(t, other, 0); c != "SMC" || s != "SMC" {
		t.Errorf("on again: %q, %q", c, s)
	}
}

// TestRulesCount checks what rules count, and that a rule that stays keeps it.
func TestRulesCount(t *testing.T) {
	needRules(t)
	setRules(t, "tcp port 6380", "smc")
	for range 3 {
		exchange(t, service, 0)
	}
	exchange(t, netip.AddrPortFrom(service.Addr(), 6380), 0)
	// A listener and a client decide each. A connection counts at both ends if they are SMC, else at the client.
	want := []policy.Counters{{Decisions: 2, TCP: 1}, {Decisions: 6, SMC: 6, Bytes: 60}}
	guest.Await(t, 10*time.Second, func() string {
		got := counters(t)
		if len(got) == 2 && got[0] == want[0] && got[1] == want[1] {
			return ""
		}
		return fmt.Sprintf("%+v", got)
	})
	err := withPolicy(func(c *policy.Client, now policy.Policy) error {
		return c.SetRules(context.Background(), now.Generation, now.Rules[1:])
	})
	if got := counters(t); err != nil || len(got) != 1 || got[0] != want[1] {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRulesLeaveTLS has sockets that no rule matches at last: TLS of the kernel takes them over, on both ends.
func TestRulesLeaveTLS(t *testing.T) {
	needRules(t)
	guest.Run(t, "modprobe tls")
	for _, rules := range [][]string{{}, {"smc port 1"}, {"smc role connect"}, {"tcp port 6379", "smc"}} {
		setRules(t, rules...)
		l, c, s := open(t, service, 0)
		for _, fd := range []int{c, s} {
			if kindOf(t, fd) == "SMC" {
				t.Errorf("%q: SMC", rules)
			}
			if err := unix.SetsockoptString(fd, unix.SOL_TCP, unix.TCP_ULP, "tls"); err != nil {
				t.Errorf("%q: %v", rules, err)
			}
		}
		for _, fd := range []int{l, c, s} {
			unix.Close(fd)
		}
	}
}

// TestRulesAfterFailure has an attempt to connect that the application ends, and then one to an address of which a rule says TCP.
func TestRulesAfterFailure(t *testing.T) {
	needRules(t)
	guest.Run(t, "ip route add 192.0.2.0/24 dev lo")
	t.Cleanup(func() { guest.Run(t, "ip route del 192.0.2.0/24 dev lo") })
	setRules(t, "tcp to 127.0.0.0/8", "smc")
	l, err := guest.Listen(service, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	for _, protocol := range []int{0, ipprotoSMC} {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
		if err != nil {
			t.Fatal(err)
		}
		_, nowhere := guest.Sockaddr(netip.MustParseAddrPort("192.0.2.1:6379"))
		_, there := guest.Sockaddr(service)
		if err := unix.Connect(fd, nowhere); !errors.Is(err, unix.EINPROGRESS) {
			t.Fatal(err)
		}
		_ = unix.Shutdown(fd, unix.SHUT_RDWR)
		if err := errors.Join(unix.SetNonblock(fd, false), unix.Connect(fd, there)); err != nil {
			t.Errorf("protocol %d: %v", protocol, err)
		}
		if kind := kindOf(t, fd); kind != "TCP" {
			t.Errorf("protocol %d: %q", protocol, kind)
		}
		unix.Close(fd)
	}
}

// TestRulesOfCgroups has rules for control groups: the sockets of a program in the group, or below it, are converted, and those of others
// are not. The rule still holds when the group has been deleted and made again, as systemd does.
func TestRulesOfCgroups(t *testing.T) {
	needRules(t)
	top := t.TempDir()
	if err := unix.Mount("none", top, "cgroup2", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(top, 0)
	setRules(t, "smc cgroup a.slice/b.service port 6379", "smc role listen")
	for range 2 {
		for dir, want := range map[string]string{
			"a.slice/b.service": "SMC", "a.slice/b.service/deep": "SMC", "a.slice": "", "a.slice/b.service2": "",
		} {
			if err := os.MkdirAll(top+"/"+dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if got := kindIn(t, top+"/"+dir); got != want {
				t.Errorf("%s: %q, want %q", dir, got, want)
			}
		}
		for _, dir := range []string{"a.slice/b.service/deep", "a.slice/b.service2", "a.slice/b.service", "a.slice"} {
			if err := unix.Rmdir(top + "/" + dir); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// kindIn connects to the service by a shell in a control group, and returns what the shell's socket is.
func kindIn(t *testing.T, group string) string {
	t.Helper()
	l, err := guest.Listen(service, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	// bash opens the connection itself; it waits until its input ends.
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "echo $$ >$0/cgroup.procs && exec 3<>/dev/tcp/127.0.0.1/6379 && echo open && read", group)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	s, err := guest.Accept(l)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	line := make([]byte, 5)
	if _, err := out.Read(line); err != nil || string(line) != "open\n" {
		t.Fatalf("%q, %v", line, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d/fd/3", cmd.Process.Pid), &st); err != nil {
		t.Fatal(err)
	}
	kind := kindOfInode(t, st.Ino)
	in.Close()
	_ = cmd.Wait() // read fails at the end of its input
	return kind
}

// TestRulesRefused has requests that the module refuses, and leaves the policy as it is.
func TestRulesRefused(t *testing.T) {
	needRules(t)
	setRules(t, "smc port 1", "tcp port 2")
	good := policy.Rule{Verdict: policy.SMC, Role: policy.Any}
	with := func(change func(*policy.Rule)) policy.Rule { r := good; change(&r); return r }
	for name, r := range map[string]policy.Rule{
		"no verdict": with(func(r *policy.Rule) { r.Verdict = policy.None }), "a verdict of 4": with(func(r *policy.Rule) { r.Verdict = 4 }),
		"no role": with(func(r *policy.Rule) { r.Role = 0 }), "a role of 4": with(func(r *policy.Rule) { r.Role = 4 }),
		"a long name":    with(func(r *policy.Rule) { r.Name = strings.Repeat("x", 32) }),
		"port 0":         with(func(r *policy.Rule) { r.Ports = []policy.PortRange{{First: 0, Last: 1}} }),
		"a range back":   with(func(r *policy.Rule) { r.LocalPorts = []policy.PortRange{{First: 2, Last: 1}} }),
		"many ports":     with(func(r *policy.Rule) { r.RemotePorts = make([]policy.PortRange, 65) }),
		"no user":        with(func(r *policy.Rule) { r.User = new(uint32(1<<32 - 1)) }),
		"a short path":   with(func(r *policy.Rule) { r.Cgroup = "a" }),
		"a long path":    with(func(r *policy.Rule) { r.Cgroup = "/" + strings.Repeat("x", 256) }),
		"unknown number": {ID: 1 << 30},
	} {
		err := withPolicy(func(c *policy.Client, now policy.Policy) error {
			return c.SetRules(context.Background(), now.Generation, append(now.Rules, r))
		})
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	err := withPolicy(func(c *policy.Client, now policy.Policy) error {
		return c.SetRules(context.Background(), now.Generation+1, nil)
	})
	if !errors.Is(err, policy.ErrChanged) {
		t.Errorf("another generation: %v", err)
	}
	if got := counters(t); len(got) != 2 {
		t.Errorf("%d rules are left", len(got))
	}
}

// TestRulesOfOthers has a user change the policy, which he may not, and read it.
func TestRulesOfOthers(t *testing.T) {
	needRules(t)
	setRules(t, "smc port 1")
	err := guest.AsNobody(func() error {
		return withPolicy(func(c *policy.Client, now policy.Policy) error {
			if len(now.Rules) != 1 {
				return fmt.Errorf("a user reads %+v", now)
			}
			if err := c.SetRules(context.Background(), now.Generation, nil); !errors.Is(err, smcerr.ErrPermission) {
				return fmt.Errorf("a user changes the rules: %w", err)
			}
			if err := c.Enable(context.Background(), now.Generation, false); !errors.Is(err, smcerr.ErrPermission) {
				return fmt.Errorf("a user turns the policy off: %w", err)
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// oneExchange has two ordinary sockets exchange bytes over a connection.
func oneExchange(addr netip.AddrPort) error {
	return withConnection(addr, func(c, s int) error {
		if err := errors.Join(guest.WriteAll(c, []byte("ping")), guest.WriteAll(s, []byte("pong"))); err != nil {
			return err
		}
		for fd, want := range map[int]string{s: "ping", c: "pong"} {
			if got, err := guest.ReadFull(fd, 4); err != nil || string(got) != want {
				return fmt.Errorf("%q, %w", got, err)
			}
		}
		return nil
	})
}

// withConnection calls do with both ends of a connection of ordinary sockets, its listener included. No call on them takes longer than
// some seconds.
func withConnection(addr netip.AddrPort, do func(client, server int) error) error {
	const limit = 5 * time.Second
	_, sa := guest.Sockaddr(addr)
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(l)
	c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(c)
	err = errors.Join(guest.Timeout(l, limit), guest.Timeout(c, limit), listenOn(l, sa), guest.ConnectSocket(c, sa))
	if err != nil {
		return fmt.Errorf("%s: %w", addr, err)
	}
	s, err := guest.Accept(l)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	return errors.Join(guest.Timeout(s, limit), do(c, s))
}
