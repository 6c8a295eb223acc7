// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package check tests that smc_chk diagnoses real faults: it produces each condition in a guest, and checks that smc_chk finds
// it, and no longer finds it when the cause has been removed.
package check

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/check"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/tool/smcchk"
)

// fault is a fault that the test produces, and the conditions that smc_chk must find.
type fault struct {
	name string
	// make and undo are shell scripts. Without undo the fault stays, or does not matter to the next ones.
	make, undo string
	// args are those of smc_chk.
	args string
	// ids are conditions that smc_chk finds with the fault, and does not find without it.
	ids string
	// able is the answer that is expected.
	able bool
	// as is a command that runs smc_chk.
	as string
}

// answer is the JSON document of smc_chk.
type answer struct{ smcchk.Document }

func (a *answer) has(id string) bool {
	for _, f := range a.Findings {
		if f.ID == id {
			return true
		}
	}
	return false
}

// transport is what the test connection has used, "" if there was none.
func (a *answer) transport() string {
	if a.Live == nil {
		return ""
	}
	return a.Live.Transport
}

// bench is a guest, and the conditions found in it.
type bench struct {
	*lab.Test
	found map[string]bool
	// gone are conditions whose cause has been removed: smc_chk must not report them afterwards.
	gone []string
}

// runCheck runs smc_chk and checks that its exit status matches its answer.
func (b *bench) runCheck(t *testing.T, f fault) *answer {
	t.Helper()
	argv := append(strings.Fields(f.as), "smc_chk", "--json")
	return b.askOn(t, "a", append(argv, strings.Fields(f.args)...))
}

func (b *bench) askOn(t *testing.T, host string, argv []string) *answer {
	t.Helper()
	r := b.Run(host, argv...)
	var a answer
	if err := jsondoc.Decode([]byte(r.Stdout), &a.Document); err != nil || r.Stderr != "" {
		t.Fatalf("%q: exit status %d, %v\n%s%s", argv, r.Code, err, r.Stdout, r.Stderr)
	}
	if a.Able != (r.Code == 0) || r.Code > 1 {
		t.Errorf("%q: exit status %d, able: %t", argv, r.Code, a.Able)
	}
	return &a
}

// produce makes faults, one after the other.
func (b *bench) produce(t *testing.T, faults []fault) {
	b.gone = nil
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			b.Must("a", f.make)
			a := b.runCheck(t, f)
			wanted := strings.Fields(f.ids)
			for _, id := range wanted {
				if !a.has(id) {
					t.Errorf("%s is not found: %+v", id, a.Findings)
				}
				b.found[id] = true
			}
			for _, id := range b.gone {
				if a.has(id) && !slices.Contains(wanted, id) {
					t.Errorf("%s is still there, or again: %+v", id, a.Findings)
				}
			}
			if a.Able != f.able {
				t.Errorf("able: %t, not %t: %+v", a.Able, f.able, a.Findings)
			}
			b.gone = nil
			if f.undo != "" {
				b.Must("a", f.undo)
				b.gone = wanted
			}
		})
	}
}

// start starts a program in the background, and waits until script succeeds.
func (b *bench) start(t *testing.T, ready string, argv ...string) *lab.Process {
	t.Helper()
	return b.startOn(t, "a", ready, argv...)
}

