// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ansible

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/need"
)

// connectTime is how long ssh may take to connect.
const connectTime = 20 * time.Second

// cluster describes the hosts, of which b has that RDMA device. One is set up by the modules, the other by smc_conf.
func cluster(device string) string {
	return fmt.Sprintf(`---
all:
  vars:
    ansible_user: root
    ansible_python_interpreter: /usr/bin/python3
    ansible_remote_tmp: /run/ansible
    smc_rdma_device: rxe0
  hosts:
    a:
      smc_apply: modules
      smc_check_address: %s
    b:
      smc_check_address: %s
      smc_apply: command
      smc_settings: {wmem: 131072}
      smc_rdma_device: %s
`, lab.Addr4(0, 0), lab.Addr4(0, 1), device)
}

// TestCluster sets up two bare hosts for SMC-R with Ansible. They only have RDMA devices, and our module on their disks. A host
// that is described wrongly must not delay the other, and must be set up once its description is correct.
func TestCluster(t *testing.T) {
	lab.Need(t)
	if !lab.Full() {
		t.Skip("takes seven minutes: in full runs only (SMCKIT_FULL=1)")
	}
	need.Programs(t, "ansible-playbook", "/usr/sbin/sshd", "ssh", "ssh-keygen")
	kernel := lab.Newest()
	if err := lab.CheckModule(t.Context(), kernel, lab.ModuleOurs, nil); err != nil {
		t.Fatal(err)
	}
	programs, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lt := lab.Start(t, lab.Options{Kernel: kernel, Hosts: 2, Programs: []string{programs}})
	for _, step := range []error{lt.SetUpAddresses(t.Context()), lt.SetUpRDMA(t.Context()), lt.InstallSMC(t.Context())} {
		if step != nil {
			t.Fatal(step)
		}
	}
	c := newControl(t, lt, programs)
	const playbook = "testdata/cluster.yml"

	// Check mode, on hosts that cannot be queried yet.
	hosts, _ := c.play(cluster("rxe0"), playbook, "--check", "--diff")
	for name, h := range hosts {
		if h.changed == 0 || h.failed+h.unreachable > 0 {
			t.Errorf("--check, host %s: %+v", name, h)
		}
		lt.Must(name, "test ! -e /sys/module/smc; test ! -e /etc/smc")
	}

	hosts, out := c.play(cluster("rxe7"), playbook)
	if h := hosts["a"]; h.changed == 0 || h.failed+h.unreachable > 0 {
		t.Errorf("the host that is described well: %+v", h)
	}
	if h := hosts["b"]; h.failed != 1 || h.unreachable > 0 {
		t.Errorf("the host with a device that it does not have: %+v", h)
	}
	if !strings.Contains(out, `"msg": "smc_pnet: `) || !strings.Contains(out, "rxe7") {
		t.Error("the message does not tell of the device")
	}
	lt.Must("b", `test "$(smc_pnet show)" = ""; test "$(smcr ueid)" = ""; test ! -e /etc/smc`)

	hosts, _ = c.play(cluster("rxe0"), playbook)
	if h := hosts["a"]; h.changed+h.failed+h.unreachable > 0 {
		t.Errorf("the host that was set up: %+v", h)
	}
	if h := hosts["b"]; h.changed == 0 || h.failed+h.unreachable > 0 {
		t.Errorf("the host whose description was corrected: %+v", h)
	}

	hosts, out = c.play(cluster("rxe0"), playbook)
	for _, name := range []string{"a", "b"} {
		if h, ok := hosts[name]; !ok || h.changed+h.failed+h.unreachable > 0 {
			t.Errorf("the second run, host %s: %+v", name, h)
		}
		lt.Must(name, noServer)
	}
	for _, pair := range []string{"a to b", "b to a"} {
		if !strings.Contains(out, `"msg": "`+pair+`: smcr"`) {
			t.Errorf("the connection from %s was not SMC-R", pair)
		}
	}
	lt.Must("b", "test $(cat /proc/sys/net/smc/wmem) = 131072")
	lt.TalkSMCR("a", "b")

	// The network passes TCP, but not RoCE: the check says which connections are not SMC-R, or carry nothing.
	for _, name := range []string{"a", "b"} {
		lt.Must(name, "tc qdisc add dev eth0 clsact && "+
			"tc filter add dev eth0 ingress protocol ip u32 match ip protocol 17 0xff match ip dport 4791 0xffff action drop")
	}
	hosts, out = c.play(cluster("rxe0"), playbook)
	for name, peer := range map[string]string{"a": "b", "b": "a"} {
		if h := hosts[name]; h.failed != 1 || h.changed+h.unreachable > 0 {
			t.Errorf("without RoCE, host %s: %+v", name, h)
		}
		if !strings.Contains(out, `"msg": "to `+peer+": ") {
			t.Errorf("the message of host %s does not name its peer", name)
		}
		lt.Must(name, noServer)
	}
}

// noServer succeeds if no smc_chk runs.
const noServer = "! grep -ls '[s]mc_chk' /proc/[0-9]*/cmdline"
