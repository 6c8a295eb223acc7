// SPDX-License-Identifier: Apache-2.0

//go:build linux

package check

import "github.com/smckit/smckit/internal/lab"

// installed is where the modules are, as the guest sees them.
const installed = "/lib/modules/$(uname -r)/updates/smc.ko"

// absent lists faults of a kernel without AF_SMC.
var absent = []fault{
	{name: "module missing", ids: "module-missing rdma-none"},
	{name: "to a peer", args: "-C 127.0.0.1", ids: "module-missing"},
}

// edit installs the module with one of its words changed. It first removes modules that are in the way.
func edit(sed string) string {
	return "sed '" + sed + "' /run/good.ko >" + installed
}

const restore = "cp /run/good.ko " + installed

// unloadable lists installed modules that cannot be loaded.
var unloadable = []fault{
	{
		name: "blocked", make: "echo blacklist smc >/etc/modprobe.d/test.conf", undo: "rm /etc/modprobe.d/test.conf; rmmod smc_diag smc 2>/dev/null || :",
		ids: "module-blocked",
	},
	{
		name: "other kernel", make: "rmmod smc_diag smc 2>/dev/null || :; " + edit("s/vermagic=./vermagic=9/"), undo: restore,
		ids: "module-other-kernel",
	},
	{
		name: "broken", make: "rmmod smc_diag smc 2>/dev/null || :; : >" + installed, undo: restore,
		ids: "module-not-loaded",
	},
	{
		name: "stale", make: "modprobe smc; " + edit("s/srcversion=..../srcversion=ZZZZ/"), undo: restore,
		ids: "module-stale", able: true,
	},
}

// reload loads the module again, with parameters.
func reload(parameters string) string {
	return "rmmod smc_diag 2>/dev/null || :; rmmod smc; modprobe smc " + parameters
}

// switches are those of the module.
var switches = []fault{
	{name: "SMC-R", make: reload("smcr=0"), undo: reload(""), ids: "smcr-off", able: true},
	{name: "SMC-D", make: reload("smcd=0"), undo: reload(""), ids: "smcd-off no-transport"},
}

// bare is a host without any device.
var bare = []fault{
	{name: "only itself", ids: "host-only rdma-none eid-none", able: true},
	{name: "nothing", make: "smcd loopback off", undo: "smcd loopback on", ids: "no-transport loopback-off"},
}

// table makes a rule of nftables.
func table(hook, rule string) string {
	return "nft add table inet chk; nft add chain inet chk c '{ type filter hook " + hook + " priority -300; }'; nft add rule inet chk c " + rule
}

const noTable = "nft delete table inet chk"

// host lists faults of the host as a whole.
var host = []fault{
	{name: "enterprise ID", make: "smcr ueid flush", undo: "smcr ueid add " + lab.UEID, ids: "eid-none", args: "-C " + lab.SelfAddr + " -s", able: true},
	{name: "loopback", make: "smcd loopback namespace", undo: "smcd loopback on", ids: "loopback-namespace", able: true},
	{name: "buffers", make: "sysctl -qw net.smc.rmem=16384", undo: "sysctl -qw net.smc.rmem=65536", ids: "buffers-small", able: true},
	{name: "queues", make: "sysctl -qw net.smc.smcr_max_recv_wr=3", undo: "sysctl -qw net.smc.smcr_max_recv_wr=48", ids: "queues-small", able: true},
	{
		name: "test of links", make: "sysctl -qw net.smc.smcr_testlink_time=0", undo: "sysctl -qw net.smc.smcr_testlink_time=30",
		ids: "testlink-off", able: true,
	},
	{name: "handshakes", make: "smcr handshake-limit enable", undo: "smcr handshake-limit disable", ids: "handshake-limit", able: true},
	{
		name: "cookies", make: "sysctl -qw net.ipv4.tcp_syncookies=2", undo: "sysctl -qw net.ipv4.tcp_syncookies=1",
		ids: "syncookies-always", able: true,
	},
	{name: "stripping", make: table("input", "reset tcp option 254"), undo: noTable, ids: "rule-strips-option", able: true},
	{
		name: "stripping by iptables", make: "iptables -t mangle -A OUTPUT -p tcp -j TCPOPTSTRIP --strip-options 30,254",
		undo: "iptables -t mangle -F; iptables -t mangle -X", ids: "rule-strips-option", able: true,
	},
	{
		name: "stripping by the old iptables", make: "iptables-legacy -t mangle -A OUTPUT -p tcp -j TCPOPTSTRIP --strip-options 254",
		undo: "iptables-legacy -t mangle -F; rmmod iptable_mangle; rmmod xt_TCPOPTSTRIP", ids: "rule-legacy-strip", able: true,
	},
	{name: "dropping", make: table("output", "udp dport 4791 drop"), undo: noTable, ids: "rule-drops-roce", able: true},
	{name: "rules for root", as: "setpriv --reuid 65534 --regid 65534 --clear-groups", ids: "rules-unreadable", able: true},
	{
		name: "IPsec", make: "ip xfrm policy add dir out src 10.8.0.1 dst 10.8.0.2 tmpl proto esp mode transport", undo: "ip xfrm policy flush",
		ids: "ipsec-tcp", able: true,
	},
	{name: "RoCEv1", undo: "sysctl -qw net.smc.smcr_v1_rocev2=1", ids: "port-v2-only", able: true},
	{name: "soft-RoCE", ids: "rdma-software", able: true},
	{
		name: "lists", make: "sysctl -qw net.smc.smcr_v1_rocev2=0; rmmod smc_diag; mkdir /run/away; mv /lib/modules/$(uname -r)/updates/smc_diag.ko /run/away",
		undo: "mv /run/away/smc_diag.ko /lib/modules/$(uname -r)/updates/", ids: "diag-absent", able: true,
	},
}

