// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"errors"

	"github.com/mdlayher/genetlink"
)

// errStrayLink means that a link came without a link group before it.
var errStrayLink = errors.New("LINK_SMCR: a link without its link group")

// parseLinkGroupsR decodes the dumps of SMC-R link groups. In the one with links each group is followed by its links,
// in messages of their own.
func parseLinkGroupsR(replies []genetlink.Message) ([]LinkGroupR, error) {
	groups := make([]LinkGroupR, 0, len(replies))
	attrs := fields{
		AttrGenLGRSMCR: nest("LGR_SMCR", func(b []byte) error {
			var g LinkGroupR
			if err := g.parse(b); err != nil {
				return err
			}
			groups = append(groups, g)
			return nil
		}),
		AttrGenLinkSMCR: nest("LINK_SMCR", func(b []byte) error {
			if len(groups) == 0 {
				return errStrayLink
			}
			var l Link
			if err := l.parse(b); err != nil {
				return err
			}
			g := &groups[len(groups)-1]
			g.Links = append(g.Links, l)
			return nil
		}),
	}
	if err := forEach(replies, attrs); err != nil {
		return nil, err
	}
	return groups, nil
}

func parseLinkGroupsD(replies []genetlink.Message) ([]LinkGroupD, error) {
	groups := make([]LinkGroupD, 0, len(replies))
	err := forEach(replies, fields{AttrGenLGRSMCD: nest("LGR_SMCD", func(b []byte) error {
		var g LinkGroupD
		if err := g.parse(b); err != nil {
			return err
		}
		groups = append(groups, g)
		return nil
	})})
	if err != nil {
		return nil, err
	}
	return groups, nil
}
