// SPDX-License-Identifier: Apache-2.0

//go:build linux

package arch

import (
	"os"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// start boots the hosts a and b, which can use SMC-R with each other.
func start(t *testing.T, p pair) *lab.Test {
	t.Helper()
	programs, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lt := lab.Start(t, lab.Options{
		Hosts: 2, Archs: []string{p[0].arch, p[1].arch}, Kernels: []string{p[0].kernel, p[1].kernel}, Programs: []string{programs},
	})
	if err := lt.SetUpSMC(t.Context(), p[0].module, p[1].module); err != nil {
		t.Fatal(err)
	}
	// Try SMC again after a handshake that came too late. The stock module remembers none.
	for _, h := range lt.Hosts {
		lt.Must(h.Name, "sysctl -qw net.smc.remember_peers=0 2>/dev/null || :")
	}
	return lt
}

// TestBigEndian boots a host of the other byte order, with our module and the newest kernel. How it uses SMC-R with hosts of this byte
// order is left to make test-arch: an emulated host may be too late for a handshake.
func TestBigEndian(t *testing.T) {
	lab.Need(t)
	hosts := bigEndian()
	s390x := hosts[0]
	if err := lab.CheckArchModule(t.Context(), s390x.arch, s390x.kernel, s390x.module, func(s string) { t.Log(s) }); err != nil {
		t.Skipf("the archive may lack this kernel for s390x, as 'make modules-s390x' says then: %v", err)
	}
	programs, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lt := lab.Start(t, lab.Options{Archs: []string{s390x.arch}, Kernels: []string{s390x.kernel}, Programs: []string{programs}})
	if err := lt.LoadSMC(t.Context(), s390x.module); err != nil {
		t.Fatal(err)
	}
	lt.Must("a", "ip link set lo up")
	r := newRecorder(t, lt, hosts)
	r.run(suiteWire, func(t *testing.T) { wire(t, lt, s390x) })
	r.run(suiteSMCD, func(t *testing.T) { smcd(t, lt) })
}

// TestArchitectures boots all pairs.
func TestArchitectures(t *testing.T) {
	lab.Need(t)
	if os.Getenv("SMCKIT_ARCH") == "" {
		t.Skip("needs modules for all architectures: run 'make test-arch'")
	}
	for _, p := range pairs() {
		t.Run(p.String(), func(t *testing.T) { architecture(t, start(t, p), p) })
	}
}

// architecture runs the suites of a pair.
func architecture(t *testing.T, lt *lab.Test, p pair) {
	all := map[string]func(t *testing.T){
		suiteWire:     func(t *testing.T) { wire(t, lt, p[0]) },
		suiteSMCD:     func(t *testing.T) { smcd(t, lt) },
		suiteSMCR:     func(t *testing.T) { smcr(t, lt, p) },
		suiteV1:       func(t *testing.T) { version1(t, lt) },
		suiteCommands: func(t *testing.T) { commands(t, lt, p[0]) },
		suiteRules:    func(t *testing.T) { rules(t, lt) },
		suitePrograms: func(t *testing.T) { programs(t, lt, p[0]) },
		suiteUnits:    func(t *testing.T) { units(t, lt) },
	}
	r := newRecorder(t, lt, p)
	for _, suite := range suites {
		if p.has(suite) {
			r.run(suite, all[suite])
		}
	}
}
