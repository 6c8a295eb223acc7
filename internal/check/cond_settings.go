// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"

	"github.com/smckit/smckit/internal/conf"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// identityConditions are about enterprise IDs, settings and the counters of connections.
var identityConditions = []Condition{
	{
		ID: "eid-none", Severity: Warning,
		Text:   "this host has no enterprise ID: SMC version 2 with other hosts is not possible",
		Remedy: "add the same one on all hosts: smcr ueid add MYCLUSTER; if there is a system EID, 'smcd seid enable' enables it",
		Find:   func(s *Snapshot) []Values { return met(s.Identity.Known && !s.Identity.HasEID()) },
	},
	{
		ID: "seid-off", Severity: Info,
		Text:   "the system EID is disabled: SMC version 2 requires a user EID in common with the peer",
		Remedy: "smcd seid enable",
		Find: func(s *Snapshot) []Values {
			return met(s.Identity.SEID != nil && !s.Identity.SEID.Enabled && len(s.Identity.UEIDs) > 0)
		},
	},
	{
		ID: "buffers-small", Severity: Warning,
		Text:   "net.smc.%[1]s is %[2]d bytes: small buffers make connections slow",
		Remedy: fmt.Sprintf("sysctl -w net.smc.%%[1]s=%d, or more", conf.Default("rmem")),
		Find:   below("rmem", "wmem"),
	},
	{
		ID: "queues-small", Severity: Warning,
		Text:   "net.smc.%[1]s is %[2]d: connections have to wait while such a short queue is full",
		Remedy: "sysctl -w net.smc.%[1]s=%[3]d, the default, or more",
		Find:   below("smcr_max_send_wr", "smcr_max_recv_wr"),
	},
	{
		ID: "testlink-off", Severity: Warning,
		Text:   "SMC-R links are not tested (net.smc.smcr_testlink_time=0): only connections that send data detect that a peer is gone",
		Remedy: fmt.Sprintf("sysctl -w net.smc.smcr_testlink_time=%d", conf.Default("smcr_testlink_time")),
		Find:   func(s *Snapshot) []Values { return met(s.Setting("net.smc.smcr_testlink_time", 1) == 0) },
	},
	{
		ID: "handshake-limit", Severity: Info,
		Text:   "under load, some new connections are TCP (net.smc.limit_smc_hs=1)",
		Remedy: "switch the limit off: smcr handshake-limit disable",
		Find:   func(s *Snapshot) []Values { return met(s.Setting("net.smc.limit_smc_hs", 0) != 0) },
	},
	{
		ID: "syncookies-always", Severity: Warning,
		Text:   "every SYN is answered with a cookie (net.ipv4.tcp_syncookies=2): connections to this host are TCP",
		Remedy: "sysctl -w net.ipv4.tcp_syncookies=1, which sends cookies only while a listener is flooded",

		Sysctls: []string{"net.ipv4.tcp_syncookies"},
		Find:    func(s *Snapshot) []Values { return met(s.Setting("net.ipv4.tcp_syncookies", 1) == 2) },
	},
	{
		ID: "fallbacks", Severity: Info,
		Text:   "%[1]d connections fell back to TCP and %[2]d used SMC so far; the most frequent reason: %[3]s",
		Remedy: "%[4]s; 'smcr -d stats' counts all reasons, 'smcss --explain' shows connections",
		Find:   fallbacks,
	},
}

// below makes a condition that is met by each of these settings of net.smc that is less than its default. It ignores 0, which
// is a special value.
func below(names ...string) func(*Snapshot) []Values {
	return func(s *Snapshot) []Values {
		var out []Values
		for _, name := range names {
			least := conf.Default(name)
			if v := s.Setting("net.smc."+name, least); v != 0 && v < least {
				out = append(out, Values{name, v, least})
			}
		}
		return out
	}
}

func fallbacks(s *Snapshot) []Values {
	f := s.Fallbacks
	if f == nil || f.ClientTotal+f.ServerTotal == 0 {
		return nil
	}
	counts := map[netlinksmc.Reason]int{}
	var most netlinksmc.Reason
	for _, list := range [][]netlinksmc.FallbackCount{f.Client, f.Server} {
		for _, c := range list {
			counts[c.Reason] += int(c.Count)
			if counts[c.Reason] > counts[most] {
				most = c.Reason
			}
		}
	}
	return []Values{{f.ClientTotal + f.ServerTotal, s.Connections, Words(most), most.Remedy()}}
}

// Words returns the text, the number and the name of a reason.
func Words(r netlinksmc.Reason) string {
	if !r.Known() {
		return fmt.Sprintf("unknown reason (%s)", r)
	}
	return fmt.Sprintf("%s (%s %s)", r.Text(), r, r.Name())
}

// ruleConditions are about packet filters and IPsec.
var ruleConditions = []Condition{
	{
		ID: "rule-strips-option", Severity: Warning,
		Text:   "rule %[4]d in chain %[3]s of table %[1]s %[2]s removes TCP option 254 from handshakes: those connections are TCP",
		Remedy: "change the rule so that it keeps TCP option 254: 'nft -a list table %[1]s %[2]s' shows it",
		Find:   func(s *Snapshot) []Values { return rules(s.Rules.Strips) },
	},
	{
		ID: "rule-legacy-strip", Severity: Warning,
		Text:   "iptables-legacy has loaded TCPOPTSTRIP, which may remove TCP option 254 from handshakes",
		Remedy: "look at 'iptables-legacy -t mangle -S' for --strip-options with 254",
		Find:   func(s *Snapshot) []Values { return met(s.Rules.LegacyStrip) },
	},
	{
		ID: "rule-drops-roce", Severity: Warning,
		Text:   "rule %[4]d in chain %[3]s of table %[1]s %[2]s drops RoCEv2, UDP port 4791",
		Remedy: "let UDP port 4791 pass between the hosts: 'nft -a list table %[1]s %[2]s' shows the rule",
		Find:   func(s *Snapshot) []Values { return rules(s.Rules.Drops) },
	},
	{
		ID: "rules-unreadable", Severity: Info,
		Text:   "packet filters and IPsec policies were not checked: this user may not read them",
		Remedy: "run as root",
		Find:   func(s *Snapshot) []Values { return met(!s.Rules.Readable) },
	},
	{
		ID: "ipsec", Severity: Warning,
		Text:   "this host has IPsec policies (%[1]d), which do not encrypt the data of SMC",
		Remedy: "run the programs that the policies protect over TCP, or let the programs use TLS",
		Find:   func(s *Snapshot) []Values { return met1(s.Rules.IPsec > 0 && !s.Module.Ours, s.Rules.IPsec) },
	},
	{
		ID: "ipsec-tcp", Severity: Info,
		Text:   "this host has IPsec policies (%[1]d): connections that they apply to are TCP, and an SMC connection ends when a policy for it is added",
		Remedy: "this is no fault; 'ip xfrm policy' lists the policies",
		Find:   func(s *Snapshot) []Values { return met1(s.Rules.IPsec > 0 && s.Module.Ours, s.Rules.IPsec) },
	},
}

func rules(list []Rule) []Values {
	var out []Values
	for _, r := range list {
		out = append(out, Values{r.Family, r.Table, r.Chain, r.Handle})
	}
	return out
}
