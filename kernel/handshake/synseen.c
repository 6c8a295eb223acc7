// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a client can see what its server answers. The option goes into a SYN only if it can: else
 * the server would wait for a handshake of which the client knows nothing.
 */

#include <linux/netdevice.h>
#include <net/dst.h>
#include <net/net_namespace.h>

#include "synopt.h"

/*
 * Does a device hand packets to those above it when they have passed LOCAL_IN already, in its own
 * namespace? So does one beneath an ipvlan device of mode L3S.
 */
static int hides(struct net_device *lower, struct netdev_nested_priv *priv)
{
	const struct net *net = priv->data;

	return netif_has_l3_rx_handler(lower) && !net_eq(dev_net(lower), net);
}

/*
 * smc_synopt_hidden() - do the hooks of a namespace miss the packets that come in by the device that a
 * SYN leaves by? Looked at for each SYN, so it ends when the device is given another mode. Under RCU.
 */
bool smc_synopt_hidden(const struct sk_buff *skb, const struct net *net)
{
	struct netdev_nested_priv priv = { .data = (void *)net };
	const struct dst_entry *dst = skb_dst(skb);

	return dst && netdev_walk_all_lower_dev_rcu(dst->dev, hides, &priv);
}
