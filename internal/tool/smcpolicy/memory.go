// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/spf13/cobra"
)

// maxCeiling is more than any ceiling, in units of 1024 bytes. The setting of the host has this value if there is none.
const maxCeiling = 1<<32 - 1

// memoryJSON is the output of memory with --json. Fields are never removed or changed under the same schema number.
type memoryJSON struct {
	Schema    int      `json:"schema"`
	Namespace poolJSON `json:"namespace"`
	// in the initial network namespace only
	Host *poolJSON `json:"host,omitempty"`
}

// poolJSON is the memory of a network namespace or of the host.
type poolJSON struct {
	Ceiling uint64 `json:"ceiling_bytes" schema1:"ceiling"`
	// the sum of `rmb_bytes`, `sndbuf_bytes`, `dmb_bytes` and `queue_bytes`
	Reserved  uint64 `json:"reserved_bytes" schema1:"reserved"`
	Highest   uint64 `json:"highest_bytes" schema1:"highest"`
	RMBs      uint64 `json:"rmb_bytes" schema1:"rmbs"`
	SendRings uint64 `json:"sndbuf_bytes" schema1:"send_rings"`
	// within the host, of their pages with data, or at least of four for each
	DMBs uint64 `json:"dmb_bytes" schema1:"dmbs"`
	// of the host only
	Queues *uint64 `json:"queue_bytes,omitempty" schema1:"queues"`
	// of the host only
	Idle    *uint64 `json:"idle_bytes,omitempty" schema1:"idle"`
	Refused uint64  `json:"ends_refused" schema1:"refused"`
}

// memorySetJSON is the output of memory CEILING with --json. Fields are never removed or changed under the same schema number.
type memorySetJSON struct {
	Schema  int  `json:"schema"`
	Changed bool `json:"changed"`
	Check   bool `json:"check"`
	// with `--check`, 0 also if it would be the default
	Ceiling uint64 `json:"ceiling_bytes" schema1:"ceiling"`
}

func newMemory(c *command) *cobra.Command {
	host, check := false, false
	cmd := &cobra.Command{
		Use:     "memory [show | CEILING | none | default]",
		Short:   "Show the memory of SMC, or set its ceiling",
		Long:    memoryLong,
		Example: memoryExample,
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, noFiles
			}
			return []string{"show", "none", "64M", "1G", "default"}, noFiles
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch set := len(args) > 0 && args[0] != "show" && args[0] != "list"; {
			case set && c.watch.On():
				return cli.Usagef("memory %s: --watch is for listings", args[0])
			case set:
				return c.setCeiling(cmd.Context(), args[0], host, check)
			case host:
				return cli.Usagef("--host is for a new ceiling: without one, %s memory shows the host, too", c.env.Name())
			case check:
				return cli.Usagef("--check is for a new ceiling: without one, nothing changes")
			}
			return c.list(cmd.Context(), c.showMemory)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "with a new ceiling, only print what would change")
	cmd.Flags().BoolVar(&host, "host", false, "set the ceiling of the host instead of that of the network namespace")
	c.watch.AddFlag(cmd.Flags())
	return cmd
}

func newPoolJSON(p policy.Pool, host bool) poolJSON {
	out := poolJSON{
		Ceiling: p.Limit, Reserved: p.Reserved, Highest: p.Peak, RMBs: p.RMB, SendRings: p.SendRings, DMBs: p.DMB, Refused: p.Refused,
	}
	if host {
		out.Queues, out.Idle = &p.Queues, &p.Idle
	}
	return out
}

