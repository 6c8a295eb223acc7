// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package ism tests SMC-D between guests that share a fabric: the memory of ivshmem devices, which the lab serves as smc_ismd does.
package ism

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/tool/smcrd"
	"github.com/smckit/smckit/internal/tool/smcss"
)

// pairs are the kernels of a client and a server. Full runs have each kernel with each.
func pairs() (all [][2]string) {
	for _, client := range lab.FewSeries() {
		for _, server := range lab.FewSeries() {
			all = append(all, [2]string{client, server})
		}
	}
	return all
}

// onKernels runs a test whose hosts all have the same kernel.
func onKernels(t *testing.T, run func(t *testing.T, kernel string)) {
	t.Helper()
	lab.Need(t)
	for _, kernel := range lab.FewSeries() {
		t.Run(kernel, func(t *testing.T) { run(t, kernel) })
	}
}

// boot boots hosts that share a fabric, and have no other device for SMC.
func boot(t *testing.T, o lab.Options) *lab.Test {
	t.Helper()
	dir, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o.CPUs, o.Programs = 2, append(o.Programs, dir)
	o.KernelArgs += " smc.smcr=0"
	lt := lab.Start(t, o)
	if err := lt.LoadSMC(t.Context(), lab.ModuleOurs); err != nil {
		t.Fatal(err)
	}
	for i := range lt.Hosts {
		setUp(lt, i)
	}
	return lt
}

// setUp gives a host an address and a user EID.
func setUp(lt *lab.Test, i int) {
	lt.Must(lt.Hosts[i].Name, fmt.Sprintf(`ip link set lo up; ip link set eth0 up; ip addr replace 10.0.0.%d/24 dev eth0
smcr ueid add LAB
sysctl -qw net.smc.remember_peers=0`, i+1))
}

// TestFabric has two hosts.
func TestFabric(t *testing.T) {
	lab.Need(t)
	for _, p := range pairs() {
		t.Run(p[0]+" to "+p[1], func(t *testing.T) {
			lt := boot(t, lab.Options{Kernels: p[:], Hosts: 2, Fabric: lab.Fabric{Size: 64 << 20, Members: 4}})
			t.Run("data", func(t *testing.T) { data(t, lt) })
			t.Run("killed", func(t *testing.T) { killed(t, lt) })
			t.Run("listed", func(t *testing.T) { listed(t, lt) })
			t.Run("PNET ID", func(t *testing.T) { pnetID(t, lt) })
			t.Run("VLAN", func(t *testing.T) { vlan(t, lt) })
			t.Run("full", func(t *testing.T) { full(t, lt) })
			t.Run("driver unbound", func(t *testing.T) { unbound(t, lt, "a"); unbound(t, lt, "b") })
			t.Run("device unplugged", func(t *testing.T) { unplugged(t, lt, "a"); unplugged(t, lt, "b") })
			t.Run("host off", func(t *testing.T) { off(t, lt) })
			unloads(t, lt, "a")
		})
	}
}

// unloads checks that no connection or group keeps the module once the sockets are closed.
func unloads(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	if r := lt.Run(host, "rmmod", "smc_diag", "smc"); r.Code != 0 {
		t.Errorf("host %s: the modules cannot be unloaded: %+v", host, r)
	}
}

// serve starts an echo, or a sink, on b and returns its address once it can be reached.
func serve(lt *lab.Test, what string, port int) (address string, p *lab.Process) {
	address = fmt.Sprintf("10.0.0.2:%d", port)
	return address, lt.Serve("b", "", what, address)
}

func counters(lt *lab.Test) [2]lab.Counters {
	return [2]lab.Counters{lt.Counters("a"), lt.Counters("b")}
}

// onlySMCD checks that n connections were made since before, all of SMC-D.
func onlySMCD(t *testing.T, lt *lab.Test, before [2]lab.Counters, n int) {
	t.Helper()
	for i, now := range counters(lt) {
		made := now.Connections.ClientV2 + now.Connections.ServerV2 - before[i].Connections.ClientV2 - before[i].Connections.ServerV2
		if fell := now.FellBack() - before[i].FellBack(); made != n || fell != 0 {
			t.Errorf("host %c: %d connections of SMC-D, %d that fell back (%+v); want %d and none", 'a'+i, made, fell, now.Fallback, n)
		}
	}
}

