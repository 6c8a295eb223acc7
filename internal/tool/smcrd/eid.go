// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/spf13/cobra"
)

const ueidLong = `List and change the user EIDs of this host. Two hosts that have an EID in common
can use SMC version 2 with each other. The kernel keeps up to four, for all
network namespaces, until the module is unloaded.

  show        one EID on each line, padded with blanks to 32 characters
  add EID     1 to 32 characters out of A-Z 0-9 . -, the first a letter or digit,
              no two dots in a row; adding one that exists changes nothing and
              succeeds
  del EID     fails if the EID does not exist; also 'delete'
  flush       remove all

Changes need CAP_NET_ADMIN in the initial user namespace.

JSON fields:
  show        schema; ueids [string]
  the others  schema; changed`

const seidLong = `Show the system EID, which hosts on IBM Z with an ISM device of version 2 have,
and enable or disable its use. To disable it, a user EID must be defined.

Changes need CAP_NET_ADMIN in the initial user namespace.

JSON fields:
  show        schema; seid; enabled; the last two are left out if the host has
              no system EID
  the others  schema; changed`

const limitLong = `Show and set whether a network namespace limits SMC handshakes. If the limit is
enabled, and the namespace has more handshakes in progress than it can process,
new connections use TCP at once instead of waiting. It is disabled by default.

Changes need CAP_NET_ADMIN. The limit needs Linux 5.18 or newer.

JSON fields:
  show        schema; handshake_limit {enabled}
  the others  schema; changed`

type ueidsJSON struct {
	Schema int      `json:"schema"`
	UEIDs  []string `json:"ueids"`
}

type seidJSON struct {
	Schema int `json:"schema"`
	// if the host has one
	SEID string `json:"seid,omitzero" schema1:",seid_object"`
	// the same
	Enabled *bool `json:"enabled,omitzero" schema1:"-"`
}

type limitJSON struct {
	Schema int            `json:"schema"`
	Limit  limitStateJSON `json:"handshake_limit"`
}

type limitStateJSON struct {
	Enabled bool `json:"enabled"`
}

type changedJSON struct {
	Schema  int  `json:"schema"`
	Changed bool `json:"changed"`
}

// changed reports the result of a command that changes something. As text, it prints a line only if there was nothing to
// change.
func (o *options) changed(changed bool, format string, args ...any) error {
	if o.json {
		return o.writeJSON(changedJSON{Schema: jsondoc.Schema, Changed: changed})
	}
	if changed {
		return nil
	}
	_, err := fmt.Fprintf(o.env.Out, format+"\n", args...)
	return err
}

func newUEID(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "ueid [show | add EID | del EID | flush]",
		Short:             "List and change user EIDs",
		Long:              ueidLong,
		Example:           fmt.Sprintf("  # let this host use SMC version 2 with all hosts that have the same EID\n  %s ueid add MYCLUSTER", o.tech.name()),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: o.completeUEID,
		RunE: func(cmd *cobra.Command, args []string) error {
			if wantsHelp(args) {
				return cmd.Help()
			}
			command, eid, err := o.parseUEID(cmd, args)
			if err != nil {
				return err
			}
			return o.withClient(cmd.Context(), func(c client) error { return o.runUEID(cmd.Context(), c, command, eid) })
		},
	}
	o.env.AddYesFlag(cmd.Flags())
	return cmd
}

// parseUEID parses the operands of the object ueid, which is cmd.
func (o *options) parseUEID(cmd *cobra.Command, args []string) (command, eid string, err error) {
	if len(args) == 0 {
		return "show", "", nil
	}
	args = listIsShow(args)
	word, ok := abbreviated(args[0], "help", "add", "del", "flush", "show", "delete")
	if !ok || word == "help" {
		return "", "", cli.Usagef("%q is not one of show, add, del, flush", args[0])
	}
	if word == "delete" {
		word = "del"
	}
	operands := args[1:]
	if word == "add" || word == "del" {
		if len(operands) == 0 {
			return "", "", cli.Usagef("%s: the EID is missing", o.env.Operation(cmd, word))
		}
		if err := netlinksmc.CheckEID(operands[0]); err != nil {
			return "", "", &cli.UsageError{Err: err}
		}
		eid, operands = operands[0], operands[1:]
	}
	if len(operands) > 0 {
		return "", "", cli.Usagef("%q is an unexpected word", operands[0])
	}
	return word, eid, nil
}

