// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"context"
	"fmt"
	"strconv"

	"github.com/smckit/smckit/internal/cli"
	"github.com/spf13/cobra"
)

const linkLong = `List the links of all link groups, or of the one with the given LG-ID, a
hexadecimal number whose last two digits do not matter. 'ibdev DEV' and 'netdev
DEV' select those that use an RDMA device or a network interface; you can
combine them with each other and with an LG-ID. -d adds link UIDs and RDMA
devices, -dd also GIDs.

'smcr link' is short for 'smcr linkgroup link-show', with the same JSON
document.

  show          links
  delete LG-ID LINK-ID
                delete a link of a link group that has another one: its
                connections continue over the other link, and the peer is informed.
                LINK-ID is hexadecimal: the last two digits of the Link-UID,
                which -d shows. Needs smckit's own module, and CAP_NET_ADMIN in
                the user namespace that owns the network namespace, which has to
                be that of the link group. The server adds a second link again
                only when a port comes up. The only usable link of a link group
                is refused: 'smcr linkgroup delete' ends the group

JSON fields:
  those of 'smcr linkgroup'.
  delete: schema; changed`

// newLink makes the command link, which smc-tools has only as "linkgroup link-show".
func newLink(o *options) *cobra.Command {
	return linkGroupCommand(o, lgQuery{links: true}, o.deleteLink, &cobra.Command{
		Use:   "link [show] [all | LG-ID] [ibdev DEV] [netdev DEV] | link delete LG-ID LINK-ID",
		Short: "List the links of link groups, and delete them",
		Long:  linkLong,
		Example: "  # all links with their GIDs\n  smcr -dd link\n\n  # links over one RDMA device\n  smcr link ibdev mlx5_0\n\n" +
			"  # move the connections of link 00000102 to the other link, and delete it\n  smcr link delete 00000100 02",
	})
}

// deleteLink deletes the link that the words after "delete" name.
func (o *options) deleteLink(cmd *cobra.Command, args []string) error {
	if err := o.checkDelete(cmd, args, "LG-ID", "LINK-ID"); err != nil {
		return err
	}
	group, err := parseLGID(args[0])
	if err != nil {
		return err
	}
	link, err := parseLinkID(args[1])
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	err = o.withClient(ctx, func(c client) error {
		if err := o.env.Confirm(ctx, "delete link %02x of link group %08x, so that its connections continue over the other one", link, group&lgMask); err != nil {
			return err
		}
		return c.DeleteLink(ctx, group&lgMask, link)
	})
	if err != nil {
		return err
	}
	return o.changed(true, "")
}

func parseLinkID(s string) (uint8, error) {
	id, err := strconv.ParseUint(hexDigits(s), 16, 8)
	if err != nil {
		return 0, cli.Usagef("%q is not a LINK-ID: give the last two hexadecimal digits of the Link-UID in 'smcr -d link'", s)
	}
	return uint8(id), nil
}

// linkIDs returns the LINK-IDs of one link group.
func (o *options) linkIDs(ctx context.Context, c client, lgID string) []string {
	id, err := parseLGID(lgID)
	if err != nil {
		return nil
	}
	var ids []string
	groups, _ := c.LinkGroupsRWithLinks(ctx)
	for _, g := range groups {
		if g.ID&lgMask != id&lgMask {
			continue
		}
		for _, l := range g.Links {
			ids = append(ids, fmt.Sprintf("%02x", l.ID))
		}
	}
	return ids
}
