// SPDX-License-Identifier: Apache-2.0

package smcpnet

import (
	"slices"
	"strings"

	"github.com/smckit/smckit/pkg/pnet"
	"github.com/spf13/cobra"
)

const noFiles = cobra.ShellCompDirectiveNoFileComp

// candidates converts a list to completions. There are none if the list cannot be read.
func candidates(list func() ([]string, error), prefix string) ([]string, cobra.ShellCompDirective) {
	names, err := list()
	if err != nil {
		return nil, noFiles
	}
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, prefix) }), noFiles
}

// ids lists the PNET IDs of the table. They are in upper case, even if the user types lower case.
func (c *command) ids(cmd *cobra.Command) []string {
	t, err := c.read(cmd.Context())
	if err != nil {
		return nil
	}
	var ids []string
	for _, id := range t.IDs() {
		ids = append(ids, string(id))
	}
	return ids
}

func (c *command) completeID(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	return candidates(func() ([]string, error) { return c.ids(cmd), nil }, strings.ToUpper(typed))
}

// completeEntry completes the operands of add: an ID, the kind, a device that exists, and a port.
func (c *command) completeEntry(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return c.completeID(cmd, args, typed)
	case len(args) == 1:
		return []string{"eth\tnetwork interface", "ib\tRDMA or ISM device"}, noFiles
	case len(args) == 2 && args[1] == "eth":
		return candidates(c.sys.devices.Interfaces, typed)
	case len(args) == 2 && args[1] == "ib":
		return candidates(c.sys.devices.RDMA, typed)
	case len(args) == 3 && args[1] == "ib":
		return []string{"1", "2"}, noFiles
	}
	return nil, noFiles
}

// completeMember completes the operands of del: as for add, with the devices of the PNET ID.
func (c *command) completeMember(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 2 {
		return c.completeEntry(cmd, args, typed)
	}
	t, err := c.read(cmd.Context())
	if err != nil {
		return nil, noFiles
	}
	id, _ := pnet.ParseID(args[0])
	return candidates(func() ([]string, error) {
		var names []string
		for _, e := range t.Of(id) {
			if e.IsEth() == (args[1] == "eth") {
				names = append(names, e.Eth+e.IB)
			}
		}
		return names, nil
	}, typed)
}

// completeOperand completes the PNET ID of -a, -d and -s.
func (o *incumbent) completeOperand(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	// While completing, cobra parses the options more than once.
	if len(o.verbs) == 0 || o.verbs[0] == "flush" {
		return nil, noFiles
	}
	return o.completeID(cmd, args, typed)
}

func (c *command) completeInterface(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return candidates(c.sys.devices.Interfaces, typed)
}

func (c *command) completeRDMA(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return candidates(c.sys.devices.RDMA, typed)
}
