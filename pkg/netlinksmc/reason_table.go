// SPDX-License-Identifier: Apache-2.0

package netlinksmc

// Why a connection is TCP: the diagnosis codes of DECLINE (docs/protocol.md, 3.6), as kernel/wire/reason.h has them. Text and Remedy
// say what each means.
const (
	ReasonMemory             Reason = 0x01010000
	ReasonTimeoutConfirmLink Reason = 0x02010000
	ReasonTimeoutAddLink     Reason = 0x02020000
	ReasonConfig             Reason = 0x03000000
	ReasonPeerNoSMC          Reason = 0x03010000
	ReasonIPsec              Reason = 0x03020000
	ReasonNoDevice           Reason = 0x03030000
	ReasonNoDDevice          Reason = 0x03030001
	ReasonNoRDevice          Reason = 0x03030002
	ReasonNoISMv2            Reason = 0x03030003
	ReasonNoV2Extension      Reason = 0x03030004
	ReasonNoV2DExtension     Reason = 0x03030005
	ReasonNoSEID             Reason = 0x03030006
	ReasonNoD2Device         Reason = 0x03030007
	ReasonNoUEID             Reason = 0x03030008
	ReasonRelease            Reason = 0x03030009
	ReasonMaxConns           Reason = 0x0303000a
	ReasonMaxLinks           Reason = 0x0303000b
	ReasonMode               Reason = 0x03040000
	ReasonRMBEEyeCatcher     Reason = 0x03050000
	ReasonOption             Reason = 0x03060000
	ReasonPrefix             Reason = 0x03070000
	ReasonGetVLAN            Reason = 0x03080000
	ReasonISMVLAN            Reason = 0x03090000
	ReasonNoActiveLink       Reason = 0x030a0000
	ReasonNoServerLink       Reason = 0x030b0000
	ReasonVersion            Reason = 0x030c0000
	ReasonMaxDMB             Reason = 0x030d0000
	ReasonNoRoute            Reason = 0x030e0000
	ReasonNotIndirect        Reason = 0x030f0000
	ReasonSync               Reason = 0x04000000
	ReasonPeerDeclined       Reason = 0x05000000
	ReasonInternal           Reason = 0x09990000
	ReasonRToken             Reason = 0x09990001
	ReasonReadyLink          Reason = 0x09990002
	ReasonRegBuffer          Reason = 0x09990003
)

