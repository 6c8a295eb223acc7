// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"fmt"
	"net/netip"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// jsonDocument is the document of a listing. jsonView writes it while the kernel sends the sockets.
type jsonDocument struct {
	Schema int `json:"schema"`
	// with `--watch`
	Time        string       `json:"time,omitzero"`
	Sockets     []jsonSocket `json:"sockets"`
	Interrupted bool         `json:"interrupted,omitzero"`
}

// jsonEndpoint is one end of a connection.
type jsonEndpoint struct {
	Address string `json:"address"`
	Port    uint16 `json:"tcp_port" schema1:"port"`
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
	// 8 digits
	Token           string     `json:"token"`
	SndbufBytes     uint32     `json:"sndbuf_bytes"`
	RcvbufBytes     uint32     `json:"rcvbuf_bytes"`
	PeerRcvbufBytes uint32     `json:"peer_rcvbuf_bytes"`
	RxProd          jsonCursor `json:"rx_prod"`
	RxCons          jsonCursor `json:"rx_cons"`
	TxProd          jsonCursor `json:"tx_prod"`
	TxCons          jsonCursor `json:"tx_cons"`
	TxPrep          jsonCursor `json:"tx_prep"`
	TxSent          jsonCursor `json:"tx_sent"`
	TxFin           jsonCursor `json:"tx_fin"`
	RxProdFlags     uint8      `json:"rx_prod_flags"`
	RxConnFlags     uint8      `json:"rx_conn_flags"`
	TxProdFlags     uint8      `json:"tx_prod_flags"`
	TxConnFlags     uint8      `json:"tx_conn_flags"`
}

// jsonLink is the SMC-R link of a connection, set with --smcr or --debug.
type jsonLink struct {
	Role     string `json:"role" schema1:",clnt"`
	LinkID   uint8  `json:"link_id"`
	IBDevice string `json:"device" schema1:"ibdev"`
	IBPort   uint8  `json:"port" schema1:"ibport"`
	GID      string `json:"gid"`
	PeerGID  string `json:"peer_gid"`
}

// jsonDMB is the SMC-D side of a connection, set with --smcd or --debug.
type jsonDMB struct {
	LinkGroupID string `json:"linkgroup_id"`
	GID         string `json:"gid"`
	// Linux 6.10 and newer
	ExtGID string `json:"ext_gid,omitzero"`
	// 16 digits
	Token   string `json:"token"`
	PeerGID string `json:"peer_gid"`
	// Linux 6.10 and newer
	PeerExtGID string `json:"peer_ext_gid,omitzero"`
	PeerToken  string `json:"peer_token"`
}

// jsonProcess is a process that has the socket open.
type jsonProcess struct {
	PID  int    `json:"pid"`
	Name string `json:"process" schema1:"name"`
	FD   int    `json:"fd"`
}

// jsonSocket is one socket.
type jsonSocket struct {
	State string `json:"state"`
	// left out while the socket has none: before connect() and after close()
	Transport string `json:"transport,omitzero" schema1:"mode,upper"`
	UID       uint32 `json:"uid"`
	Inode     uint64 `json:"inode"`
	Cookie    string `json:"cookie"`
	// if bound. The IPv6 wildcard is `0.0.0.0`
	Local *jsonEndpoint `json:"local,omitzero"`
	// if connected
	Peer *jsonEndpoint `json:"peer,omitzero"`
	// with SO_BINDTODEVICE
	Ifindex uint32 `json:"ifindex,omitzero" schema1:"bound_ifindex"`
	// the same, if the interface still exists
	NetDev   string       `json:"netdev,omitzero" schema1:"bound_ifname"`
	Shutdown jsonShutdown `json:"shutdown"`
	// of a TCP connection; text and remedy with `--explain`
	Fallback *jsondoc.Fallback `json:"fallback,omitzero"`
	// `-d`, if the socket has a connection
	Conn *jsonConn `json:"connection,omitzero"`
	// `-R` or `-d`, connections over SMC-R
	Link *jsonLink `json:"link,omitzero"`
	// `-D` or `-d`, connections over SMC-D
	DMB *jsonDMB `json:"dmb,omitzero"`
	// `-i`, unless the state is `INIT` or `LISTEN`
	Info *jsonInfo `json:"info,omitzero" schema1:"-"`
	// `-p`; empty if none was found or may be looked into
	Processes []jsonProcess `json:"processes,omitzero"`
}

// newJSONSocket converts s. ifName returns the name of an interface, or "".
func newJSONSocket(s *netlinksmc.Socket, reason func(netlinksmc.Reason) jsondoc.Reason, ifName func(uint32) string) jsonSocket {
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
		j.Transport = jsondoc.Transport(s.Mode.String())
	}
	if s.BoundIfindex != 0 {
		j.NetDev = cli.Printable(ifName(s.BoundIfindex))
	}
	if f := s.Fallback; f != nil {
		fallback := jsondoc.NewFallback(*f, reason)
		j.Fallback = &fallback
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
		Role:     jsondoc.Role(l.Role),
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
