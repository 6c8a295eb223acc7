// SPDX-License-Identifier: Apache-2.0

package smcchk

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/smckit/smckit/internal/check"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/ism"
	"github.com/spf13/cobra"
)

func (o *options) run(ctx context.Context) error {
	switch {
	case o.conditions:
		return o.listConditions()
	case o.server:
		return o.serve(ctx)
	case o.hasID:
		return o.showPNETID(ctx)
	case o.hasConnect:
		return o.checkPath(ctx)
	}
	s, err := o.deps.read(ctx, "", netip.Addr{})
	if err != nil {
		return err
	}
	o.printFacts(s)
	return o.answer(s, s.Findings())
}

// errNo ends a command that has printed that SMC is not possible.
var errNo = &cli.StatusError{Status: cli.ExitFailure}

// answer prints the findings, and returns the exit status.
func (o *options) answer(s *check.Snapshot, findings []check.Finding) error {
	var err error
	if o.json {
		err = o.env.WriteJSON(newDocument(o.env, s, findings))
	} else {
		err = o.writeText(s, findings)
	}
	if err == nil && !check.Able(findings) {
		return errNo
	}
	return err
}

// checkPath checks the path to a peer, and makes a test connection.
func (o *options) checkPath(ctx context.Context) error {
	peer, rerr := o.deps.resolve(ctx, o.host, o.ipv6)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s, err := o.deps.read(ctx, o.host, peer)
	if err != nil {
		return err
	}
	if rerr != nil {
		s.Path = &check.Path{Host: o.host, ResolveErr: rerr}
	}
	o.printFacts(s)
	withLive := o.live || !o.static
	if withLive && rerr == nil && s.Path != nil && s.Path.RouteErr == nil {
		target := netip.AddrPortFrom(peer, o.port)
		if !o.json {
			if err := o.printTarget(target); err != nil {
				return err
			}
		}
		live := o.deps.try(ctx, target, time.Duration(o.timeout)*time.Second)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.Live = &live
	}
	findings := s.Findings()
	if s.Live != nil && !o.static {
		findings = slices.DeleteFunc(findings, func(f check.Finding) bool {
			// A connection that works is better evidence than warnings of possible obstacles.
			return !f.Live() && (s.Live.Transport.SMC() || f.Severity == check.Info)
		})
	}
	return o.answer(s, findings)
}

// showPNETID prints the PNET ID of an interface.
func (o *options) showPNETID(ctx context.Context) error {
	s, err := o.deps.read(ctx, "", netip.Addr{})
	if err != nil {
		return err
	}
	i := s.Interface(o.pnetID)
	if i == nil {
		var names []string
		for _, i := range s.Interfaces {
			names = append(names, i.Name)
		}
		return cli.NoSuch(fmt.Sprintf("interface %q does not exist", o.pnetID), o.pnetID, names, "ip link")
	}
	if o.json {
		return o.env.WriteJSON(newPNETDocument(i))
	}
	if i.PNETID.ID == "" {
		return nil
	}
	mark := ""
	if i.PNETID.Source == ism.SourceTable {
		mark = "*"
	}
	_, err = fmt.Fprintf(o.env.Out, "%s%s\n", cli.Printable(i.PNETID.ID), mark)
	return err
}

// listConditions prints all conditions.
func (o *options) listConditions() error {
	if o.json {
		return o.env.WriteJSON(newConditions(o.env))
	}
	var rows [][]string
	for _, c := range check.Conditions() {
		rows = append(rows, []string{c.ID, string(c.Severity), o.env.Hint(check.Plain(c.Text)), o.env.Hint(check.Plain(c.Remedy))})
	}
	return cli.WriteTable(o.env.Out, []string{"Condition", "Severity", "Text", "Remedy"}, rows)
}

// serve serves clients until ctx ends.
func (o *options) serve(ctx context.Context) error {
	addr := netip.IPv4Unspecified()
	if o.ipv6 {
		addr = netip.IPv6Unspecified()
	}
	// Several clients may be served at the same time.
	lines := make(chan client)
	s, port, afSMC, err := o.deps.listen(netip.AddrPortFrom(addr, o.port), func(from netip.AddrPort, c check.Transport, err error) {
		select {
		case lines <- client{from, c, err}:
		case <-ctx.Done():
		}
	})
	if err != nil {
		return err
	}
	defer s.Close()
	if !afSMC {
		o.env.Note("warning: this host has no AF_SMC, so the server listens on TCP: run '%s' to see what is missing", o.env.Name())
	}
	if err := o.started(port, afSMC); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case c := <-lines:
			if err := o.served(c); err != nil {
				return err
			}
		}
	}
}

// completeInterfaces completes the names of interfaces.
func completeInterfaces(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return check.InterfaceNames(), cobra.ShellCompDirectiveNoFileComp
}
