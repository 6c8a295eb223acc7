// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
)

// RoCEGuest is made in guests with soft-RoCE and our module's SMC-R alone.
const RoCEGuest guest.Marker = "/run/smckit-roce"

const (
	// Timeout is how long anything may take in an emulated and busy machine.
	Timeout = 25 * time.Second
	// Prompt is less than our module waits for a silent peer: what takes less has not waited for another peer.
	Prompt = 4 * time.Second
)

// Our module's side of the network of the peers.
const (
	Device = "r0"
	RXE    = "rxer"
	Subnet = "10.97.0.1/16"
)

// Service is where Echo listens.
var Service = netip.MustParseAddrPort("10.97.0.1:7000")

// RoCENet is an Ethernet between our module, with soft-RoCE and an echo, and peers in user space.
type RoCENet struct {
	*Net
	Echo *guest.Echo // nil if our module is in another guest
}

// Address is the address of a peer in the network.
func Address(third, fourth byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 97, third, fourth}) }

// OpenRoCE makes the devices and the echo. At the end of the test it removes them, and waits until our module has freed all connections.
func OpenRoCE(t testing.TB) *RoCENet {
	t.Helper()
	w := StartRoCE(t)
	t.Cleanup(func() {
		guest.Run(t, "rdma link delete "+RXE)
		w.Echo.Shutdown(t)
		w.Echo.Wait(t, Timeout)
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		guest.Await(t, Timeout, func() string { return guest.Left("smc_conn", "smc_rendezvous") })
	})
	return w
}

// StartRoCE makes the devices and the echo, and leaves them to the end of the guest.
func StartRoCE(t testing.TB) *RoCENet {
	t.Helper()
	RoCEGuest.Need(t)
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("this kernel has no TAP device: %v", err)
	}
	guest.Run(t, "modprobe -a rdma_rxe smc smc_diag; smcr ueid show | grep -q SMCKIT.LAB || smcr ueid add SMCKIT.LAB")
	n := openPort(t, Device, RXE, netip.MustParsePrefix(Subnet))
	return &RoCENet{Net: n, Echo: guest.NewEcho(t, Service, 1024)}
}

// openPort makes an Ethernet where our module has an address, and soft-RoCE.
func openPort(t testing.TB, device, rxe string, addr netip.Prefix) *Net {
	t.Helper()
	n, err := OpenTAP(device)
	if err != nil {
		t.Fatal(err)
	}
	guest.Run(t, fmt.Sprintf("sysctl -qw net.ipv6.conf.%[1]s.disable_ipv6=1; ip addr add %[3]s dev %[1]s; ip link set %[1]s up; "+
		"rdma link add %[2]s type rxe netdev %[1]s", device, rxe, addr))
	a := addr.Addr().As4()
	guest.Await(t, Timeout, func() string {
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", fmt.Sprintf("smcr device | grep -q %[1]s.*ACTIVE && "+
			"grep -qi ffff:%02[2]x%02[3]x:%02[4]x%02[5]x /sys/class/infiniband/%[1]s/ports/1/gids/*", rxe, a[0], a[1], a[2], a[3])).CombinedOutput()
		if err != nil {
			return "soft-RoCE is not ready: " + err.Error() + string(out)
		}
		return ""
	})
	return n
}

// OpenTUN makes a TUN device with our module's addresses. It goes at the end of the test.
func OpenTUN(t testing.TB, name string, addrs ...string) *Net {
	t.Helper()
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("this kernel has no TUN device: %v", err)
	}
	n, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, a := range addrs {
		guest.Run(t, "ip addr add "+a+" dev "+name)
	}
	guest.Run(t, "ip link set "+name+" up")
	return n
}
