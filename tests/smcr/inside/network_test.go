// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
)

// guests is made by tests/smcr only, in its guests.
const guests guest.Marker = "/run/smckit-smcr"

const (
	// patience is how long anything may take, whoever waits for whom, in an emulated and busy machine.
	patience = 25 * time.Second
	// prompt is less than our side's patience with a peer, so what is done in it has not waited for someone else's.
	prompt = 4 * time.Second
)

// The network of the peers, and the service in it.
const (
	device  = "r0"
	adapter = "rxer"
	subnet  = "10.97.0.1/16"
)

var service = netip.MustParseAddrPort("10.97.0.1:7000")

// network is where our module meets its peers: an Ethernet with soft-RoCE on our side, and on theirs what the tests do.
type network struct {
	*peer.Net
	echo *echo
}

// address is a host of the network.
func address(third, fourth byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 97, third, fourth}) }

// openNetwork makes the devices and the service. They go when the test ends, with whatever still goes on.
func openNetwork(t testing.TB) *network {
	t.Helper()
	guests.Need(t)
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("this kernel has no TAP device: %v", err)
	}
	guest.Run(t, "modprobe -a rdma_rxe smc smc_diag; smcr ueid show | grep -q SMCKIT.LAB || smcr ueid add SMCKIT.LAB")
	n, err := peer.OpenTAP(device)
	if err != nil {
		t.Fatal(err)
	}
	guest.Run(t, "sysctl -qw net.ipv6.conf."+device+".disable_ipv6=1; ip addr add "+subnet+" dev "+device+"; ip link set "+device+
		" up; rdma link add "+adapter+" type rxe netdev "+device)
	guest.Await(t, patience, func() string {
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "smcr device | grep -q "+adapter+".*ACTIVE && "+
			"grep -qi ffff:0a61:0001 /sys/class/infiniband/"+adapter+"/ports/1/gids/*").CombinedOutput()
		if err != nil {
			return "soft-RoCE is not ready: " + err.Error() + string(out)
		}
		return ""
	})
	w := &network{Net: n, echo: newEcho(t, service)}
	t.Cleanup(func() {
		guest.Run(t, "rdma link delete "+adapter)
		w.echo.close(t)
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		guest.Await(t, patience, func() string { return guest.Left("smc_conn", "smc_rendezvous") })
	})
	return w
}

// contains is whether a line has all of some words.
func contains(text string, words ...string) bool {
	for line := range strings.Lines(text) {
		found := true
		for _, w := range words {
			found = found && strings.Contains(line, w)
		}
		if found {
			return true
		}
	}
	return false
}
