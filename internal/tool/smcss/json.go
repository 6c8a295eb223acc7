// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"fmt"
	"net/netip"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// schema is the number of the JSON format that this file declares.
const schema = 1

// jsonDocument is the document of a listing. jsonView writes it while the kernel sends the sockets.
type jsonDocument struct {
	Schema int `json:"schema"`
	// RFC 3339, with `--watch`
	Time    string       `json:"time,omitzero"`
	Sockets []jsonSocket `json:"sockets"`
	// true if the list changed while it was read: some sockets may be missing or listed twice
	Interrupted bool `json:"interrupted,omitzero"`
}

// jsonEndpoint is one end of a connection.
type jsonEndpoint struct {
	Address string `json:"address"`
	Port    uint16 `json:"port"`
}

// jsonReason is a fallback or decline code. Name is absent for a code that no Linux has, Text and Remedy are set with
// --explain.
type jsonReason struct {
	// as in `0x03010000`
	Code string `json:"code"`
	// as in `PEER_NO_SMC`; left out for a code that no Linux has
	Name string `json:"name,omitzero"`
	// with `--explain`
	Text string `json:"text,omitzero"`
	// with `--explain`
	Remedy string `json:"remedy,omitzero"`
}

// jsonFallback has the reasons why a socket uses TCP.
type jsonFallback struct {
	Local jsonReason `json:"local"`
	// if the peer has given a reason
	Peer *jsonReason `json:"peer,omitzero"`
}

// jsonShutdown has the directions that are shut down.
type jsonShutdown struct {
	Receive bool `json:"receive"`
	Send    bool `json:"send"`
}

// jsonCursor is a position in a ring buffer.
type jsonCursor struct {
	Wrap  uint16 `json:"wrap"`
	Count uint32 `json:"count"`
}

// jsonConn is the inside of a connection, set with --debug. Sizes are in bytes, flags as in the CDC message.
type jsonConn struct {
	// 8 hex digits
	Token           string `json:"token"`
	SndbufBytes     uint32 `json:"sndbuf_bytes"`
	RcvbufBytes     uint32 `json:"rcvbuf_bytes"`
	PeerRcvbufBytes uint32 `json:"peer_rcvbuf_bytes"`
	// cursor
	RxProd jsonCursor `json:"rx_prod"`
	RxCons jsonCursor `json:"rx_cons"`
	TxProd jsonCursor `json:"tx_prod"`
	TxCons jsonCursor `json:"tx_cons"`
	TxPrep jsonCursor `json:"tx_prep"`
	TxSent jsonCursor `json:"tx_sent"`
	TxFin  jsonCursor `json:"tx_fin"`
	// flags of RFC 7609, appendix A.4
	RxProdFlags uint8 `json:"rx_prod_flags"`
	RxConnFlags uint8 `json:"rx_conn_flags"`
	TxProdFlags uint8 `json:"tx_prod_flags"`
	TxConnFlags uint8 `json:"tx_conn_flags"`
}

// jsonLink is the SMC-R link of a connection, set with --smcr or --debug.
type jsonLink struct {
	// `SERV` or `CLNT`
	Role     string `json:"role"`
	LinkID   uint8  `json:"link_id"`
	IBDevice string `json:"ibdev"`
	IBPort   uint8  `json:"ibport"`
	GID      string `json:"gid"`
	PeerGID  string `json:"peer_gid"`
}

// jsonDMB is the SMC-D side of a connection, set with --smcd or --debug.
type jsonDMB struct {
	// 8 hex digits
	LinkGroupID string `json:"linkgroup_id"`
	// 16 hex digits, as all that follow
	GID string `json:"gid"`
	// Linux 6.10 and newer
	ExtGID  string `json:"ext_gid,omitzero"`
	Token   string `json:"token"`
	PeerGID string `json:"peer_gid"`
	// Linux 6.10 and newer
	PeerExtGID string `json:"peer_ext_gid,omitzero"`
	PeerToken  string `json:"peer_token"`
}

// jsonProcess is a process that has the socket open.
type jsonProcess struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
	FD   int    `json:"fd"`
}

// jsonSocket is one socket.
type jsonSocket struct {
	// as in the text: `ACTIVE`, `INIT`, … ; a state without a name: `0x63?`
	State string `json:"state"`
	// `SMCR`, `SMCD` or `TCP`, once the socket has a mode: not before connect, nor after close
	Mode string `json:"mode,omitzero"`
	UID  uint32 `json:"uid"`
	// 0: no process has the socket any more
	Inode uint64 `json:"inode"`
	// 16 hex digits; names the socket in the kernel
	Cookie string `json:"cookie"`
	// if bound. The IPv6 wildcard is `0.0.0.0`
	Local *jsonEndpoint `json:"local,omitzero"`
	// if connected
	Peer *jsonEndpoint `json:"peer,omitzero"`
	// with SO_BINDTODEVICE
	Ifindex uint32 `json:"bound_ifindex,omitzero"`
	// the same, if the interface still exists
	Ifname   string       `json:"bound_ifname,omitzero"`
	Shutdown jsonShutdown `json:"shutdown"`
	// mode TCP
	Fallback *jsonFallback `json:"fallback,omitzero"`
	// `-d`, if the socket has a connection
	Conn *jsonConn `json:"connection,omitzero"`
	// `-R` or `-d`, connections over SMC-R
	Link *jsonLink `json:"link,omitzero"`
	// `-D` or `-d`, connections over SMC-D
	DMB *jsonDMB `json:"dmb,omitzero"`
	// `-i`, unless the state is `INIT` or `LISTEN`
	Info *jsonInfo `json:"info,omitzero"`
	// `-p`; empty if none was found or may be looked into
	Processes []jsonProcess `json:"processes,omitzero"`
}

