// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/tests/dissect"
)

// The two ends of a TCP connection in a capture.
var (
	client = endpoint{addr: [4]byte{10, 0, 9, 2}, port: 40000}
	server = endpoint{addr: [4]byte{10, 0, 9, 1}, port: 5000}
)

type endpoint struct {
	addr [4]byte
	port uint16
	seq  uint32
}

// capture holds the packets of two peers over IPv4.
type capture struct{ dissect.Capture }

func newCapture() *capture { return &capture{dissect.Capture{Link: dissect.Raw}} }

const (
	flagSYN = 0x02
	flagPSH = 0x08
	flagACK = 0x10
)

// send appends a segment. Checksums are zero, which a dissector does not verify by default.
func (c *capture) send(from, to *endpoint, flags byte, options, payload []byte) {
	tcp := binary.BigEndian.AppendUint16(nil, from.port)
	tcp = binary.BigEndian.AppendUint16(tcp, to.port)
	tcp = binary.BigEndian.AppendUint32(tcp, from.seq)
	tcp = binary.BigEndian.AppendUint32(tcp, to.seq)
	tcp = append(tcp, byte((20+len(options))/4<<4), flags, 0xff, 0xff, 0, 0, 0, 0)
	c.packet(from, to, 6, append(append(tcp, options...), payload...))
	from.seq += uint32(len(payload))
	if flags&flagSYN != 0 {
		from.seq++
	}
}

// packet appends an IP packet.
func (c *capture) packet(from, to *endpoint, protocol byte, payload []byte) {
	ip := binary.BigEndian.AppendUint16([]byte{0x45, 0}, uint16(20+len(payload)))
	ip = append(ip, 0, 0, 0x40, 0, 64, protocol, 0, 0)
	ip = append(append(ip, from.addr[:]...), to.addr[:]...)
	c.Add(append(ip, payload...))
}

// roce appends a message that a reliable connection of RoCEv2 sends whole.
func (c *capture) roce(message []byte) {
	const only, solicited, port = 4, 0x80, 4791
	padding := -len(message) & 3
	bth := []byte{only, solicited | byte(padding<<4), 0xff, 0xff, 0, 0, 0, 0x11, 0, 0, 0, 1}
	payload := append(append(bth, message...), make([]byte, padding+4)...) // with its checksum
	udp := binary.BigEndian.AppendUint16(nil, client.port)
	udp = binary.BigEndian.AppendUint16(udp, port)
	udp = binary.BigEndian.AppendUint16(udp, uint16(8+len(payload)))
	c.packet(&client, &server, 17, append(append(udp, 0, 0), payload...))
}

// exchange appends a connection whose peers exchange the option and then one message; the client's port identifies it.
func (c *capture) exchange(port uint16, option, message []byte, fromServer bool) {
	cl, sv := client, server
	cl.port = port
	c.send(&cl, &sv, flagSYN, option, nil)
	c.send(&sv, &cl, flagSYN|flagACK, option, nil)
	c.send(&cl, &sv, flagACK, nil, nil)
	if fromServer {
		c.send(&sv, &cl, flagPSH|flagACK, nil, message)
	} else {
		c.send(&cl, &sv, flagPSH|flagACK, nil, message)
	}
}

// dissect returns tshark's reading of each message, in their order.
func (c *capture) dissect(t *testing.T) []dissect.Dissected {
	t.Helper()
	return c.Dissect(t, "tcp.len > 0 || udp")
}

// dissectorGaps are valid messages that Wireshark 4.0 cannot decode.
var dissectorGaps = map[string]string{
	"PROPOSAL RFC 7609 IPv4": "the dissector expects the 40 bytes about SMC-D that RFC 7609 does not have",
	"ACCEPT D2.0 first":      "the dissector expects the long first contact extension, which SMC-D lacks in release 0",
}

type sample struct {
	name    string
	message []byte
}

