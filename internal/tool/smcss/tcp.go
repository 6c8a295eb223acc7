// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// readTCP returns the facts of all TCP connections of the network namespace. Those beneath SMC sockets are among them.
func readTCP() (map[ends]jsonTCP, error) {
	all := map[ends]jsonTCP{}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		list, err := netlink.SocketDiagTCPInfo(family)
		// A list that has changed meanwhile lacks some connections, which are shown without these facts.
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return nil, fmt.Errorf("cannot list TCP connections by sock_diag, which needs the module tcp_diag: %w", err)
		}
		for _, c := range list {
			if c.InetDiagMsg == nil || c.TCPInfo == nil {
				continue
			}
			all[tcpEnds(c.InetDiagMsg)] = newJSONTCP(c)
		}
	}
	return all, nil
}

func tcpEnds(s *netlink.Socket) ends {
	local, _ := netip.AddrFromSlice(s.ID.Source)
	peer, _ := netip.AddrFromSlice(s.ID.Destination)
	return newEnds(netip.AddrPortFrom(local, s.ID.SourcePort), netip.AddrPortFrom(peer, s.ID.DestinationPort))
}

func newJSONTCP(c *netlink.InetDiagTCPInfoResp) jsonTCP {
	t := c.TCPInfo
	return jsonTCP{
		RTTMilliseconds:         float64(t.Rtt) / 1000,
		RTTVarianceMilliseconds: float64(t.Rttvar) / 1000,
		Retransmits:             uint64(t.Total_retrans),
		BytesSent:               t.Bytes_sent,
		BytesAcked:              t.Bytes_acked,
		BytesReceived:           t.Bytes_received,
		BytesRetransmitted:      t.Bytes_retrans,
		SendQueueBytes:          uint64(c.InetDiagMsg.WQueue),
		ReceiveQueueBytes:       uint64(c.InetDiagMsg.RQueue),
	}
}
