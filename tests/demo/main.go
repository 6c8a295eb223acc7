// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command demo is `make demo`: it boots two guests, makes them talk SMC-R, shows what our commands say while data moves,
// and ends with a verdict.
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

	"github.com/smckit/smckit/tests/lab"
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

// module says whose AF_SMC module talks: $MODULE, or the kernel's own.
func module() lab.Module {
	if m := os.Getenv("MODULE"); m != "" {
		return lab.Module(m)
	}
	return lab.ModuleStock
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
	d.say("boot two guests with Debian's kernel 6.12")
	if err := lab.CheckModule(ctx, "6.12", module(), func(string) {}); err != nil {
		return err
	}
	programs, err := lab.Commands(ctx)
	if err != nil {
		return err
	}
	d.lab, err = lab.New(ctx, lab.Options{
		Kernel: "6.12", Hosts: 2, Programs: []string{programs},
		Progress: func(s string) { fmt.Printf("   %5.1f s  %s\n", time.Since(d.begin).Seconds(), s) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.lab.Close()) }()
	d.summary = append(d.summary, "kernel      "+d.lab.Hosts[0].Kernel.Release+" in two guests, a and b")

	for _, part := range []func(context.Context) error{d.network, d.configure, d.transfer, d.checkLogs} {
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
	return d.lab.LoadSMC(ctx, module())
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

func (d *demo) transfer(ctx context.Context) error {
	d.say("a sends to b on an AF_SMC socket")
	sink, err := d.lab.Host("b").Start(d.background("smcflow sink 0.0.0.0:5001"))
	if err != nil {
		return err
	}
	defer func() { _ = sink.Signal(syscall.SIGTERM) }()
	source, err := d.lab.Host("a").Start(lab.Cmd{
		Argv: []string{"smcflow", "source", "--seconds", fmt.Sprint(transferSeconds), "--wait", lab.Addr4(0, 1) + ":5001"},
	})
	if err != nil {
		return err
	}
	mode := "SMC[RD]"
	if module() == lab.ModuleOurs {
		mode = "TCP" // it has no transport yet: all its connections fall back
	}
	if err := d.lab.Host("a").WaitFor(ctx, "smcss | grep -q '^ACTIVE .* "+mode+"'"); err != nil {
		return fmt.Errorf("no connection came up: %w", err)
	}
	if err := d.look(ctx); err != nil {
		// What the commands miss may be the transfer's fault: then its own words say more.
		_ = source.Signal(syscall.SIGKILL)
		if r, werr := source.Wait(ctx); werr == nil && r.Stderr != "" {
			err = fmt.Errorf("%w (the transfer had failed: %s)", err, strings.TrimSpace(r.Stderr))
		}
		return err
	}
	// It says how fast it was when it is told to end.
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
	fmt.Printf("\na# smcflow source …\n%s\n", rate)
	by := "SMC-R version 2 over soft-RoCE"
	if module() == lab.ModuleOurs {
		by = "TCP, to which AF_SMC fell back"
	}
	d.summary = append(d.summary,
		"connection  a to b by "+by,
		"throughput  "+rate+" (the processors are emulated: only ratios mean anything)")
	return nil
}

// look shows what our commands say while data moves.
func (d *demo) look(ctx context.Context) error {
	mode, linkgroup := "SMCR", "SINGLE"
	if module() == lab.ModuleOurs {
		mode, linkgroup = "TCP", ""
	}
	for _, c := range []struct{ cmd, want string }{
		{"smc_pnet show", lab.PNETID + " eth0 n/a 255"},
		{"smc_rnics", "rxe0"},
		{"smcss -a", mode},
		{"smcr linkgroup", linkgroup},
		{"smcr-stats -d", "Client"},
	} {
		if err := d.show(ctx, "a", c.cmd, c.want); err != nil {
			return err
		}
	}
	return nil
}

// background describes a program that goes on while others run; its output is of no interest.
func (d *demo) background(cmd string) lab.Cmd {
	return lab.Cmd{Argv: strings.Fields(cmd), Stdout: io.Discard}
}

// show runs a command as a person would and prints what it says. It must succeed and say want.
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
