// SPDX-License-Identifier: Apache-2.0

//go:build linux

package programs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/tool/smcpolicy"
)

// TestContainers runs containers of podman, with nothing but a static busybox in them. Rules of the host for control groups have their
// connections use SMC-D among each other, and SMC-R to another host.
func TestContainers(t *testing.T) {
	lab.Need(t)
	for _, kernel := range lab.FewSeries() {
		t.Run(kernel, func(t *testing.T) {
			h := bootContainers(t, kernel)
			t.Run("SMC-D", h.eachOther)
			t.Run("SMC-R", h.otherHost)
			t.Run("memory", h.memory)
			if err := h.Host("a").WaitFor(t.Context(), `smc_policy memory | grep -Eq '^DMBs +[^ ]+ +0$'`); err != nil {
				t.Error(err)
			}
			h.Must("a", "podman network rm -f web lan >&2; smc_policy namespaces off; smc_policy flush")
			(&guest{h.Test}).empty(t)
			(&guest{h.Test}).unload(t)
		})
	}
}

// containerHost is two hosts; the first has containers.
type containerHost struct{ *lab.Test }

const (
	rootfs = "/run/rootfs"
	// podman needs no daemon, no systemd and no images.
	storageConf = "[storage]\ndriver = \"vfs\"\nrunroot = \"/run/containers/run\"\ngraphroot = \"/run/containers/graph\"\n"
	podmanConf  = "[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\n[network]\nnetwork_backend = \"netavark\"\n"
)

func bootContainers(t *testing.T, kernel string) *containerHost {
	t.Helper()
	dir, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := &containerHost{lab.Start(t, lab.Options{Kernel: kernel, Hosts: 2, Memory: 1024, Programs: []string{dir}})}
	if err := h.SetUpSMC(t.Context(), lab.ModuleOurs); err != nil {
		t.Fatal(err)
	}
	h.Must("a", fmt.Sprintf(`mkdir -p /etc/containers
printf '%%s' '%s' >/etc/containers/storage.conf
printf '%%s' '%s' >/etc/containers/containers.conf
modprobe -a veth bridge macvlan
cd $(mkdir -p %s && echo %[3]s)
mkdir bin proc sys dev etc tmp run www
cp /bin/busybox bin/busybox
for name in sh nc sleep seq cmp wget httpd; do ln -s busybox bin/$name; done
head -c 3000000 /dev/urandom >www/data
podman network create web >&2
podman network create -d macvlan -o parent=eth0 --subnet 10.0.0.0/24 --ip-range 10.0.0.128/28 lan >&2
ip link set lo up
smc_policy namespaces on`, storageConf, podmanConf, rootfs))
	return h
}

// start starts a container on a network, in a control group, and returns its address.
func (h *containerHost) start(t *testing.T, name, network, group, command string) string {
	t.Helper()
	h.Must("a", fmt.Sprintf("podman run -d --name %s --network %s --cgroup-parent %s --rootfs %s %s >&2", name, network, group, rootfs, command))
	t.Cleanup(func() { h.Must("a", "podman rm -f -t 0 "+name+" >&2") })
	// With this, ip(8) and smc_policy -N know the container's network namespace.
	h.Must("a", fmt.Sprintf("ip netns attach %s $(podman inspect -f '{{.State.Pid}}' %[1]s)", name))
	t.Cleanup(func() { h.Must("a", "ip netns del "+name) })
	return strings.TrimSpace(h.Must("a", fmt.Sprintf(
		"podman inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' %s", name)))
}

// fetch has a container get the data of a server and compare it with its own.
func (h *containerHost) fetch(t *testing.T, network, group, addr string) {
	t.Helper()
	h.Must("a", fmt.Sprintf(`podman run --rm --network %s --cgroup-parent %s --rootfs %s sh -c 'wget -q -O /tmp/$$ http://%s/data && cmp /tmp/$$ /www/data' >&2`,
		network, group, rootfs, addr))
}

// rule returns the counters of the first rule of a host.
func (h *containerHost) rule(t *testing.T, host string) smcpolicy.Rule {
	t.Helper()
	var list smcpolicy.Rules
	if h.Document(host, "smc_policy --json", &list); len(list.Rules) == 0 {
		t.Fatalf("host %s has no rules", host)
	}
	return list.Rules[0]
}

