// SPDX-License-Identifier: Apache-2.0

package smcpnet

import (
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/pnetdev"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/pnet"
)

// checkDevices checks whether the devices of new entries exist. A missing device is usually a mistake, but the kernel would
// accept the entry and wait for the device.
func (c *command) checkDevices(entries pnet.Table, ch change) error {
	if ch.force {
		return nil
	}
	var unknown []string
	for _, e := range entries {
		exists, err := pnetdev.Present(c.sys.devices, e)
		if err != nil {
			return remedy.Errorf("use --force to add entries without this check", "cannot find out which devices exist: %w;", err)
		}
		if !exists {
			unknown = append(unknown, pnetdev.Missing(e)+c.similar(e))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	text := strings.Join(unknown, ", ")
	if ch.future {
		c.env.Note("warning: %s; the entry has no effect until it appears", text)
		return nil
	}
	return remedy.Errorf("use --force to add it for later", "%s;", text)
}

// similar returns a remark that names the devices for which that of an entry may be a mistake, empty if there are none.
func (c *command) similar(e pnet.Entry) string {
	list, name := c.sys.devices.Interfaces, e.Eth
	if !e.IsEth() {
		list, name = c.sys.devices.RDMA, e.IB
	}
	names, _ := list()
	return cli.Suggest(name, names...)
}
