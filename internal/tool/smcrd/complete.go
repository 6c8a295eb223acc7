// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"context"
	"slices"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/spf13/cobra"
)

// Completions come from the kernel's lists. If a list cannot be read, there are no completions and no message.

// offer calls list with an open client and returns the result without empty and duplicate entries.
func (o *options) offer(ctx context.Context, list func(c client) []string, fixed ...string) ([]string, cobra.ShellCompDirective) {
	c, err := o.open(ctx)
	if err == nil {
		fixed = append(fixed, list(c)...)
		c.Close()
	}
	seen := map[string]bool{"": true}
	fixed = slices.DeleteFunc(fixed, func(s string) bool {
		double := seen[s]
		seen[s] = true
		return double
	})
	return fixed, cobra.ShellCompDirectiveNoFileComp
}

func (o *options) completeLinkGroup(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx := cmd.Context()
	if len(args) > 0 && args[0] == "delete" {
		return o.completeDelete(ctx, cmd, args[1:])
	}
	if len(args) > 0 && o.tech == techR {
		if word, ok := abbreviated(args[len(args)-1], "ibdev", "netdev"); ok {
			return o.offer(ctx, func(c client) []string { return o.linkDevices(ctx, c, word == "netdev") })
		}
	}
	var fixed []string
	if len(args) == 0 {
		fixed = []string{"show", "all", "help", "delete"}
		if o.tech == techR && cmd.Name() == "linkgroup" {
			fixed = append(fixed, "link-show")
		}
	}
	if o.tech == techR {
		fixed = append(fixed, "ibdev", "netdev")
	}
	return o.offer(ctx, func(c client) []string { return o.linkGroupIDs(ctx, c) }, fixed...)
}

// completeDelete completes the words after "delete".
func (o *options) completeDelete(ctx context.Context, cmd *cobra.Command, args []string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return o.offer(ctx, func(c client) []string { return o.linkGroupIDs(ctx, c) })
	case len(args) == 1 && cmd.Name() == "link":
		return o.offer(ctx, func(c client) []string { return o.linkIDs(ctx, c, args[0]) })
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func (o *options) linkGroupIDs(ctx context.Context, c client) []string {
	var ids []string
	if o.tech == techD {
		groups, _ := c.LinkGroupsD(ctx)
		for _, g := range groups {
			ids = append(ids, hex8(g.ID))
		}
		return ids
	}
	groups, _ := c.LinkGroupsR(ctx)
	for _, g := range groups {
		ids = append(ids, hex8(g.ID))
	}
	return ids
}

func (o *options) linkDevices(ctx context.Context, c client, netdev bool) []string {
	var names []string
	groups, _ := c.LinkGroupsRWithLinks(ctx)
	for _, g := range groups {
		for _, l := range g.Links {
			if netdev {
				names = append(names, o.ifname(l.NetIfindex))
			} else {
				names = append(names, l.IBDev)
			}
		}
	}
	return names
}

func (o *options) completeDevice(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if o.tech == techD {
		return words("show", "all", "help")(cmd, args, "")
	}
	if len(args) == 0 {
		return []string{"show", "all", "ibdev", "netdev", "help"}, cobra.ShellCompDirectiveNoFileComp
	}
	word, ok := abbreviated(args[len(args)-1], "ibdev", "netdev")
	if !ok {
		return []string{"ibdev", "netdev"}, cobra.ShellCompDirectiveNoFileComp
	}
	netdev := o.deviceNetdevs()
	return o.offer(cmd.Context(), func(c client) []string {
		devices, _ := c.DevicesR(cmd.Context())
		return deviceNames(devices, word == "netdev", netdev)
	})
}

func deviceNames(devices []netlinksmc.Device, netdev bool, name func(uint32) string) []string {
	var names []string
	for _, d := range devices {
		if !netdev {
			names = append(names, d.IBName)
			continue
		}
		for _, p := range d.Ports {
			names = append(names, name(p.NetIfindex))
		}
	}
	return names
}

func (o *options) completeUEID(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return []string{"show", "add", "del", "flush", "help"}, cobra.ShellCompDirectiveNoFileComp
	}
	if word, ok := abbreviated(args[0], "del", "delete"); !ok || word == "" || len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return o.offer(cmd.Context(), func(c client) []string {
		eids, _ := c.UEIDs(cmd.Context())
		return eids
	})
}
