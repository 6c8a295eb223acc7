// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command demo is `make demo`: it boots two guests, connects them by SMC-R, by SMC-D through memory that their host gives both,
// and one of them with itself by SMC-D, shows the output of our commands while data moves, and ends with a verdict.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/pkg/ism"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := &demo{begin: time.Now()}
	err := d.run(ctx)
	fmt.Println()
	if err != nil {
		fmt.Printf("demo: FAILED after %.0f s, at %q: %v\n", time.Since(d.begin).Seconds(), d.step, err)
		stop()
		os.Exit(1)
	}
	fmt.Printf("demo: all parts worked, in %.0f s\n", time.Since(d.begin).Seconds())
	for _, line := range d.summary {
		fmt.Println("  " + line)
	}
}

// demo is one run.
type demo struct {
	begin   time.Time
	step    string
	lab     *lab.Lab
	summary []string
}

// module is the AF_SMC module that is loaded: $MODULE, or ours.
func module() lab.Module {
	if m := os.Getenv("MODULE"); m != "" {
		return lab.Module(m)
	}
	return lab.ModuleOurs
}

// kernel is the newest, or the newest with which Debian ships AF_SMC.
func kernel() string {
	if module() == lab.ModuleStock {
		return lab.DefaultSeries()
	}
	return lab.Newest()
}

// transferSeconds is how long data moves at most. It ends when every command has seen it.
const transferSeconds = 600

func (d *demo) say(step string) {
	d.step = step
	fmt.Printf("\n== %5.1f s  %s\n", time.Since(d.begin).Seconds(), step)
}

func (d *demo) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	d.say("boot two guests with Debian's kernel " + kernel())
	if err := lab.CheckModule(ctx, kernel(), module(), func(string) {}); err != nil {
		return err
	}
	programs, err := lab.Commands(ctx)
	if err != nil {
		return err
	}
	o := lab.Options{
		Kernel: kernel(), Hosts: 2, Programs: []string{programs},
		Progress: func(s string) { fmt.Printf("   %5.1f s  %s\n", time.Since(d.begin).Seconds(), s) },
	}
	if module() != lab.ModuleStock {
		o.Fabric = lab.Fabric{Size: 64 << 20}
	}
	d.lab, err = lab.New(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.lab.Close()) }()
	d.summary = append(d.summary, "kernel      "+d.lab.Hosts[0].Kernel.Release+" in two guests, a and b")

	for _, part := range []func(context.Context) error{d.network, d.configure, d.transfer, d.shared, d.local, d.checkLogs} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) network(ctx context.Context) error {
	d.say("addresses, a soft-RoCE device on each, and the AF_SMC module: " + string(module()))
	if err := d.lab.SetUpAddresses(ctx); err != nil {
		return err
	}
	if err := d.lab.SetUpRDMA(ctx); err != nil {
		return err
	}
	if err := d.lab.LoadSMC(ctx, module()); err != nil || module() == lab.ModuleStock {
		return err
	}
	// With the shared memory there would be no reason to use SMC-R.
	return d.bindFabric(ctx, "unbind")
}

