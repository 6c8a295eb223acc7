// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/user"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/pkg/smcerr"
	"github.com/spf13/cobra"
)

// question is a socket to explain.
type question struct{ user, group, cgroup, target string }

func newExplain(c *command) *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:     "explain [--user USER] [--group GROUP] [--cgroup PATH] {HOST:PORT | :PORT}",
		Short:   "Say which rule decides about a connection",
		Long:    explainLong,
		Example: explainExample,
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return c.completeTarget(args), noFiles
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			q.target = args[0]
			return c.explain(cmd.Context(), q)
		},
	}
	cmd.Flags().StringVar(&q.user, "user", "", "of a socket of `USER` (default: yours)")
	cmd.Flags().StringVar(&q.group, "group", "", "of a socket of `GROUP` (default: the primary group of --user, or yours)")
	cmd.Flags().StringVar(&q.cgroup, "cgroup", "", "of a socket that was made in the control group `PATH` (default: yours)")
	return cmd
}

// explainJSON is the output of explain with --json: one element for each address of the host.
type explainJSON struct {
	Schema  int  `json:"schema"`
	Enabled bool `json:"enabled"`
	// whose socket it is
	User  uint32 `json:"uid" schema1:"user"`
	Group uint32 `json:"group"`
	// if there is one
	Cgroup  string        `json:"cgroup,omitempty"`
	Answers []explanation `json:"answers"`
}

type explanation struct {
	Target string `json:"target"`
	// of a listener, if the rule asks for it; an answer without it is about all other clients
	From string `json:"from,omitempty"`
	// by a rule with `auto`, what its service has learned so far
	TCPSocket string `json:"tcp_socket"`
	SMCSocket string `json:"smc_socket"`
	// of the rule that decides, if there is one
	Number int `json:"rule_number,omitzero" schema1:"number,keep"`
	// the same
	Rule string `json:"rule,omitempty"`
	// if the module remembers that SMC was not possible with the server: until `seconds_left` is over, connections to it are TCP
	Reason *jsondoc.Reason `json:"reason,omitempty" schema1:"-"`
	// if the server has given a reason
	PeerReason *jsondoc.Reason `json:"peer_reason,omitempty" schema1:"-"`
	// the same as for `reason`
	SecondsLeft uint32 `json:"seconds_left,omitempty" schema1:"-"`

	remembered *policy.Peer
}

func (c *command) explain(ctx context.Context, q question) error {
	who, err := c.who(q)
	if err != nil {
		return err
	}
	uses, err := c.uses(ctx, q.target)
	if err != nil {
		return err
	}
	p, err := c.readAll(ctx)
	if err != nil {
		return err
	}
	if p.Inherited {
		return remedy.Errorf(fmt.Sprintf("run '%s explain' there", c.env.Name()), "the rules of the initial network namespace decide, which this one cannot read")
	}
	out := explainJSON{Schema: jsondoc.Schema, Enabled: p.Enabled, User: who.User, Group: who.Group, Cgroup: cli.Printable(who.Cgroup)}
	for _, u := range uses {
		out.Answers = append(out.Answers, c.answers(p, who, u)...)
	}
	if c.json {
		return c.env.WriteJSON(out)
	}
	// The words of a rule for such sockets.
	_, maker, _ := strings.Cut(policy.Rule{User: &who.User, Group: &who.Group, Cgroup: who.Cgroup}.Text(c.sys.names), " ")
	if _, err := fmt.Fprintln(c.env.Out, "socket of", cli.Printable(maker)); err != nil {
		return err
	}
	for _, a := range out.Answers {
		if err := c.printAnswer(p, a); err != nil {
			return err
		}
	}
	return nil
}

// readAll reads the policy, what services have learned if a rule asks for it, and the peers that the module remembers.
func (c *command) readAll(ctx context.Context) (p policy.Policy, _ error) {
	err := c.withKernel(ctx, func(k kernel) (err error) {
		if p, err = k.Get(ctx); err != nil {
			return err
		}
		if slices.ContainsFunc(p.Rules, func(r policy.Rule) bool { return r.Verdict == policy.Auto }) {
			if c.services, err = k.Services(ctx); err != nil {
				return err
			}
		}
		if c.remembered, err = k.Peers(ctx); errors.Is(err, smcerr.ErrNotSupported) {
			return nil
		}
		return err
	})
	return p, err
}

func (c *command) printAnswer(p policy.Policy, a explanation) error {
	why := "no rule matches"
	if !p.Enabled {
		why = "the policy is off"
	} else if a.Number > 0 {
		why = fmt.Sprintf("rule %d: %s", a.Number, a.Rule)
	}
	_, err := fmt.Fprintf(c.env.Out, "%s: TCP socket: %s; SMC socket: %s (%s)\n", a.place(), a.TCPSocket, a.SMCSocket, why)
	if err != nil || a.remembered == nil {
		return err
	}
	_, err = fmt.Fprintf(c.env.Out, "%s: TCP for %d seconds more, because SMC was not possible (%s)\n",
		a.place(), a.SecondsLeft, peerReason(*a.remembered))
	return err
}

// place returns the target in words.
func (e explanation) place() string {
	if e.From != "" {
		return e.Target + " from " + e.From
	}
	return e.Target
}