// reasons lists every decline and fallback code of Linux, in ascending order.
var reasons = []reasonInfo{
	{
		ReasonMemory, "MEMORY", "not enough memory or RDMA resources for buffers",
		"free memory, lower net.smc.rmem and net.smc.wmem, or raise the locked-memory and RDMA limits",
	},
	{
		ReasonTimeoutConfirmLink, "TIMEOUT_CL", "the first link was never confirmed over the RDMA path",
		"check that the RDMA ports of both hosts reach each other: cabling, VLAN, flow control, firewall for RoCEv2",
	},
	{
		ReasonTimeoutAddLink, "TIMEOUT_AL", "adding the second RDMA link timed out",
		"check the RDMA path between the second ports of both hosts",
	},
	{
		ReasonConfig, "CNF_ERR", "general configuration problem",
		"compare PNET IDs, EIDs and SMC versions of both hosts",
	},
	{
		ReasonPeerNoSMC, "PEER_NO_SMC", "the other side did not signal SMC in the TCP handshake",
		"run the peer's program over SMC too, and make sure that nothing on the way removes TCP option 254",
	},
	{
		ReasonIPsec, "IPSEC", "an IPsec policy applies to the connection",
		"accept TCP: SMC's data would bypass IPsec; or take the connection out of the policy (ip xfrm policy, or socket option IP_XFRM_POLICY)",
	},
	{
		ReasonNoDevice, "NOSMCDEV", "neither an RDMA nor an ISM device is usable",
		"check that a device exists and is active, and that it shares a PNET ID with the network interface in use",
	},
	{
		ReasonNoDDevice, "NOSMCDDEV", "no usable ISM device",
		"give an ISM device the PNET ID of the network interface in use",
	},
	{
		ReasonNoRDevice, "NOSMCRDEV", "no usable RDMA device",
		"give an active RDMA port the PNET ID of the network interface in use",
	},
	{
		ReasonNoISMv2, "NOISM2SUPP", "the ISM hardware lacks version 2",
		"use SMC version 1 or an ISM device with version 2",
	},
	{
		ReasonNoV2Extension, "NOV2EXT", "the peer's proposal carries no version 2 part",
		"enable SMC version 2 on the peer, or put both hosts into one IP subnet for version 1",
	},
	{
		ReasonNoV2DExtension, "NOV2DEXT", "the peer's proposal carries no SMC-Dv2 part",
		"check that the peer has an ISM device with version 2",
	},
	{
		ReasonNoSEID, "NOSEID", "the peer offered no system EID",
		"enable the system EID on the peer, or add a common user EID on both hosts",
	},
	{
		ReasonNoD2Device, "NOSMCD2DEV", "an SMC-Dv2 device is required but absent",
		"check that an ISM device with version 2 is online",
	},
	{
		ReasonNoUEID, "NOUEID", "the peer offered no user EID that this host knows",
		"add the same user EID on both hosts: smcr ueid add NAME",
	},
	{
		ReasonRelease, "RELEASEERR", "no SMC release suits both hosts",
		"update the older of the two hosts",
	},
	{
		ReasonMaxConns, "MAXCONNERR", "the hosts do not agree on the number of connections per link group",
		"check net.smc.smcr_max_conns_per_lgr on both hosts: 16 to 255",
	},
	{
		ReasonMaxLinks, "MAXLINKERR", "the hosts do not agree on the number of links per link group",
		"set net.smc.smcr_max_links_per_lgr to 1 or 2 on the host that has it, which runs the kernel's own module",
	},
	{
		ReasonMode, "MODEUNSUPP", "one side wants SMC-R, the other SMC-D",
		"make the same kind of device available on both hosts",
	},
	{
		ReasonRMBEEyeCatcher, "RMBE_EC", "the peer uses eye catchers in its receive buffer",
		"switch eye catchers off on the peer",
	},
	{
		ReasonOption, "OPTUNSUPP", "a socket option rules SMC out, such as TCP Fast Open",
		"make the program not set the option before it connects",
	},
	{
		ReasonPrefix, "DIFFPREFIX", "the hosts are not in the same IP subnet, as SMC version 1 requires",
		"use addresses of one subnet and prefix length, or SMC version 2",
	},
	{
		ReasonGetVLAN, "GETVLANERR", "the VLAN ID of the interface could not be read",
		"check the route to the peer and the VLAN interface it uses",
	},
	{
		ReasonISMVLAN, "ISMVLANERR", "the VLAN ID could not be registered with the ISM device",
		"check the VLANs that the ISM device may use",
	},
	{
		ReasonNoActiveLink, "NOACTLINK", "the link group has no active link",
		"check the state of the RDMA ports; a new connection will form a new link group",
	},
	{
		ReasonNoServerLink, "NOSRVLINK", "the link that the server has named is unknown",
		"try again; if it persists, compare the link groups of both hosts: smcr linkgroup link-show",
	},
	{
		ReasonVersion, "VERSMISMAT", "the SMC versions of the hosts do not fit",
		"compare 'smcr info' of both hosts",
	},
	{
		ReasonMaxDMB, "MAX_DMB", "the limit of SMC-D connections or buffers is reached",
		"close connections, or use smaller buffers or another ISM device",
	},
	{
		ReasonNoRoute, "NOROUTE", "SMC-Rv2: there is no route to the peer",
		"check the IP route from the RDMA port's interface to the peer",
	},
	{
		ReasonNotIndirect, "NOINDIRECT", "SMC-Rv2: one side is directly connected, the other through a router",
		"make the routes of both hosts agree",
	},
	{
		ReasonSync, "SYNCERR", "the peers lost synchronisation in the handshake",
		"try again; if it persists, report it with a trace of the handshake",
	},
	{
		ReasonPeerDeclined, "PEERDECL", "the peer declined in the handshake",
		"look at the peer's reason, the value after the slash, and at smcss on the peer",
	},
	{
		ReasonInternal, "INTERR", "internal error",
		"look at the kernel log",
	},
	{
		ReasonRToken, "ERR_RTOK", "handling the peer's RDMA token failed",
		"look at the kernel log; the link group may be out of RDMA keys",
	},
	{
		ReasonReadyLink, "ERR_RDYLNK", "the link could not be made ready",
		"check the RDMA device: its state and resources, and the kernel log",
	},
	{
		ReasonRegBuffer, "ERR_REGBUF", "registering RDMA buffers failed",
		"check the memory registration limits of the RDMA device",
	},
}
