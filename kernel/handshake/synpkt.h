/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SMC_HANDSHAKE_SYNPKT_H
#define SMC_HANDSHAKE_SYNPKT_H

#include "../wire/tcpopt.h"
#include "synopt.h"

struct sk_buff;

/* A SYN or SYN-ACK in an IP packet, as a hook sees it. */
struct smc_synpkt {
	bool			ipv6;
	bool			ack;		/* a SYN-ACK */
	unsigned int		tcp;		/* offset of the TCP header */
	unsigned int		tcp_len;	/* bytes of it */
	u32			seq, ack_seq;	/* host order */
	struct smc_syn_key	in, out;	/* whose server is its receiver, or its sender */
	unsigned int		opts_len;
	u8			opts[SMC_TCPOPT_MAX];
};

u8 smc_synpkt_flags(const struct sk_buff *skb, u8 pf);
bool smc_synpkt_look(struct sk_buff *skb, u8 pf, struct smc_synpkt *pkt);
bool smc_synpkt_room(const struct sk_buff *skb, const struct smc_synpkt *pkt);
int smc_synpkt_insert(struct sk_buff *skb, const struct smc_synpkt *pkt);

/* synsock.c: what TCP has for one */
struct sock *smc_synsock_find(struct net *net, const struct smc_synpkt *pkt, struct sk_buff *skb);
int smc_synsock_state(struct net *net, const struct smc_synpkt *pkt, struct sk_buff *skb);
bool smc_synsock_overflows(struct smc_net *sn, const struct smc_synpkt *pkt, struct sk_buff *skb);

#endif
