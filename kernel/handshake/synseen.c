// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether our hooks can see a server's SYN-ACK. Only then does the option go into the SYN: else the server
 * would wait for a handshake of which the client knows nothing.
 */

#include <linux/netdevice.h>
#include <net/dst.h>
#include <net/net_namespace.h>

#include "synopt.h"

/*
 * Does a device hand packets to upper devices after they have passed LOCAL_IN in its own namespace? A device
 * beneath an ipvlan device of mode L3S does.
 */
static int hides(struct net_device *lower, struct netdev_nested_priv *priv)
{
	const struct net *net = priv->data;

	return netif_has_l3_rx_handler(lower) && !net_eq(dev_net(lower), net);
}

/*
 * smc_synopt_hidden() - do the hooks of a namespace miss packets that come in by the device that a SYN leaves
 * by? Asked for each SYN, because the mode of the device may change.
 */
bool smc_synopt_hidden(const struct sk_buff *skb, const struct net *net)
{
	struct netdev_nested_priv priv = { .data = (void *)net };
	const struct dst_entry *dst = skb_dst(skb);

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_synopt_hidden() outside of an RCU section");
	return dst && netdev_walk_all_lower_dev_rcu(dst->dev, hides, &priv);
}
