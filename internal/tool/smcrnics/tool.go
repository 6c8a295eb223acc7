// SPDX-License-Identifier: Apache-2.0

// Package smcrnics is the command smc_rnics.
package smcrnics

import (
	"context"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/spf13/cobra"
)

// Tool is smc_rnics.
var Tool = cli.Tool{
	Name: "smc_rnics",
	New:  func(env *cli.Env) *cobra.Command { return newCommand(env, system) },
	Long: []string{"all", "enable", "disable", "help", "IB-dev", "rawids", "version"},
}

// scanner accesses the devices of the system; *ism.Scanner implements it.
type scanner interface {
	Scan(ctx context.Context) (*ism.Inventory, error)
	SetPower(ctx context.Context, d *ism.Device, on bool) (changed bool, err error)
}

// system returns the scanner of this host. With quick it reads only sysfs, which is sufficient for completion and for
// switching. Then it opens no socket, and the kernel loads no module.
func system(quick bool) scanner {
	if quick {
		return &ism.Scanner{}
	}
	return &ism.Scanner{RDMA: ism.Netlink{}, PNET: table{}}
}

// table lists the PNET table of the kernel. It opens a socket only when the table is listed.
type table struct{}

func (table) List(ctx context.Context) (pnet.Table, error) {
	c, err := pnet.NewContext(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.List(ctx)
}

// options is a parsed command line and the system to run it on.
type options struct {
	env  *cli.Env
	scan func(quick bool) scanner

	all, ibDev, raw, json bool
	// enable and disable name the device to switch, device the one to list; nil if not given.
	enable, disable, device *target
}

func newCommand(env *cli.Env, scan func(quick bool) scanner) *cobra.Command {
	o := &options{env: env, scan: scan}
	cmd := &cobra.Command{
		Use:     "smc_rnics [-a] [-I] [-r] [--json] [DEVICE] | {-e | -d} DEVICE",
		Short:   "List RoCE and ISM devices, and switch them on and off",
		Long:    long,
		Example: example,
		Args:    cobra.MaximumNArgs(1),

		DisableFlagsInUseLine: true,
	}
	var enable, disable string
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVarP(&o.all, "all", "a", false, "also list devices that are switched off, and other PCI functions")
	flags.BoolVarP(&o.ibDev, "IB-dev", "I", false, "list RDMA devices and their ports, not interfaces (IBM Z)")
	flags.BoolVarP(&o.raw, "rawids", "r", false, "show numbers instead of names: vendor:device, PFT and VFN")
	flags.StringVarP(&enable, "enable", "e", "", "switch `DEVICE` on: a FID, a device name or a PCI address")
	flags.StringVarP(&disable, "disable", "d", "", "switch `DEVICE` off")
	env.AddYesFlag(flags)
	cli.AddJSONFlag(flags, env, &o.json, "print one JSON document")
	cli.AddNetNSFlag(cmd, env)

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if cmd.Flags().Changed("enable") {
			o.enable, err = parseTarget(enable)
		}
		if err == nil && cmd.Flags().Changed("disable") {
			o.disable, err = parseTarget(disable)
		}
		if err == nil && len(args) > 0 {
			o.device, err = parseTarget(args[0])
		}
		if err != nil {
			return err
		}
		return run(cmd.Context(), o)
	}
	complete(cmd, o)
	return cmd
}

func run(ctx context.Context, o *options) error {
	switch {
	case o.enable != nil && o.disable != nil:
		return cli.Usagef("-e and -d cannot be combined")
	case o.device != nil && (o.enable != nil || o.disable != nil):
		return cli.Usagef("-e and -d take one device: unexpected operand %q", o.device.text)
	case o.enable != nil:
		return switchPower(ctx, o, o.enable, true)
	case o.disable != nil:
		return switchPower(ctx, o, o.disable, false)
	}
	return list(ctx, o)
}
