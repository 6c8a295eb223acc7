// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/spf13/cobra"
)

var linkGroupLongD = `List the SMC-D link groups: all, or the one with the given LG-ID, a hexadecimal
number. With -d each link group is a block of lines.

  show          link groups
  delete LG-ID  end a link group: its connections end with an error, and new
                ones form another group. Needs smckit's own module, and
                CAP_NET_ADMIN in the user namespace that owns the network
                namespace

JSON fields:
` + jsondoc.Describe(linkGroupsDJSON{}, `. GIDs are hexadecimal. Values that the kernel does not report are left out; peer_system
exists for SMC version 2.`) + `
  delete: schema; changed`

var linkGroupLongR = `List the SMC-R link groups: all, or the one with the given LG-ID, a hexadecimal
number whose last two digits do not matter. 'ibdev DEV' and 'netdev DEV' select
those that use an RDMA device or a network interface; you can combine them with
each other and with an LG-ID.

  show          link groups; with -d each as a block of lines
  link-show     their links; with -d also link UIDs and RDMA devices, with -dd
                also GIDs
  delete LG-ID  end a link group: its connections end with an error on both
                hosts, and new connections form another group. Needs smckit's
                own module, and CAP_NET_ADMIN in the user namespace that owns
                the network namespace. A network namespace can end its own
                groups only: groups over an RDMA device that namespaces share
                belong to the initial one

JSON fields:
` + jsondoc.Describe(linkGroupsRJSON{}, `, for link-show too. Values that the kernel does not report are left out; peer_system exists
for SMC version 2.`) + `
  delete: schema; changed`

// lgMask selects the ID of an SMC-R link group. The low byte numbers the link.
const lgMask = ^uint32(0xff)

// lgQuery is the query in the words after "linkgroup".
type lgQuery struct {
	links         bool   // link-show
	id            uint32 // 0 for any
	ibdev, netdev string // "" for any
}

func newLinkGroup(o *options) *cobra.Command {
	use, long := "linkgroup [show] [all | LG-ID] | linkgroup delete LG-ID", linkGroupLongD
	if o.tech == techR {
		use, long = "linkgroup [show | link-show] [all | LG-ID] [ibdev DEV] [netdev DEV] | linkgroup delete LG-ID", linkGroupLongR
	}
	name := o.tech.name()
	return linkGroupCommand(o, lgQuery{}, o.deleteLinkGroup, &cobra.Command{
		Use:     use,
		Short:   "List link groups, and end them",
		Long:    long,
		Example: fmt.Sprintf("  # all link groups\n  %[1]s linkgroup\n\n  # all details of one\n  %[1]s -d linkgroup show 00000100\n\n  # end it\n  %[1]s linkgroup delete 00000100", name),
	})
}

// linkGroupCommand completes a command that lists the objects that def selects, and runs del with the words after "delete".
// "delete" cannot be abbreviated, so that a typing mistake does not end connections.
func linkGroupCommand(
	o *options, def lgQuery, del func(cmd *cobra.Command, args []string) error, cmd *cobra.Command,
) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.ValidArgsFunction = o.completeLinkGroup
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if wantsHelp(args) {
			return cmd.Help()
		}
		if len(args) > 0 && args[0] == "delete" {
			return del(cmd, args[1:])
		}
		q, err := parseLinkGroup(o.tech, def, args)
		if err != nil {
			return err
		}
		return o.show(cmd.Context(), func(ctx context.Context, c client) error {
			if o.tech == techD {
				return o.runLinkGroupsD(ctx, c, q)
			}
			return o.runLinkGroupsR(ctx, c, q)
		})
	}
	o.watch.AddFlag(cmd.Flags())
	o.env.AddYesFlag(cmd.Flags())
	return cmd
}

// deleteLinkGroup ends the link group that the words after "delete" name.
func (o *options) deleteLinkGroup(cmd *cobra.Command, args []string) error {
	if err := o.checkDelete(cmd, args, "LG-ID"); err != nil {
		return err
	}
	id, err := parseLGID(args[0])
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	err = o.withClient(ctx, func(c client) error {
		if o.env.Asks() {
			if err := o.env.Confirm(ctx, "end link group %08x%s", id, o.connections(ctx, c, id)); err != nil {
				return err
			}
		}
		if o.tech == techD {
			return c.DeleteLinkGroupD(ctx, id)
		}
		return c.DeleteLinkGroupR(ctx, id&lgMask)
	})
	if err != nil {
		return err
	}
	return o.changed(true, "")
}

// connections says for a question how many connections a link group has, "" if that is unknown.
func (o *options) connections(ctx context.Context, c client, id uint32) string {
	text := func(n uint32) string {
		if n == 1 {
			return " and its connection"
		}
		return fmt.Sprintf(" and its %d connections", n)
	}
	if o.tech == techD {
		groups, _ := c.LinkGroupsD(ctx)
		for _, g := range groups {
			if g.ID == id {
				return text(g.Conns)
			}
		}
		return ""
	}
	groups, _ := c.LinkGroupsR(ctx)
	for _, g := range groups {
		if g.ID&lgMask == id&lgMask {
			return text(g.Conns)
		}
	}
	return ""
}

// checkDelete checks that "delete" of the object cmd has a word for each of the operands, and runs once.
func (o *options) checkDelete(cmd *cobra.Command, args []string, operands ...string) error {
	switch {
	case len(args) < len(operands):
		return cli.Usagef("%s: the %s is missing", o.env.Operation(cmd, "delete"), operands[len(args)])
	case len(args) > len(operands):
		return cli.Usagef("%q is an unexpected word", args[len(operands)])
	case o.watch.On():
		return cli.Usagef("%s: --watch is for listings", o.env.Operation(cmd, "delete"))
	}
	return nil
}