// serve is the command of a web server.
const serve = "httpd -f -p 80 -h /www"

// eachOther connects two containers of a control group, and one of another group.
func (h *containerHost) eachOther(t *testing.T) {
	addr := h.start(t, "server", "web", "/web", serve)
	h.fetch(t, "web", "/web", addr)
	h.Must("a", "smc_policy add --force smc cgroup web")
	t.Cleanup(func() { h.Must("a", "smc_policy flush") })
	// The server listens already.
	h.fetch(t, "web", "/web", addr)
	if c := h.rule(t, "a"); c.SMC != 0 || c.TCP != 1 {
		t.Errorf("a server that listened before the rule: %+v", c)
	}
	fresh := h.start(t, "fresh", "web", "/web", serve)
	h.fetch(t, "web", "/web", fresh)
	if c := h.rule(t, "a"); c.SMC != 2 || c.TCP != 1 || c.Bytes < 6_000_000 {
		t.Errorf("two containers: %+v", c)
	}
	h.fetch(t, "web", "/other", fresh)
	if c := h.rule(t, "a"); c.SMC != 2 || c.TCP != 2 {
		t.Errorf("a container of another control group: %+v", c)
	}
}

// otherHost connects a container with a server on the other host, by an interface on top of that which has RDMA.
func (h *containerHost) otherHost(t *testing.T) {
	data, err := h.Host("a").ReadFile(t.Context(), rootfs+"/www/data")
	if err != nil {
		t.Fatal(err)
	}
	h.Must("b", "mkdir -p /run/www; smc_policy add smc port 80")
	if err := h.Host("b").WriteFile(t.Context(), "/run/www/data", data, 0o644); err != nil {
		t.Fatal(err)
	}
	server, err := h.Host("b").Start(lab.Cmd{Argv: []string{"busybox", "httpd", "-f", "-p", "80", "-h", "/run/www"}})
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Kill(t, server)
	h.Must("a", "smc_policy add --force smc cgroup web")
	t.Cleanup(func() { h.Must("a", "smc_policy flush"); h.Must("b", "smc_policy flush") })
	if err := h.Host("b").WaitFor(t.Context(), "ss -Hltn 'sport = :80' | grep -q ."); err != nil {
		t.Fatal(err)
	}
	h.fetch(t, "lan", "/web", "10.0.0.2")
	for _, host := range []string{"a", "b"} {
		if c := h.rule(t, host); c.SMC != 1 || c.TCP != 0 || c.Bytes < 3_000_000 {
			t.Errorf("host %s: %+v", host, c)
		}
		if groups := h.Must(host, "smcr linkgroup"); !strings.Contains(groups, "SYM") && !strings.Contains(groups, "SINGLE") {
			t.Errorf("host %s has no link group:\n%s", host, groups)
		}
	}
}

// memory opens more connections to a container than fit under its ceiling. They work.
func (h *containerHost) memory(t *testing.T) {
	const conns, ceiling = 24, 256 << 10
	h.Must("a", "smc_policy add --force smc cgroup web")
	t.Cleanup(func() { h.Must("a", "smc_policy flush") })
	addr := h.start(t, "server", "web", "/web", serve)
	h.Must("a", fmt.Sprintf("smc_policy -N server memory %dK", ceiling>>10))
	hold := fmt.Sprintf("sh -c 'for i in $(seq %d); do sleep 3600 | nc %s 80 & done; wait'", conns, addr)
	h.start(t, "client", "web", "/web", hold)
	if err := h.Host("a").WaitFor(t.Context(), fmt.Sprintf(`n=$(ip netns exec client ss -Htn state established | wc -l); test $n = %d`, conns)); err != nil {
		t.Fatal(err)
	}
	h.fetch(t, "web", "/web", addr)
	var memory smcpolicy.Memory
	h.Document("a", "smc_policy -N server memory --json", &memory)
	if m := memory.Namespace; m.Ceiling != ceiling || m.Highest == 0 || m.Highest > ceiling || m.Refused == 0 || m.Refused > conns {
		t.Errorf("under a ceiling of %d bytes: %+v", ceiling, m)
	}
}
