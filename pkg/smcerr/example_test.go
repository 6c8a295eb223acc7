// SPDX-License-Identifier: Apache-2.0

package smcerr_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/smckit/smckit/pkg/smcerr"
)

// One test serves for all packages. Here a kernel without the SMC module answers.
func Example() {
	withoutModule := func() *genetlink.Conn {
		return genltest.Dial(func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
			return nil, genltest.Error(int(syscall.ENOENT))
		})
	}
	_, err1 := netlinksmc.NewFromConn(withoutModule())
	_, err2 := pnet.NewFromConn(withoutModule())
	for _, err := range []error{err1, err2} {
		if errors.Is(err, smcerr.ErrNoModule) && errors.Is(err, os.ErrNotExist) {
			fmt.Println(err)
		}
	}
	// Output:
	// look up the netlink family SMC_GEN_NETLINK: SMC module not available: load it with 'modprobe smc', or use a kernel that has it
	// SMC module not loaded: run 'modprobe smc', or use a kernel that has it
}
