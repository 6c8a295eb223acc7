// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/spf13/cobra"
)

// peersJSON is the output of peers with --json. Fields are never removed or changed under the same schema number.
type peersJSON struct {
	Schema int        `json:"schema"`
	Peers  []peerJSON `json:"peers"`
}

// peerJSON is a peer that the module remembers.
type peerJSON struct {
	Address string `json:"address"`
	// that the socket was bound to, if it was
	Interface string `json:"interface,omitempty"`
	// of the service: the peer's if `role` is `connect`, else this host's
	Port uint16 `json:"port"`
	// of this host: `connect` or `listen`
	Role   string     `json:"role"`
	Reason reasonJSON `json:"reason"`
	// if the peer has given a reason
	PeerReason *reasonJSON `json:"peer_reason,omitempty"`
	// of the user for whose sockets it counts, if `role` is `connect`
	User *uint32 `json:"uid,omitempty"`
	// until the module forgets the peer
	SecondsLeft uint32 `json:"seconds_left"`
}

// reasonJSON is a reason why connections are TCP.
type reasonJSON struct {
	// as in `0x03010000`
	Code string `json:"code"`
	// as in `PEER_NO_SMC`; left out for a code that no Linux has
	Name string `json:"name,omitempty"`
	Text string `json:"text,omitempty"`
}

func newPeers(c *command) *cobra.Command {
	return c.addLearned(&cobra.Command{
		Use:     "peers [show | flush [--check]]",
		Short:   "Show or forget the peers with which SMC was not possible",
		Long:    peersLong,
		Example: peersExample,
	}, learned{
		show: c.peers,
		list: func(ctx context.Context, k kernel) (names []string, err error) {
			peers, err := k.Peers(ctx)
			for _, p := range peers {
				names = append(names, peerAddress(p)+" "+p.Role.String())
			}
			return names, err
		},
		forget: func(ctx context.Context, k kernel) error { return k.ForgetPeers(ctx) },
	})
}

func newReasonJSON(r netlinksmc.Reason) reasonJSON {
	return reasonJSON{Code: r.String(), Name: r.Name(), Text: r.Text()}
}

func newPeerJSON(p policy.Peer) peerJSON {
	out := peerJSON{
		Address: p.Address.String(), Interface: interfaceName(p.Interface), Port: p.Port, Role: p.Role.String(), Reason: newReasonJSON(p.Reason),
		SecondsLeft: uint32(p.Left.Seconds()),
	}
	if p.Role == policy.Connect {
		out.User = &p.User
	}
	if p.PeerReason != 0 {
		reason := newReasonJSON(p.PeerReason)
		out.PeerReason = &reason
	}
	return out
}

// interfaceName returns the name of an interface, its number if it has gone, and "" for 0.
func interfaceName(index uint32) string {
	if index == 0 {
		return ""
	}
	if name := cli.InterfaceName(index); name != "" {
		return cli.Printable(name)
	}
	return fmt.Sprint(index)
}

// peerAddress writes an address and port, with the interface as ss does.
func peerAddress(p policy.Peer) string {
	if name := interfaceName(p.Interface); name != "" {
		if p.Address.Is6() {
			return netip.AddrPortFrom(p.Address.WithZone(name), p.Port).String()
		}
		return fmt.Sprintf("%s%%%s:%d", p.Address, name, p.Port)
	}
	return netip.AddrPortFrom(p.Address, p.Port).String()
}

// peerReason writes the codes as smcss does, and the cause in words: that is the peer's reason, if it has given one.
func peerReason(p policy.Peer) string {
	codes, cause := p.Reason.String(), p.Reason
	if p.PeerReason != 0 {
		codes, cause = codes+"/"+p.PeerReason.String(), p.PeerReason
	}
	if !cause.Known() {
		return codes
	}
	return fmt.Sprintf("%s %s: %s", codes, cause.Name(), cause.Text())
}

func (c *command) peers(ctx context.Context) error {
	var peers []policy.Peer
	err := c.withKernel(ctx, func(k kernel) (err error) {
		peers, err = k.Peers(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if c.json {
		out := peersJSON{Schema: 1, Peers: []peerJSON{}}
		for _, p := range peers {
			out.Peers = append(out.Peers, newPeerJSON(p))
		}
		return cli.WriteJSON(c.env.Out, out)
	}
	if len(peers) == 0 {
		_, err := fmt.Fprintln(c.env.Out, "There are no peers with which SMC was not possible.")
		return err
	}
	var rows [][]string
	for _, p := range peers {
		user := "-"
		if p.Role == policy.Connect {
			user = fmt.Sprint(p.User)
		}
		rows = append(rows, []string{peerAddress(p), p.Role.String(), user, fmt.Sprintf("%.0f s", p.Left.Seconds()), peerReason(p)})
	}
	return cli.WriteTable(c.env.Out, []string{"Peer", "Role", "UID", "Left", "Reason"}, rows)
}
