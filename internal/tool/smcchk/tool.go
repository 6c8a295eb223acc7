// SPDX-License-Identifier: Apache-2.0

// Package smcchk is the command smc_chk.
package smcchk

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/smckit/smckit/internal/check"
	"github.com/smckit/smckit/internal/cli"
	"github.com/spf13/cobra"
)

// Tool is smc_chk.
var Tool = cli.Tool{
	Name: "smc_chk",
	New:  func(env *cli.Env) *cobra.Command { return newCommand(env, systemDeps()) },
	Long: []string{"connect", "debug", "help", "ipv6", "live-test", "pnetid", "port", "server", "static-analysis", "version"},
}

// server serves clients; *check.Server implements it.
type server interface {
	Serve(ctx context.Context) error
	Close() error
}

// servedFunc is called for each client, with the transport of its connection.
type servedFunc func(client netip.AddrPort, c check.Transport, err error)

// deps has the functions that the command uses to access the system. Tests replace it.
type deps struct {
	// read collects the facts of the host, and of the path to a peer if that is valid.
	read func(ctx context.Context, host string, peer netip.Addr) (*check.Snapshot, error)
	// resolve finds the address of a host.
	resolve func(ctx context.Context, host string, ipv6 bool) (netip.Addr, error)
	// try makes a test connection. It waits for one answer for the timeout, and for the whole test four times as long.
	try func(ctx context.Context, target netip.AddrPort, timeout time.Duration) check.Live
	// listen starts a server, which calls served for each client.
	listen func(addr netip.AddrPort, served servedFunc) (s server, port uint16, afSMC bool, err error)
}

func systemDeps() deps {
	return deps{
		read: func(ctx context.Context, host string, peer netip.Addr) (*check.Snapshot, error) {
			s, err := check.Reader{}.Read(ctx)
			if err == nil && peer.IsValid() {
				check.Reader{}.ReadPath(s, host, peer)
			}
			return s, err
		},
		resolve: check.Resolve,
		try: func(ctx context.Context, target netip.AddrPort, timeout time.Duration) check.Live {
			return check.Client{Target: target, Timeout: timeout}.Run(ctx)
		},
		listen: func(addr netip.AddrPort, served servedFunc) (server, uint16, bool, error) {
			s, err := check.Listen(addr)
			if err != nil {
				return nil, 0, false, err
			}
			s.Served = served
			return s, s.Port, s.AFSMC, nil
		},
	}
}

// options is a parsed command line.
type options struct {
	env  *cli.Env
	deps deps

	connect, pnetID            string
	server, conditions         bool
	live, static, ipv6         bool
	debug, json                bool
	port                       uint16
	timeout                    uint16
	hasConnect, hasID, hasPort bool
	// host is the peer, without port.
	host string
}

func newCommand(env *cli.Env, d deps) *cobra.Command {
	o := &options{env: env, deps: d}
	cmd := &cobra.Command{
		Use:     "smc_chk [OPTION]... [-C HOST[:PORT] | -S [PORT] | -i INTERFACE]",
		Short:   "Check whether this host, and the path to a peer, can use SMC, and why not",
		Long:    long,
		Example: example,

		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
	var port string
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.connect, "connect", "C", "", "test the path to `HOST[:PORT]`, by a connection to 'smc_chk --server' there")
	f.BoolVarP(&o.server, "server", "S", false, "answer tests of other hosts, until interrupted; the operand is the port")
	f.StringVarP(&o.pnetID, "pnetid", "i", "", "print the PNET ID of `INTERFACE`; * marks one from the PNET table")
	f.BoolVar(&o.conditions, "conditions", false, "list what smc_chk checks, and the remedies")
	f.BoolVarP(&o.live, "live-test", "l", false, "with -C: make a connection, which is what -C does without -s")
	f.BoolVarP(&o.static, "static-analysis", "s", false, "only check the configuration, with -C that of the path; with -l do both")
	f.StringVarP(&port, "port", "p", "", fmt.Sprintf("`port` of the server, by default %d; a server uses the next free port", check.DefaultPort))
	f.Uint16Var(&o.timeout, "timeout", 10, "with -C: wait `SECONDS` for one answer, 1 to 600; a test takes at most four times that")
	f.BoolVarP(&o.ipv6, "ipv6", "6", false, "use IPv6")
	f.BoolVarP(&o.debug, "debug", "d", false, "print facts on standard error")
	cli.AddJSONFlag(f, o.env, &o.json, "print one JSON document; with -S one line for each client")
	cli.AddNetNSFlag(cmd, env)
	for _, name := range []string{"connect", "port", "timeout"} {
		// Registering fails only for an option that does not exist.
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	_ = cmd.RegisterFlagCompletionFunc("pnetid", completeInterfaces)

	// Check this here and not in RunE, which runs only after the command has entered the network namespace.
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		o.hasConnect, o.hasID = cmd.Flags().Changed("connect"), cmd.Flags().Changed("pnetid")
		o.hasPort = cmd.Flags().Changed("port")
		return o.check(port, args)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) }
	return cmd
}

