// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

// Failure is the step at which a live test failed.
type Failure string

// The failures. NotFailed means that data went to the peer and back.
const (
	NotFailed       Failure = ""
	FailSocket      Failure = "socket"      // no socket could be made
	FailRefused     Failure = "refused"     // nothing listens there
	FailUnreachable Failure = "unreachable" // no route, or a packet filter rejects the connection
	FailTimeout     Failure = "timeout"     // no answer to TCP's SYN
	FailHandshake   Failure = "handshake"   // TCP connects, but the handshake of SMC breaks off
	FailStranger    Failure = "stranger"    // connected to a program other than smc_chk --server
	FailSilent      Failure = "silent"      // connected, but no data came back
	FailBroken      Failure = "broken"      // the connection broke
	FailCorrupt     Failure = "corrupt"     // the data that came back differ from the data sent
)

// Transport is the transport of a connection, with the reason if it is TCP.
type Transport struct {
	// Mode is "SMC-R", "SMC-D" or "TCP"; empty if it could not be found out.
	Mode string
	// Version is the version of SMC, such as "2.1". It is empty if the module does not report it.
	Version string
	// Fallback is the reason why an AF_SMC socket uses TCP. It is nil for other sockets.
	Fallback *netlinksmc.Fallback
}

// SMC reports whether the connection uses SMC.
func (t Transport) SMC() bool { return strings.HasPrefix(t.Mode, "SMC-") }

// Live is the result of a test connection to a peer.
type Live struct {
	// Target is the address of the peer.
	Target    netip.AddrPort
	Failure   Failure
	Err       error
	Transport Transport
	// TransportErr is the error if the transport could not be determined.
	TransportErr error
	// Peer is the answer of the server, nil if it is not an smc_chk server.
	Peer *Hello
	// Latency is the round-trip time of one byte. Throughput is the rate of the data that went to the peer
	// and back at the same time, in bytes per second. Both are 0 if they were not measured.
	Latency    time.Duration
	Throughput float64
}

// Hello is a server's description of its end of the connection.
type Hello struct {
	// AFSMC is true if the server listens on an AF_SMC socket, and false if AF_SMC is not available there, so that it listens
	// on a TCP socket.
	AFSMC     bool
	Transport Transport
}

// magic begins the lines by which client and server recognise each other. It contains the version of the protocol.
const magic = "smc_chk 1 "

// helloMax is the length of the longest line, with its newline.
const helloMax = 200

// clientLine is the first line of a client. The server echoes everything after it.
const clientLine = magic + "client\n"

// String returns the server's line, without its newline.
func (h Hello) String() string {
	text := fmt.Sprintf("%sserver af_smc=%t mode=%s version=%s", magic, h.AFSMC, cmp.Or(h.Transport.Mode, "-"), cmp.Or(h.Transport.Version, "-"))
	if f := h.Transport.Fallback; f != nil {
		text += fmt.Sprintf(" reason=%#08x peer=%#08x", uint32(f.Reason), uint32(f.PeerDiagnosis))
	}
	return text
}

// parseHello decodes the server's line. It ignores unknown words, because newer servers may add some.
func parseHello(line string) (*Hello, bool) {
	rest, ok := strings.CutPrefix(line, magic+"server ")
	if !ok {
		return nil, false
	}
	h := &Hello{}
	for word := range strings.FieldsSeq(rest) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "af_smc":
			h.AFSMC = value == "true"
		case "mode":
			h.Transport.Mode = oneOf(value, "SMC-R", "SMC-D", "TCP")
		case "version":
			h.Transport.Version = oneOf(value, "1", "2", "2.0", "2.1")
		case "reason", "peer":
			h.fallback(key, value)
		}
	}
	return h, true
}

// oneOf returns value if it is one of the words, and "" if not.
func oneOf(value string, words ...string) string {
	for _, w := range words {
		if value == w {
			return w
		}
	}
	return ""
}

func (h *Hello) fallback(key, value string) {
	var code uint32
	if _, err := fmt.Sscanf(value, "0x%x", &code); err != nil {
		return
	}
	if h.Transport.Fallback == nil {
		h.Transport.Fallback = &netlinksmc.Fallback{}
	}
	if key == "reason" {
		h.Transport.Fallback.Reason = netlinksmc.Reason(code)
		return
	}
	h.Transport.Fallback.PeerDiagnosis = netlinksmc.Reason(code)
}

// An Inspector returns the transport of the connection of a socket of this process, which it finds by its inode.
type Inspector func(ctx context.Context, inode uint64) (Transport, error)

// Inspect asks the kernel.
func Inspect(ctx context.Context, inode uint64) (Transport, error) {
	d, err := netlinksmc.NewDiag()
	if err != nil {
		return Transport{}, err
	}
	defer d.Close()
	var found *netlinksmc.Socket
	for s, err := range d.Sockets(ctx, netlinksmc.DiagLinkGroup|netlinksmc.DiagDMB) {
		if ignorable(err) != nil {
			return Transport{}, err
		}
		if s.Inode == inode && found == nil && inode != 0 {
			found = &s
		}
	}
	if found == nil {
		return Transport{}, errors.New("the module does not list the socket")
	}
	c := Transport{Fallback: found.Fallback}
	switch found.Mode {
	case netlinksmc.ModeTCP:
		c.Mode = "TCP"
	case netlinksmc.ModeSMCD:
		c.Mode = "SMC-D"
	default:
		c.Mode = "SMC-R"
	}
	if c.SMC() {
		c.Version = version(ctx, found)
	}
	return c, nil
}

// version returns the version of SMC of a socket's link group, "" if it is unknown.
func version(ctx context.Context, s *netlinksmc.Socket) string {
	c, err := netlinksmc.NewContext(ctx)
	if err != nil {
		return ""
	}
	defer c.Close()
	word := func(v2 *netlinksmc.LinkGroupV2) string {
		if v2 == nil {
			return "1"
		}
		return fmt.Sprintf("%d.%d", v2.Version, v2.Release)
	}
	if s.DMB != nil {
		groups, _ := c.LinkGroupsD(ctx)
		for _, g := range groups {
			if g.ID == s.DMB.LinkGroupID {
				return word(g.V2)
			}
		}
	}
	if s.LinkGroup != nil {
		groups, _ := c.LinkGroupsRWithLinks(ctx)
		for _, g := range groups {
			for _, l := range g.Links {
				if g.Role == s.LinkGroup.Role && l.GID == s.LinkGroup.GID && l.PeerGID == s.LinkGroup.PeerGID {
					return word(g.V2)
				}
			}
		}
	}
	return ""
}
