// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcstats"
)

// topReasons is how many fallback reasons of each role are shown.
const topReasons = 3

// statsText writes statistics in the layout of smc-tools: all figures end in one column.
type statsText struct {
	w       *bufio.Writer
	details bool
}

func writeStats(w io.Writer, tc tech, s *smcstats.Snapshot, t *netlinksmc.TechStats, details bool) error {
	b := statsText{bufio.NewWriter(w), details}
	fmt.Fprintf(b.w, "%s Connections Summary\n", tc.label())
	b.connections(s, t)
	fmt.Fprint(b.w, "\nRX Stats\n")
	b.direction(t.RxBytes, t.RxCount, t.RxBufUsage, func() {
		b.percent("Buffer full", t.RxBuf.Full, t.RxCount)
		b.buffers(t.RxBuf)
	})
	b.histogram("Bufs", t.RxBufSizes)
	b.histogram("Reqs", t.RxSizes)
	fmt.Fprint(b.w, "\nTX Stats\n")
	b.direction(t.TxBytes, t.TxCount, t.TxBufUsage, func() {
		b.percent("Buffer full", t.TxBuf.Full, t.TxCount)
		b.percent("Buffer full (remote)", t.TxBuf.FullPeer, t.TxCount)
		b.percent("Buffer too small", t.TxBuf.TooSmall, t.TxCount)
		b.percent("Buffer too small (remote)", t.TxBuf.TooSmallPeer, t.TxCount)
		b.buffers(t.TxBuf)
	})
	b.histogram("Bufs", t.TxBufSizes)
	b.histogram("Reqs", t.TxSizes)
	fmt.Fprint(b.w, "\nExtras\n")
	b.line("  Special socket calls", smcstats.SpecialCalls(t), "")
	if details {
		b.line("    cork", t.Cork, "")
		b.line("    nodelay", t.NoDelay, "")
		b.line("    sendpage", t.Sendpage, "")
		b.line("    splice", t.Splice, "")
		b.line("    urgent data", t.Urgent, "")
		b.links(t.Links)
	}
	return b.w.Flush()
}

// links writes the counters of links, which smc-tools does not have. l is nil for SMC-D, and with a stock module.
func (b statsText) links(l *netlinksmc.LinkStats) {
	if l == nil {
		return
	}
	fmt.Fprint(b.w, "\nLinks and Failover\n")
	b.line("  Links added", l.Added, "")
	b.line("  Links refused", l.Refused, "")
	b.line("  Links refused by peer", l.RefusedByPeer, "")
	b.line("  Links not added", l.NotAdded, "")
	b.line("  Links lost", smcstats.LostLinks(&l.Lost), "")
	for _, r := range smcstats.LostReasons() {
		if n := r.Value(&l.Lost); n > 0 {
			b.line("    "+r.Name, n, "")
		}
	}
	b.line("  Connections moved", l.ConnsMoved, "")
	b.line("  Connections not moved", l.ConnsNotMoved, "")
}

func (b statsText) line(label string, value uint64, more string) {
	fmt.Fprintf(b.w, "%-29s%12d%s\n", label, value, more)
}

// roles returns the details of -d for a figure that is counted for both roles.
func (b statsText) roles(client, server uint64) string {
	if !b.details {
		return ""
	}
	return fmt.Sprintf(" (client %d, server %d)", client, server)
}

func (b statsText) connections(s *smcstats.Snapshot, t *netlinksmc.TechStats) {
	conns := smcstats.Connections(t)
	b.line("  Total connections handled", totalConnections(s, t), "")
	b.line("  SMC connections", conns, b.roles(t.ClientV1+t.ClientV2, t.ServerV1+t.ServerV2))
	if b.details {
		b.line("    v1", t.ClientV1+t.ServerV1, "")
		b.line("    v2", t.ClientV2+t.ServerV2, "")
	}
	b.line("  Handshake errors", s.HandshakeErrors(), b.roles(s.ClientHandshakeErrors, s.ServerHandshakeErrors))
	average := 0.0
	if conns > 0 {
		average = float64(t.RxCount+t.TxCount) / float64(conns)
	}
	fmt.Fprintf(b.w, "%-29s%14.1f\n", "  Avg requests per SMC conn", average)
	b.line("  TCP fallback", s.Fallbacks(), b.roles(s.Fallback.ClientTotal, s.Fallback.ServerTotal))
	if b.details {
		b.reasons("Server", s.Fallback.Server)
		b.reasons("Client", s.Fallback.Client)
	}
}

// reasons writes the most frequent reasons of one role.
func (b statsText) reasons(role string, counts []netlinksmc.FallbackCount) {
	if len(counts) == 0 {
		return
	}
	fmt.Fprintf(b.w, "    %s\n", role)
	top := slices.SortedStableFunc(slices.Values(counts), func(x, y netlinksmc.FallbackCount) int {
		return cmp.Compare(y.Count, x.Count)
	})
	for _, c := range top[:min(topReasons, len(top))] {
		name := c.Reason.Name()
		if name == "" {
			name = "[unknown]"
		}
		b.line("     "+fmt.Sprintf("%-12s", name), uint64(c.Count), "")
	}
}

func (b statsText) direction(bytes, requests uint64, usage netlinksmc.Optional[uint64], buffers func()) {
	// The label is smc-tools' for both directions.
	fmt.Fprintf(b.w, "%-27s%14d (%s)\n", "  Data transmitted (Bytes)", bytes, abbreviate(bytes))
	b.line("  Total requests", requests, "")
	b.line("  Buffer usage (Bytes)", usage.Or(0), " ("+abbreviate(usage.Or(0))+")")
	buffers()
	fmt.Fprintln(b.w, "            8KB    16KB    32KB    64KB   128KB   256KB   512KB  >512KB")
}

func (b statsText) percent(label string, value, of uint64) {
	percent := 0.0
	if of > 0 {
		percent = 100 * float64(value) / float64(of)
	}
	b.line("  "+label, value, fmt.Sprintf(" (%.2f%%)", percent))
}

func (b statsText) buffers(s netlinksmc.BufferStats) {
	if b.details {
		b.line("  Buffer downgrades", s.Downgraded, "")
		b.line("  Buffer reuses", s.Reused, "")
	}
}

// histogram writes one row; the last two size classes share a column.
func (b statsText) histogram(label string, h netlinksmc.SizeHistogram) {
	const last = netlinksmc.SizeClasses - 2
	fmt.Fprintf(b.w, "  %s ", label)
	for i := range last + 1 {
		n := h[i]
		if i == last {
			n += h[last+1]
		}
		fmt.Fprintf(b.w, "%8s", abbreviate(n))
	}
	fmt.Fprintln(b.w)
}

// abbreviate formats n in at most 6 characters: in full below 1000, and otherwise in decimal units with as many digits after
// the point as fit.
func abbreviate(n uint64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	const units = "KMGTP"
	// Divide only once, so that the result is rounded only once.
	scale, unit := 1000.0, 0
	for rest := n / 1000; rest >= 1000 && unit < len(units)-1; rest /= 1000 {
		scale *= 1000
		unit++
	}
	value := float64(n) / scale
	for digits := 3; digits > 0; digits-- {
		if s := fmt.Sprintf("%.*f", digits, value); len(s) <= 5 {
			return s + units[unit:unit+1]
		}
	}
	s := fmt.Sprintf("%.0f", value)
	return strings.Repeat(" ", 5-len(s)) + s + units[unit:unit+1]
}
