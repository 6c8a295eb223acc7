// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"fmt"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Net is a network behind a TUN or TAP device. Each peer has an address, or a port of one, of its own in it.
type Net struct {
	file  *os.File
	wire  *ethernet // of a TAP device
	mu    sync.Mutex
	peers map[netip.AddrPort]*TCP
	takes map[netip.Addr]func(packet []byte)
	done  chan struct{}
}

// Open makes a TUN device. It has no addresses and is down.
func Open(name string) (*Net, error) {
	n, err := open(name, unix.IFF_TUN)
	if err != nil {
		return nil, err
	}
	go n.read()
	return n, nil
}

func open(name string, kind uint16) (*Net, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	req, err := unix.NewIfreq(name)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	req.SetUint16(kind | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("TUN or TAP device %s: %w", name, err)
	}
	return &Net{
		file: os.NewFile(uintptr(fd), name), done: make(chan struct{}),
		peers: map[netip.AddrPort]*TCP{}, takes: map[netip.Addr]func([]byte){},
	}, nil
}

// Take has a function handle all UDP packets over IPv4 for an address. It runs on the goroutine that reads from the device,
// and may use the packet while it runs.
func (n *Net) Take(addr netip.Addr, packets func(packet []byte)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.takes[addr] = packets
}

// read passes each packet to its peer.
func (n *Net) read() {
	defer close(n.done)
	for {
		buf := make([]byte, 2048)
		size, err := n.file.Read(buf)
		if err != nil {
			return
		}
		packet := buf[:size]
		if n.wire != nil {
			packet = n.unwrap(packet)
		}
		if !n.taken(packet) {
			n.segment(packet)
		}
	}
}

// taken passes a UDP packet to the function that handles its address.
func (n *Net) taken(packet []byte) bool {
	const protoUDP = 17
	if len(packet) < ipv4Header || packet[0]>>4 != 4 || packet[9] != protoUDP {
		return false
	}
	n.mu.Lock()
	take := n.takes[netip.AddrFrom4([4]byte(packet[16:]))]
	n.mu.Unlock()
	if take == nil {
		return false
	}
	take(packet)
	return true
}

// segment passes a TCP segment to its peer.
func (n *Net) segment(packet []byte) {
	s, err := parseSegment(packet)
	if err != nil {
		return
	}
	n.mu.Lock()
	p := n.peers[s.Dst]
	n.mu.Unlock()
	if p == nil {
		return
	}
	select {
	case p.in <- s:
	default: // a peer that does not listen loses segments, as on any wire
	}
}

// Close removes the device.
func (n *Net) Close() error {
	err := n.file.Close()
	<-n.done
	return err
}

func (n *Net) write(s *Segment) error { return n.Write(s.marshal()) }

// Write sends a packet.
func (n *Net) Write(packet []byte) error {
	if n.wire != nil {
		packet = n.wire.wrap(packet)
	}
	_, err := n.file.Write(packet)
	return err
}