// data moves bytes of all sizes both ways at once, on few and on many connections.
func data(t *testing.T, lt *lab.Test) {
	address, echo := serve(lt, "echo", 5001)
	defer lab.Kill(t, echo)
	before, made := counters(lt), 0
	for _, c := range []struct{ conns, rounds, size, chunk int }{
		{1, 1, 1, 1},
		{1, 20, 1000, 1000},
		{1, 1, 10 << 20, 64 << 10},
		{1, 1, 4 << 20, 4 << 20},
		{50, 1, 100_000, 777},
		{100, 1, 100, 100},
	} {
		lt.Must("a", fmt.Sprintf("smcflow check --conns %d --rounds %d --size %d --chunk %d %s", c.conns, c.rounds, c.size, c.chunk, address))
		made += c.conns * c.rounds
	}
	onlySMCD(t, lt, before, made)
	lt.Must("a", "smcflow life "+address)
}

// keep starts connections on a that exchange data until a signal comes, and waits until they use SMC-D.
func keep(t *testing.T, lt *lab.Test, address string, n int) *lab.Process {
	t.Helper()
	return keepFrom(t, lt, "a", address, n)
}

// keepFrom is the same for another host, with flags of smcflow.
func keepFrom(t *testing.T, lt *lab.Test, host, address string, n int, flags ...string) *lab.Process {
	t.Helper()
	argv := append([]string{"smcflow", "keep", "--conns", fmt.Sprint(n), address}, flags...)
	p := lt.StartIn(host, "", append([]string{"sh", "-c", `ulimit -n 4096; exec "$@"`, "sh"}, argv...)...)
	_, port, _ := strings.Cut(address, ":")
	if err := lt.Host(host).WaitFor(t.Context(), fmt.Sprintf("test $(smcss --state active --port %s | grep -c SMCD) = %d", port, n)); err != nil {
		t.Fatalf("%v\n%s", err, lt.Must(host, "smcss -a; smcd stats; dmesg | tail -5"))
	}
	return p
}

// fails waits until a program has noticed that its connection is broken, which takes no time.
func fails(t *testing.T, p *lab.Process) {
	t.Helper()
	failsWithin(t, p, 5*time.Second)
}

// failsWithin is the same for a longer time.
func failsWithin(t *testing.T, p *lab.Process, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(limit))
	defer cancel()
	if r, err := p.Wait(ctx); err != nil || r.Code == 0 {
		t.Errorf("a program whose connections are broken: %v, %+v", err, r)
	}
}

// killed kills programs at either end: their connections end, no others do, and their memory is free again.
func killed(t *testing.T, lt *lab.Test) {
	address, echo := serve(lt, "echo", 5002)
	defer lab.Kill(t, echo)
	victims, sink := serve(lt, "echo", 5003)
	other := keep(t, lt, address, 2)
	lost := keep(t, lt, victims, 10)
	lab.Kill(t, sink)
	fails(t, lost)
	lab.Stop(t, other)
	lab.Kill(t, keep(t, lt, address, 10))
	for _, host := range []string{"a", "b"} {
		nothingUsed(t, lt, host)
	}
}

// nothingUsed waits until a host has no DMBs.
func nothingUsed(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	if err := lt.Host(host).WaitFor(t.Context(), `smc_policy memory --json | tr -d ' \n' | grep -q '"host":{.*"dmb_bytes":0,'`); err != nil {
		t.Errorf("%v\n%s", err, lt.Must(host, "smc_policy memory"))
	}
}

// device returns the PCI address of a host's device.
func device(lt *lab.Test, host string) string {
	return strings.TrimSpace(lt.Must(host, "cd "+driver+"; echo 0000:*"))
}

// listed checks what the commands show of the devices, and of a link group of both hosts.
func listed(t *testing.T, lt *lab.Test) {
	address, echo := serve(lt, "echo", 5008)
	defer lab.Kill(t, echo)
	p := keep(t, lt, address, 1)
	var groups [2]smcrd.LinkGroupD
	for i, host := range []string{"a", "b"} {
		var devices smcrd.Devices
		lt.Document(host, "smcd device --json", &devices)
		pci := device(lt, host)
		j := slices.IndexFunc(devices.Devices, func(d smcrd.Device) bool { return d.PCIID == pci })
		if j < 0 {
			t.Fatalf("host %s lists %+v", host, devices)
		}
		d := devices.Devices[j]
		if d.Type != "1110" || d.Vendor != "1af4" || d.Device != "1110" || d.PCHID < "ff00" || d.PCHID > "fffe" {
			t.Errorf("host %s lists %+v", host, d)
		}
		var all smcrd.LinkGroupsD
		lt.Document(host, "smcd linkgroup --json", &all)
		if len(all.LinkGroups) != 1 || all.LinkGroups[0].CHID != d.PCHID {
			t.Fatalf("host %s has link groups %+v", host, all)
		}
		groups[i] = all.LinkGroups[0]
		if rows := lt.Must(host, "smc_rnics "+d.PCIID); !strings.Contains(rows, " D    fabric  "+d.PCIID+" ") {
			t.Errorf("host %s: %s", host, rows)
		}
	}
	tokensHidden(t, lt)
	a, b := groups[0], groups[1]
	if a.GID != b.PeerGID || a.ExtGID != b.PeerExtGID || b.GID != a.PeerGID || b.ExtGID != a.PeerExtGID || a.ExtGID == b.ExtGID || a.GID == "" {
		t.Errorf("GIDs of a: %+v, of b: %+v", a, b)
	}
	lab.Stop(t, p)
}

