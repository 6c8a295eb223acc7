// SPDX-License-Identifier: Apache-2.0

package smcrnics

import (
	"cmp"
	"context"

	"github.com/smckit/smckit/pkg/ism"
	"github.com/spf13/cobra"
)

// complete installs the completion of devices: all listed ones for operands, and for -e and -d those that can be switched.
func complete(cmd *cobra.Command, o *options) {
	devices := func(want func(*ism.Device) bool) cobra.CompletionFunc {
		return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			const done = cobra.ShellCompDirectiveNoFileComp
			if len(args) > 0 {
				return nil, done
			}
			inv, err := o.scan(true).Scan(cmp.Or(cmd.Context(), context.Background()))
			if err != nil {
				return nil, done
			}
			return completions(inv, want), done
		}
	}
	cmd.ValidArgsFunction = devices(func(d *ism.Device) bool { return d.Kind != ism.KindOther })
	power := func(p ism.Power) cobra.CompletionFunc {
		return devices(func(d *ism.Device) bool {
			return d.Slot != nil && d.Slot.Switch && d.Slot.Power == p && (d.Kind != ism.KindOther || d.ZPCI != nil)
		})
	}
	// These fail only for flags that do not exist.
	_ = cmd.RegisterFlagCompletionFunc("enable", power(ism.PowerOff))
	_ = cmd.RegisterFlagCompletionFunc("disable", power(ism.PowerOn))
}

// completions offers each device once: by FID on IBM Z, elsewhere by name, or by address.
func completions(inv *ism.Inventory, want func(*ism.Device) bool) []cobra.Completion {
	var out []cobra.Completion
	last := ""
	for _, d := range inv.Devices {
		word := cmp.Or(d.Name, address(&d))
		if inv.ZPCI && d.ZPCI != nil {
			word = d.ZPCI.FIDString()
		}
		if word == "" || word == last || !want(&d) {
			continue
		}
		last = word
		out = append(out, cobra.CompletionWithDesc(word, describe(&d)))
	}
	return out
}

func describe(d *ism.Device) string {
	if d.Kind == ism.KindOff {
		return "switched off"
	}
	s := d.Model
	if d.ZPCI != nil && d.ZPCI.Feature != "" {
		s = d.ZPCI.Feature
	}
	if a := address(d); a != "" {
		s += " " + a
	}
	return s
}