// encoded returns the messages that the test program prints in one of its modes, a number of them at least.
func encoded(t *testing.T, mode string, least int) []sample {
	t.Helper()
	var samples []sample
	for line := range strings.Lines(wiretest(t, mode)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
		message, err := hex.DecodeString(text)
		if err != nil || len(message) == 0 {
			t.Fatalf("%q: %v", line, err)
		}
		samples = append(samples, sample{name, message})
	}
	if len(samples) < least {
		t.Fatalf("only %d messages", len(samples))
	}
	return samples
}

// judge fails a test if tshark did not decode a message, or if it decoded one in spite of a known gap.
func judge(t *testing.T, got dissect.Dissected, understood bool, gap string) {
	t.Helper()
	switch {
	case gap != "" && understood:
		t.Errorf("read as %+v, so that this is none of the dissector's gaps any more: %s", got, gap)
	case gap != "":
		t.Skip(gap)
	case !understood:
		t.Errorf("read as %+v", got)
	}
}

// TestDissector decodes each message of the encoders with another implementation.
func TestDissector(t *testing.T) {
	dissect.Need(t)
	samples := encoded(t, "encode", 20)
	option := []byte{1, 1, 254, 6, 0xe2, 0xd4, 0xc3, 0xd9}
	c, port := newCapture(), client.port
	for _, s := range samples {
		c.exchange(port, option, s.message, s.message[4]%2 == 0)
		port++
	}
	// Add two that must not pass, to prove that this test can fail: no message, and one with a count that exceeds its length.
	c.exchange(port, []byte{1, 1, 1, 1}, []byte("plain"), false)
	i := slices.IndexFunc(samples, func(s sample) bool { return s.name == "CONFIRM R2 first, 1 GID" })
	broken := slices.Clone(samples[i].message)
	broken[156] = 200
	c.exchange(port+1, option, broken, false)

	all := c.dissect(t)
	if len(all) != len(samples)+2 {
		t.Fatalf("tshark saw %d messages, want %d", len(all), len(samples)+2)
	}
	kinds := []string{"", "Proposal]", "Accept]", "Confirm]", "Decline]"}
	for i, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			got := all[i]
			known := strings.HasPrefix(got.Protocol, "SMC") && strings.Contains(got.Info, kinds[s.message[4]])
			judge(t, got, known && got.Malformed == "", dissectorGaps[s.name])
		})
	}
	if plain := all[len(samples)]; plain.Protocol != "TCP" {
		t.Errorf("a plain segment is read as %+v", plain)
	}
	if cut := all[len(samples)+1]; cut.Malformed == "" {
		t.Errorf("a broken message is read as %+v", cut)
	}
}

// TestDissectorLLC does the same with LLC messages, which are named as Wireshark names them.
func TestDissectorLLC(t *testing.T) {
	dissect.Need(t)
	samples := encoded(t, "encode-llc", 20)
	c := newCapture()
	for _, s := range samples {
		c.roce(s.message)
	}
	// Add two that must not pass: a type that does not exist, and a count that exceeds the length.
	c.roce(append([]byte{0x0a, 44}, make([]byte, 42)...))
	i := slices.IndexFunc(samples, func(s sample) bool { return s.name == "Add Link (v2), 1 pair" })
	broken := slices.Clone(samples[i].message)
	broken[71] = 2
	c.roce(broken)

	all := c.dissect(t)
	if len(all) != len(samples)+2 {
		t.Fatalf("tshark saw %d messages, want %d", len(all), len(samples)+2)
	}
	for i, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			gap := ""
			if strings.HasSuffix(s.name, "swapped") {
				gap = dissect.GapLength
			}
			kind, _, _ := strings.Cut(s.name, ",")
			got := all[i]
			known := strings.HasPrefix(got.Protocol, "SMC-R") && strings.HasSuffix(got.Info, "] "+kind)
			judge(t, got, known && got.Malformed == "", gap)
		})
	}
	if unknown := all[len(samples)]; strings.HasPrefix(unknown.Protocol, "SMC") {
		t.Errorf("a message of no type is read as %+v", unknown)
	}
	if cut := all[len(samples)+1]; cut.Malformed == "" {
		t.Errorf("a broken message is read as %+v", cut)
	}
}
