// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/spf13/cobra"
)

const infoLong = `Show the SMC capabilities of the kernel and the hardware of this host. smcr and
smcd show the same.

ISM and RoCE devices of any vendor count. "v1 v2" are the versions of SMC that
the devices can use; RoCE Express (Mellanox 1004) has only version 1. ISM
devices that are memory have only version 2: loopback-ism, memory of this host,
and fabrics, which guests of a KVM host share.

JSON fields:
  schema; kernel {smc_version, smc_release, hostname, smcd_v2, smcr_v2}; hardware
  {seid, ism_devices {device_count, v1, v2}, roce_devices {device_count, v1,
  v2}}. smcr_v2 is left out if the
  kernel does not report it, seid if the host has none.`

// Vendor and device ID of the one RoCE adapter that cannot do SMC version 2.
const (
	vendorMellanox    = 0x15b3
	deviceRoCEExpress = 0x1004
)

// chidEmulated is the first CHID of emulated ISM devices. Messages of SMC version 1 have no room for their GIDs.
const chidEmulated = 0xff00

type infoJSON struct {
	Schema   int              `json:"schema"`
	Kernel   infoKernelJSON   `json:"kernel"`
	Hardware infoHardwareJSON `json:"hardware"`
}

type infoKernelJSON struct {
	Version  uint8                     `json:"smc_version" schema1:"version"`
	Release  uint8                     `json:"smc_release" schema1:"release"`
	Hostname string                    `json:"hostname"`
	SMCDV2   bool                      `json:"smcd_v2"`
	SMCRV2   netlinksmc.Optional[bool] `json:"smcr_v2,omitzero"`
}

type infoHardwareJSON struct {
	SEID string         `json:"seid,omitzero"`
	ISM  deviceVersions `json:"ism_devices" schema1:"ism"`
	RoCE deviceVersions `json:"roce_devices" schema1:"roce"`
}

// deviceVersions counts devices, and has the versions of SMC that they support.
type deviceVersions struct {
	Devices int  `json:"device_count" schema1:"devices"`
	V1      bool `json:"v1"`
	V2      bool `json:"v2"`
}

func newInfo(o *options) *cobra.Command {
	return &cobra.Command{
		Use:               "info [show]",
		Short:             "Show the SMC capabilities of kernel and hardware",
		Long:              infoLong,
		Example:           fmt.Sprintf("  # does this host have a RoCE device?\n  %s info", o.tech.name()),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: words("show", "help"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if wantsHelp(args) {
				return cmd.Help()
			}
			if _, err := subcommand(args, "show", "show"); err != nil {
				return err
			}
			return o.withClient(cmd.Context(), func(c client) error { return o.runInfo(cmd.Context(), c) })
		},
	}
}

func (o *options) runInfo(ctx context.Context, c client) error {
	info, err := c.SystemInfo(ctx)
	if err != nil {
		return err
	}
	ism, err := c.DevicesD(ctx)
	warnD, err := complete(err)
	if err != nil {
		return err
	}
	roce, err := c.DevicesR(ctx)
	warnR, err := complete(err)
	if err != nil {
		return err
	}
	doc := newInfoJSON(info, ism, roce)
	if o.json {
		err = o.writeJSON(doc)
	} else {
		err = writeInfo(o.env.Out, doc)
	}
	return cmp.Or(err, warnD, warnR)
}

func newInfoJSON(info *netlinksmc.SystemInfo, ism, roce []netlinksmc.Device) infoJSON {
	doc := infoJSON{
		Schema: jsondoc.Schema,
		Kernel: infoKernelJSON{
			Version: info.Version, Release: info.Release, Hostname: info.Hostname,
			SMCDV2: info.Version >= 2, SMCRV2: info.SMCRv2,
		},
		Hardware: infoHardwareJSON{
			SEID: info.SEID,
			ISM:  deviceVersions{Devices: len(ism), V1: slices.ContainsFunc(ism, isHardware), V2: info.ISMv2},
			RoCE: deviceVersions{Devices: len(roce), V1: len(roce) > 0},
		},
	}
	for _, d := range roce {
		if d.Vendor != vendorMellanox || d.Device != deviceRoCEExpress {
			doc.Hardware.RoCE.V2 = true
		}
	}
	return doc
}

func isHardware(d netlinksmc.Device) bool { return d.CHID < chidEmulated }

func writeInfo(w io.Writer, doc infoJSON) error {
	features := func(v2 bool) string {
		if v2 {
			return "v1 v2"
		}
		return "v1"
	}
	// smc-tools prints a trailing blank after a single v1 of RoCE.
	var ism []string
	if doc.Hardware.ISM.V1 {
		ism = append(ism, "v1")
	}
	if doc.Hardware.ISM.V2 {
		ism = append(ism, "v2")
	}
	roce := ""
	if doc.Hardware.RoCE.V1 {
		roce = "v1 "
	}
	if doc.Hardware.RoCE.V2 {
		roce += "v2"
	}
	_, err := fmt.Fprintf(w, `Kernel Capabilities
SMC Version:      %d.%d
SMC Hostname:     %s
SMC-D Features:   %s
SMC-R Features:   %s

Hardware Capabilities
SEID:             %s
ISM:              %s
RoCE:             %s
`,
		doc.Kernel.Version, doc.Kernel.Release, cmp.Or(cli.Printable(doc.Kernel.Hostname), "n/a"),
		features(doc.Kernel.SMCDV2), features(doc.Kernel.SMCRV2.Or(false)),
		cmp.Or(cli.Printable(doc.Hardware.SEID), "n/a"), cmp.Or(strings.Join(ism, " "), "n/a"), cmp.Or(roce, "n/a"))
	return err
}