// aside is a separate network for faults: an RDMA device on an interface without a peer.
const aside = `
ip link add d0 type dummy
ip addr add 10.8.0.1/24 dev d0
ip link set d0 up
rdma link add side type rxe netdev d0
until grep -q 0a08:0001 /sys/class/infiniband/side/ports/1/gids/*; do sleep 0.1; done
ip link add d1 type dummy
ip addr add 10.7.0.1/24 dev d1
ip link set d1 up
`

// device lists faults of devices and of the PNET table.
var device = []fault{
	{name: "down", make: "ip link set d0 down", undo: "ip link set d0 up", ids: "interface-down port-down", able: true},
	{name: "carrier", make: "ip link set d0 carrier off", undo: "ip link set d0 carrier on", ids: "interface-no-carrier port-down", able: true},
	{
		name: "address", make: "ip addr flush dev d0; until ! grep -q 0a08:0001 /sys/class/infiniband/side/ports/1/gids/*; do sleep 0.1; done",
		undo: "ip addr add 10.8.0.1/24 dev d0; until grep -q 0a08:0001 /sys/class/infiniband/side/ports/1/gids/*; do sleep 0.1; done",
		ids:  "interface-no-address port-no-ipv4-gid", able: true,
	},
	{name: "MTU", make: "ip link set d0 mtu 1000", undo: "ip link set d0 mtu 1500", ids: "port-mtu", able: true},
	{name: "no PNET ID of the port", make: "smc_pnet add SIDE eth d0", undo: "smc_pnet del SIDE", ids: "pnet-port-none", able: true},
	{name: "no PNET ID of the interface", make: "smc_pnet add SIDE ib side 1", undo: "smc_pnet del SIDE", ids: "pnet-interface-none", able: true},
	{
		name: "two PNET IDs", make: "smc_pnet add SIDE ib side 1; smc_pnet add OTHER eth d0", undo: "smc_pnet del SIDE; smc_pnet del OTHER",
		ids: "pnet-differs", able: true,
	},
	{name: "lonely", make: "smc_pnet add SIDE eth d1", undo: "smc_pnet del SIDE", ids: "pnet-lonely", able: true},
	{
		name: "misspelt", make: "smc_pnet add --force SIDE eth d7; smc_pnet add --force SIDE ib sidd 1", undo: "smc_pnet del SIDE",
		ids: "pnet-no-such-interface pnet-no-such-device", able: true,
	},
}

// namespace lists faults that concern network namespaces.
var namespace = []fault{
	{name: "without interfaces", make: "ip netns add blue", args: "-N blue", ids: "port-no-interface pnet-namespace host-only", able: true},
	{
		// A device can be in one namespace only, and so can be in this mode when there is no other namespace.
		name: "exclusive", make: "ip netns del blue; rdma system set netns exclusive; ip netns add blue",
		undo: "ip netns del blue; rdma system set netns shared; ip netns add blue", args: "-N blue", ids: "rdma-namespace", able: true,
	},
}

// path lists faults of the path to a peer.
var path = []fault{
	{name: "no address", args: "-C no..name -s", ids: "path-no-address"},
	{name: "no route", args: "-C 203.0.113.1 -s", ids: "path-no-route"},
	{name: "no device", args: "-C 10.7.0.2 -s", ids: "path-no-device path-virtual"},
	{
		name: "router", make: "ip route add 198.51.100.0/24 via 10.8.0.9 dev d0", undo: "ip route replace 198.51.100.0/24 dev d0 src 10.8.0.1",
		args: "-C 198.51.100.7 -s", ids: "path-routed", able: true,
	},
	{
		name: "MTU", make: "ip route replace 198.51.100.0/24 dev d0 src 10.8.0.1 mtu 1400",
		undo: "ip route replace 198.51.100.0/24 dev d0 src 10.8.0.1", args: "-C 198.51.100.7 -s", ids: "path-mtu", able: true,
	},
	{name: "IPv6", make: "ip addr add fd08::1/64 dev d0 nodad", args: "-C fd08::2 -6 -s", ids: "path-ipv6"},
	{
		name: "VLAN", make: "ip link add link d1 name d1.7 type vlan id 7; ip addr add 10.6.0.1/24 dev d1.7; ip link set d1.7 up",
		args: "-C 10.6.0.2 -s", ids: "path-vlan",
	},
	{
		name: "unreachable", make: "ip link add v2 type veth peer name v3; ip addr add 10.5.0.1/24 dev v2; ip link set v2 up; ip link set v3 up",
		args: "-C 10.5.0.2", ids: "live-unreachable",
	},
	{name: "silent neighbour", args: "-C 10.5.0.2 -s", ids: "path-neighbour"},
}

