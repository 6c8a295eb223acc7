// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strings"

	"github.com/mdlayher/netlink"
	vnetlink "github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Rules are the packet filter rules and IPsec policies that affect SMC.
type Rules struct {
	// Readable is false if the caller may not read them.
	Readable bool
	// Strips are the rules that remove the SMC option from TCP's handshake, and Drops those that drop RoCEv2.
	Strips, Drops []Rule
	// LegacyStrip means that legacy iptables have loaded TCPOPTSTRIP, which can remove TCP options.
	LegacyStrip bool
	// IPsec is the number of IPsec policies.
	IPsec int
}

// Rule identifies a rule of nftables, or of iptables on top of nftables.
type Rule struct {
	Family, Table, Chain string
	Handle               uint64
}

// Constants of <linux/netfilter/nf_tables.h> and <linux/netfilter/nfnetlink.h>.
const (
	nftGetRule  = 10<<8 | 7 // NFNL_SUBSYS_NFTABLES, NFT_MSG_GETRULE
	nfgenmsgLen = 4

	ruleTable       = 1
	ruleChain       = 2
	ruleHandle      = 3
	ruleExpressions = 4

	listElem = 1
	exprName = 1
	exprData = 2

	exthdrDreg = 1
	exthdrType = 2
	exthdrOp   = 6
	exthdrSreg = 7

	exthdrOpTCPOption = 1

	targetName = 1
	targetInfo = 3

	payloadBase   = 2
	payloadOffset = 3

	payloadTransport = 2

	cmpData         = 3
	immediateData   = 2
	dataValue       = 1
	dataVerdict     = 2
	verdictCode     = 1
	verdictDrop     = 0
	offsetOfDstPort = 2
)

// optionSMC is the kind of the TCP option by which two hosts announce SMC to each other. It is an experimental kind, which
// other protocols share.
const optionSMC = 254

// portRoCE is the UDP port of RoCEv2 in network byte order.
var portRoCE = []byte{4791 >> 8, 4791 & 0xff}

// readRules looks for rules that filter the packets of SMC. It does not query nftables if the module is not loaded, because
// there are no rules then, and the query would load it.
func (r Reader) readRules(s *Snapshot) {
	s.Rules.Readable = true
	s.Rules.LegacyStrip = strings.Contains("\n"+r.Root.Text("proc/net/ip_tables_targets")+"\n", "\nTCPOPTSTRIP\n") &&
		strings.Contains("\n"+r.Root.Text("proc/net/ip_tables_names")+"\n", "\nmangle\n")
	if r.Root.Exists("sys/module/nf_tables") {
		if err := readNFTables(&s.Rules); errors.Is(err, os.ErrPermission) {
			s.Rules.Readable = false
		} else if err != nil {
			s.unknown("rules of nftables", err)
		}
	}
	if !r.Root.Exists("sys/module/xfrm_user") {
		return
	}
	policies, err := vnetlink.XfrmPolicyList(unix.AF_UNSPEC)
	switch {
	case errors.Is(err, os.ErrPermission):
		s.Rules.Readable = false
	case err != nil && !errors.Is(err, vnetlink.ErrDumpInterrupted):
		s.unknown("IPsec policies", err)
	}
	s.Rules.IPsec = len(policies)
}

func readNFTables(rules *Rules) error {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	replies, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: nftGetRule, Flags: netlink.Request | netlink.Dump},
		Data:   make([]byte, nfgenmsgLen), // all families
	})
	if err != nil {
		return err
	}
	for _, m := range replies {
		if err := rules.add(m.Data); err != nil {
			return err
		}
	}
	return nil
}

// families has nft's names for the families of rules.
var families = map[byte]string{1: "inet", 2: "ip", 3: "arp", 5: "netdev", 7: "bridge", 10: "ip6"}

// add records the rule in a message if it affects SMC.
func (rules *Rules) add(b []byte) error {
	if len(b) < nfgenmsgLen {
		return errors.New("a rule without a header")
	}
	ad, err := netlink.NewAttributeDecoder(b[nfgenmsgLen:])
	if err != nil {
		return err
	}
	ad.ByteOrder = binary.BigEndian
	rule := Rule{Family: families[b[0]]}
	var found effect
	for ad.Next() {
		switch ad.Type() {
		case ruleTable:
			rule.Table = ad.String()
		case ruleChain:
			rule.Chain = ad.String()
		case ruleHandle:
			rule.Handle = ad.Uint64()
		case ruleExpressions:
			ad.Nested(func(list *netlink.AttributeDecoder) error {
				for list.Next() {
					if list.Type() == listElem {
						list.Nested(found.expression)
					}
				}
				return nil
			})
		}
	}
	if err := ad.Err(); err != nil {
		return err
	}
	if found.strips {
		rules.Strips = append(rules.Strips, rule)
	}
	if found.roce && found.drops {
		rules.Drops = append(rules.Drops, rule)
	}
	return nil
}

// effect is the combined effect of the expressions of a rule.
type effect struct {
	strips, roce, drops bool
	// port is set if the last expression has loaded the destination port of the packet.
	port bool
}

func (e *effect) expression(ad *netlink.AttributeDecoder) error {
	name := ""
	for ad.Next() {
		switch ad.Type() {
		case exprName:
			name = ad.String()
			e.drops = e.drops || name == "reject"
		case exprData:
			ad.Nested(func(data *netlink.AttributeDecoder) error { return e.data(name, data) })
		}
	}
	if name != "payload" && name != "cmp" {
		e.port = false
	}
	return nil
}

func (e *effect) data(name string, ad *netlink.AttributeDecoder) error {
	attrs := map[uint16][]byte{}
	for ad.Next() {
		attrs[ad.Type()] = ad.Bytes()
	}
	number := func(attr uint16) int {
		if b := attrs[attr]; len(b) == 4 {
			return int(binary.BigEndian.Uint32(b))
		}
		return -1
	}
	switch name {
	case "exthdr":
		// An expression that neither reads the option nor writes to it removes it.
		_, reads := attrs[exthdrDreg]
		_, writes := attrs[exthdrSreg]
		e.strips = e.strips || number(exthdrOp) == exthdrOpTCPOption && !reads && !writes &&
			bytes.Equal(attrs[exthdrType], []byte{optionSMC})
	case "target":
		e.strips = e.strips || strings.TrimRight(string(attrs[targetName]), "\x00") == "TCPOPTSTRIP" && strips(attrs[targetInfo])
	case "payload":
		e.port = number(payloadBase) == payloadTransport && number(payloadOffset) == offsetOfDstPort
	case "cmp":
		e.roce = e.roce || e.port && bytes.Equal(inner(attrs[cmpData], dataValue), portRoCE)
	case "immediate":
		code := inner(inner(attrs[immediateData], dataVerdict), verdictCode)
		e.drops = e.drops || len(code) == 4 && binary.BigEndian.Uint32(code) == verdictDrop
	}
	return nil
}

// strips reports whether TCPOPTSTRIP removes the SMC option. info is its bitmap of options, in words in host byte order.
func strips(info []byte) bool {
	const word = optionSMC / 32 * 4
	return len(info) >= word+4 && binary.NativeEndian.Uint32(info[word:])&(1<<(optionSMC%32)) != 0
}

// inner returns the payload of an attribute nested in b.
func inner(b []byte, want uint16) []byte {
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return nil
	}
	for ad.Next() {
		if ad.Type() == want {
			return ad.Bytes()
		}
	}
	return nil
}
