// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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

// capture is a pcap file of raw IPv4 packets, written as they are sent.
type capture struct{ bytes.Buffer }

func newCapture() *capture {
	c := &capture{}
	for _, field := range []any{
		uint32(0xa1b2c3d4), uint16(2), uint16(4), uint32(0), uint32(0), uint32(65535),
		uint32(101), // LINKTYPE_RAW
	} {
		_ = binary.Write(c, binary.BigEndian, field)
	}
	return c
}

const (
	flagSYN = 0x02
	flagPSH = 0x08
	flagACK = 0x10
)

// send appends a segment. Checksums are zero, which a dissector does not verify unless it is told to.
func (c *capture) send(from, to *endpoint, flags byte, options, payload []byte) {
	tcp := binary.BigEndian.AppendUint16(nil, from.port)
	tcp = binary.BigEndian.AppendUint16(tcp, to.port)
	tcp = binary.BigEndian.AppendUint32(tcp, from.seq)
	tcp = binary.BigEndian.AppendUint32(tcp, to.seq)
	tcp = append(tcp, byte((20+len(options))/4<<4), flags, 0xff, 0xff, 0, 0, 0, 0)
	tcp = append(append(tcp, options...), payload...)
	ip := binary.BigEndian.AppendUint16([]byte{0x45, 0}, uint16(20+len(tcp)))
	ip = append(ip, 0, 0, 0x40, 0, 64, 6, 0, 0)
	ip = append(append(ip, from.addr[:]...), to.addr[:]...)
	packet := append(ip, tcp...)
	for _, field := range []uint32{0, 0, uint32(len(packet)), uint32(len(packet))} {
		_ = binary.Write(c, binary.BigEndian, field)
	}
	c.Write(packet)
	from.seq += uint32(len(payload))
	if flags&flagSYN != 0 {
		from.seq++
	}
}

// exchange appends a connection whose peers exchange the option and then one message; the client's port tells it.
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

// dissected is what Wireshark makes of a segment with a CLC message.
type dissected struct{ protocol, info, malformed string }

// dissect returns what tshark says of each connection's message, in the order of the connections.
func (c *capture) dissect(t *testing.T) []dissected {
	t.Helper()
	file := filepath.Join(t.TempDir(), "clc.pcap")
	if err := os.WriteFile(file, c.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("tshark", "-n", "-r", file, "-Y", "tcp.len > 0", "-T", "fields",
		"-e", "_ws.col.Protocol", "-e", "_ws.col.Info", "-e", "_ws.malformed")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, stderr.String())
	}
	var all []dissected
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 {
			t.Fatalf("tshark printed %q", fields)
		}
		all = append(all, dissected{fields[0], fields[1], fields[2]})
	}
	return all
}

// dissectorGaps are messages that Wireshark 4.0 cannot read, though they are right.
var dissectorGaps = map[string]string{
	"PROPOSAL RFC 7609 IPv4": "the dissector expects the 40 bytes about SMC-D that RFC 7609 does not have",
	"ACCEPT D2.0 first":      "the dissector expects the long first contact extension, which SMC-D lacks in release 0",
}

// TestDissector has another implementation read each message that the encoders write.
func TestDissector(t *testing.T) {
	need(t, "tshark")
	type sample struct {
		name    string
		message []byte
	}
	var samples []sample
	for line := range strings.Lines(wiretest(t, "encode")) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
		message, err := hex.DecodeString(text)
		if err != nil || len(message) == 0 {
			t.Fatalf("%q: %v", line, err)
		}
		samples = append(samples, sample{name, message})
	}
	if len(samples) < 20 {
		t.Fatalf("only %d messages", len(samples))
	}

	option := []byte{1, 1, 254, 6, 0xe2, 0xd4, 0xc3, 0xd9}
	c, port := newCapture(), client.port
	for _, s := range samples {
		c.exchange(port, option, s.message, s.message[4]%2 == 0)
		port++
	}
	// Two that must not pass, so that this test can fail: no message, and one with a count that leads beyond its end.
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
			if gap := dissectorGaps[s.name]; gap != "" {
				t.Skip(gap)
			}
			got := all[i]
			known := strings.HasPrefix(got.protocol, "SMC") && strings.Contains(got.info, kinds[s.message[4]])
			if !known || got.malformed != "" {
				t.Errorf("read as %+v", got)
			}
		})
	}
	if plain := all[len(samples)]; plain.protocol != "TCP" {
		t.Errorf("a plain segment is read as %+v", plain)
	}
	if cut := all[len(samples)+1]; cut.malformed == "" {
		t.Errorf("a broken message is read as %+v", cut)
	}
}
