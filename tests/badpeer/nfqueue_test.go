// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// Message types of <linux/netfilter/nfnetlink_queue.h>, with the number of the subsystem.
const (
	nfqPacket  = unix.NFNL_SUBSYS_QUEUE << 8
	nfqVerdict = unix.NFNL_SUBSYS_QUEUE<<8 | 1
	nfqConfig  = unix.NFNL_SUBSYS_QUEUE<<8 | 2

	nfqaPacketHdr  = 1
	nfqaVerdictHdr = 2
	nfqaCfgCmd     = 1
	nfqaCfgParams  = 2

	nfqCfgCmdBind = 1
	nfqCopyMeta   = 1
)

// queueMessage has a header, which names a queue, and one attribute.
func queueMessage(typ netlink.HeaderType, flags netlink.HeaderFlags, queue, attr uint16, value []byte) (netlink.Message, error) {
	attrs, err := netlink.MarshalAttributes([]netlink.Attribute{{Type: attr, Data: value}})
	if err != nil {
		return netlink.Message{}, err
	}
	header := []byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, byte(queue >> 8), byte(queue)}
	return netlink.Message{
		Header: netlink.Header{Type: typ, Flags: netlink.Request | flags},
		Data:   append(header, attrs...),
	}, nil
}

// packetID returns the identifier of a queued packet.
func packetID(m netlink.Message) ([]byte, error) {
	attrs, err := netlink.UnmarshalAttributes(m.Data[4:])
	if err != nil {
		return nil, err
	}
	for _, a := range attrs {
		if a.Type == nfqaPacketHdr {
			return a.Data[:4], nil
		}
	}
	return nil, fmt.Errorf("a packet of NFQUEUE has no header: %v", attrs)
}

// pass lets all packets of a queue pass, until the connection is closed. The kernel continues with a packet in the thread that
// gives the verdict, which stays on one processor.
func pass(c *netlink.Conn, queue uint16) (passed int, err error) {
	runtime.LockOSThread() // not unlocked, so that the thread ends with the goroutine
	var cpus unix.CPUSet
	cpus.Set(0)
	if err := unix.SchedSetaffinity(0, &cpus); err != nil {
		return 0, err
	}
	for {
		messages, err := c.Receive()
		if err != nil {
			return passed, nil //nolint:nilerr // closed
		}
		for _, m := range messages {
			if m.Header.Type != nfqPacket {
				continue
			}
			id, err := packetID(m)
			if err != nil {
				return passed, err
			}
			const accept = 1
			verdict, err := queueMessage(nfqVerdict, 0, queue, nfqaVerdictHdr, append(binary.BigEndian.AppendUint32(nil, accept), id...))
			if err != nil {
				return passed, err
			}
			if _, err := c.Send(verdict); err != nil {
				return passed, err
			}
			passed++
		}
	}
}

// openQueue makes this process the reader of a queue.
func openQueue(t *testing.T, queue uint16) *netlink.Conn {
	t.Helper()
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, attr := range []netlink.Attribute{
		{Type: nfqaCfgCmd, Data: []byte{nfqCfgCmdBind, 0, 0, 0}},
		{Type: nfqaCfgParams, Data: []byte{0, 0, 0, 0, nfqCopyMeta}},
	} {
		m, err := queueMessage(nfqConfig, netlink.Acknowledge, queue, attr.Type, attr.Data)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Execute(m); err != nil {
			t.Fatalf("configuring a queue of NFQUEUE: %v", err)
		}
	}
	return c
}

// TestNFQUEUE has a program give the verdict on each SYN, so that the hook on input runs in process context.
func TestNFQUEUE(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	if out := guest.Run(t, "modprobe -q nft_queue || echo missing"); out != "" {
		t.Skip("this kernel was built without nft_queue")
	}
	const queue, port = 7, 7053
	c := openQueue(t, queue)
	guest.Run(t, fmt.Sprintf(`nft add table ip queued
		nft add chain ip queued in '{ type filter hook input priority 0; }'
		nft add rule ip queued in tcp dport %d tcp flags '&' '(syn | ack)' == syn queue num %d`, port, queue))
	done := make(chan error)
	var passed int
	go func() {
		var err error
		passed, err = pass(c, queue)
		done <- err
	}()
	echoUntilEnd(t, netip.AddrPortFrom(service.Addr(), port), 64)
	optionHolds(t, n, 36, port)
	guest.Run(t, "nft delete table ip queued")
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil || passed == 0 {
		t.Errorf("%d packets have passed NFQUEUE: %v", passed, err)
	}
}