// parseLinkGroup parses the words after the object, in this order: sub-command, "all" or LG-ID, filters.
func parseLinkGroup(t tech, q lgQuery, args []string) (lgQuery, error) {
	args = listIsShow(args)
	commands := []string{"show"}
	if t == techR && !q.links {
		commands = append(commands, "link-show")
	}
	if len(args) > 0 {
		if w, ok := abbreviated(args[0], commands...); ok {
			q.links = q.links || w == "link-show"
			args = args[1:]
		}
	}
	if len(args) > 0 {
		if _, ok := abbreviated(args[0], "all"); ok {
			args = args[1:]
		} else if !isFilter(t, args[0]) {
			id, err := parseLGID(args[0])
			if err != nil {
				return q, err
			}
			q.id, args = id, args[1:]
		}
	}
	var err error
	q.ibdev, q.netdev, err = parseFilters(t, args)
	return q, err
}

func isFilter(t tech, word string) bool {
	_, ok := abbreviated(word, "ibdev", "netdev")
	return ok && t == techR
}

// parseFilters parses the rest of a command line: each filter at most once, each with a value.
func parseFilters(t tech, args []string) (ibdev, netdev string, err error) {
	for len(args) > 0 {
		if !isFilter(t, args[0]) {
			return "", "", cli.Usagef("%q is an unexpected word", args[0])
		}
		word, _ := abbreviated(args[0], "ibdev", "netdev")
		value := &ibdev
		if word == "netdev" {
			value = &netdev
		}
		if len(args) < 2 || args[1] == "" {
			return "", "", cli.Usagef("%s: the name of a device is missing", word)
		}
		if *value != "" {
			return "", "", cli.Usagef("%s is given twice", word)
		}
		*value, args = args[1], args[2:]
	}
	return ibdev, netdev, nil
}

func parseLGID(s string) (uint32, error) {
	id, err := strconv.ParseUint(hexDigits(s), 16, 32)
	if err != nil {
		return 0, cli.Usagef("%q is not an LG-ID: give up to 8 hexadecimal digits as 'linkgroup' shows them", s)
	}
	return uint32(id), nil
}

// hexDigits returns a hexadecimal number without "0x", for strconv.ParseUint with base 16, which accepts neither a sign nor
// underscores.
func hexDigits(s string) string { return strings.TrimPrefix(strings.TrimPrefix(s, "0x"), "0X") }

func (o *options) runLinkGroupsR(ctx context.Context, c client, q lgQuery) error {
	all, found, warn, err := o.findGroupsR(ctx, c, q)
	if err == nil && o.json {
		err = o.writeJSON(newLinkGroupsR(found, o.ifname))
	} else if err == nil {
		err = o.writeGroupsR(q, found, len(all) > 0)
	}
	return cmp.Or(err, warn)
}

// findGroupsR returns all SMC-R link groups, and those that q selects.
func (o *options) findGroupsR(ctx context.Context, c client, q lgQuery) (all, found []netlinksmc.LinkGroupR, warn, err error) {
	list := c.LinkGroupsR
	if q.links || q.ibdev != "" || q.netdev != "" || o.json {
		list = c.LinkGroupsRWithLinks
	}
	all, err = list(ctx)
	warn, err = complete(err)
	return all, q.selectR(all, o.ifname), warn, err
}

// writeGroupsR prints link groups as text. With header, a list has a header, even if it is empty.
func (o *options) writeGroupsR(q lgQuery, found []netlinksmc.LinkGroupR, header bool) error {
	switch {
	case q.links:
		return writeLinks(o.env.Out, found, header, o.details, o.ifname)
	case o.details > 0:
		return writeBlocksR(o.env.Out, found)
	}
	return writeLinkGroupsR(o.env.Out, found, header)
}

// selectR returns the groups that q matches, with only the links that it matches.
func (q lgQuery) selectR(groups []netlinksmc.LinkGroupR, ifname func(uint32) string) []netlinksmc.LinkGroupR {
	var found []netlinksmc.LinkGroupR
	for _, g := range groups {
		if q.id != 0 && q.id&lgMask != g.ID&lgMask {
			continue
		}
		if q.ibdev != "" || q.netdev != "" {
			g.Links = slices.DeleteFunc(slices.Clone(g.Links), func(l netlinksmc.Link) bool {
				return q.ibdev != "" && q.ibdev != l.IBDev || q.netdev != "" && q.netdev != ifname(l.NetIfindex)
			})
			if len(g.Links) == 0 {
				continue
			}
		}
		found = append(found, g)
	}
	return found
}

func (o *options) runLinkGroupsD(ctx context.Context, c client, q lgQuery) error {
	all, found, warn, err := o.findGroupsD(ctx, c, q)
	if err == nil && o.json {
		err = o.writeJSON(newLinkGroupsD(found))
	} else if err == nil {
		err = o.writeGroupsD(found, len(all) > 0)
	}
	return cmp.Or(err, warn)
}

// findGroupsD is findGroupsR for SMC-D.
func (o *options) findGroupsD(ctx context.Context, c client, q lgQuery) (all, found []netlinksmc.LinkGroupD, warn, err error) {
	all, err = c.LinkGroupsD(ctx)
	warn, err = complete(err)
	found = slices.DeleteFunc(slices.Clone(all), func(g netlinksmc.LinkGroupD) bool { return q.id != 0 && q.id != g.ID })
	return all, found, warn, err
}

// writeGroupsD is writeGroupsR for SMC-D.
func (o *options) writeGroupsD(found []netlinksmc.LinkGroupD, header bool) error {
	if o.details > 0 {
		return writeBlocksD(o.env.Out, found)
	}
	return writeLinkGroupsD(o.env.Out, found, header)
}
