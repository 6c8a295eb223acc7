// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package counters compares the statistics of our module with those of the stock module of Linux 6.12, for the same loads.
package counters

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

const inside = "github.com/smckit/smckit/tests/counters/inside"

// byLoad has the counters of each load.
type byLoad map[string]netlinksmc.TechStats

// TestCounters checks that each load causes the same counters with our module as with the stock one.
func TestCounters(t *testing.T) {
	if !lab.Full() {
		t.Skip("takes minutes: SMCKIT_FULL=1")
	}
	lab.Need(t)
	want := run(t, "6.12", lab.ModuleStock, "SMC-R")
	for _, kernel := range lab.FewSeries() {
		for _, technology := range []string{"SMC-R", "SMC-D"} {
			t.Run(kernel+" "+technology, func(t *testing.T) {
				compare(t, technology, want, run(t, kernel, lab.ModuleOurs, technology))
			})
		}
	}
}

// run boots guests with a module and runs the loads there.
func run(t *testing.T, kernel string, module lab.Module, technology string) byLoad {
	t.Helper()
	o := lab.Options{Kernel: kernel, Hosts: 2}
	server, address := "b", lab.Addr4(0, 1)
	if technology == "SMC-D" {
		o.Hosts = 1
		server, address = "a", "127.0.0.1"
	}
	dir, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o.Programs = []string{dir}
	lt := lab.Start(t, o)
	setUp(t, lt, module, technology)
	for _, h := range lt.Hosts {
		lt.Must(h.Name, fmt.Sprintf("echo %s %s >/run/smckit-counters", technology, address))
	}
	defer lab.Kill(t, serve(t, lt, server))
	if technology == "SMC-R" {
		for _, h := range lt.Hosts {
			traceOn(lt, h.Name)
		}
	}
	lt.GoTest(t, "a", inside, "^TestLoads$")
	if technology == "SMC-R" {
		traced(t, lt, module)
	}
	if technology == "SMC-R" && module == lab.ModuleOurs {
		procEntries(t, lt)
	}
	var counted byLoad
	if err := json.Unmarshal([]byte(lt.Must("a", "cat /run/counters.json")), &counted); err != nil {
		t.Fatal(err)
	}
	return counted
}

// serve starts the server's end, which outlives the test that starts it.
func serve(t *testing.T, lt *lab.Test, host string) *lab.Process {
	t.Helper()
	// This copies the program. A host may be the client too, whose tests replace the file.
	lt.GoTest(t, host, inside, "^TestParameters$")
	lt.Must(host, "cp /run/inside.test /run/server.test")
	p, err := lt.Host(host).Start(lab.Cmd{
		Argv: []string{"/run/server.test", "-test.run", "^TestServer$"}, Env: []string{"SMCKIT_COUNTERS=server"}, Dir: "/run",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := lt.Host(host).WaitFor(t.Context(), "test -e /run/counters-serving"); err != nil {
		t.Fatal(err)
	}
	return p
}

// setUp makes connections use the technology, with buffers of 64 KiB.
func setUp(t *testing.T, lt *lab.Test, module lab.Module, technology string) {
	t.Helper()
	if technology == "SMC-D" {
		if err := lt.LoadSMC(t.Context(), module); err != nil {
			t.Fatal(err)
		}
		// Buffers of SMC-D are four times as large as the setting.
		lt.Must("a", "ip link set lo up; sysctl -qw net.smc.rmem=16384")
		return
	}
	if err := lt.SetUpSMC(t.Context(), module, module); err != nil {
		t.Fatal(err)
	}
	for _, h := range lt.Hosts {
		if module == lab.ModuleOurs {
			lt.Must(h.Name, "sysctl -qw net.smc.smcr_large_conns_per_lgr=0")
		}
	}
}

func compare(t *testing.T, technology string, want, got byLoad) {
	for name := range want {
		w, g := want[name], got[name]
		mask(name, &w, &g)
		w.Links, g.Links = nil, nil // the stock module has none
		if technology == "SMC-D" {
			// There is no buffer to send from, and pages need not be in one piece.
			w.TxBufSizes, g.TxBufSizes = netlinksmc.SizeHistogram{}, netlinksmc.SizeHistogram{}
			w.TxBuf.Allocated, g.TxBuf.Allocated = 0, 0
			w.RxBuf.Downgraded, g.RxBuf.Downgraded = 0, 0
			forgetFirstTry(&g, w.RxBuf.Allocated)
			// Less data fills the receiver's buffer. The sender gets room in whole pages, so the buffer is still full when the
			// last of the five calls finds that ten bytes have been read.
			if name == "calls while the receiver's buffer is full" {
				clearBytes(&w)
				clearBytes(&g)
				w.RxBuf.Full++
			}
		}
		if diff := cmp.Diff(w, g, cmpopts.EquateComparable(netlinksmc.Optional[uint64]{})); diff != "" {
			t.Errorf("%s: stock is -, ours is +:\n%s", name, diff)
		}
	}
}

// forgetFirstTry halves the counters of buffers if a client has tried twice. A client that connects within the kernel and finds
// that TCP has not completed its own handshake gives its buffers and the server's back, and tries again with new ones.
func forgetFirstTry(s *netlinksmc.TechStats, want uint64) {
	if s.RxBuf.Allocated != 2*want {
		return
	}
	s.RxBuf.Allocated = want
	for i := range s.RxBufSizes {
		s.RxBufSizes[i] /= 2
	}
}

// mask clears counters that may differ between the stock module and ours, or that depend on chance.
func mask(load string, stock, ours *netlinksmc.TechStats) {
	// The stock module copies data that does not fit into the receiver's buffer to a second one, and sends it when there is
	// room. So it may take more at once, and the receiver gets it in other pieces.
	more := stock.TxBytes != ours.TxBytes
	for _, s := range []*netlinksmc.TechStats{stock, ours} {
		// The reuse of a buffer depends on how soon the previous one was released.
		for _, b := range []*netlinksmc.BufferStats{&s.TxBuf, &s.RxBuf} {
			b.Allocated, b.Reused = b.Allocated+b.Reused, 0
		}
		switch load {
		case "longer than the buffers":
			if more {
				clearBytes(s)
				s.TxBuf.Full, s.TxBuf.FullPeer, s.RxBuf.Full = 0, 0, 0
			}
		case "full buffers":
			clearBytes(s)
			s.TxSizes = netlinksmc.SizeHistogram{}
			// How often the stock module's sender looks at the full buffer depends on when the adapter completes its writes.
			stock.TxBuf.FullPeer = min(stock.TxBuf.FullPeer, 1)
			s.RxBuf.Full = min(s.RxBuf.Full, 1)
		case "scarce memory":
			// The size of the largest piece depends on the kernel's configuration and on free memory.
			s.RxBufSizes = netlinksmc.SizeHistogram{}
		}
	}
}

// clearBytes clears the numbers of bytes sent, and of the pieces in which they were received.
func clearBytes(s *netlinksmc.TechStats) {
	s.TxBytes, s.RxBytes, s.RxCount, s.RxSizes = 0, 0, 0, netlinksmc.SizeHistogram{}
}
