// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/internal/nlconn"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcerr"
)

// Family is the name of the generic netlink family that serves the policy.
const Family = "smckit"

const familyVersion = 1

// ErrChanged means that the policy has been changed since it was read: read it again. It is also smcerr.ErrChanged.
var ErrChanged = smcerr.With(errors.New("the policy has been changed meanwhile"), smcerr.ErrChanged)

// remedies has the remedies that are not the usual ones.
var remedies = map[error]string{
	ErrChanged: "try again",
	smcerr.ErrNoModule: "only smckit's module has a policy: install it (package smckit-dkms), unload the kernel's own with 'modprobe -r " +
		"smc_diag smc', and run 'modprobe smc'",
	smcerr.ErrNotSupported: "the module is older than this command, or the kernel cannot convert sockets",
	smcerr.ErrPermission:   "run as root, that is with CAP_NET_ADMIN in the user namespace that owns the network namespace",
}

// requestError turns the failure of a request into an *smcerr.Error, and nil into nil.
func requestError(op string, err error) error {
	if err == nil {
		return nil
	}
	e := nlconn.Error(op, "", err, map[syscall.Errno]error{syscall.ESTALE: ErrChanged, syscall.ENOENT: smcerr.ErrNoModule})
	e.Remedy = cmp.Or(remedies[e.Kind], e.Remedy)
	return e
}

// Client reads and changes the policy of the network namespace in which New was called. It is safe for concurrent use; requests
// wait for one another.
//
// Each request ends early, with the context's error, when its context is cancelled or its deadline passes. There is no other time
// limit. The kernel may have carried out a change whose context ended while the change was waiting for the answer.
//
// Every error is an *smcerr.Error, except the *SyntaxError of SetRules. Any method may return smcerr.ErrNoModule, if no module that has a
// policy is loaded or can be loaded, smcerr.ErrNotSupported, smcerr.ErrPermission and smcerr.ErrMalformed.
type Client struct {
	conn   *nlconn.Generic
	family nlconn.Family
}

// New is NewContext with a context that does not end.
func New() (*Client, error) { return NewContext(context.Background()) }

// NewContext opens a generic netlink socket in the network namespace of the calling thread and looks the family up, which makes the
// kernel load smckit's module if it is installed. The caller closes the Client. ctx limits the look-up only.
func NewContext(ctx context.Context) (*Client, error) {
	conn, err := nlconn.DialGeneric()
	if err != nil {
		return nil, requestError("open a generic netlink socket", err)
	}
	return newClient(ctx, conn)
}

// NewFromConn returns a Client on a connection that is open already, for tests with package genltest. The Client owns the
// connection from then on, and closes it also when NewFromConn fails.
func NewFromConn(conn *genetlink.Conn) (*Client, error) {
	return newClient(context.Background(), nlconn.NewGeneric(conn, nil))
}

func newClient(ctx context.Context, conn *nlconn.Generic) (*Client, error) {
	id, err := conn.LookUp(ctx, Family)
	if err != nil {
		_ = conn.Close()
		return nil, requestError("look up the netlink family "+Family, err)
	}
	return &Client{conn: conn, family: nlconn.Family{ID: id, Version: familyVersion}}, nil
}

// Close closes the socket. A request that waits for an answer fails.
func (c *Client) Close() error { return c.conn.Close() }

// Get returns the policy. Any user may read it. The error may be smcerr.ErrDumpInterrupted.
func (c *Client) Get(ctx context.Context) (Policy, error) {
	const op = "read the policy"
	replies, err := c.conn.Dump(ctx, c.family, netlinksmc.CmdPolicyGet)
	if err != nil {
		return Policy{}, requestError(op, err)
	}
	p, err := parsePolicy(replies)
	if err != nil {
		return Policy{}, &smcerr.Error{Op: op, Kind: smcerr.ErrMalformed, Err: err}
	}
	return p, nil
}

