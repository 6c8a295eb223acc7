// SPDX-License-Identifier: GPL-2.0-only
/* SYN packets: what they say, and how one gets longer by an option. */

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include "synpkt.h"

/* Where TCP has its flags, from the beginning of its header. */
#define TCP_FLAGS_AT 13

/* Where is the TCP header? Negative if there is none that can be said of. */
static __always_inline int find_tcp(const struct sk_buff *skb, u8 pf)
{
	__be16 frag;
	u8 proto;
	int off;

	if (pf == NFPROTO_IPV4) {
		const struct iphdr *ip = ip_hdr(skb);

		if (ip->protocol != IPPROTO_TCP || ip_is_fragment(ip))
			return -1;
		return skb_network_offset(skb) + ip->ihl * 4;
	}
	proto = ipv6_hdr(skb)->nexthdr;
	off = skb_network_offset(skb) + sizeof(struct ipv6hdr);
	if (proto == IPPROTO_TCP)
		return off;
	off = ipv6_skip_exthdr(skb, off, &proto, &frag);
	return proto == IPPROTO_TCP && !frag ? off : -1;
}

static void fill_keys(const struct sk_buff *skb, const struct tcphdr *th, struct smc_synpkt *pkt)
{
	struct smc_syn_key *in = &pkt->in, *out = &pkt->out;

	if (pkt->ipv6) {
		in->peer = ipv6_hdr(skb)->saddr;
		in->self = ipv6_hdr(skb)->daddr;
	} else {
		ipv6_addr_set_v4mapped(ip_hdr(skb)->saddr, &in->peer);
		ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr, &in->self);
	}
	in->peer_port = th->source;
	in->self_port = th->dest;
	in->isn = ntohl(th->seq);
	out->peer = in->self;
	out->self = in->peer;
	out->peer_port = in->self_port;
	out->self_port = in->peer_port;
	out->isn = ntohl(th->ack_seq) - 1;
}

/**
 * smc_synpkt_flags() - returns the flags of TCP in a packet, 0 if it has none that can be read
 * @skb: the packet, as a hook of the address family has it
 * @pf: NFPROTO_IPV4 or NFPROTO_IPV6
 *
 * Every packet is asked for this, so it takes as little work as possible. Any context.
 */
u8 smc_synpkt_flags(const struct sk_buff *skb, u8 pf)
{
	int off = find_tcp(skb, pf);
	u8 copy;
	const u8 *flags;

	if (off < 0)
		return 0;
	flags = skb_header_pointer(skb, off + TCP_FLAGS_AT, sizeof(copy), &copy);
	return flags ? *flags : 0;
}

/**
 * smc_synpkt_look() - is the packet a SYN or SYN-ACK, and which?
 * @skb: the packet, as a hook of the address family has it
 * @pf: NFPROTO_IPV4 or NFPROTO_IPV6
 * @pkt: gets what it says
 *
 * Any context. Return: false for any other packet.
 */
bool smc_synpkt_look(struct sk_buff *skb, u8 pf, struct smc_synpkt *pkt)
{
	const struct tcphdr *th;
	struct tcphdr copy;
	const u8 *opts;
	int off;

	off = find_tcp(skb, pf);
	if (off < 0)
		return false;
	th = skb_header_pointer(skb, off, sizeof(copy), &copy);
	if (!th || !th->syn || th->rst || th->fin || th->doff < sizeof(*th) / 4)
		return false;
	pkt->ipv6 = pf == NFPROTO_IPV6;
	pkt->ack = th->ack;
	pkt->seq = ntohl(th->seq);
	pkt->ack_seq = ntohl(th->ack_seq);
	pkt->tcp = off;
	pkt->tcp_len = th->doff * 4;
	pkt->opts_len = pkt->tcp_len - sizeof(*th);
	fill_keys(skb, th, pkt);
	opts = skb_header_pointer(skb, off + sizeof(*th), pkt->opts_len, pkt->opts);
	if (!opts)
		return false;
	if (opts != pkt->opts)
		memcpy(pkt->opts, opts, pkt->opts_len);
	return true;
}

/*
 * smc_synpkt_room() - may a packet that goes out get the option? Not if its options are full or
 * signed, nor if it carries data, nor if someone else has filled in the checksum already, nor if IP
 * has options: a source route puts another destination into the header than TCP has summed up. Any
 * context.
 */
bool smc_synpkt_room(const struct sk_buff *skb, const struct smc_synpkt *pkt)
{
	size_t plain = pkt->ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);

	return pkt->tcp == plain && skb->ip_summed == CHECKSUM_PARTIAL && !skb_is_gso(skb) &&
	       skb_headlen(skb) == skb->len && skb->len == pkt->tcp + pkt->tcp_len &&
	       smc_tcpopt_room(pkt->opts, pkt->opts_len);
}

static void fix_ipv4(struct sk_buff *skb, struct tcphdr *th, unsigned int len)
{
	struct iphdr *ip = ip_hdr(skb);

	ip->tot_len = htons(skb->len);
	ip_send_check(ip);
	th->check = ~tcp_v4_check(len, ip->saddr, ip->daddr, 0);
}

static void fix_ipv6(struct sk_buff *skb, struct tcphdr *th, unsigned int len)
{
	struct ipv6hdr *ip = ipv6_hdr(skb);

	ip->payload_len = htons(skb->len - sizeof(*ip));
	th->check = ~csum_ipv6_magic(&ip->saddr, &ip->daddr, len, IPPROTO_TCP, 0);
}

/**
 * smc_synpkt_insert() - puts the option behind the others
 * @skb: a packet that goes out, without data, for which smc_synpkt_room() holds
 * @pkt: what it says
 *
 * The headers move up, into the room that TCP keeps in front of them: their end may be shared with
 * the copy that TCP repeats. Any context.
 *
 * Return: 0 or -ENOMEM; the packet is as it was, then.
 */
int smc_synpkt_insert(struct sk_buff *skb, const struct smc_synpkt *pkt)
{
	unsigned int hdrs = pkt->tcp + pkt->tcp_len;
	struct tcphdr *th;

	if (skb_cow_head(skb, SMC_TCPOPT_SPACE + LL_RESERVED_SPACE(skb_dst(skb)->dev)))
		return -ENOMEM;
	skb_push(skb, SMC_TCPOPT_SPACE);
	memmove(skb->data, skb->data + SMC_TCPOPT_SPACE, hdrs);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, pkt->tcp);
	smc_tcpopt_put(skb->data + hdrs);
	th = tcp_hdr(skb);
	th->doff += SMC_TCPOPT_SPACE / 4;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	if (pkt->ipv6)
		fix_ipv6(skb, th, pkt->tcp_len + SMC_TCPOPT_SPACE);
	else
		fix_ipv4(skb, th, pkt->tcp_len + SMC_TCPOPT_SPACE);
	return 0;
}
