// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Module selects the AF_SMC module that the hosts of an SMC network load.
type Module string

// The modules.
const (
	ModuleStock Module = "stock" // the one that the distribution ships with the kernel
	ModuleOurs  Module = "ours"  // the one built in this repository
	ModuleNone  Module = "none"  // no module, for a kernel that has none
)

// UEID is the enterprise ID that all hosts of an SMC network share. Soft-RoCE has RoCEv2 addresses only, so two stock
// hosts need SMC-Rv2, and that needs a common EID.
const UEID = "SMCKIT.LAB"

// PNETID is the physical network that SetUpSMC gives the first wire; further ones are LAB1, LAB2, ….
const PNETID = "LAB0"

// Addr4 returns the IPv4 address of a host (0 is a) on a wire.
func Addr4(wire, host int) string { return fmt.Sprintf("10.0.%d.%d", wire, host+1) }

// Addr6 returns the IPv6 address of a host (0 is a) on a wire.
func Addr6(wire, host int) string { return fmt.Sprintf("fd00:0:0:%x::%x", wire, host+1) }

// SetUpAddresses gives every interface of every host its addresses and sets it up.
func (l *Lab) SetUpAddresses(ctx context.Context) error {
	return l.each(ctx, func(ctx context.Context, h *Host) error {
		var script strings.Builder
		for i := range l.Wires {
			fmt.Fprintf(&script, "ip link set eth%d up\n", i)
			fmt.Fprintf(&script, "ip addr add %s/24 dev eth%d\n", Addr4(i, h.index), i)
			fmt.Fprintf(&script, "ip addr add %s/64 dev eth%d nodad\n", Addr6(i, h.index), i)
		}
		_, err := h.Shell(ctx, script.String())
		return err
	})
}

// SetUpRDMA puts a soft-RoCE device on every interface of every host: rxe0 on eth0, and so on.
func (l *Lab) SetUpRDMA(ctx context.Context) error {
	return l.each(ctx, func(ctx context.Context, h *Host) error {
		script := "modprobe rdma_rxe\n"
		for i := range l.Wires {
			script += fmt.Sprintf("rdma link add rxe%d type rxe netdev eth%d\n", i, i)
		}
		_, err := h.Shell(ctx, script)
		return err
	})
}

// LoadSMC loads the AF_SMC module and its sock_diag companion on every host: one module for all of them, or one for each.
func (l *Lab) LoadSMC(ctx context.Context, modules ...Module) error {
	return l.each(ctx, func(ctx context.Context, h *Host) error {
		switch module := h.moduleOf(modules); module {
		case ModuleNone:
			return nil
		case ModuleStock:
			if err := h.Kernel.needStock(); err != nil {
				return err
			}
		case ModuleOurs:
			if err := h.installSMC(ctx); err != nil {
				return err
			}
		default:
			return fmt.Errorf("no module %q: choose stock or ours", module)
		}
		_, err := h.Shell(ctx, "modprobe smc\nmodprobe smc_diag\n")
		return err
	})
}

func (h *Host) moduleOf(modules []Module) Module { return modules[min(h.index, len(modules)-1)] }

// needStock fails if the kernel's distribution ships no AF_SMC with it.
func (k *Kernel) needStock() error {
	if k.HasModule("smc") {
		return nil
	}
	return fmt.Errorf("kernel %s ships no AF_SMC module: choose another kernel, the one built here (--module ours), or do without (--module none)", k.Release)
}

// CheckModule fails if a kernel of the given series cannot load that module. It provisions the kernel but boots no guest.
func CheckModule(ctx context.Context, series string, module Module, progress func(string)) error {
	if module == ModuleNone {
		return nil
	}
	k, err := Provision(ctx, series, false, progress)
	if err != nil {
		return err
	}
	return k.checkModule(module)
}

// CheckArchModule does what CheckModule does for the kernel of an architecture.
func CheckArchModule(ctx context.Context, arch, series string, module Module, progress func(string)) error {
	if module == ModuleNone {
		return nil
	}
	k, err := ProvisionArch(ctx, arch, series, false, progress)
	if err != nil {
		return err
	}
	return k.checkModule(module)
}

func (k *Kernel) checkModule(module Module) error {
	if module == ModuleOurs {
		return k.checkOurs()
	}
	return k.needStock()
}

// InstallSMC copies the modules that `make modules` has built to every host, where modprobe and a kernel that loads modules
// by itself find them first. It loads none.
func (l *Lab) InstallSMC(ctx context.Context) error {
	return l.each(ctx, func(ctx context.Context, h *Host) error { return h.installSMC(ctx) })
}

func (h *Host) installSMC(ctx context.Context) error {
	if err := h.Kernel.checkOurs(); err != nil {
		return err
	}
	dir, _, err := moduleDir(h.Kernel)
	if err != nil {
		return err
	}
	_, err = h.Shell(ctx, fmt.Sprintf("cp -r '%s/tree/.' /lib/modules/$(uname -r)/", dir))
	return err
}

// SetUpSMC makes the lab a network in which any two hosts talk SMC-R: addresses, soft-RoCE, the modules as LoadSMC loads them,
// one EID, and a PNET ID for each wire. Our own commands, built from this repository, are in the hosts' PATH if
// Options.Programs has them.
func (l *Lab) SetUpSMC(ctx context.Context, modules ...Module) error {
	for _, step := range []func(context.Context) error{
		l.SetUpAddresses,
		l.SetUpRDMA,
		func(ctx context.Context) error { return l.LoadSMC(ctx, modules...) },
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return l.each(ctx, func(ctx context.Context, h *Host) error {
		module := h.moduleOf(modules)
		if module == ModuleNone {
			return nil
		}
		script := "smcr ueid add " + UEID + "\n"
		if module == ModuleOurs {
			// This helps to explain a failure.
			script += "for e in smc_link_fail smc_fallback smc_rendezvous; do echo 1 >/sys/kernel/tracing/events/smckit/$e/enable; done\n"
		}
		for i := range l.Wires {
			script += fmt.Sprintf("smc_pnet add LAB%[1]d eth eth%[1]d\n", i)
			if module == ModuleStock && !h.Kernel.StockSMCRWorks() {
				l.options.Progress("kernel " + h.Kernel.Series + ": its own AF_SMC hangs over soft-RoCE, so its connections fall back to TCP")
				continue
			}
			script += fmt.Sprintf("smc_pnet add LAB%[1]d ib rxe%[1]d 1\n", i)
		}
		_, err := h.Shell(ctx, script)
		return err
	})
}

// StockSMCRWorks reports whether the kernel's own AF_SMC works with its own soft-RoCE. On Linux 6.1 it does not: first contact
// fails, and taking the link down then waits in smc_wr_drain_cq for completions that rdma_rxe never delivers, for ever and
// with the socket locked. Without a PNET ID on the RDMA device 6.1 does not find the device, and falls back properly.
func (k *Kernel) StockSMCRWorks() bool { return k.Series != "6.1" }

// each runs a step on all hosts at once.
func (l *Lab) each(ctx context.Context, step func(context.Context, *Host) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, h := range l.Hosts {
		group.Go(func() error { return step(ctx, h) })
	}
	return group.Wait()
}
