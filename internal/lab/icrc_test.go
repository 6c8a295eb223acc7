// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"encoding/hex"
	"hash/crc32"
	"slices"
	"testing"
)

// recorded is a frame with the first message of an SMC-R link, by soft-RoCE of amd64 and, with another CRC, of s390x.
const (
	recordedHead  = "5254000001005254000002000800450000586e1240000111f7800a0000020a000001c12112b7004400000480ffff0000001180cac069212c000352540000020000000000000000000000ffff0a000002000011010000010102ff0000000000000000"
	recordedAMD64 = recordedHead + "2882cabe"
	recordedS390X = recordedHead + "beca8228"
)

// icrc computes the CRC of a frame with RoCEv2 over IPv4, as an adapter sends it.
func icrc(frame []byte) []byte {
	packet := slices.Clone(frame[minFrame : len(frame)-4])
	// Fields that change on the way, and the congestion bits, count as ones.
	for _, at := range []int{1, 8, 10, 11, 26, 27, 32} {
		packet[at] = 0xff
	}
	sum := crc32.ChecksumIEEE(append(bytes.Repeat([]byte{0xff}, 8), packet...))
	return []byte{byte(sum), byte(sum >> 8), byte(sum >> 16), byte(sum >> 24)}
}

func TestSwapICRC(t *testing.T) {
	right := []byte(unhex(t, recordedAMD64))
	if got := icrc(right); !bytes.Equal(got, right[len(right)-4:]) {
		t.Errorf("amd64 sends %x, and this test computes %x", right[len(right)-4:], got)
	}
	over6 := slices.Concat(right[:12], []byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, 68, 17, 1}, make([]byte, 32), right[minFrame+20:])
	for name, c := range map[string]struct{ frame, want string }{
		"s390x":             {recordedS390X, recordedAMD64},
		"amd64":             {recordedAMD64, recordedS390X},
		"padded":            {recordedS390X + "0000", recordedAMD64 + "0000"},
		"IPv6":              {hex.EncodeToString(over6), hex.EncodeToString(over6[:len(over6)-4]) + "beca8228"},
		"cut off":           {recordedS390X[:len(recordedS390X)-2], ""},
		"another UDP port":  {recordedS390X[:2*36] + "12b8" + recordedS390X[2*38:], ""},
		"TCP":               {recordedS390X[:2*23] + "06" + recordedS390X[2*24:], ""},
		"ARP":               {recordedS390X[:2*12] + "0806" + recordedS390X[2*14:], ""},
		"no room for a CRC": {recordedS390X[:2*16] + "002b" + recordedS390X[2*18:], ""},
		"cut header":        {recordedS390X[:2*30], ""},
		"no header":         {recordedS390X[:2*10], ""},
		"empty":             {"", ""},
	} {
		frame := []byte(unhex(t, c.frame))
		if c.want == "" {
			c.want = c.frame
		}
		if swapICRC(frame); hex.EncodeToString(frame) != c.want {
			t.Errorf("%s: %x, want %s", name, frame, c.want)
		}
	}
}

// TestWireSwapsICRC checks that a wire has the CRC in the right order, whichever order the hosts at its ends use.
func TestWireSwapsICRC(t *testing.T) {
	big, little := unhex(t, recordedS390X), unhex(t, recordedAMD64)
	w, ends := plugs(t, 3)
	w.swapICRC(0)
	w.swapICRC(2)
	onWire := make(chan string, 3)
	w.Drop(func(_ int, frame []byte) bool { onWire <- string(frame); return false })
	order := []string{big, little, big}
	for from, sent := range order {
		send(t, ends[from], sent)
		if got := <-onWire; got != little {
			t.Errorf("from host %d, the wire has %x", from, got)
		}
		for to, want := range order {
			if to != from {
				expect(t, ends[to], want)
			}
		}
	}
}

func unhex(t *testing.T, text string) string {
	t.Helper()
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
