// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import "context"

// SelfAddr is the address by which a host reaches itself over a wire, see SetUpSelf.
const SelfAddr = "10.9.0.2"

// selfScript makes a pair of interfaces on one host, and routes packets to the address of either end through the other end.
// The local routing table would deliver them directly, so it serves incoming packets only. The RDMA devices are found by
// their PNET ID.
const selfScript = `
ip link set lo up
ip link add v0 type veth peer name v1
for i in all v0 v1; do
	sysctl -qw net.ipv4.conf.$i.rp_filter=0 net.ipv4.conf.$i.accept_local=1
done
ip addr add 10.9.0.1/24 dev v0
ip addr add ` + SelfAddr + `/24 dev v1
ip link set v0 up
ip link set v1 up
ip route add ` + SelfAddr + ` dev v0 src 10.9.0.1 table 101
ip route add 10.9.0.1 dev v1 src ` + SelfAddr + ` table 102
ip rule add pref 10 iif lo to ` + SelfAddr + ` lookup 101
ip rule add pref 11 iif lo to 10.9.0.1 lookup 102
ip rule add pref 20 lookup local
ip rule del pref 0
modprobe rdma_rxe
for i in 0 1; do
	rdma link add self$i type rxe netdev v$i
	smc_pnet add SELF eth v$i
	smc_pnet add SELF ib self$i 1
done
smcr ueid add ` + UEID + `
sysctl -qw net.smc.loopback=0
`

// SetUpSelf lets every host connect to itself over SMC-R, at SelfAddr: both ends are in one kernel, and can be in one program.
// Our module is loaded, and our commands are in the PATH.
func (l *Lab) SetUpSelf(ctx context.Context) error {
	return l.each(ctx, func(ctx context.Context, h *Host) error {
		_, err := h.Shell(ctx, selfScript)
		return err
	})
}
