// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/tool/statdoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcstats"
	"github.com/spf13/cobra"
)

const statsLong = `Show what the network namespace has sent and received with %[1]s.

  show    figures since the last reset
  reset   show them, then count from zero
  json    the raw counters of %[1]s as one line of JSON, as smc-tools prints it

With -a figures count from the loading of the module. -d adds details.%[4]s

The kernel counts handshake errors, TCP fallbacks and the total of handled
connections for SMC-R and SMC-D together; smcr and smcd show the same figures.
The count of a single fallback reason wraps around after 65535.

The kernel cannot reset a counter. A reset stores a baseline, private to the
user and the network namespace. smcr, smcd, smcr-stats and smckit count from the
same baseline, so a reset by one of them is a reset for all, of SMC-R and SMC-D
together; 'since' in the JSON document, and the heading of smcr-stats, is when it
was taken. A reload of the module discards the baseline, with a message on
stderr. Until your first reset, the command uses a baseline that smc-tools left
in /tmp. Buffer usage is the present value, never a difference.

JSON fields (of --json):
  schema; transport; %[2]s;
  total_connections; %[3]s.

Files:
  $XDG_STATE_HOME/smckit, ~/.local/state/smckit
            baselines of users; the second if the variable is not set
  /run/smckit
            baselines of root`

// statsLongR describes the details of -d for SMC-R.
const statsLongR = ` With
smckit's own module these are, at the end, links of link groups that were added,
refused or lost, and the connections that continued over another link. The reasons
of lost links are those of the trace event smckit:smc_link_fail.`

// statsJSON is the document of --json. Package statdoc documents its fields.
type statsJSON struct {
	Schema    int    `json:"schema"`
	Transport string `json:"transport" schema1:"technology"`
	statdoc.Host
	TotalConnections uint64 `json:"total_connections"`
	statdoc.Tech
}

func newStats(o *options) *cobra.Command {
	name, details := o.tech.name(), ""
	if o.tech == techR {
		details = statsLongR
	}
	cmd := &cobra.Command{
		Use:   "stats [show | reset | json]",
		Short: "Show statistics",
		Long:  fmt.Sprintf(statsLong, o.tech.label(), statdoc.HostFields, statdoc.Fields, details),
		Example: fmt.Sprintf("  # everything since the module was loaded\n  %[1]s -ad stats\n\n"+
			"  # count from now on\n  %[1]s stats reset", name),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: words("show", "reset", "json", "help"),
	}
	o.watch.AddFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if wantsHelp(args) {
			return cmd.Help()
		}
		command, err := subcommand(args, "show", "show", "reset", "json")
		if err != nil {
			return err
		}
		if command == "reset" && o.watch.On() {
			return cli.Usagef("reset and --watch exclude each other: reset first, then watch")
		}
		return o.show(cmd.Context(), func(ctx context.Context, c client) error { return o.runStats(ctx, c, command) })
	}
	return cmd
}

func (o *options) runStats(ctx context.Context, c client, command string) error {
	cur, err := smcstats.Collect(ctx, c)
	warn, err := complete(err)
	if err != nil {
		return err
	}
	reading := smcstats.Reading{Snapshot: cur}
	var store baselines
	if !o.absolute || command == "reset" {
		if store, err = o.baselines(); err != nil {
			return err
		}
	}
	if !o.absolute {
		if reading = store.Reduce(cur); reading.Note != nil {
			o.env.Note("%v", reading.Note)
		}
	}
	if err := o.writeStats(reading, command); err != nil {
		return err
	}
	if command == "reset" {
		if err := store.Reset(ctx, cur); err != nil {
			return err
		}
	}
	return warn
}

// techStats returns the counters of the command's technology.
func (o *options) techStats(s *smcstats.Snapshot) *netlinksmc.TechStats {
	if o.tech == techD {
		return &s.SMCD
	}
	return &s.SMCR
}

func (o *options) writeStats(r smcstats.Reading, command string) error {
	t := o.techStats(r.Snapshot)
	switch {
	case o.json:
		return o.writeJSON(statsJSON{
			Schema: jsondoc.Schema, Transport: o.tech.name(), Host: statdoc.NewHost(r, o.env.Reason),
			TotalConnections: totalConnections(r.Snapshot, t), Tech: statdoc.NewTech(t),
		})
	case command == "json":
		return writeCounters(o.env.Out, o.tech, t)
	default:
		return writeStats(o.env.Out, o.tech, r.Snapshot, t, o.details > 0)
	}
}

// totalConnections adds figures of both technologies, like smc-tools, because the kernel does not count errors and fallbacks
// separately.
func totalConnections(s *smcstats.Snapshot, t *netlinksmc.TechStats) uint64 {
	return smcstats.Connections(t) + s.HandshakeErrors() + s.Fallbacks()
}

// writeCounters writes the counters in the JSON of smc-tools.
func writeCounters(w io.Writer, tc tech, t *netlinksmc.TechStats) error {
	var b strings.Builder
	fmt.Fprintf(&b, `{"%s": {`, strings.ToUpper(tc.name()))
	for _, c := range smcstats.Counters() {
		fmt.Fprintf(&b, `"%s":%d,`, c.Name, c.Value(t))
	}
	fmt.Fprintf(&b, `"SMC_RX_RMB_USAGE":%d,"SMC_TX_RMB_USAGE":%d}}`+"\n", t.RxBufUsage.Or(0), t.TxBufUsage.Or(0))
	_, err := io.WriteString(w, b.String())
	return err
}