// SetRules replaces the rules of the policy that has a generation. A rule with an ID stays what it is, with its counters. The
// error may be ErrChanged, or wrap a *SyntaxError for a rule that the module would refuse; it is smcerr.ErrNotSupported if the
// kernel has no way to convert sockets, and then nothing has changed.
func (c *Client) SetRules(ctx context.Context, generation uint32, rules []Rule) error {
	const op = "change the policy"
	ae := netlink.NewAttributeEncoder()
	ae.Uint32(netlinksmc.AttrPolicyGeneration, generation)
	ae.Uint32(netlinksmc.AttrPolicyCount, uint32(len(rules)))
	for i, r := range rules {
		if r.ID == 0 {
			if err := r.Check(); err != nil {
				return fmt.Errorf("rule %d: %w", i+1, err)
			}
		}
		ae.Nested(netlinksmc.AttrPolicyRule, func(nae *netlink.AttributeEncoder) error { return encodeRule(nae, r) })
	}
	return c.set(ctx, op, ae)
}

// Enable turns the policy that has a generation on or off. While it is off, all connections that begin in the network namespace are
// TCP. The error may be ErrChanged.
func (c *Client) Enable(ctx context.Context, generation uint32, on bool) error {
	ae := netlink.NewAttributeEncoder()
	ae.Uint32(netlinksmc.AttrPolicyGeneration, generation)
	enabled := uint8(0)
	if on {
		enabled = 1
	}
	ae.Uint8(netlinksmc.AttrPolicyEnabled, enabled)
	return c.set(ctx, "switch the policy", ae)
}

// smallRequest is the number of bytes that fit into the buffer of any socket.
const smallRequest = 64 << 10

func (c *Client) set(ctx context.Context, op string, ae *netlink.AttributeEncoder) error {
	data, err := ae.Encode()
	if err != nil {
		return &smcerr.Error{Op: op, Err: err}
	}
	// The kernel refuses a request that is larger than the buffer. If that cannot grow, the request says so.
	if len(data) > smallRequest {
		_ = c.conn.SetWriteBuffer(2 * len(data))
	}
	return requestError(op, c.conn.Set(ctx, c.family, netlinksmc.CmdPolicySet, data))
}

func encodeRule(ae *netlink.AttributeEncoder, r Rule) error {
	// The module has the rest of a rule that stays.
	if r.ID != 0 {
		ae.Uint32(netlinksmc.AttrRuleID, r.ID)
		return nil
	}
	if r.Name != "" {
		ae.String(netlinksmc.AttrRuleName, r.Name)
	}
	ae.Uint8(netlinksmc.AttrRuleVerdict, uint8(r.Verdict))
	ae.Uint8(netlinksmc.AttrRuleRoles, uint8(r.Role))
	if r.User != nil {
		ae.Uint32(netlinksmc.AttrRuleUID, *r.User)
	}
	if r.Group != nil {
		ae.Uint32(netlinksmc.AttrRuleGID, *r.Group)
	}
	if r.Cgroup != "" {
		ae.String(netlinksmc.AttrRuleCgroup, r.Cgroup)
	}
	for _, ports := range []struct {
		attr uint16
		list []PortRange
	}{
		{netlinksmc.AttrRuleServicePorts, r.Ports}, {netlinksmc.AttrRuleLocalPorts, r.LocalPorts}, {netlinksmc.AttrRuleRemotePorts, r.RemotePorts},
	} {
		if len(ports.list) > 0 {
			ae.Bytes(ports.attr, encodePorts(ports.list))
		}
	}
	if len(r.Networks) > 0 {
		ae.Bytes(netlinksmc.AttrRuleNetworks, encodeNetworks(r.Networks))
	}
	return nil
}

func encodePorts(list []PortRange) (b []byte) {
	for _, r := range list {
		b = binary.NativeEndian.AppendUint16(binary.NativeEndian.AppendUint16(b, r.First), r.Last)
	}
	return b
}

// encodeNetworks writes 17 bytes for each network: an address of IPv6, or a mapped one of IPv4, and the bits of the prefix.
func encodeNetworks(list []netip.Prefix) (b []byte) {
	for _, p := range list {
		addr := p.Addr().As16()
		b = append(append(b, addr[:]...), byte(p.Bits()+128-p.Addr().BitLen()))
	}
	return b
}

