// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"net/netip"
	"time"
)

// Role is this host's part in a link group.
type Role uint8

// The roles: the client of the handshake that formed the group, and its server.
const (
	RoleClient Role = 0
	RoleServer Role = 1
)

// Device is an ISM device (SMC_NETLINK_GET_DEV_SMCD) or a RoCE device (SMC_NETLINK_GET_DEV_SMCR).
type Device struct {
	// UseCount is the number of link groups (ISM) on the device.
	UseCount uint32
	// Critical means that a link group in use would lose its last device with this one.
	Critical bool
	// FID and CHID are the PCI function ID and the (P)CHID on s390, 0 elsewhere.
	FID  uint32
	CHID uint16
	// Vendor and Device are the PCI IDs, PCIID the PCI address or the name of a device that is not on PCI.
	Vendor, Device uint16
	PCIID          string
	// IBName is the name of the RDMA device, empty for ISM.
	IBName string
	// Ports holds the ports that exist: one for ISM, at most two for RoCE.
	Ports []Port
}

// Port is a port of a Device.
type Port struct {
	// Number counts from 1.
	Number uint8
	// PNETID is the port's PNET ID without padding; PNETIDByUser reports whether it comes from the PNET table instead of
	// the firmware.
	PNETID       string
	PNETIDByUser bool
	// NetIfindex is the interface of the port in the initial network namespace, 0 if there is none.
	NetIfindex uint32
	State      PortState
	// Links is the number of SMC-R links on the port.
	Links uint32
}

// PortState is the state of a RoCE port.
type PortState uint8

// The port states.
const (
	PortInactive PortState = 0
	PortActive   PortState = 1
)

// SizeClasses is the number of buckets of a SizeHistogram.
const SizeClasses = 9

// SizeHistogram counts by size: up to 8, 16, 32, 64, 128, 256, 512 and 1024 KiB, and larger.
type SizeHistogram [SizeClasses]uint64

// Stats are the counters of a network namespace since the module was loaded (SMC_NETLINK_GET_STATS).
type Stats struct {
	SMCD, SMCR TechStats
	// ClientHandshakeErrors and ServerHandshakeErrors count failed handshakes of either technology.
	ClientHandshakeErrors, ServerHandshakeErrors uint64
}

// FallbackStats count the connections that fell back to TCP (SMC_NETLINK_GET_FBACK_STATS).
type FallbackStats struct {
	// ServerTotal and ClientTotal count connections, also those whose reason is not listed.
	ServerTotal, ClientTotal uint64
	// Server and Client hold at most 30 reasons a side, in the kernel's order.
	Server, Client []FallbackCount
}

// FallbackCount is how often one reason led to fallback.
type FallbackCount struct {
	Reason Reason
	// Count wraps at 65536: the kernel's counter for a single reason is that narrow.
	Count uint16
}

// SEID is the system EID of this host.
type SEID struct {
	// EID is 32 characters on hosts that have one.
	EID string
	// Enabled reports whether the host offers the EID in handshakes.
	Enabled bool
}

// Socket is an AF_SMC socket as sock_diag reports it.
type Socket struct {
	State    SocketState
	Mode     Mode
	Shutdown Shutdown
	// Local and Peer are the addresses of the internal TCP connection. The kernel does not report whether they are IPv4 or
	// IPv6; an address whose last 96 bits are zero is treated as IPv4. Peer is 0.0.0.0:0 before connect.
	Local, Peer netip.AddrPort
	// BoundIfindex is the interface the socket is bound to (SO_BINDTODEVICE), 0 for none.
	BoundIfindex uint32
	// Cookie identifies the socket in the kernel.
	Cookie uint64
	// UID is the user ID of the socket's owner.
	UID uint32
	// Inode is the socket's inode, as /proc/PID/fd shows it; 0 when no process has it any more.
	Inode uint64

	// Fallback is set for every socket in ModeTCP.
	Fallback *Fallback
	// Conn, LinkGroup and DMB are set if they were requested and the socket has them.
	Conn      *ConnInfo
	LinkGroup *LinkGroupInfo
	DMB       *DMBInfo
	// Progress comes with Conn from smckit's module, and is nil from others.
	Progress *Progress
}

// Fallback contains the reasons why a socket uses TCP.
type Fallback struct {
	// Reason is this host's reason.
	Reason Reason
	// PeerDiagnosis is the reason that the peer sent, 0 if none. Peers other than Linux have their own numbers.
	PeerDiagnosis Reason
}

// Cursor is a position in a ring buffer.
type Cursor struct {
	// Wrap counts the times the buffer was wrapped around, Count is the offset in bytes.
	Wrap  uint16
	Count uint32
}

// ConnInfo is the internal state of a connection (SMC_DIAG_CONNINFO).
type ConnInfo struct {
	// Token is the alert token of the connection.
	Token uint32
	// SndbufSize, RMBESize and PeerRMBESize are the bytes of the send buffer, of the own and of the peer's receive buffer
	// element (RMBE).
	SndbufSize, RMBESize, PeerRMBESize uint32
	// RxProd and RxCons are the cursors of the own RMBE, TxProd and TxCons those of the peer's.
	RxProd, RxCons, TxProd, TxCons Cursor
	// RxProdFlags and RxConnFlags are the flags of the last CDC message received, TxProdFlags and TxConnFlags those of the last
	// one sent (RFC 7609, appendix A.4).
	RxProdFlags, RxConnFlags, TxProdFlags, TxConnFlags uint8
	// TxPrep, TxSent and TxFin are the cursors of the send buffer: filled, sent, and confirmed.
	TxPrep, TxSent, TxFin Cursor
}

// Progress is how far a connection is. The counters are positions of its two streams and never wrap.
type Progress struct {
	// Sent counts the bytes that the application has written, Acked those of them that the peer has reported as read.
	Sent, Acked uint64
	// Received counts the bytes that the peer has written, Read those of them that the application has read.
	Received, Read uint64
	// Age is the time since the handshake made the connection.
	Age time.Duration
	// Failovers is how often the connection has changed to another link.
	Failovers uint64
}

// LinkGroupInfo is the SMC-R link of a connection (SMC_DIAG_LGRINFO).
type LinkGroupInfo struct {
	// LinkID is the link's number within its group.
	LinkID uint8
	// IBDev and IBPort are the RDMA device and its port, counted from 1.
	IBDev  string
	IBPort uint8
	// GID and PeerGID are written as the kernel writes them, eight groups of four hex digits.
	GID, PeerGID string
	Role         Role
}

// DMBInfo is the SMC-D side of a connection (SMC_DIAG_DMBINFO).
type DMBInfo struct {
	// LinkGroupID names the link group, as LinkGroupD.ID does.
	LinkGroupID uint32
	// PeerGID and GID are those of the ISM devices; the Ext values are the upper halves of 128-bit GIDs (Linux 6.10).
	PeerGID, GID       uint64
	PeerExtGID, ExtGID Optional[uint64]
	// Token and PeerToken name the DMBs of both ends.
	Token, PeerToken uint64
}

// Reason is a fallback or decline code.
type Reason uint32