// check refuses invalid command lines.
func (o *options) check(port string, args []string) error {
	modes := []struct {
		given bool
		name  string
	}{{o.hasConnect, "--connect"}, {o.server, "--server"}, {o.hasID, "--pnetid"}, {o.conditions, "--conditions"}}
	var mode string
	for _, m := range modes {
		if m.given && mode != "" {
			return fmt.Errorf("%s and %s cannot be combined", mode, m.name)
		}
		if m.given {
			mode = m.name
		}
	}
	switch {
	case len(args) > 0 && (!o.server || len(args) > 1 || o.hasPort):
		return fmt.Errorf("unexpected operand %q: name a peer with --connect", args[len(args)-1])
	case (o.live || o.static) && mode != "" && mode != "--connect":
		return fmt.Errorf("--live-test and --static-analysis are for --connect, not for %s", mode)
	case o.live && !o.hasConnect:
		return fmt.Errorf("--live-test needs a peer: add --connect HOST")
	case o.hasPort && !o.hasConnect && !o.server:
		return fmt.Errorf("--port is for --connect and --server")
	case o.timeout < 1 || o.timeout > 600:
		return fmt.Errorf("--timeout %d: use 1 to 600 seconds", o.timeout)
	case o.hasID && o.pnetID == "":
		return fmt.Errorf("--pnetid needs the name of an interface")
	}
	o.port = check.DefaultPort
	if len(args) > 0 {
		port, o.hasPort = args[0], true
	}
	if o.hasPort {
		if err := o.setPort(port); err != nil {
			return err
		}
	}
	if o.hasConnect {
		return o.parseTarget()
	}
	return nil
}

func (o *options) setPort(text string) error {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("%q is not a port: use a number from 1 to 65535", text)
	}
	o.port = uint16(n)
	return nil
}

// splitTarget splits HOST[:PORT]. An IPv6 address with a port is in brackets.
func splitTarget(text string) (host, port string, ok bool) {
	host, hasPort := text, false
	if rest, found := strings.CutPrefix(text, "["); found {
		inner, after, closed := strings.Cut(rest, "]")
		addr, err := netip.ParseAddr(inner)
		host, port, hasPort = inner, strings.TrimPrefix(after, ":"), after != ""
		ok = closed && err == nil && addr.Is6() && (after == "" || after[0] == ':')
	} else {
		ok = true
		if strings.Count(text, ":") == 1 {
			host, port, hasPort = strings.Cut(text, ":")
		}
	}
	return host, port, ok && host != "" && !strings.ContainsAny(text, " \t\n/") && hasPort == (port != "")
}

// parseTarget parses the operand that names the peer.
func (o *options) parseTarget() error {
	host, port, ok := splitTarget(o.connect)
	if !ok {
		return fmt.Errorf("%q is not a peer: use HOST, HOST:PORT or [ADDRESS]:PORT", o.connect)
	}
	if port != "" {
		given := o.port
		if err := o.setPort(port); err != nil {
			return err
		}
		if o.hasPort && given != o.port {
			return fmt.Errorf("two different ports: %d and %d", o.port, given)
		}
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return fmt.Errorf("%q is a link-local address, which SMC does not support", host)
		}
		if o.ipv6 && addr.Is4() {
			return fmt.Errorf("%q is not an IPv6 address", host)
		}
	}
	o.host = host
	return nil
}
