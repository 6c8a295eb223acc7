// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// limits are what adapters offer less of, or refuse, by the module's parameter rdma_test. Queues are as short as a link can
// have them. 64 pages are enough for the largest buffers here, and 4 for the smallest. refuse_reg is not among them: it refuses the
// first registration of each link, so that no group gets its first link. TestRegistrations has it.
var limits = []string{
	"recv_sge=1",
	"inline_data=0",
	"inline_data=20",
	"qp_wr=5",
	"qp_wr=20,cqe=24",
	"cqe=24",
	"reg_pages=64",
	"reg_pages=4",
	"vectors=1",
	"refuse_cq=2",
	"refuse_qp=5",
	"refuse_mr=1",
	"delay_mr=20",
	"delay_reg=20",
	"first_gid=40",
	"delay_gid=1000",
}

// TestAdapters has adapters on both hosts that offer less than soft-RoCE does. Full runs have more sets of limits, and test each limit
// alone, too, on the newest kernel.
func TestAdapters(t *testing.T) { eachKernel(t, adapters) }

func adapters(t *testing.T, kernel string) {
	ours := side{kernel, lab.ModuleOurs}
	sets := []struct {
		limits string
		pair   [2]side
	}{
		{"recv_sge=1,inline_data=20,qp_wr=5,first_gid=40,delay_mr=20", [2]side{ours, ours}},
		{"reg_pages=4,inline_data=0,cqe=24,refuse_cq=1,refuse_qp=3,vectors=1,delay_gid=1000", [2]side{ours, ours}},
		{"recv_sge=1,qp_wr=20", [2]side{ours, stock}},
	}
	if !lab.Full() {
		sets = sets[:1]
	}
	for _, tc := range sets {
		t.Run(tc.limits+" with "+tc.pair[1].String(), func(t *testing.T) {
			lt := startWith(t, lab.Options{KernelArgs: "smc.rdma_test=" + tc.limits}, tc.pair[0], tc.pair[1])
			awaitAdapter(t, lt, "a")
			awaitAdapter(t, lt, "b")
			defer logFailures(t, lt, tc.pair)()
			// Each connection that is made at the same time tells of an RMB, one after the other, within four seconds in all.
			data(t, lt, 20)
			killedClients(t, lt)
			unloads(t, lt, "a")
		})
	}
	if !lab.Full() || kernel != lab.Newest() {
		return
	}
	for _, l := range limits {
		t.Run(l, func(t *testing.T) {
			lt := startWith(t, lab.Options{KernelArgs: "smc.rdma_test=" + l}, ours, ours)
			awaitAdapter(t, lt, "a")
			awaitAdapter(t, lt, "b")
			suite(t, lt, [2]side{ours, ours}, l)
		})
	}
}

// rmbSizes returns the sizes of RMBs that adapters with one of limits can have, for connections that ask for these sizes. The
// first connection is also the first of its group.
func rmbSizes(limits string, asked []int) []int {
	sizes := slices.Clone(asked)
	switch limits {
	case "reg_pages=4":
		for i := range sizes {
			sizes[i] = min(sizes[i], 4*4096)
		}
	case "refuse_mr=1":
		sizes[0] /= 2 // when the adapter refuses a memory region, the module asks for one of half the size
	}
	return sizes
}

// logFailures makes our modules trace why they give up links and connections, and returns a function that logs it if the
// test has failed.
func logFailures(t *testing.T, lt *lab.Test, pair [2]side) func() {
	const tracing = "/sys/kernel/tracing/"
	var hosts []string
	for i, host := range []string{"a", "b"} {
		if pair[i].module == lab.ModuleOurs {
			hosts = append(hosts, host)
			lt.Must(host, "for e in smc_link_fail smc_link_add smc_link_not_added smc_failover smc_fallback; do echo 1 >"+tracing+"events/smckit/$e/enable; done")
		}
	}
	return func() {
		for _, host := range hosts {
			if t.Failed() {
				t.Logf("host %s: %s", host, lt.Run(host, "grep", "-v", "^#", tracing+"trace").Stdout)
			}
		}
	}
}

// TestRegistrations has adapters that are slow to register buffers, or refuse to.
func TestRegistrations(t *testing.T) { eachKernel(t, registrations) }

func registrations(t *testing.T, kernel string) {
	ours := side{kernel, lab.ModuleOurs}
	lt := start(t, ours, ours)
	t.Run("slow", func(t *testing.T) { slowRegistration(t, lt) })
	for _, limit := range []string{"refuse_mr", "refuse_reg"} {
		t.Run("refused by "+limit, func(t *testing.T) { refusedRegistration(t, lt, limit) })
	}
	for _, host := range []string{"a", "b"} {
		unloads(t, lt, host)
	}
}

