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

// Failure says how far a live test came before it failed.
type Failure string

// The failures. NotFailed means that data went to the peer and back.
const (
	NotFailed       Failure = ""
	FailSocket      Failure = "socket"      // no socket could be made
	FailRefused     Failure = "refused"     // nothing listens there
	FailUnreachable Failure = "unreachable" // no way there, or a rule that says so
	FailTimeout     Failure = "timeout"     // no answer to TCP's SYN
	FailHandshake   Failure = "handshake"   // TCP connects, but the handshake of SMC breaks off
	FailStranger    Failure = "stranger"    // connected to something that is no smc_chk --server
	FailSilent      Failure = "silent"      // connected, and nothing came back
	FailBroken      Failure = "broken"      // the connection broke
	FailCorrupt     Failure = "corrupt"     // what came back is not what was sent
)

// Carrier is what moves the bytes of a connection.
type Carrier struct {
	// Mode is "SMC-R", "SMC-D" or "TCP"; empty if it could not be found out.
	Mode string
	// Version is that of SMC, such as "2.1", empty if the module does not tell.
	Version string
	// Fallback says why it is TCP; nil if it is not, or no socket of AF_SMC.
	Fallback *netlinksmc.Fallback
}

// SMC says whether it is SMC.
func (c Carrier) SMC() bool { return strings.HasPrefix(c.Mode, "SMC-") }

// Live is what became of a connection to a peer.
type Live struct {
	// Target is where it was to go to.
	Target  netip.AddrPort
	Failure Failure
	Err     error
	Carrier Carrier
	// CarrierErr says why the carrier could not be found out.
	CarrierErr error
	// Peer is what the server says of its end, nil if it is none of ours.
	Peer *Hello
	// Latency is the time of one byte to the peer and back, Throughput what went there, and back at the same time, in
	// bytes a second. Both are 0 if they were not measured.
	Latency    time.Duration
	Throughput float64
}

// Hello is what a server says of its end of the connection.
type Hello struct {
	// AFSMC means that it listens on an AF_SMC socket, and not on one of TCP because it has no other.
	AFSMC   bool
	Carrier Carrier
}

// magic begins the lines by which client and server know each other; the number is that of the protocol.
const magic = "smc_chk 1 "

// helloMax is the length of the longest line, with its newline.
const helloMax = 200

// clientLine is what a client says first. Whatever follows comes back as it is.
const clientLine = magic + "client\n"

// String returns the server's line, without its newline.
func (h Hello) String() string {
	text := fmt.Sprintf("%sserver af_smc=%t mode=%s version=%s", magic, h.AFSMC, cmp.Or(h.Carrier.Mode, "-"), cmp.Or(h.Carrier.Version, "-"))
	if f := h.Carrier.Fallback; f != nil {
		text += fmt.Sprintf(" reason=%#08x peer=%#08x", uint32(f.Reason), uint32(f.PeerDiagnosis))
	}
	return text
}

// parseHello decodes the server's line. Words that it does not know are those of newer servers.
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
			h.Carrier.Mode = oneOf(value, "SMC-R", "SMC-D", "TCP")
		case "version":
			h.Carrier.Version = oneOf(value, "1", "2", "2.0", "2.1")
		case "reason", "peer":
			h.fallback(key, value)
		}
	}
	return h, true
}

// oneOf keeps what a peer says within words that we know.
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
	if h.Carrier.Fallback == nil {
		h.Carrier.Fallback = &netlinksmc.Fallback{}
	}
	if key == "reason" {
		h.Carrier.Fallback.Reason = netlinksmc.Reason(code)
		return
	}
	h.Carrier.Fallback.PeerDiagnosis = netlinksmc.Reason(code)
}

// An Inspector tells what carries the connection of a socket of this process, by its inode.
type Inspector func(ctx context.Context, inode uint64) (Carrier, error)

// Inspect asks the kernel.
func Inspect(ctx context.Context, inode uint64) (Carrier, error) {
	d, err := netlinksmc.NewDiag()
	if err != nil {
		return Carrier{}, err
	}
	defer d.Close()
	var found *netlinksmc.Socket
	for s, err := range d.Sockets(ctx, netlinksmc.DiagLinkGroup|netlinksmc.DiagDMB) {
		if ignorable(err) != nil {
			return Carrier{}, err
		}
		if s.Inode == inode && found == nil && inode != 0 {
			found = &s
		}
	}
	if found == nil {
		return Carrier{}, errors.New("the module does not list the socket")
	}
	c := Carrier{Fallback: found.Fallback}
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

// version returns the version of SMC of a socket's link group, "" if it cannot be told.
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