func (c *command) showMemory(ctx context.Context) error {
	var m policy.Memory
	err := c.withKernel(ctx, func(k kernel) (err error) {
		m, err = k.Memory(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if c.json {
		out := memoryJSON{Schema: jsondoc.Schema, Namespace: newPoolJSON(m.Namespace, false)}
		if m.Host != nil {
			host := newPoolJSON(*m.Host, true)
			out.Host = &host
		}
		return c.watch.WriteJSON(c.env, out)
	}
	head := []string{"", "Namespace"}
	if m.Host != nil {
		head = append(head, "Host")
	}
	var rows [][]string
	for _, row := range memoryRows {
		switch {
		case m.Host == nil && !row.hostOnly:
			rows = append(rows, []string{row.name, row.of(m.Namespace)})
		case m.Host != nil && row.hostOnly:
			rows = append(rows, []string{row.name, "-", row.of(*m.Host)})
		case m.Host != nil:
			rows = append(rows, []string{row.name, row.of(m.Namespace), row.of(*m.Host)})
		}
	}
	return cli.WriteTable(c.env.Out, head, rows)
}

// memoryRows are the rows of the table. Some are about the host only.
var memoryRows = []struct {
	name     string
	of       func(policy.Pool) string
	hostOnly bool
}{
	{"Ceiling", func(p policy.Pool) string { return formatCeiling(p.Limit) }, false},
	{"Reserved", func(p policy.Pool) string { return formatSize(p.Reserved) }, false},
	{"Highest", func(p policy.Pool) string { return formatSize(p.Peak) }, false},
	{"RMBs", func(p policy.Pool) string { return formatSize(p.RMB) }, false},
	{"Send rings", func(p policy.Pool) string { return formatSize(p.SendRings) }, false},
	{"DMBs", func(p policy.Pool) string { return formatSize(p.DMB) }, false},
	{"Queues of links", func(p policy.Pool) string { return formatSize(p.Queues) }, true},
	{"Idle buffers", func(p policy.Pool) string { return formatSize(p.Idle) }, true},
	{"Ends that are TCP", func(p policy.Pool) string { return fmt.Sprint(p.Refused) }, false},
}

// units are the suffixes of sizes, in units of 1024 bytes.
var units = []struct {
	suffix string
	kbytes uint64
}{{"G", 1 << 20}, {"M", 1 << 10}, {"K", 1}}

// formatSize writes a number of bytes in the largest unit without a fraction, rounded up to kilobytes.
func formatSize(n uint64) string {
	kbytes := (n + 1023) / 1024
	for _, u := range units {
		if kbytes > 0 && kbytes%u.kbytes == 0 {
			return fmt.Sprint(kbytes/u.kbytes) + u.suffix
		}
	}
	return "0"
}

func formatCeiling(n uint64) string {
	if n == 0 {
		return "none"
	}
	return formatSize(n)
}

// parseCeiling returns the value of the setting for a ceiling of the network namespace or of the host.
func parseCeiling(text string, host bool) (uint64, error) {
	switch {
	case text == "none" && host:
		return maxCeiling, nil
	case text == "none" || text == "default":
		return 0, nil
	}
	for _, u := range units {
		digits, ok := strings.CutSuffix(strings.ToUpper(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 32)
		if err == nil && n > 0 && n*u.kbytes < maxCeiling {
			return n * u.kbytes, nil
		}
	}
	return 0, cli.Usagef("%s is no ceiling: give a number with K, M or G, such as 64M, up to 4095G, none or default", cli.Printable(strconv.Quote(text)))
}

// setCeiling sets the ceiling of the network namespace or of the host.
func (c *command) setCeiling(ctx context.Context, text string, host, check bool) error {
	want, err := parseCeiling(text, host)
	if err != nil {
		return err
	}
	ceiling := setting{name: namespaceCeiling, op: "set the ceiling"}
	if host {
		ceiling.name, ceiling.hostOnly = hostCeiling, "only the initial network namespace has the ceiling of the host"
	}
	changed, err := c.writeSetting(ceiling, fmt.Sprint(want), check)
	if err != nil {
		return err
	}
	if c.json {
		bytes, err := c.ceilingBytes(ctx, want, host && !check)
		if err != nil {
			return err
		}
		return c.env.WriteJSON(memorySetJSON{Schema: jsondoc.Schema, Changed: changed, Check: check, Ceiling: bytes})
	}
	switch {
	case !changed:
		_, err = fmt.Fprintln(c.env.Out, "unchanged")
	case check:
		_, err = fmt.Fprintf(c.env.Out, "would set the ceiling to %s\n", text)
	}
	return err
}

// ceilingBytes returns the ceiling that a value of the setting makes; 0 if there is none. Only the module knows the default of the host.
func (c *command) ceilingBytes(ctx context.Context, kbytes uint64, host bool) (bytes uint64, err error) {
	if !host || kbytes != 0 {
		return kbytes % maxCeiling << 10, nil
	}
	err = c.withKernel(ctx, func(k kernel) error {
		m, err := k.Memory(ctx)
		if m.Host != nil {
			bytes = m.Host.Limit
		}
		return err
	})
	return bytes, err
}
