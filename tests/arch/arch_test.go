// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package arch tests the module and the commands on other architectures than amd64, under emulation: s390x, which has the other byte
// order, and arm64, with pages of 4 and 16 KiB.
package arch

import (
	"fmt"
	"os"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// side is a host: its architecture, its kernel and its module.
type side struct {
	arch, kernel string
	module       lab.Module
}

func (s side) String() string { return fmt.Sprintf("%s on %s %s", s.module, s.arch, s.kernel) }

// ours is a host with our module.
func ours(arch, kernel string) side { return side{arch, kernel, lab.ModuleOurs} }

// start boots the hosts a and b, which can use SMC-R with each other.
func start(t *testing.T, a, b side) *lab.Test {
	t.Helper()
	programs, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lt := lab.Start(t, lab.Options{
		Hosts: 2, Archs: []string{a.arch, b.arch}, Kernels: []string{a.kernel, b.kernel}, Programs: []string{programs},
	})
	if err := lt.SetUpSMC(t.Context(), a.module, b.module); err != nil {
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
	s390x := ours("s390x", lab.Newest())
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
	t.Run("wire", func(t *testing.T) { wire(t, lt, s390x) })
	t.Run("SMC-D", func(t *testing.T) { smcd(t, lt) })
}

// pairs are the hosts of make test-arch: each kernel of each other architecture with the newest of amd64, hosts whose pages differ
// in size, and the stock module on either side.
func pairs() [][2]side {
	newest := lab.Newest()
	var all [][2]side
	for _, arch := range lab.Archs() {
		if arch == lab.NativeArch {
			continue
		}
		for _, kernel := range lab.ArchSeries(arch) {
			all = append(all, [2]side{ours(arch, kernel), ours(lab.NativeArch, newest)})
		}
	}
	stock := lab.DefaultSeries()
	return append(all,
		[2]side{ours("arm64-16k", newest), ours("s390x", newest)},
		[2]side{ours("s390x", newest), {lab.NativeArch, stock, lab.ModuleStock}},
		[2]side{ours("arm64", newest), {lab.NativeArch, stock, lab.ModuleStock}},
		[2]side{ours(lab.NativeArch, newest), {"s390x", stock, lab.ModuleStock}},
		[2]side{ours("s390x", newest), {"s390x", stock, lab.ModuleStock}},
	)
}

// TestArchitectures boots all pairs.
func TestArchitectures(t *testing.T) {
	lab.Need(t)
	if os.Getenv("SMCKIT_ARCH") == "" {
		t.Skip("needs modules for all architectures: run 'make test-arch'")
	}
	for _, p := range pairs() {
		t.Run(fmt.Sprintf("%s with %s", p[0], p[1]), func(t *testing.T) {
			lt := start(t, p[0], p[1])
			modules := [2]lab.Module{p[0].module, p[1].module}
			t.Run("SMC-R", func(t *testing.T) { smcr(t, lt, modules) })
			t.Run("SMC-D", func(t *testing.T) { smcd(t, lt) })
			if modules[1] == lab.ModuleOurs {
				t.Run("commands", func(t *testing.T) { commands(t, lt, p[0]) })
			}
			if p[0].arch != lab.NativeArch {
				t.Run("wire", func(t *testing.T) { wire(t, lt, p[0]) })
				t.Run("smc_policy", func(t *testing.T) { rules(t, lt) })
				t.Run("smc_run", func(t *testing.T) { programs(t, lt, p[0]) })
				t.Run("Go packages", func(t *testing.T) { units(t, lt) })
			}
		})
	}
}
