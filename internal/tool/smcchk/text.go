// SPDX-License-Identifier: Apache-2.0

package smcchk

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/check"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// printTarget prints that a test connection follows, in the words of smc-tools.
func (o *options) printTarget(target netip.AddrPort) error {
	const text = "Test with target IP %s and port %d\n  Live test (SMC-D and SMC-R)\n"
	_, err := fmt.Fprintf(o.env.Out, text, target.Addr(), target.Port())
	if err != nil {
		return err
	}
	return o.env.Flush()
}

// writeText prints the answer as text.
func (o *options) writeText(s *check.Snapshot, findings []check.Finding) error {
	var b strings.Builder
	if s.Live != nil {
		writeLive(&b, s.Live)
	}
	if s.Live == nil || o.static {
		writeChoices(&b, s, check.Able(findings))
	}
	for i, f := range findings {
		if i == 0 && b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s: %s [%s]\n  %s\n", f.Severity, cli.OneLine(o.env.Hint(f.Text)), f.ID, cli.OneLine(o.env.Hint(f.Remedy)))
	}
	for _, u := range s.Unknown {
		fmt.Fprintf(&b, "unknown: %s\n", cli.OneLine(o.env.Hint(u)))
	}
	_, err := o.env.Out.Write([]byte(b.String()))
	return err
}

// writeChoices prints the transports that the configuration allows.
func writeChoices(b *strings.Builder, s *check.Snapshot, able bool) {
	fmt.Fprintf(b, "Kernel %s, %s\n", cli.Printable(s.Kernel.Release), cli.Printable(s.ModuleWords()))
	to := ""
	if s.Path != nil && s.Path.ResolveErr == nil && s.Path.RouteErr == nil {
		to = " to " + cli.Printable(s.Path.String())
	}
	choices := s.Choices()
	if !able || len(choices) == 0 {
		fmt.Fprintf(b, "SMC is not possible%s\n", to)
	} else {
		fmt.Fprintf(b, "SMC is possible%s\n", to)
	}
	for _, c := range choices {
		fmt.Fprintf(b, "  %s\n", cli.Printable(c.String()))
	}
}

// writeLive prints the result of the test connection. It begins with the lines that smc-tools prints.
func writeLive(b *strings.Builder, l *check.Live) {
	const indent = "          "
	c := l.Transport
	switch {
	case c.SMC():
		fmt.Fprintf(b, "     Success, using %s\n", c.Mode)
	case c.Mode == "TCP":
		b.WriteString("     Failed  (TCP fallback), reasons:\n")
		fmt.Fprintf(b, "%sClient: %s\n%sServer: %s\n", indent, reasonWords(c.Fallback), indent, serverWords(l))
	case l.TransportErr != nil:
		b.WriteString("     Connected, unknown transport\n")
	default:
		b.WriteString("     Failed, no connection\n")
	}
	if c.Version != "" {
		fmt.Fprintf(b, "%sVersion:    %s\n", indent, c.Version)
	}
	if l.Latency > 0 {
		fmt.Fprintf(b, "%sLatency:    %.1f us round trip\n", indent, float64(l.Latency.Nanoseconds())/1000)
	}
	if l.Throughput > 0 {
		fmt.Fprintf(b, "%sThroughput: %.1f MiB/s in each direction\n", indent, l.Throughput/(1<<20))
	}
}

func reasonWords(f *netlinksmc.Fallback) string {
	if f == nil {
		return "no AF_SMC"
	}
	return codeWords(f.Reason)
}

// serverWords returns the server's reason for TCP: the reason that the server reports itself, or the one in its decline
// message.
func serverWords(l *check.Live) string {
	switch {
	case l.Peer != nil && !l.Peer.AFSMC:
		return "no AF_SMC"
	case l.Peer != nil && l.Peer.Transport.Fallback != nil:
		return codeWords(l.Peer.Transport.Fallback.Reason)
	case l.Transport.Fallback != nil && l.Transport.Fallback.PeerDiagnosis != 0:
		return codeWords(l.Transport.Fallback.PeerDiagnosis)
	}
	return "not known"
}

func codeWords(r netlinksmc.Reason) string {
	if !r.Known() {
		return r.String()
	}
	return fmt.Sprintf("%s  %s: %s", r, r.Name(), r.Text())
}

// printFacts prints the facts on which the answer is based.
func (o *options) printFacts(s *check.Snapshot) {
	if !o.debug {
		return
	}
	fact := func(format string, args ...any) {
		fmt.Fprintf(o.env.Err, "[DEBUG] %s\n", cli.OneLine(fmt.Sprintf(format, args...)))
	}
	fact("kernel: %+v", s.Kernel)
	fact("module: %s %q, %d connections so far", s.ModuleWords(), s.Module.File, s.Connections)
	fact("enterprise IDs: %q", s.Identity.UEIDs)
	for _, i := range s.Interfaces {
		fact("interface: %+v", i)
	}
	for _, p := range s.Ports {
		fact("port: %+v", p)
	}
	for _, e := range s.Table {
		fact("PNET table: %s", e)
	}
	if s.Path != nil {
		fact("path: %+v", *s.Path)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		fact("setting: %s = %d", name, s.Settings[name])
	}
}
