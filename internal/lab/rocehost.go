// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// rocePackages are the packages of a host in a RoCE cluster, and those that build modules for it.
var rocePackages = []string{"rdma-core", "dkms", "linux-headers-amd64"}

// rxeRule finds the udev rule in our guide for administrators.
var rxeRule = regexp.MustCompile("(?s)`/etc/udev/rules.d/(\\S+)`.*?```udev\n(.*?)```")

// softRoCE returns the file that creates rxe0 on eth0 at every boot, and its name. It is the file of our guide, with eth0
// instead of ens1f0np0.
func softRoCE(repository string) (name, rule string, err error) {
	const guide = "docs/getting-started-cluster.md"
	text, err := os.ReadFile(filepath.Join(repository, guide))
	if err != nil {
		return "", "", err
	}
	found := rxeRule.FindStringSubmatch(string(text))
	if found == nil {
		return "", "", fmt.Errorf("%s has no rule for soft-RoCE", guide)
	}
	return found[1], strings.ReplaceAll(found[2], "ens1f0np0", "eth0"), nil
}

// NewRoCEHost returns a Debian system, from which to make a Disk, for a host of a RoCE cluster. Its first wire has the
// addresses of SetUpAddresses, and the device rxe0, which is created at every boot as in our guide. The system has smcflow, and
// only the distribution's AF_SMC.
func NewRoCEHost(t testing.TB, suite string, packages ...string) *Debian {
	t.Helper()
	d := NewMachine(t, suite, append(packages, rocePackages...)...)
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	smcflow, err := os.ReadFile(filepath.Join(programs, "smcflow"))
	if err != nil {
		t.Fatal(err)
	}
	name, rule, err := softRoCE(root)
	if err != nil {
		t.Fatal(err)
	}
	d.write("/etc/udev/rules.d/"+name, []byte(rule), 0o644)
	for host, name := range []string{"a", "b"} {
		d.write("/etc/systemd/network/"+name+".network", []byte(strings.Join([]string{
			"[Match]", "Name=eth0", "Host=" + name,
			"[Network]", "Address=" + Addr4(0, host) + "/24", "Address=" + Addr6(0, host) + "/64", "",
		}, "\n")), 0o644)
	}
	d.write("/usr/local/bin/smcflow", smcflow, 0o755)
	d.Must("/", "systemctl enable systemd-networkd")
	return d
}

// write writes a file of the system.
func (d *Debian) write(path string, data []byte, perm os.FileMode) {
	d.t.Helper()
	path = filepath.Join(d.Dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, perm); err != nil {
		d.t.Fatal(err)
	}
}

// CheckConfigured checks that the kernel of a host has the configuration that tests apply to hosts of NewRoCEHost: the PNET ID
// LAB0 for eth0 and port 1 of rxe0, the EID SMCKIT.LAB, and 131072 for net.smc.rmem.
func (lt *Test) CheckConfigured(host string) {
	lt.t.Helper()
	const want = "LAB0 eth0 n/a 255\nLAB0 n/a rxe0 1\nSMCKIT.LAB\n131072\n"
	if got := lt.Must(host, "smc_pnet show; smcr ueid | tr -d ' '; cat /proc/sys/net/smc/rmem"); got != want {
		lt.t.Errorf("host %s has %q, not %q", host, got, want)
	}
}

// JoinWires makes the first two wires of an SMC network one physical network. The stock module takes a second adapter only if that
// has an address in the subnet of the connection, so eth1 has that instead of its own; each interface answers for its addresses alone.
func (lt *Test) JoinWires() {
	lt.t.Helper()
	lt.Wires[0].Join(lt.Wires[1])
	for i, h := range lt.Hosts {
		lt.Must(h.Name, fmt.Sprintf(`sysctl -qw net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2
smc_pnet del LAB1; smc_pnet add %[1]s eth eth1; smc_pnet add %[1]s ib rxe1 1
ip -4 addr flush dev eth1; ip addr add 10.0.0.10%[2]d/24 dev eth1`, PNETID, i+1))
	}
}

// TalkSMCR connects one host to another, and fails the test if a connection is not SMC-R version 2. Both need smcflow and our
// commands.
func (lt *Test) TalkSMCR(from, to string) {
	lt.t.Helper()
	address := Addr4(0, lt.Host(to).index) + ":5001"
	defer Kill(lt.t, lt.Serve(to, "", "echo", address))
	client, server := lt.CountersR(from), lt.CountersR(to)
	const conns = 3
	lt.Must(from, "smcflow check --conns 3 --size 100000 "+address)
	for _, side := range []struct {
		host        string
		before, now Counters
		count       func(Counters) int
	}{
		{from, client, lt.CountersR(from), func(n Counters) int { return n.Connections.ClientV2 }},
		{to, server, lt.CountersR(to), func(n Counters) int { return n.Connections.ServerV2 }},
	} {
		if n := side.count(side.now) - side.count(side.before); n != conns || side.now.FellBack() != side.before.FellBack() {
			lt.t.Errorf("host %s: %d of %d connections went by SMC-R: before %+v, then %+v", side.host, n, conns, side.before, side.now)
		}
	}
}