// tokensHidden checks that the listed tokens are those of the same DMBs at both ends, and lack the part that is secret: who knows it can
// name the DMB of another user.
func tokensHidden(t *testing.T, lt *lab.Test) {
	t.Helper()
	var ends [2]*smcss.DMB
	for i, host := range []string{"a", "b"} {
		var doc smcss.Document
		lt.Document(host, "smcss -D --json", &doc)
		if len(doc.Sockets) != 1 || doc.Sockets[0].DMB == nil {
			t.Fatalf("host %s lists %+v", host, doc)
		}
		ends[i] = doc.Sockets[0].DMB
	}
	a, b := ends[0], ends[1]
	if a.Token != b.PeerToken || b.Token != a.PeerToken || a.Token == b.Token {
		t.Errorf("the tokens are %+v and %+v", a, b)
	}
	for _, text := range []string{a.Token, b.Token} {
		if token, err := strconv.ParseUint(text, 16, 64); err != nil || token&(1<<36-1) != 0 {
			t.Errorf("the token %s shows its random part (%v)", text, err)
		}
	}
}

// pnetID attaches the client's device to a physical network: it is used as long as an interface is attached to that, too.
func pnetID(t *testing.T, lt *lab.Test) {
	address, echo := serve(lt, "echo", 5009)
	defer lab.Kill(t, echo)
	pci := device(lt, "a")
	lt.Must("a", "smc_pnet add BLUE ib "+pci)
	before := lt.Counters("a")
	lt.Must("a", "smcflow check --size 1000 "+address)
	if now := lt.Counters("a"); now.Connections.ClientV2 != before.Connections.ClientV2 {
		t.Errorf("the device is used without an interface on its network: %+v, was %+v", now, before)
	}
	if found := lt.Must("a", "smc_chk --json || true"); !strings.Contains(found, `"ism-pnet-absent"`) {
		t.Errorf("smc_chk does not say so: %s", found)
	}

	lt.Must("a", "smc_pnet add BLUE eth eth0")
	all := counters(lt)
	p := keep(t, lt, address, 1)
	onlySMCD(t, lt, all, 1)
	for _, cmd := range []string{"smcd device | grep ' " + pci + " .* [*]BLUE '", "smcd linkgroup | grep ' BLUE '", "smc_rnics | grep ' BLUE[*] '"} {
		if r := lt.Run("a", "sh", "-c", cmd); r.Code != 0 {
			t.Errorf("%s: %+v", cmd, r)
		}
	}
	lab.Stop(t, p)
	lt.Must("a", "smc_pnet flush")
	if shown := lt.Must("a", "smcd device"); strings.Contains(shown, "BLUE") {
		t.Errorf("after smc_pnet flush: %s", shown)
	}
	all = counters(lt)
	lt.Must("a", "smcflow check --size 1000 "+address)
	onlySMCD(t, lt, all, 1)
}

// vlan connects VLAN interfaces: the fabric is used as for all others.
func vlan(t *testing.T, lt *lab.Test) {
	for i, h := range lt.Hosts {
		lt.Must(h.Name, fmt.Sprintf(`modprobe 8021q; ip link add link eth0 name eth0.5 type vlan id 5
ip link set eth0.5 up; ip addr add 10.5.0.%d/24 dev eth0.5`, i+1))
	}
	const address = "10.5.0.2:5020"
	defer lab.Kill(t, lt.Serve("b", "", "echo", address))
	before := counters(lt)
	lt.Must("a", "smcflow check --conns 10 --size 10000 "+address)
	onlySMCD(t, lt, before, 10)
}