// parsePolicy decodes the answer to Get.
func parsePolicy(replies []genetlink.Message) (Policy, error) {
	var p Policy
	for _, m := range replies {
		ad, err := netlink.NewAttributeDecoder(m.Data)
		if err != nil {
			return Policy{}, err
		}
		for ad.Next() {
			switch ad.Type() {
			case netlinksmc.AttrPolicyGeneration:
				p.Generation = ad.Uint32()
			case netlinksmc.AttrPolicyEnabled:
				p.Enabled = ad.Uint8() != 0
			case netlinksmc.AttrPolicyInherited:
				p.Inherited = ad.Uint8() != 0
			case netlinksmc.AttrPolicyRule:
				var r Rule
				ad.Nested(func(nad *netlink.AttributeDecoder) (err error) { r, err = parseRule(nad); return err })
				p.Rules = append(p.Rules, r)
			}
		}
		if err := ad.Err(); err != nil {
			return Policy{}, err
		}
	}
	return p, nil
}

func parseRule(ad *netlink.AttributeDecoder) (r Rule, err error) {
	for ad.Next() && err == nil {
		switch ad.Type() {
		case netlinksmc.AttrRuleID:
			r.ID = ad.Uint32()
		case netlinksmc.AttrRuleName:
			r.Name = ad.String()
		case netlinksmc.AttrRuleVerdict:
			r.Verdict = Verdict(ad.Uint8())
		case netlinksmc.AttrRuleRoles:
			r.Role = Role(ad.Uint8())
		case netlinksmc.AttrRuleUID:
			r.User = new(ad.Uint32())
		case netlinksmc.AttrRuleGID:
			r.Group = new(ad.Uint32())
		case netlinksmc.AttrRuleCgroup:
			r.Cgroup = ad.String()
		case netlinksmc.AttrRuleServicePorts:
			r.Ports, err = parsePorts(ad.Bytes())
		case netlinksmc.AttrRuleLocalPorts:
			r.LocalPorts, err = parsePorts(ad.Bytes())
		case netlinksmc.AttrRuleRemotePorts:
			r.RemotePorts, err = parsePorts(ad.Bytes())
		case netlinksmc.AttrRuleNetworks:
			r.Networks, err = parseNetworks(ad.Bytes())
		default:
			parseCounter(ad, &r.Counters)
		}
	}
	return r, errors.Join(err, ad.Err())
}

func parseCounter(ad *netlink.AttributeDecoder, c *Counters) {
	switch ad.Type() {
	case netlinksmc.AttrRuleDecisions:
		c.Decisions = ad.Uint64()
	case netlinksmc.AttrRuleConnsSMC:
		c.SMC = ad.Uint64()
	case netlinksmc.AttrRuleConnsTCP:
		c.TCP = ad.Uint64()
	case netlinksmc.AttrRuleBytes:
		c.Bytes = ad.Uint64()
	}
}

// parseAddress parses an address of IPv6, or of IPv4 as it is mapped there.
func parseAddress(b []byte) (netip.Addr, error) {
	addr, ok := netip.AddrFromSlice(b)
	if !ok {
		return netip.Addr{}, fmt.Errorf("an address has %d bytes", len(b))
	}
	return addr.Unmap(), nil
}

func parsePorts(b []byte) ([]PortRange, error) {
	if len(b)%4 != 0 {
		return nil, fmt.Errorf("a list of ports has %d bytes", len(b))
	}
	var list []PortRange
	for ; len(b) > 0; b = b[4:] {
		list = append(list, PortRange{binary.NativeEndian.Uint16(b), binary.NativeEndian.Uint16(b[2:])})
	}
	return list, nil
}

func parseNetworks(b []byte) ([]netip.Prefix, error) {
	if len(b)%17 != 0 {
		return nil, fmt.Errorf("a list of networks has %d bytes", len(b))
	}
	var list []netip.Prefix
	for ; len(b) > 0; b = b[17:] {
		addr, bits := netip.AddrFrom16([16]byte(b)), int(b[16])
		if addr.Is4In6() && bits >= 96 {
			addr, bits = addr.Unmap(), bits-96
		}
		p := netip.PrefixFrom(addr, bits)
		if !p.IsValid() {
			return nil, fmt.Errorf("a network has a prefix of %d bits", b[16])
		}
		list = append(list, p)
	}
	return list, nil
}
