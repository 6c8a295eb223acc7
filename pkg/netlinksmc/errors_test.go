// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/mdlayher/netlink"
)

func TestErrorTexts(t *testing.T) {
	refused := func(errno syscall.Errno) error { return &netlink.OpError{Op: "receive", Err: errno} }
	tests := []struct {
		err  error
		want string
	}{
		{
			requestError(cmdUEIDs, "", refused(syscall.ENOENT)),
			"list user EIDs: SMC module not available: load it with 'modprobe smc', or use a kernel that has it",
		},
		{
			requestError(cmdHSLimitation, "", refused(syscall.EOPNOTSUPP)),
			"get the handshake limitation: not supported: SMC_NETLINK_DUMP_HS_LIMITATION needs Linux 5.18 or newer",
		},
		{
			requestError(cmdAddUEID, "LAB.ONE", refused(syscall.EPERM)),
			`add user EID "LAB.ONE": permission denied: run as root, that is with CAP_NET_ADMIN in the initial user namespace`,
		},
		{
			requestError(cmdAddUEID, "LAB.ONE", refused(syscall.ERANGE)),
			`add user EID "LAB.ONE": maximum number of user EIDs reached: remove one first`,
		},
		{
			requestError(cmdAddUEID, "LAB.ONE", refused(syscall.EINVAL)),
			`add user EID "LAB.ONE": invalid user EID: the kernel refused it`,
		},
		{
			requestError(cmdRemoveUEID, "LAB.ONE", refused(syscall.ENOENT)),
			`remove user EID "LAB.ONE": user EID not defined: see the list of user EIDs`,
		},
		{
			requestError(cmdRemoveUEID, "LAB.ONE", refused(syscall.EAGAIN)),
			`remove user EID "LAB.ONE": the last user EID was removed and the system EID was activated`,
		},
		{
			requestError(cmdDisableSEID, "", refused(syscall.ENOENT)),
			"disable the system EID: no user EID defined: add one first",
		},
		{
			requestError(cmdFlushUEIDs, "", refused(syscall.ENOMEM)),
			"remove all user EIDs: cannot allocate memory",
		},
		{
			requestError(cmdFlushUEIDs, "", &netlink.OpError{Op: "receive", Err: syscall.EBUSY, Message: "held", Offset: 4}),
			"remove all user EIDs: device or resource busy: held",
		},
		{
			requestError(cmdUEIDs, "", &netlink.OpError{Op: "receive", Err: syscall.EPERM, Message: "locked down"}),
			"list user EIDs: permission denied: run as root, that is with CAP_NET_ADMIN in the initial user namespace " +
				"(kernel: locked down)",
		},
		{
			requestError(cmdUEIDs, "", &netlink.OpError{Op: "receive", Err: errors.New("what is this")}),
			"list user EIDs: malformed answer: what is this",
		},
		{requestError(cmdUEIDs, "", context.DeadlineExceeded), "list user EIDs: context deadline exceeded"},
		{
			openError("open a sock_diag socket", refused(syscall.EPROTONOSUPPORT)),
			"open a sock_diag socket: not supported: this kernel has no such netlink protocol",
		},
		{
			openError("open a sock_diag socket", refused(syscall.EMFILE)),
			"open a sock_diag socket: too many open files",
		},
		{
			diagError(refused(syscall.ENOENT)),
			"list SMC sockets: SMC module not available: load it with 'modprobe smc_diag', or use a kernel that has it",
		},
	}
	for _, tt := range tests {
		diff(t, tt.want, tt.err.Error())
		if strings.Contains(tt.err.Error(), "\n") {
			t.Errorf("%q has more than one line", tt.err)
		}
	}
	if err := requestError(cmdUEIDs, "", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}