// peer starts a server in Python that sends a text.
func peer(port, says, lasts string) string {
	return "python3 /run/peer.py " + port + " '" + says + "' " + lasts + " >/dev/null 2>&1 & until grep -q $(printf ':%04X ' " + port +
		") /proc/net/tcp; do sleep 0.1; done"
}

// live lists faults that a connection reveals. SMC-D within the host is off, so that handshakes are like those between two
// hosts.
var live = []fault{
	{name: "refused", args: "-C " + lab.SelfAddr + ":9", ids: "live-refused"},
	{name: "TCP only", args: "-C 127.0.0.1:4000", ids: "live-peer-without-smc"},
	{
		name: "no device", make: "smc_chk --server 5000 >/dev/null 2>&1 & until smcss -l | grep -q :5000; do sleep 0.1; done",
		args: "-C 127.0.0.1:5000", ids: "live-declined-here path-no-device",
	},
	{
		name: "option lost", make: table("input", "reset tcp option 254"), undo: noTable, args: "-C " + lab.SelfAddr + ":5000",
		ids: "live-option-lost rule-strips-option",
	},
	{
		name: "cookies", make: "sysctl -qw net.ipv4.tcp_syncookies=2", undo: "sysctl -qw net.ipv4.tcp_syncookies=1",
		args: "-C " + lab.SelfAddr + ":5000", ids: "syncookies-always live-option-lost",
	},
	{
		name: "option lost on the way back", make: table("input", "tcp sport 5000 reset tcp option 254"), undo: noTable,
		args: "-C " + lab.SelfAddr + ":5000 --timeout 2", ids: "live-no-option rule-strips-option",
	},
	{
		name: "silent packet filter", make: table("input", "tcp dport 5000 drop"), undo: noTable,
		args: "-C " + lab.SelfAddr + ":5000 --timeout 2", ids: "live-timeout",
	},
	{
		name: "handshake", make: table("input", "'tcp dport 5000 tcp flags & psh == psh drop'"), undo: noTable,
		args: "-C " + lab.SelfAddr + ":5000 --timeout 2", ids: "live-handshake",
	},
	{
		name: "silent peer", make: "smcflow sink " + lab.SelfAddr + ":5001 >/dev/null 2>&1 & until smcss -l | grep -q :5001; do sleep 0.1; done",
		args: "-C " + lab.SelfAddr + ":5001 --timeout 2", ids: "live-silent",
	},
	{
		name: "no peer of ours", make: peer("5002", "SSH-2.0\\r\\n", "ends"), args: "-C " + lab.SelfAddr + ":5002",
		ids: "live-stranger live-no-option",
	},
	{
		name: "broken", make: peer("5003", "smc_chk 1 server af_smc=true\\n", "ends"), args: "-C " + lab.SelfAddr + ":5003",
		ids: "live-broken",
	},
	{
		name: "corrupt", make: peer("5004", "smc_chk 1 server af_smc=true\\nzzz", "lasts"), args: "-C " + lab.SelfAddr + ":5004",
		ids: "live-corrupt",
	},
	{
		name: "declined there", make: `ip link add w0 type veth peer name w1 netns blue; ip addr add 10.4.0.1/24 dev w0; ip link set w0 up
ip -n blue addr add 10.4.0.2/24 dev w1; ip -n blue link set w1 up; ip -n blue link set lo up; smcd -N blue loopback off
rdma link add wide type rxe netdev w0
until grep -q 0a04:0001 /sys/class/infiniband/wide/ports/1/gids/*; do sleep 0.1; done
smc_chk -N blue --server 5005 >/dev/null 2>&1 & until smcss -N blue -l | grep -q :5005; do sleep 0.1; done`,
		args: "-C 10.4.0.2:5005", ids: "live-declined-there",
	},
	{name: "counted", ids: "fallbacks", able: true},
	{
		name: "unknown transport", make: "rmmod smc_diag; mv /lib/modules/$(uname -r)/updates/smc_diag.ko /run/away",
		undo: "mv /run/away/smc_diag.ko /lib/modules/$(uname -r)/updates/", args: "-C " + lab.SelfAddr + ":5000", ids: "live-mode-unknown",
	},
}

// forEver lists settings that only a reboot undoes. They are tested last.
var forEver = []fault{
	{
		// In a network namespace a command has started itself again, by another name.
		name: "unsigned", make: `ip netns del blue
for p in /proc/[0-9]*; do
	case $(tr '\0' ' ' <$p/cmdline 2>/dev/null) in smc_chk*|smcflow*) kill -9 ${p#/proc/} ;; esac
done
until rmmod smc_diag smc || ! test -e /sys/module/smc; do sleep 0.1; done
echo 1 >/sys/module/module/parameters/sig_enforce`, ids: "module-unsigned",
	},
	{name: "no modules", make: "sysctl -qw kernel.modules_disabled=1", ids: "modules-disabled"},
}
