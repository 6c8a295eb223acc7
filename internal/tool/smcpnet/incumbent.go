// SPDX-License-Identifier: Apache-2.0

package smcpnet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/spf13/cobra"
)

// incumbentLong lists the long options of smc-tools, which an ambiguous abbreviation prefers.
var incumbentLong = []string{
	"add", "delete", "show", "flush", "interface", "ibdevice", "ibport", "version", "help",
}

// incumbent is a command line of smc-tools: the command is an option without argument, and the PNET ID is the only operand, at
// any position.
type incumbent struct {
	*command
	// verbs are the commands given: add, delete, show, flush.
	verbs []string
	eth   string
	ib    string
	port  string
	given func(option string) bool
}

// verbFlag is an option without argument that records a command.
type verbFlag struct {
	name  string
	verbs *[]string
}

func (f verbFlag) String() string { return "false" }
func (f verbFlag) Type() string   { return "bool" }
func (f verbFlag) Set(s string) error {
	if s != "true" {
		return errors.New("this option takes no argument, the PNET ID is a word of its own")
	}
	*f.verbs = append(*f.verbs, f.name)
	return nil
}

func (o *incumbent) addFlags(root *cobra.Command) {
	f := root.Flags()
	f.SortFlags = false
	for _, v := range []struct{ name, short, usage string }{
		{"add", "a", "add -I, -D or both to the PNET ID given as operand"},
		{"delete", "d", "delete all entries of the PNET ID given as operand"},
		{"show", "s", "show the table, or the PNET ID given as operand"},
		{"flush", "f", "delete all entries"},
	} {
		f.VarPF(verbFlag{v.name, &o.verbs}, v.name, v.short, v.usage).NoOptDefVal = "true"
	}
	f.StringVarP(&o.eth, "interface", "I", "", "network interface to add; `NAME` need not exist yet")
	f.StringVarP(&o.ib, "ibdevice", "D", "", "RDMA or ISM device to add, `NAME` or PCI address")
	f.StringVarP(&o.port, "ibport", "P", "1", "port `N` of the RDMA device, 1 or 2; 0 is the same as none")
	o.given = f.Changed
	_ = root.RegisterFlagCompletionFunc("interface", o.completeInterface)
	_ = root.RegisterFlagCompletionFunc("ibdevice", o.completeRDMA)
	_ = root.RegisterFlagCompletionFunc("ibport", cobra.FixedCompletions([]string{"1", "2"}, cobra.ShellCompDirectiveNoFileComp))
}

// run runs the command line.
func (o *incumbent) run(ctx context.Context, args []string) error {
	port, err := parsePort(o.port)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	switch {
	case len(o.verbs) > 1:
		return cli.Usagef("--%s and --%s: one command is needed", o.verbs[0], o.verbs[1])
	case len(o.verbs) == 0 && len(args) > 0:
		return cli.Usagef("unknown command %q%s", args[0], cli.Suggest(args[0], "show", "add", "del", "flush", "apply", "export"))
	case len(args) > 1:
		return cli.Usagef("too many parameters: %q", args[1])
	}
	verb := slices.Concat(o.verbs, []string{"show"})[0]
	if verb == "flush" && len(args) > 0 {
		return cli.Usagef("--flush takes no parameters: %q", args[0])
	}
	if (verb == "add" || verb == "delete") && len(args) == 0 {
		return cli.Usagef("--%s: the PNET ID is missing", verb)
	}
	var id pnet.ID
	if len(args) > 0 {
		if id, err = pnet.ParseID(args[0]); err != nil {
			return &cli.UsageError{Err: err}
		}
	}
	o.warnIgnored(verb)
	switch verb {
	case "add":
		return o.add(ctx, id, port)
	case "delete":
		return o.del(ctx, pnet.Entry{ID: id}, change{silent: true})
	case "flush":
		return o.flush(ctx, change{silent: true})
	default:
		return o.show(ctx, id)
	}
}

// warnIgnored warns about options that the command ignores, in the words of smc-tools.
func (o *incumbent) warnIgnored(verb string) {
	for _, option := range []struct{ name, word, value string }{
		{"interface", "interface", o.eth}, {"ibdevice", "device", o.ib}, {"ibport", "ibport", o.port},
	} {
		used := verb == "add" && (option.name != "ibport" || o.given("ibdevice"))
		if o.given(option.name) && !used {
			o.env.Note("%s %s ignored", option.word, option.value)
		}
	}
}

func (o *incumbent) add(ctx context.Context, id pnet.ID, port uint8) error {
	var entries pnet.Table
	if o.given("interface") {
		entries = append(entries, pnet.Entry{ID: id, Eth: o.eth})
	}
	if o.given("ibdevice") {
		entries = append(entries, pnet.Entry{ID: id, IB: o.ib, Port: port})
	}
	if len(entries) == 0 {
		return cli.Usagef("interface or device missing: --add needs --interface or --ibdevice")
	}
	for i, e := range entries {
		// An empty device name would make this an entry of an interface.
		if e.IB == "" && i == len(entries)-1 && o.given("ibdevice") {
			return cli.Usagef("RDMA device %q: the name is empty", o.ib)
		}
		if err := e.Check(); err != nil {
			return &cli.UsageError{Err: err}
		}
	}
	return o.addEntries(ctx, entries, change{silent: true, future: true})
}

// parsePort parses a port from 0 to 2 like C, in any base. 0 means that there is none; the kernel uses 1 then.
func parsePort(s string) (uint8, error) {
	n, err := strconv.ParseUint(s, 0, 8)
	// Go accepts prefixes and underscores that C does not.
	if err != nil || n > pnet.MaxPort || strings.ContainsAny(s, "_oObB") {
		return 0, fmt.Errorf("invalid ib port %q: 0 to %d are allowed", s, pnet.MaxPort)
	}
	return max(uint8(n), pnet.DefaultPort), nil
}
