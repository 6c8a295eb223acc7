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

// Net is a network behind a TUN device. Each peer has an address of its own in it.
type Net struct {
	file  *os.File
	mu    sync.Mutex
	peers map[netip.Addr]*Peer
	done  chan struct{}
}

// Open makes the device. It has no addresses and is down.
func Open(name string) (*Net, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	req, err := unix.NewIfreq(name)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("TUN device %s: %w", name, err)
	}
	n := &Net{file: os.NewFile(uintptr(fd), name), peers: map[netip.Addr]*Peer{}, done: make(chan struct{})}
	go n.read()
	return n, nil
}

// read hands each segment to the peer that it is for.
func (n *Net) read() {
	defer close(n.done)
	for {
		buf := make([]byte, 2048)
		size, err := n.file.Read(buf)
		if err != nil {
			return
		}
		s, err := parse(buf[:size])
		if err != nil {
			continue
		}
		n.mu.Lock()
		p := n.peers[s.Dst.Addr()]
		n.mu.Unlock()
		if p == nil {
			continue
		}
		select {
		case p.in <- s:
		default: // a peer that does not listen loses segments, as on any wire
		}
	}
}

// Close removes the device.
func (n *Net) Close() error {
	err := n.file.Close()
	<-n.done
	return err
}

func (n *Net) write(s *Segment) error {
	_, err := n.file.Write(s.marshal())
	return err
}