// full opens more connections than there is memory for: buffers get smaller, and the last connections are TCP. All work.
func full(t *testing.T, lt *lab.Test) {
	const conns = 1200
	address, echo := serve(lt, "echo", 5004)
	defer lab.Kill(t, echo)
	before := lt.Counters("b")
	lt.Must("a", fmt.Sprintf("ulimit -n 4096; smcflow check --conns %d --size 2000 %s", conns, address))
	now := lt.Counters("b")
	made := now.Connections.ServerV2 - before.Connections.ServerV2
	fell := now.Fallback.Server.Of("MAX_DMB") - before.Fallback.Server.Of("MAX_DMB")
	if made < 250 || made+now.FellBack()-before.FellBack() != conns {
		t.Errorf("%d connections were SMC-D, %d fell back for lack of DMBs: %+v", made, fell, now)
	}
	nothingUsed(t, lt, "a")
	nothingUsed(t, lt, "b")
}

// driver is where a host's device is bound and unbound.
const driver = "/sys/bus/pci/drivers/smc-fabric"

// unbound takes the device from the driver of a host.
func unbound(t *testing.T, lt *lab.Test, host string) {
	pci := device(lt, host)
	without(t, lt, host,
		func() { lt.Must(host, "echo "+pci+" >"+driver+"/unbind") },
		func() { unusedExplained(t, lt, host, pci) },
		func() { lt.Must(host, "echo "+pci+" >"+driver+"/bind") })
}

// unplugged has a host's PCI bus lose the device, and find it again.
func unplugged(t *testing.T, lt *lab.Test, host string) {
	pci := "/sys/bus/pci/devices/" + device(lt, host)
	without(t, lt, host,
		func() { lt.Must(host, "echo 1 >"+pci+"/remove") },
		func() { lt.Must(host, "! test -e "+pci) },
		func() { lt.Must(host, "echo 1 >/sys/bus/pci/rescan") })
}

// without takes the device from a host: connections end at once at both ends, and new ones are TCP until it is back.
func without(t *testing.T, lt *lab.Test, host string, take, check, giveBack func()) {
	t.Helper()
	address, echo := serve(lt, "echo", 5005)
	p := keep(t, lt, address, 10)
	take()
	fails(t, p)
	check()
	lab.Kill(t, echo)
	address, echo = serve(lt, "echo", 5006)
	defer lab.Kill(t, echo)
	fallsBack(t, lt, address, host)
	giveBack()
	// All of them may be the first contact.
	onlySMCDFrom(t, lt, address, 20)
}

// fallsBack makes a connection from a to b, which is TCP, as a host has no device.
func fallsBack(t *testing.T, lt *lab.Test, address, host string) {
	t.Helper()
	before := lt.Counters("b")
	lt.Must("a", "smcflow check --size 100000 "+address)
	if now := lt.Counters("b"); now.Connections.ServerV2 != before.Connections.ServerV2 || now.FellBack() != before.FellBack()+1 {
		t.Errorf("without the device of %s: %+v, was %+v", host, now, before)
	}
}

// unusedExplained checks what is said of a device that is a fabric, but that the module does not use.
func unusedExplained(t *testing.T, lt *lab.Test, host, pci string) {
	t.Helper()
	r := lt.Run(host, "smc_rnics", pci)
	if r.Code != 0 || !strings.Contains(r.Stdout, " -    ivshmem  "+pci) || !strings.Contains(r.Stderr, pci+" has no driver") {
		t.Errorf("host %s: %+v", host, r)
	}
	if shown := lt.Must(host, "smc_rnics --json "+pci+" | tr -d ' \n'"); !strings.Contains(shown, `"ivshmem":{"size_bytes":67108864,"vectors":2,"is_fabric":true}`) {
		t.Errorf("host %s: %s", host, shown)
	}
	if found := lt.Must(host, "smc_chk --json || true"); !strings.Contains(found, `"fabric-unused"`) {
		t.Errorf("host %s: smc_chk does not name the device: %s", host, found)
	}
}

// off switches a host off: the connections of the other one end at once, as the server of the fabric announces it.
func off(t *testing.T, lt *lab.Test) {
	address, _ := serve(lt, "echo", 5007)
	p := keep(t, lt, address, 10)
	lt.PowerOff("b")
	fails(t, p)
	nothingUsed(t, lt, "a")
}

// TestStalledMember has a host hang whose emulator goes on: its peers end their connections with it after a minute.
func TestStalledMember(t *testing.T) {
	if !lab.Full() {
		t.Skip("waits more than a minute: set SMCKIT_FULL=1, or run 'make test-full'")
	}
	onKernels(t, stalledMember)
}

func stalledMember(t *testing.T, kernel string) {
	lt := boot(t, lab.Options{Kernel: kernel, Hosts: 2, Fabric: lab.Fabric{Size: 16 << 20, Members: 2}})
	address, _ := serve(lt, "echo", 5013)
	p := keep(t, lt, address, 4)
	lt.Stall("b")
	failsWithin(t, p, 3*time.Minute)
	nothingUsed(t, lt, "a")
}