func (o *options) runUEID(ctx context.Context, c client, command, eid string) error {
	switch command {
	case "add":
		err := c.AddUEID(ctx, eid)
		exists := errors.Is(err, netlinksmc.ErrUEIDExists)
		if errors.Is(err, netlinksmc.ErrUEIDTableFull) {
			// The kernel checks for room before it checks whether the EID already exists.
			eids, lerr := c.UEIDs(ctx)
			exists = lerr == nil && slices.Contains(eids, eid)
		}
		if err != nil && !exists {
			return err
		}
		return o.changed(!exists, "user EID %s is already defined", eid)
	case "del":
		err := c.RemoveUEID(ctx, eid)
		if errors.Is(err, netlinksmc.ErrSEIDActivated) {
			o.env.Note("the last user EID was removed: the kernel has enabled the system EID")
			err = nil
		}
		if err != nil {
			return err
		}
		return o.changed(true, "")
	case "flush":
		before, err := c.UEIDs(ctx)
		if _, err = complete(err); err != nil {
			return err
		}
		if len(before) > 0 {
			if err := o.env.Confirm(ctx, "remove all user EIDs, of which there are %d", len(before)); err != nil {
				return err
			}
		}
		if err := c.FlushUEIDs(ctx); err != nil {
			return err
		}
		// smc-tools says nothing here in either case.
		if !o.json {
			return nil
		}
		return o.changed(len(before) > 0, "")
	default:
		return o.showUEIDs(ctx, c)
	}
}

func (o *options) showUEIDs(ctx context.Context, c client) error {
	eids, err := c.UEIDs(ctx)
	warn, err := complete(err)
	if err != nil {
		return err
	}
	if o.json {
		return cmp.Or(o.writeJSON(ueidsJSON{Schema: jsondoc.Schema, UEIDs: append([]string{}, eids...)}), warn)
	}
	for _, eid := range eids {
		if _, err := fmt.Fprintln(o.env.Out, left(eid, 32)); err != nil {
			return err
		}
	}
	return warn
}

func newSEID(o *options) *cobra.Command {
	return o.newSwitch(&cobra.Command{
		Use:     "seid",
		Short:   "Show and switch the system EID",
		Long:    seidLong,
		Example: "  # is there a system EID, and is it in use?\n  smcd seid",
	}, o.runSEID)
}

// newSwitch adds the sub-commands show, enable and disable to a command.
func (o *options) newSwitch(cmd *cobra.Command, run func(ctx context.Context, c client, command string) error) *cobra.Command {
	cmd.Use += " [show | enable | disable]"
	cmd.Args = cobra.ArbitraryArgs
	cmd.ValidArgsFunction = words("show", "enable", "disable", "help")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if wantsHelp(args) {
			return cmd.Help()
		}
		command, err := subcommand(args, "show", "show", "enable", "disable")
		if err != nil {
			return err
		}
		return o.withClient(cmd.Context(), func(c client) error { return run(cmd.Context(), c, command) })
	}
	return cmd
}

func (o *options) runSEID(ctx context.Context, c client, command string) error {
	seid, err := c.SEID(ctx)
	if err != nil {
		return err
	}
	if command != "show" {
		enable := command == "enable"
		if err := c.SetSEID(ctx, enable); err != nil {
			return err
		}
		// smc-tools says nothing here in either case.
		if !o.json {
			return nil
		}
		return o.changed(seid == nil || seid.Enabled != enable, "")
	}
	if o.json {
		doc := seidJSON{Schema: jsondoc.Schema}
		if seid != nil {
			doc.SEID, doc.Enabled = seid.EID, &seid.Enabled
		}
		return o.writeJSON(doc)
	}
	text := "n/a"
	if seid != nil {
		text = left(seid.EID, 32) + " [disabled]"
		if seid.Enabled {
			text = left(seid.EID, 32) + " [enabled]"
		}
	}
	_, err = fmt.Fprintln(o.env.Out, text)
	return err
}

func newLimit(o *options) *cobra.Command {
	return o.newSwitch(&cobra.Command{
		Use:     "handshake-limit",
		Short:   "Show and switch the limit on SMC handshakes",
		Long:    limitLong,
		Example: fmt.Sprintf("  # use TCP at once instead of waiting, while many handshakes are in progress\n  %s handshake-limit enable", o.tech.name()),
	}, o.runLimit)
}

func (o *options) runLimit(ctx context.Context, c client, command string) error {
	enabled, err := c.HandshakeLimitation(ctx)
	if err != nil {
		return err
	}
	state := map[bool]string{true: "enabled", false: "disabled"}
	if command != "show" {
		enable := command == "enable"
		if enable == enabled {
			return o.changed(false, "handshake limit is already %s", state[enabled])
		}
		if err := c.SetHandshakeLimitation(ctx, enable); err != nil {
			return err
		}
		return o.changed(true, "")
	}
	if o.json {
		return o.writeJSON(limitJSON{Schema: jsondoc.Schema, Limit: limitStateJSON{Enabled: enabled}})
	}
	_, err = fmt.Fprintf(o.env.Out, "Handshake limit: %s\n", state[enabled])
	return err
}
