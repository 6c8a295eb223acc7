// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"context"
	"errors"
	"fmt"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/spf13/cobra"
)

const groupsLong = `List the link groups of SMC-R, then those of SMC-D, as 'smcr linkgroup' and
'smcd linkgroup' do: all, or the one with the given LG-ID, a hexadecimal number.
-R and -D limit the list to one of the two, and so do 'ibdev DEV' and 'netdev DEV',
which select SMC-R link groups that use an RDMA device or a network interface. With
-d each link group is a block of lines.

  delete LG-ID  end a link group, of SMC-R with -R or of SMC-D with -D: its
                connections end with an error, and new ones form another group.
                Needs smckit's own module, and CAP_NET_ADMIN in the user
                namespace that owns the network namespace

JSON fields:
  schema; smcr and smcd, each left out if not requested: the list 'linkgroups' of
  'smcr linkgroup' and 'smcd linkgroup'.
  delete: schema; changed`

const groupsExample = `  # all link groups
  smckit groups

  # those of SMC-D in detail
  smckit groups -dD

  # end one of SMC-R
  smckit groups -R delete 00000100`

// ToolGroups lists and ends link groups of SMC-R and SMC-D.
var ToolGroups = cli.Tool{
	Name: "smckit groups",
	New: func(env *cli.Env) *cobra.Command {
		return newGroups(env, systemDeps(techR, env))
	},
}

// groups is the command line of groups.
type groups struct {
	r, d         *options
	onlyR, onlyD bool
}

// groupsJSON is the document of both technologies.
type groupsJSON struct {
	Schema int `json:"schema"`
	// left out with `-D`
	SMCR *groupsRJSON `json:"smcr,omitempty"`
	// left out with `-R`
	SMCD *groupsDJSON `json:"smcd,omitempty"`
}

type groupsRJSON struct {
	// as `smcr linkgroup --json` prints them
	LinkGroups []linkGroupRJSON `json:"linkgroups"`
}

type groupsDJSON struct {
	// as `smcd linkgroup --json` prints them
	LinkGroups []linkGroupDJSON `json:"linkgroups"`
}

func newGroups(env *cli.Env, d deps) *cobra.Command {
	g := &groups{r: &options{tech: techR, env: env, deps: d}}
	cmd := &cobra.Command{
		Use:               "groups [-R | -D] [all | LG-ID] [ibdev DEV] [netdev DEV] | groups {-R | -D} delete LG-ID",
		Short:             "List link groups, and end them",
		Long:              groupsLong,
		Example:           groupsExample,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: g.r.completeLinkGroup,
	}
	flags := cmd.Flags()
	flags.BoolVarP(&g.onlyR, "smcr", "R", false, "only SMC-R")
	flags.BoolVarP(&g.onlyD, "smcd", "D", false, "only SMC-D")
	flags.CountVarP(&g.r.details, "details", "d", "show details")
	cli.AddJSONFlag(flags, env, &g.r.json, "print a JSON document")
	g.r.watch.AddFlag(flags)
	env.AddYesFlag(flags)
	cli.AddNetNSFlag(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		asD := *g.r
		asD.tech = techD
		g.d = &asD
		return g.run(cmd, args)
	}
	return cmd
}

func (g *groups) run(cmd *cobra.Command, args []string) error {
	if g.onlyR && g.onlyD {
		return cli.Usagef("-R and -D exclude each other: without both you see SMC-R and SMC-D")
	}
	if len(args) > 0 && args[0] == "delete" {
		switch {
		case g.onlyR:
			return g.r.deleteLinkGroup(cmd, args[1:])
		case g.onlyD:
			return g.d.deleteLinkGroup(cmd, args[1:])
		}
		return cli.Usagef("%s: say of which technology the link group is: -R or -D", g.r.env.Operation(cmd, "delete"))
	}
	qr, errR := parseLinkGroup(techR, lgQuery{}, args)
	qd, errD := parseLinkGroup(techD, lgQuery{}, args)
	switch {
	case g.onlyD && errD != nil:
		return errD
	case !g.onlyD && errR != nil:
		return errR
	}
	// Only SMC-R has what the words select.
	withD := !g.onlyR && errD == nil
	return g.r.show(cmd.Context(), func(ctx context.Context, c client) error { return g.list(ctx, c, qr, qd, withD) })
}

// list lists the link groups once.
func (g *groups) list(ctx context.Context, c client, qr, qd lgQuery, withD bool) error {
	var doc groupsJSON
	var warn error
	if !g.onlyD {
		all, found, w, err := g.r.findGroupsR(ctx, c, qr)
		if err != nil {
			return err
		}
		doc.SMCR, warn = &groupsRJSON{newLinkGroupsR(found, g.r.ifname).LinkGroups}, errors.Join(warn, w)
		if !g.r.json {
			g.heading("SMC-R", len(all) > 0 && withD)
			err = g.r.writeGroupsR(qr, found, len(all) > 0)
		}
		if err != nil {
			return err
		}
	}
	if withD {
		all, found, w, err := g.d.findGroupsD(ctx, c, qd)
		if err != nil {
			return err
		}
		doc.SMCD, warn = &groupsDJSON{newLinkGroupsD(found).LinkGroups}, errors.Join(warn, w)
		if !g.r.json {
			g.heading("SMC-D", len(all) > 0 && !g.onlyD)
			err = g.d.writeGroupsD(found, len(all) > 0)
		}
		if err != nil {
			return err
		}
	}
	if g.r.json {
		doc.Schema = jsondoc.Schema
		return errors.Join(g.r.writeJSON(doc), warn)
	}
	return warn
}

// heading names the technology of the list that follows, if there are two.
func (g *groups) heading(name string, needed bool) {
	if needed {
		// A failed write is reported at the end of the command.
		fmt.Fprintln(g.r.env.Out, name)
	}
}
