// SPDX-License-Identifier: Apache-2.0

// Package xfrm writes "ip xfrm" commands that make IPsec protect connections: with ESP in transport mode.
package xfrm

import "fmt"

// Sender is an end of connections whose packets IPsec is to protect.
type Sender struct {
	NS       string // options of ip that choose its network namespace
	From, To string // addresses
	Selector string // ports, as in "dport 7000"
}

// Policy returns the first part of a command that adds, updates or deletes the policy for what the sender sends.
func (s Sender) Policy(verb string) string { return s.policy(s.NS, verb, "out") }

func (s Sender) policy(ns, verb, direction string) string {
	return fmt.Sprintf("ip %s xfrm policy %s src %s dst %s proto tcp %s dir %s", ns, verb, s.From, s.To, s.Selector, direction)
}

// Template returns the part of the command that makes the policy encrypt.
func (s Sender) Template(level string) string {
	return fmt.Sprintf(" tmpl src %s dst %s proto esp reqid 7 mode transport level %s", s.From, s.To, level)
}

// Association returns a command that adds the SA that the template asks for, to a namespace that options of ip choose.
func (s Sender) Association(ns string) string {
	return fmt.Sprintf("ip %s xfrm state add src %s dst %s proto esp spi 0x7 reqid 7 mode transport "+
		"auth 'hmac(sha256)' 0x%064d enc 'cbc(aes)' 0x%032d\n", ns, s.From, s.To, 1, 2)
}

// Protect returns commands that encrypt the sender's packets, and commands that make the receiver, in a namespace that options of ip
// choose, require this. The sender comes first, because the receiver drops unprotected packets.
func (s Sender) Protect(ns string) (sender, receiver string) {
	return s.Association(s.NS) + s.Policy("add") + s.Template("required") + "\n",
		s.Association(ns) + s.policy(ns, "add", "in") + s.Template("required") + "\n"
}

// Unprotect returns commands that delete all policies and SAs of a namespace.
func Unprotect(ns string) string {
	return fmt.Sprintf("ip %[1]s xfrm policy flush; ip %[1]s xfrm state flush\n", ns)
}
