// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// tableLimit is the helper of TestNamespacesTable: it runs as root of a user namespace, on a thread in a network namespace of that one.
func tableLimit() error {
	for i := range 300 {
		err := os.WriteFile("/proc/thread-self/net/smc/pnet_conf", fmt.Appendf(nil, "add NET%d eth eth%d", i, i), 0)
		switch {
		case errors.Is(err, unix.ENOSPC) && i == 256:
			return nil
		case err != nil:
			return fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return errors.New("300 entries were taken")
}

const limitChild = "SMCKIT_TABLE_LIMIT"

// TestNamespacesTable has a user without rights fill the PNET table of a namespace that he owns. There must be a limit, because the whole
// host waits while a thread walks that table.
func TestNamespacesTable(t *testing.T) {
	if os.Getenv(limitChild) != "" {
		// The files of a namespace that is made together with its user namespace belong to root of the host, because no user is
		// mapped yet.
		if err := guest.InNewNamespace(tableLimit); err != nil {
			t.Fatal(err)
		}
		return
	}
	guest.UseNull(t, true)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.StartProcess(self, []string{self, "-test.run=^TestNamespacesTable$"}, &os.ProcAttr{
		Env: append(os.Environ(), limitChild+"="+strconv.Itoa(os.Getpid())), Files: []*os.File{nil, os.Stderr, os.Stderr},
		Sys: &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: guest.Nobody, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: guest.Nobody, Size: 1}},
			// The child has no ID of the namespace until it takes these.
			Credential: &syscall.Credential{Uid: 0, Gid: 0}, GidMappingsEnableSetgroups: true,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if state, err := p.Wait(); err != nil || !state.Success() {
		t.Errorf("in the namespace: %v, %v", state, err)
	}
}