func (b *bench) startOn(t *testing.T, host, ready string, argv ...string) *lab.Process {
	t.Helper()
	p, err := b.Host(host).Start(lab.Cmd{Argv: argv})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Host(host).WaitFor(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestConditions produces most conditions of smc_chk, in one guest of the newest kernel.
func TestConditions(t *testing.T) {
	lab.Need(t)
	kernel := lab.Newest()
	if err := lab.CheckModule(t.Context(), kernel, lab.ModuleOurs, nil); err != nil {
		t.Fatal(err)
	}
	dir, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{lab.Start(t, lab.Options{Kernel: kernel, CPUs: 2, Programs: []string{dir}}), map[string]bool{}, nil}
	peers, err := os.ReadFile("testdata/peer.py")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Host("a").WriteFile(t.Context(), "/run/peer.py", peers, 0o755); err != nil {
		t.Fatal(err)
	}

	t.Run("no module", func(t *testing.T) {
		b.Must("a", "ip link set lo up")
		b.produce(t, absent)
		// It keeps running as a server on a host without AF_SMC.
		b.start(t, "grep -q ':0FA0 ' /proc/net/tcp", "smc_chk", "--server", "4000")
	})
	if err := b.InstallSMC(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Must("a", "cp "+installed+" /run/good.ko")
	t.Run("not loaded", func(t *testing.T) { b.produce(t, unloadable) })
	t.Run("switched off", func(t *testing.T) { b.produce(t, switches) })
	b.Must("a", "modprobe smc")
	t.Run("no device", func(t *testing.T) { b.produce(t, bare) })
	if err := b.SetUpSelf(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("works", func(t *testing.T) { works(t, b) })
	t.Run("host", func(t *testing.T) { b.produce(t, host) })
	t.Run("device", func(t *testing.T) { b.Must("a", aside); b.produce(t, device) })
	t.Run("namespace", func(t *testing.T) { b.produce(t, namespace) })
	t.Run("path", func(t *testing.T) { b.produce(t, path) })
	t.Run("live", func(t *testing.T) { b.Must("a", "smcd loopback off"); b.produce(t, live) })
	t.Run("works again", func(t *testing.T) { works(t, b) })
	t.Run("archive", func(t *testing.T) { archive(t, b) })
	t.Run("for ever", func(t *testing.T) { b.produce(t, forEver) })

	all := check.Conditions()
	n := 0
	for id := range b.found {
		if !slices.ContainsFunc(all, func(c check.Condition) bool { return c.ID == id }) {
			t.Errorf("there is no condition %s", id)
		}
		n++
	}
	t.Logf("%d of %d conditions were produced", n, len(all))
	if n < 50 && !t.Failed() {
		t.Errorf("%d conditions were produced, fewer than there are faults for", n)
	}
}

// works checks that smc_chk finds both transports, and reports them in the words of smc-tools.
func works(t *testing.T, b *bench) {
	server := b.start(t, "smcss -l | grep -q :37373", "smc_chk", "--server")
	for _, c := range []struct{ loopback, target, mode string }{{"on", "127.0.0.1", "SMC-D"}, {"off", lab.SelfAddr, "SMC-R"}} {
		out := b.Must("a", "smcd loopback "+c.loopback+" >/dev/null 2>&1; smc_chk --connect "+c.target)
		for _, want := range []string{
			"Test with target IP " + c.target + " and port 37373\n  Live test (SMC-D and SMC-R)\n     Success, using " + c.mode + "\n",
			"Version:    2.1\n", "Latency:    ", "Throughput: ",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in:\n%s", want, out)
			}
		}
		if strings.Contains(out, "[") {
			t.Errorf("something is wrong with a connection that works:\n%s", out)
		}
	}
	b.Must("a", "smcd loopback on")
	if a := b.runCheck(t, fault{args: "-C " + lab.SelfAddr + " -s"}); !a.Able {
		t.Errorf("%+v", a.Findings)
	}
	lab.Kill(t, server)
}

// archive checks that smc_dbg collects its files.
func archive(t *testing.T, b *bench) {
	b.Must("a", "cd /run && smc_dbg -o report.tgz && test $(stat -c %a report.tgz) = 600 && tar xzf report.tgz")
	for file, want := range map[string]string{
		"check.txt":        "SMC is possible\n",
		"module.txt":       "sys/module/smc/srcversion = ",
		"dmesg.txt":        "smc: loading out-of-tree module",
		"smcr_devices.txt": "self0",
		"pnet_table.txt":   "SELF v0 n/a 255",
		"ueid.txt":         lab.UEID,
		"sysctl.txt":       "net.smc.rmem = 65536",
		"interfaces.txt":   "address MAC-",
		"routes.txt":       "10.9.0.0/24",
		"smcr_stats.txt":   "SMC-R Connections Summary",
	} {
		if out := b.Must("a", "cat /run/smc_dbg/"+file); !strings.Contains(out, want) {
			t.Errorf("no %q in %s:\n%s", want, file, out)
		}
	}
	mac := strings.TrimSpace(b.Must("a", "cat /sys/class/net/v0/address"))
	if out := b.Must("a", "cat /run/smc_dbg/*"); strings.Contains(out, mac) || strings.Contains(out, "ff:fe") || strings.Contains(out, "cryptomgr") {
		t.Errorf("a MAC address, or the kernel's command line:\n%s", out)
	}
	if out := b.Must("a", "smc_dbg --mask 2>&1"); strings.Contains(out, "10.9.0.") {
		t.Errorf("IP addresses:\n%s", out)
	}
}
