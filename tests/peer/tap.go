// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// MAC is the hardware address of every peer behind a TAP device.
var MAC = net.HardwareAddr{2, 0, 0, 0x5e, 0, 1}

const (
	etherHeader = 14
	etherIPv4   = 0x0800
	etherARP    = 0x0806
	arpLength   = 28
)

// ethernet is what a TAP device needs in addition to a TUN device.
type ethernet struct {
	kernel net.HardwareAddr
}

// SetKernel sets the hardware address of our module's host, if that is another one, to which a bridge leads.
func (n *Net) SetKernel(addr net.HardwareAddr) { n.wire.kernel = addr }

// OpenTAP makes a TAP device. It has no addresses and is down. Peers answer ARP for all IPv4 addresses of its network.
func OpenTAP(name string) (*Net, error) {
	n, err := open(name, unix.IFF_TAP)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile("/sys/class/net/" + name + "/address")
	if err == nil {
		n.wire = &ethernet{}
		n.wire.kernel, err = net.ParseMAC(strings.TrimSpace(string(text)))
	}
	if err != nil {
		n.file.Close()
		return nil, fmt.Errorf("address of %s: %w", name, err)
	}
	go n.read()
	return n, nil
}

func etherFrame(to net.HardwareAddr, kind uint16, body []byte) []byte {
	return slices.Concat(to, MAC, binary.BigEndian.AppendUint16(nil, kind), body)
}

func (e *ethernet) wrap(packet []byte) []byte { return etherFrame(e.kernel, etherIPv4, packet) }

// unwrap returns the IPv4 packet in a frame, if there is one, and answers ARP requests.
func (n *Net) unwrap(b []byte) []byte {
	if len(b) < etherHeader {
		return nil
	}
	body := b[etherHeader:]
	switch binary.BigEndian.Uint16(b[12:]) {
	case etherIPv4:
		return body
	case etherARP:
		if answer := answerARP(body); answer != nil {
			// Without an answer, the kernel asks again.
			_, _ = n.file.Write(etherFrame(n.wire.kernel, etherARP, answer))
		}
	}
	return nil
}

// answerARP answers a request for any address except the sender's own, which is an announcement.
func answerARP(request []byte) []byte {
	if len(request) < arpLength || binary.BigEndian.Uint16(request[6:]) != 1 {
		return nil
	}
	sender, target := netip.AddrFrom4([4]byte(request[14:])), netip.AddrFrom4([4]byte(request[24:]))
	if sender == target || sender.IsUnspecified() {
		return nil
	}
	answer := slices.Clone(request[:arpLength])
	binary.BigEndian.PutUint16(answer[6:], 2)
	copy(answer[8:], MAC)
	copy(answer[14:], request[24:28])
	copy(answer[18:], request[8:18])
	return answer
}