// answers returns what becomes of a socket: of a listener, one answer for each rule that asks where a connection comes from, and one for
// the others.
func (c *command) answers(p policy.Policy, who policy.Who, u policy.Use) (all []explanation) {
	if u.Role == policy.Connect {
		verdict, i := p.Decide(who, u)
		a := c.answer(p, u, verdict, i)
		a.recall(c.remembered, who, u)
		return []explanation{a}
	}
	for _, i := range p.Plan(who, u.Local) {
		a := c.answer(p, u, p.Rules[i].Verdict, i)
		var nets []string
		for _, n := range p.Rules[i].Networks {
			nets = append(nets, n.String())
		}
		a.From = strings.Join(nets, ",")
		all = append(all, a)
	}
	if n := len(all); n > 0 && all[n-1].From == "" {
		return all
	}
	verdict := policy.None
	if !p.Enabled {
		verdict = policy.TCP
	}
	return append(all, c.answer(p, u, verdict, -1))
}

func (c *command) answer(p policy.Policy, u policy.Use, verdict policy.Verdict, i int) explanation {
	a := explanation{Target: fmt.Sprintf(":%d", u.Local), TCPSocket: "tcp", SMCSocket: "smc"}
	if u.Role == policy.Connect {
		a.Target = netip.AddrPortFrom(u.Peer, u.Remote).String()
	}
	if verdict == policy.Auto {
		verdict = policy.SMC
		if i := slices.IndexFunc(c.services, func(s policy.Service) bool { return s.Is(u) }); i >= 0 {
			verdict = c.services[i].Verdict
		}
	}
	switch verdict {
	case policy.SMC:
		a.TCPSocket = "smc"
	case policy.TCP:
		a.SMCSocket = "tcp"
	}
	if i >= 0 {
		a.Number, a.Rule = i+1, cli.Printable(p.Rules[i].Text(c.sys.names))
	}
	return a
}

// recall adds what the module remembers of the server, if a socket would use SMC with it. The socket is not bound to an interface.
func (e *explanation) recall(peers []policy.Peer, who policy.Who, u policy.Use) {
	const smc = "smc"
	i := slices.IndexFunc(peers, func(p policy.Peer) bool {
		return p.Role == policy.Connect && p.Address.Unmap() == u.Peer && p.Port == u.Remote && p.User == who.User && p.Interface == 0
	})
	if i < 0 || (e.TCPSocket != smc && e.SMCSocket != smc) {
		return
	}
	e.remembered = &peers[i]
	known := newPeerJSON(peers[i])
	e.Reason, e.PeerReason, e.SecondsLeft = &known.Reason, known.PeerReason, known.SecondsLeft
}

// who returns the maker of the socket.
func (c *command) who(q question) (policy.Who, error) {
	who := c.sys.self()
	words := []string{"smc"}
	for _, o := range [][2]string{{"user", q.user}, {"group", q.group}, {"cgroup", q.cgroup}} {
		if o[1] != "" {
			words = append(words, o[0], o[1])
		}
	}
	r, err := policy.Parse(words, c.sys.names)
	if err != nil {
		e := *err.(*policy.SyntaxError)
		e.Word = 0
		return who, cli.Usagef("--%w", &e)
	}
	if r.User != nil {
		who.User = *r.User
	}
	switch {
	case r.Group != nil:
		who.Group = *r.Group
	case r.User != nil:
		if who.Group, err = c.sys.primaryGroup(*r.User); err != nil {
			return who, cli.Usagef("--user %q: /etc/passwd does not have the group of this user: give it by --group", q.user)
		}
	}
	if r.Cgroup != "" {
		who.Cgroup = r.Cgroup
	}
	return who, nil
}

// uses returns the uses that a target stands for: a listener, or a client for each address of the host.
func (c *command) uses(ctx context.Context, target string) ([]policy.Use, error) {
	host, service, err := net.SplitHostPort(target)
	if err != nil {
		return nil, cli.Usagef("%q is no HOST:PORT, nor :PORT for a listener; an address of IPv6 is [ADDRESS]:PORT", target)
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil || port == 0 {
		return nil, cli.Usagef("%q: the port is a number from 1 to 65535", target)
	}
	if host == "" {
		return []policy.Use{{Role: policy.Listen, Local: uint16(port)}}, nil
	}
	addresses := []string{host}
	if _, err := netip.ParseAddr(host); err != nil {
		if addresses, err = c.sys.lookUp(ctx, host); err != nil {
			return nil, err
		}
	}
	var uses []policy.Use
	for _, a := range addresses {
		addr, err := netip.ParseAddr(a)
		if err != nil {
			return nil, err
		}
		uses = append(uses, policy.Use{Role: policy.Connect, Remote: uint16(port), Peer: addr.Unmap()})
	}
	return slices.CompactFunc(uses, func(a, b policy.Use) bool { return a.Peer == b.Peer }), nil
}

// primaryGroup returns the group that /etc/passwd has for a user.
func primaryGroup(id uint32) (uint32, error) {
	u, err := user.LookupId(strconv.FormatUint(uint64(id), 10))
	if err != nil {
		return 0, err
	}
	group, err := strconv.ParseUint(u.Gid, 10, 32)
	return uint32(group), err
}

func lookUpHost(ctx context.Context, host string) ([]string, error) {
	return net.DefaultResolver.LookupHost(ctx, host)
}

// self returns who makes the sockets of this process.
func self() policy.Who {
	who := policy.Who{User: uint32(os.Geteuid()), Group: uint32(os.Getegid())}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return who
	}
	for line := range strings.Lines(string(text)) {
		if cgroup, ok := strings.CutPrefix(line, "0::"); ok {
			who.Cgroup = path.Clean(strings.TrimSpace(cgroup))
		}
	}
	return who
}
