// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"encoding/binary"
	"slices"
)

// rocePort is the UDP port of RoCEv2.
const rocePort = 4791

// swapICRC reverses the invariant CRC at the end of a RoCEv2 packet in an Ethernet frame, and leaves other frames alone.
//
// RoCE sends the CRC low byte first. Soft-RoCE writes and expects it in the byte order of its machine, in Linux 7.2 at least: alone,
// a big-endian host could not communicate with a little-endian one. So the wire has the bytes of a real adapter.
func swapICRC(frame []byte) {
	if n := roceEnd(frame); n > 0 {
		slices.Reverse(frame[n-4 : n])
	}
}

// roceEnd returns where the RoCEv2 packet in an Ethernet frame ends, or 0 if the frame has none. The frame may be padded.
func roceEnd(frame []byte) int {
	const udp = 17
	if len(frame) < minFrame {
		return 0
	}
	packet := frame[minFrame:]
	var protocol byte
	var header, length int
	switch binary.BigEndian.Uint16(frame[12:]) {
	case 0x0800:
		if len(packet) < 20 {
			return 0
		}
		protocol, header, length = packet[9], int(packet[0]&0x0f)*4, int(binary.BigEndian.Uint16(packet[2:]))
	case 0x86dd:
		if len(packet) < 40 {
			return 0
		}
		protocol, header, length = packet[6], 40, 40+int(binary.BigEndian.Uint16(packet[4:]))
	}
	// Behind the header of UDP, the shortest packet has twelve bytes of a header, and the CRC.
	if protocol != udp || length > len(packet) || length < header+8+12+4 || binary.BigEndian.Uint16(packet[header+2:]) != rocePort {
		return 0
	}
	return minFrame + length
}
