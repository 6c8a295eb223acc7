// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
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
	// to which the socket was bound, if it was
	Interface string `json:"netdev,omitempty" schema1:"interface"`
	// of the service: the peer's if `role` is `client`, else this host's
	Port   uint16         `json:"tcp_port" schema1:"port"`
	Role   string         `json:"role" schema1:",connect"`
	Reason jsondoc.Reason `json:"reason"`
	// if the peer has given a reason
	PeerReason *jsondoc.Reason `json:"peer_reason,omitempty"`
	// for whose sockets it counts, if `role` is `client`
	User        *uint32 `json:"uid,omitempty"`
	SecondsLeft uint32  `json:"seconds_left"`
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

// newReason returns a reason without its remedy: the module remembers peers for which there is none.
func newReason(r netlinksmc.Reason) jsondoc.Reason {
	return jsondoc.Reason{Code: r.String(), Name: r.Name(), Text: r.Text()}
}

// roleWord returns the role of this host for a use of sockets.
func roleWord(r policy.Role) string {
	if r == policy.Connect {
		return jsondoc.RoleClient
	}
	return jsondoc.RoleServer
}

func newPeerJSON(p policy.Peer) peerJSON {
	out := peerJSON{
		Address: p.Address.String(), Interface: interfaceName(p.Interface), Port: p.Port, Role: roleWord(p.Role), Reason: newReason(p.Reason),
		SecondsLeft: uint32(p.Left.Seconds()),
	}
	if p.Role == policy.Connect {
		out.User = &p.User
	}
	if p.PeerReason != 0 {
		reason := newReason(p.PeerReason)
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
		out := peersJSON{Schema: jsondoc.Schema, Peers: []peerJSON{}}
		for _, p := range peers {
			out.Peers = append(out.Peers, newPeerJSON(p))
		}
		return c.watch.WriteJSON(c.env, out)
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
