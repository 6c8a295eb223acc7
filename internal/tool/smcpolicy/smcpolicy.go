// SPDX-License-Identifier: Apache-2.0

// Package smcpolicy is the command smc_policy, which shows and changes the rules by which ordinary TCP sockets become SMC, and SMC
// sockets stay TCP.
package smcpolicy

import (
	"context"
	"os"
	"path/filepath"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/spf13/cobra"
	"github.com/vishvananda/netlink"
)

const toolName = "smc_policy"

// Tool is the command.
var Tool = cli.Tool{
	Name: toolName,
	New:  func(env *cli.Env) *cobra.Command { return newRoot(env, realSystem()) },
}

// kernel is the policy in the kernel; *policy.Client implements it.
type kernel interface {
	Get(ctx context.Context) (policy.Policy, error)
	SetRules(ctx context.Context, generation uint32, rules []policy.Rule) error
	Enable(ctx context.Context, generation uint32, on bool) error
	Services(ctx context.Context) ([]policy.Service, error)
	FlushServices(ctx context.Context) error
	Peers(ctx context.Context) ([]policy.Peer, error)
	ForgetPeers(ctx context.Context) error
	Memory(ctx context.Context) (policy.Memory, error)
	Close() error
}

// system has the parts of the machine that the command uses. Tests replace it.
type system struct {
	dial  func(context.Context) (kernel, error)
	names policy.Names
	// cgroups is the directory of the control groups of version 2, "" if the host has none.
	cgroups string
	// lookUp returns the addresses of a host.
	lookUp func(ctx context.Context, host string) ([]string, error)
	// primaryGroup returns the group that a user's processes have after a login.
	primaryGroup func(user uint32) (uint32, error)
	// self returns who would make a socket now.
	self func() policy.Who
	// settings is the directory of the settings net.smc.*.
	settings string
	// sockets returns the sockets of TCP.
	sockets func() []*netlink.Socket
}

func realSystem() system {
	return system{
		dial: func(ctx context.Context) (kernel, error) {
			c, err := policy.NewContext(ctx)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		names:        policy.SystemNames{},
		cgroups:      cgroupDir(),
		lookUp:       lookUpHost,
		primaryGroup: primaryGroup,
		self:         self,
		settings:     settingsDir,
		sockets:      tcpSockets,
	}
}

// cgroupDir returns where the control groups of version 2 are mounted: beside those of version 1, they have a directory of their own.
func cgroupDir() string {
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.controllers")); err == nil {
			return dir
		}
	}
	return ""
}

// command has the state that all commands of the tree share.
type command struct {
	env *cli.Env
	sys system
	// json is the option --json.
	json bool
	// watch is the option --watch of listings of what changes.
	watch cli.Watch
	// services are what explain has read of them.
	services []policy.Service
	// remembered are the peers that explain has read.
	remembered []policy.Peer
}

func newRoot(env *cli.Env, sys system) *cobra.Command {
	c := &command{env: env, sys: sys}
	root := &cobra.Command{
		Use:     toolName,
		Short:   "Say which sockets use SMC",
		Long:    rootLong,
		Example: rootExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.list(cmd.Context(), c.show) },
	}
	c.watch.AddFlag(root.Flags())
	cli.AddJSONFlag(root.PersistentFlags(), env, &c.json, "print one JSON document")
	cli.AddNetNSFlag(root, env)
	root.AddCommand(newShow(c), newAdd(c), newDel(c), newFlush(c), newApply(c), newExport(c), newSwitch(c, "on"), newSwitch(c, "off"))
	root.AddCommand(newExplain(c), newAuto(c), newPeers(c), newMemory(c), newNamespaces(c))
	return root
}

// list prints a listing once, or repeatedly with --watch.
func (c *command) list(ctx context.Context, show func(context.Context) error) error {
	return c.watch.List(ctx, c.env, c.json, func() error { return show(ctx) })
}

// withKernel calls f with the policy in the kernel.
func (c *command) withKernel(ctx context.Context, f func(kernel) error) error {
	k, err := c.sys.dial(ctx)
	if err != nil {
		return err
	}
	defer k.Close()
	return f(k)
}