// bindFabric lets the module use the memory that both guests share, or ends that.
func (d *demo) bindFabric(ctx context.Context, action string) error {
	script := fmt.Sprintf(`cd /sys/bus/pci/devices
for device in *; do
	case $(cat $device/vendor $device/device) in
	0x%04x?0x%04x) echo $device >/sys/bus/pci/drivers/%s/%s ;;
	esac
done`, ism.IVSHMEMVendor, ism.IVSHMEMDevice, ism.FabricDriver, action)
	for _, h := range d.lab.Hosts {
		if _, err := h.Shell(ctx, script); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) configure(ctx context.Context) error {
	d.say("PNET table and enterprise ID on both hosts")
	for _, host := range []string{"a", "b"} {
		for _, cmd := range []string{
			"smc_pnet add " + lab.PNETID + " eth eth0",
			"smc_pnet add " + lab.PNETID + " ib rxe0 1",
			"smcr ueid add " + lab.UEID,
		} {
			if err := d.show(ctx, host, cmd, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// flow is a transfer that runs while our commands observe it.
type flow struct {
	title, from, to string
	address         string
	mode            string // as smcss -a shows it
	by              string
	look            []look
}

// look is a command, and a word of its output during the transfer.
type look struct{ cmd, want string }

func (d *demo) transfer(ctx context.Context) error {
	return d.flow(ctx, flow{
		title: "a sends to b on an AF_SMC socket", from: "a", to: "b", address: lab.Addr4(0, 1) + ":5001",
		mode: "SMCR", by: "SMC-R version 2 over soft-RoCE",
		look: []look{
			{"smc_pnet show", lab.PNETID + " eth0 n/a 255"},
			{"smcss -a", "SMCR"},
			{"smcr linkgroup", "SINGLE"},
			{"smcr-stats -d", "Client"},
		},
	})
}

// shared shows SMC-D between the guests, which the stock module cannot do: it has no driver for memory that guests share.
func (d *demo) shared(ctx context.Context) error {
	if module() == lab.ModuleStock {
		return nil
	}
	d.say("give the module the memory that both guests share")
	if err := d.bindFabric(ctx, "bind"); err != nil {
		return err
	}
	return d.flow(ctx, flow{
		title: "a sends to b again, now through this memory", from: "a", to: "b", address: lab.Addr4(0, 1) + ":5003",
		mode: "SMCD", by: "SMC-D through memory of their host (ISM)",
		look: []look{
			{"smc_rnics", "D    fabric"},
			{"smcss -D", "10.0.0.2:5003"},
			{"smcd device", "1110"},
			{"smcd linkgroup", "00000"},
		},
	})
}

// local shows SMC-D, which the stock module cannot do: it has no loopback device.
func (d *demo) local(ctx context.Context) error {
	if module() == lab.ModuleStock {
		return nil
	}
	return d.flow(ctx, flow{
		title: "a sends to itself on an AF_SMC socket", from: "a", to: "a", address: "127.0.0.1:5002",
		mode: "SMCD", by: "SMC-D within the guest",
		look: []look{
			{"smcss -D", "SMCD"},
			{"smcd linkgroup", "00000"},
			{"smcd device", "loopback"},
		},
	})
}

func (d *demo) flow(ctx context.Context, f flow) error {
	d.say(f.title)
	sink, err := d.lab.Host(f.to).Start(d.background("smcflow sink " + f.address))
	if err != nil {
		return err
	}
	defer func() { _ = sink.Signal(syscall.SIGTERM) }()
	source, err := d.lab.Host(f.from).Start(lab.Cmd{
		Argv: []string{"smcflow", "source", "--seconds", fmt.Sprint(transferSeconds), "--wait", f.address},
	})
	if err != nil {
		return err
	}
	if err := d.lab.Host(f.from).WaitFor(ctx, "smcss -a | grep -q '^ACTIVE .* "+f.mode+"'"); err != nil {
		return fmt.Errorf("no connection came up: %w", err)
	}
	for _, l := range f.look {
		if err := d.show(ctx, f.from, l.cmd, l.want); err != nil {
			// If the commands find nothing, the transfer may have failed: its own output then says more.
			_ = source.Signal(syscall.SIGKILL)
			if r, werr := source.Wait(ctx); werr == nil && r.Stderr != "" {
				err = fmt.Errorf("%w (the transfer had failed: %s)", err, strings.TrimSpace(r.Stderr))
			}
			return err
		}
	}
	// It prints its speed when it is interrupted.
	if err := source.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	r, err := source.Wait(ctx)
	if err == nil && r.Code != 0 {
		err = errors.New(strings.TrimSpace(r.Stderr))
	}
	if err != nil {
		return fmt.Errorf("the transfer: %w", err)
	}
	rate := strings.TrimSpace(r.Stdout)
	fmt.Printf("\n%s# smcflow source …\n%s\n", f.from, rate)
	d.summary = append(d.summary,
		"connection  "+f.from+" to "+f.to+" by "+f.by,
		"throughput  "+rate+" (the processors are emulated: only ratios mean anything)")
	return nil
}

// background describes a program that runs beside others. Its output is ignored.
func (d *demo) background(cmd string) lab.Cmd {
	return lab.Cmd{Argv: strings.Fields(cmd), Stdout: io.Discard}
}

// show prints a command line, runs it and prints its output. It must succeed and print want.
func (d *demo) show(ctx context.Context, host, cmd, want string) error {
	r, err := d.lab.Host(host).Run(ctx, lab.Cmd{Argv: strings.Fields(cmd)})
	if err != nil {
		return err
	}
	fmt.Printf("\n%s# %s\n", host, cmd)
	fmt.Print(r.Stdout, r.Stderr)
	if r.Code != 0 {
		return fmt.Errorf("%q on host %s ended with status %d", cmd, host, r.Code)
	}
	if !strings.Contains(r.Stdout, want) {
		return fmt.Errorf("%q on host %s does not say %q", cmd, host, want)
	}
	return nil
}

func (d *demo) checkLogs(ctx context.Context) error {
	d.say("look for reports in the kernels' logs")
	for _, h := range d.lab.Hosts {
		log, err := h.Dmesg(ctx)
		if err != nil {
			return err
		}
		if found := lab.Reports(log); len(found) > 0 {
			return fmt.Errorf("the kernel of host %s reports: %s", h.Name, strings.Join(found, "; "))
		}
	}
	fmt.Println("none")
	d.summary = append(d.summary, "kernel logs clean")
	return nil
}
