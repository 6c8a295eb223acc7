// SPDX-License-Identifier: Apache-2.0

// Package peer is an SMC peer in user space: the other end of connections to our module, from the TCP option up to CDC. It is
// well-behaved unless its user changes that; tests/badpeer makes it break the rules of each layer.
//
//   - TCP is one end of a TCP connection, every segment of which is under control. Net is the TUN or TAP device that its packets
//     go through, so they reach the kernel's own TCP directly.
//   - ProposalR, AcceptD1 and the others make CLC messages.
//   - Adapter and QP are an RDMA adapter: reliable connections over RoCEv2 in IPv4, with SEND and RDMA WRITE.
//   - LinkGroup and Conn are the peer's side of SMC-R: LLC and CDC. LLC, CDC and Conn.NextCDC make messages.
//   - Link is the second link of a group: LinkGroup.AddSecondLink makes it, DeleteLink deletes one of both, and Conn.MoveTo has a
//     connection use the other one. OpenSecondWire is the network for it.
//   - OpenRoCE makes the network between our module and such peers in a guest of the lab.
package peer