// newJSONSocket converts s. ifName returns the name of an interface, or "".
func newJSONSocket(s *netlinksmc.Socket, explain bool, ifName func(uint32) string) jsonSocket {
	j := jsonSocket{
		State:   s.State.String(),
		UID:     s.UID,
		Inode:   s.Inode,
		Cookie:  hex64(s.Cookie),
		Local:   newJSONEndpoint(s.Local),
		Peer:    newJSONEndpoint(s.Peer),
		Ifindex: s.BoundIfindex,
		Shutdown: jsonShutdown{
			Receive: s.Shutdown&netlinksmc.ShutdownReceive != 0,
			Send:    s.Shutdown&netlinksmc.ShutdownSend != 0,
		},
		Conn: newJSONConn(s.Conn),
		Link: newJSONLink(s.LinkGroup),
		DMB:  newJSONDMB(s.DMB),
	}
	if hasMode(s) {
		j.Mode = s.Mode.String()
	}
	if s.BoundIfindex != 0 {
		j.Ifname = cli.Printable(ifName(s.BoundIfindex))
	}
	if f := s.Fallback; f != nil {
		j.Fallback = &jsonFallback{Local: newJSONReason(f.Reason, explain)}
		if f.PeerDiagnosis != 0 {
			peer := newJSONReason(f.PeerDiagnosis, explain)
			j.Fallback.Peer = &peer
		}
	}
	return j
}

// newJSONEndpoint returns nil for the end of a socket that is not bound or not connected.
func newJSONEndpoint(ap netip.AddrPort) *jsonEndpoint {
	if ap.Port() == 0 {
		return nil
	}
	return &jsonEndpoint{Address: string(appendAddr(nil, ap.Addr())), Port: ap.Port()}
}

func newJSONReason(r netlinksmc.Reason, explain bool) jsonReason {
	j := jsonReason{Code: r.String(), Name: r.Name()}
	if explain {
		j.Text, j.Remedy = r.Text(), r.Remedy()
	}
	return j
}

func newJSONConn(c *netlinksmc.ConnInfo) *jsonConn {
	if c == nil {
		return nil
	}
	return &jsonConn{
		Token:           fmt.Sprintf("%08x", c.Token),
		SndbufBytes:     c.SndbufSize,
		RcvbufBytes:     c.RMBESize,
		PeerRcvbufBytes: c.PeerRMBESize,
		RxProd:          jsonCursor(c.RxProd),
		RxCons:          jsonCursor(c.RxCons),
		TxProd:          jsonCursor(c.TxProd),
		TxCons:          jsonCursor(c.TxCons),
		TxPrep:          jsonCursor(c.TxPrep),
		TxSent:          jsonCursor(c.TxSent),
		TxFin:           jsonCursor(c.TxFin),
		RxProdFlags:     c.RxProdFlags,
		RxConnFlags:     c.RxConnFlags,
		TxProdFlags:     c.TxProdFlags,
		TxConnFlags:     c.TxConnFlags,
	}
}

func newJSONLink(l *netlinksmc.LinkGroupInfo) *jsonLink {
	if l == nil {
		return nil
	}
	return &jsonLink{
		Role:     l.Role.String(),
		LinkID:   l.LinkID,
		IBDevice: cli.Printable(l.IBDev),
		IBPort:   l.IBPort,
		GID:      l.GID,
		PeerGID:  l.PeerGID,
	}
}

func newJSONDMB(d *netlinksmc.DMBInfo) *jsonDMB {
	if d == nil {
		return nil
	}
	j := &jsonDMB{
		LinkGroupID: fmt.Sprintf("%08x", d.LinkGroupID),
		GID:         hex64(d.GID),
		Token:       hex64(d.Token),
		PeerGID:     hex64(d.PeerGID),
		PeerToken:   hex64(d.PeerToken),
	}
	if v, ok := d.ExtGID.Get(); ok {
		j.ExtGID = hex64(v)
	}
	if v, ok := d.PeerExtGID.Get(); ok {
		j.PeerExtGID = hex64(v)
	}
	return j
}

// newJSONProcesses returns a list that is never nil, so that "none found" differs from "not asked for".
func newJSONProcesses(list []process) []jsonProcess {
	out := make([]jsonProcess, len(list))
	for i, p := range list {
		out[i] = jsonProcess{PID: p.PID, Name: cli.Printable(p.Name), FD: p.FD}
	}
	return out
}

// hex64 writes 64-bit names as text, because JSON readers keep only 53 bits of a number.
func hex64(v uint64) string { return fmt.Sprintf("%016x", v) }