// limitAdapter lowers what b's adapter offers to new links, and sets how long it takes.
func limitAdapter(lt *lab.Test, limits string) {
	setRDMATest(lt, "b", limits)
}

// allocates is the condition that a child of a listener is waiting for its memory region.
const allocates = "cat /proc/[0-9]*/stack | grep -q smc_rdma_alloc_mr"

// slowRegistration makes a connection wait for its buffer for longer than a handshake may take. Connections of plain TCP, and
// those that can use existing buffers, must not wait.
func slowRegistration(t *testing.T, lt *lab.Test) {
	address, echo := serve(t, lt, "echo", 5060)
	defer lab.Kill(t, echo)
	setOn(t, lt, "b", "smcr_large_conns_per_lgr=0")
	served := plainClient(t, lt, address)
	works(t, lt, address)
	limitAdapter(lt, "delay_mr=12000")
	setOn(t, lt, "b", "rmem=131072")
	slow, err := lt.Host("a").Start(lab.Cmd{Argv: []string{"smcflow", "check", "--size", "1000", address}})
	if err != nil {
		t.Fatal(err)
	}
	if err := lt.Host("b").WaitFor(t.Context(), allocates); err != nil {
		t.Fatal(err)
	}
	served()
	limitAdapter(lt, "")
	setOn(t, lt, "b", "rmem=65536")
	before := counters(lt)
	lt.Must("a", "smcflow check --size 1000 "+address)
	if now := lt.CountersR("a"); now.Connections.ClientV2 != before[0].Connections.ClientV2+1 {
		t.Errorf("the connection that came in between is none of SMC-R: %+v", now)
	}
	lab.Kill(t, slow)
	if err := lt.Host("b").WaitFor(t.Context(), "! "+allocates); err != nil {
		t.Fatal(err)
	}
}

// plainClient starts a client without SMC on a. When served is called, it connects to an echo on b, one of whose children is waiting
// for its memory region. The echo must accept and serve it while that child is still waiting.
func plainClient(t *testing.T, lt *lab.Test, address string) (served func()) {
	t.Helper()
	host, port, _ := strings.Cut(address, ":")
	script := fmt.Sprintf("import socket, sys\nsys.stdin.readline()\nfor i in range(3):\n s = socket.create_connection((%q, %s))\n "+
		"s.sendall(b'plain')\n assert s.recv(5, socket.MSG_WAITALL) == b'plain'\n s.close()", host, port)
	in, begin := io.Pipe()
	p, err := lt.Host("a").Start(lab.Cmd{Argv: []string{"python3", "-c", script}, Stdin: in})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := io.WriteString(begin, "begin\n"); err != nil {
			t.Error(err)
		}
		begin.Close()
		finish(t, p)
		if r := lt.Run("b", "sh", "-c", allocates); r.Code != 0 {
			t.Error("the echo has served plain TCP only after the handshake of another connection was over")
		}
	}
}

// refusedRegistration has an adapter that has no free memory regions, or refuses the work requests that register them:
// connections that need one fall back to TCP, and work. There is no other group, whose buffers they could use.
func refusedRegistration(t *testing.T, lt *lab.Test, limit string) {
	lt.Must("a", "rmmod smc_diag smc")
	awaitNoGroupsOn(t, lt, "b")
	lt.Must("a", "modprobe smc && modprobe smc_diag && smc_pnet add LAB0 eth eth0 && smc_pnet add LAB0 ib rxe0 1 && smcr ueid add "+lab.UEID)
	limitAdapter(lt, limit+"=1000000")
	address, echo := serve(t, lt, "echo", 5061)
	defer lab.Kill(t, echo)
	before := lt.CountersR("a")
	lt.Must("a", "smcflow check --size 100000 --conns 3 "+address)
	now := lt.CountersR("a")
	if fell := now.Fallback.Client.Total - before.Fallback.Client.Total; fell != 3 {
		t.Errorf("%d of 3 connections fell back: %+v", fell, now.Fallback)
	}
	limitAdapter(lt, "")
	works(t, lt, address)
}

// awaitNoGroupsOn waits until a host has no group.
func awaitNoGroupsOn(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	none := `smcr linkgroup --json | tr -d '[:space:]' | grep -q '"linkgroups":\[\]'`
	if err := lt.Host(host).WaitFor(t.Context(), none); err != nil {
		t.Errorf("host %s still has a group: %v", host, err)
	}
}
