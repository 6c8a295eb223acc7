// SPDX-License-Identifier: Apache-2.0

package smcrstats

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcstats"
)

// view contains the data to show in one round.
type view struct {
	now     time.Time
	info    *netlinksmc.SystemInfo
	reading smcstats.Reading
	// groupsR and groupsD are set with -d.
	groupsR []netlinksmc.LinkGroupR
	groupsD []netlinksmc.LinkGroupD
	// delta is the change in the last seconds, nil without --watch and in its first round.
	delta   *smcstats.Snapshot
	seconds float64
}

const (
	ruler = "-------------------------------------------------------------"
	// second is the column in which the right half of a section begins.
	second = 42
)

func (o *options) write(v view) error {
	if o.json {
		return o.watch.WriteJSON(o.env, o.newDocument(v))
	}
	t := text{Writer: bufio.NewWriter(o.env.Out), env: o.env, ifname: o.ifname, details: o.details}
	if !o.onlyD {
		t.head("SMC-R", v)
		t.traffic(&v.reading.SMCR, techDelta(v, false), v.seconds)
		t.linkGroupsR(v.groupsR)
		fmt.Fprintln(t)
	}
	if !o.onlyR {
		t.head("SMC-D", v)
		t.traffic(&v.reading.SMCD, techDelta(v, true), v.seconds)
		t.linkGroupsD(v.groupsD)
		fmt.Fprintln(t)
	}
	t.handshakes(v.reading.Snapshot)
	return t.Flush()
}

// techDelta returns the difference of one technology, nil if there is none.
func techDelta(v view, smcd bool) *netlinksmc.TechStats {
	switch {
	case v.delta == nil:
		return nil
	case smcd:
		return &v.delta.SMCD
	default:
		return &v.delta.SMCR
	}
}

// text writes the sections.
type text struct {
	*bufio.Writer
	env     *cli.Env
	ifname  func(uint32) string
	details bool
}

func (t text) head(tech string, v view) {
	fmt.Fprintf(t, "%s\n%s STATISTICS (%s) :\n", ruler, tech, cli.Printable(v.info.Hostname))
	fmt.Fprintf(t, "SMC Version: %d.%d\n", v.info.Version, v.info.Release)
	if v.reading.Since.IsZero() {
		fmt.Fprintln(t, "Counting Since: module load")
		return
	}
	fmt.Fprintf(t, "Counting Since: %s (reset)\n", v.reading.Since.Local().Format("2006-01-02 15:04:05 MST"))
	fmt.Fprintf(t, "Elapsed Time: %s\n", elapsed(v.now.Sub(v.reading.Since)))
}

// elapsed formats a duration like entstat.
func elapsed(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	return fmt.Sprintf("%d days %d hours %d minutes %d seconds", s/86400, s/3600%24, s/60%60, s%60)
}

// section writes a heading over one or two columns.
func (t text) section(left, right string) {
	fmt.Fprintln(t)
	t.columns(left+":", colon(right))
	t.columns(strings.Repeat("-", len(left)+1), strings.Repeat("-", len(colon(right))))
}

func colon(s string) string {
	if s == "" {
		return ""
	}
	return s + ":"
}

// columns writes one line with one or two columns.
func (t text) columns(left, right string) {
	if right == "" {
		fmt.Fprintln(t, left)
		return
	}
	fmt.Fprintf(t, "%-*s%s\n", second, left, right)
}

// pair writes the same figure for both columns.
func (t text) pair(label string, left, right any) {
	t.columns(fmt.Sprintf("%s: %v", label, left), fmt.Sprintf("%s: %v", label, right))
}

func (t text) traffic(s, delta *netlinksmc.TechStats, seconds float64) {
	t.section("Transmit Statistics", "Receive Statistics")
	t.pair("Requests", s.TxCount, s.RxCount)
	t.pair("Bytes", s.TxBytes, s.RxBytes)
	if delta != nil {
		t.pair("Requests per Second", rate(delta.TxCount, seconds), rate(delta.RxCount, seconds))
		t.pair("Bytes per Second", rate(delta.TxBytes, seconds), rate(delta.RxBytes, seconds))
	}
	t.pair("Bytes of Buffers in Use", gauge(s.TxBufUsage), gauge(s.RxBufUsage))
	t.pair("Buffer Full", s.TxBuf.Full, s.RxBuf.Full)
	t.columns(fmt.Sprintf("Peer's Buffer Full: %d", s.TxBuf.FullPeer), "")
	t.columns(fmt.Sprintf("Buffer Too Small: %d", s.TxBuf.TooSmall), "")
	t.columns(fmt.Sprintf("Peer's Buffer Too Small: %d", s.TxBuf.TooSmallPeer), "")
	if t.details {
		t.pair("Buffers Allocated", s.TxBuf.Allocated, s.RxBuf.Allocated)
		t.pair("Buffers Reused", s.TxBuf.Reused, s.RxBuf.Reused)
		t.pair("Buffers Downgraded", s.TxBuf.Downgraded, s.RxBuf.Downgraded)
	}
	t.section("Connections as Client", "Connections as Server")
	t.pair("SMC Version 1", s.ClientV1, s.ServerV1)
	t.pair("SMC Version 2", s.ClientV2, s.ServerV2)
	if t.details {
		t.section("Special Socket Calls", "")
		fmt.Fprintf(t, "Cork: %d\nNo Delay: %d\nSendpage: %d\nSplice: %d\nUrgent Data: %d\n",
			s.Cork, s.NoDelay, s.Sendpage, s.Splice, s.Urgent)
		t.histogram("Requests by Size", s.TxSizes, s.RxSizes)
		t.histogram("Buffers by Size", s.TxBufSizes, s.RxBufSizes)
		t.failover(s.Links)
	}
}

// failover writes the counters of links. l is nil for SMC-D, and with a stock module.
func (t text) failover(l *netlinksmc.LinkStats) {
	if l == nil {
		return
	}
	t.section("Links and Failover", "")
	fmt.Fprintf(t, "Links Added: %d\nLinks Refused: %d\nLinks Refused by Peer: %d\nLinks Not Added: %d\nLinks Lost: %d\n",
		l.Added, l.Refused, l.RefusedByPeer, l.NotAdded, smcstats.LostLinks(&l.Lost))
	for _, r := range smcstats.LostReasons() {
		if n := r.Value(&l.Lost); n > 0 {
			fmt.Fprintf(t, "    %s: %d\n", r.Name, n)
		}
	}
	fmt.Fprintf(t, "Connections Moved: %d\nConnections Not Moved: %d\n", l.ConnsMoved, l.ConnsNotMoved)
}

func rate(n uint64, seconds float64) string {
	return strconv.FormatFloat(float64(n)/seconds, 'f', 1, 64)
}

func gauge(v netlinksmc.Optional[uint64]) string {
	if n, ok := v.Get(); ok {
		return fmt.Sprint(n)
	}
	return "n/a"
}

func (t text) histogram(title string, tx, rx netlinksmc.SizeHistogram) {
	t.section(title, "")
	labels := [netlinksmc.SizeClasses]string{
		"up to 8 KiB", "up to 16 KiB", "up to 32 KiB", "up to 64 KiB", "up to 128 KiB", "up to 256 KiB",
		"up to 512 KiB", "up to 1 MiB", "larger",
	}
	rows := make([][]string, len(labels))
	for i, label := range labels {
		rows[i] = []string{label, fmt.Sprint(tx[i]), fmt.Sprint(rx[i])}
	}
	t.table([]string{"Size", "Transmit", "Receive"}, rows)
}

// table writes a table. The buffer below keeps the first write error for Flush.
func (t text) table(header []string, rows [][]string) { _ = cli.WriteTable(io.Writer(t), header, rows) }

func (t text) linkGroupsR(groups []netlinksmc.LinkGroupR) {
	if !t.details {
		return
	}
	t.section("Link Groups", "")
	if len(groups) == 0 {
		fmt.Fprintln(t, "none")
		return
	}
	var rows, links [][]string
	for _, g := range groups {
		id := fmt.Sprintf("%08x", g.ID)
		rows = append(rows, []string{
			id, g.Role.String(), g.Type.String(), fmt.Sprint(g.Conns), gauge(g.SndbufAlloc), gauge(g.RMBAlloc), g.PNETID,
		})
		for _, l := range g.Links {
			links = append(links, []string{
				id, fmt.Sprintf("%02x", l.ID), l.State.String(), l.IBDev, fmt.Sprint(l.IBPort), t.ifname(l.NetIfindex),
				fmt.Sprint(l.Conns), gauge(l.TxBytes), gauge(l.RxBytes),
			})
		}
	}
	t.table([]string{"LG-ID", "Role", "Type", "Connections", "Sndbuf-Bytes", "RMB-Bytes", "PNET-ID"}, rows)
	t.section("Links", "")
	t.table([]string{"LG-ID", "Link", "State", "IB-Dev", "Port", "Net-Dev", "Connections", "Bytes-Sent", "Bytes-Received"}, links)
}

func (t text) linkGroupsD(groups []netlinksmc.LinkGroupD) {
	if !t.details {
		return
	}
	t.section("Link Groups", "")
	if len(groups) == 0 {
		fmt.Fprintln(t, "none")
		return
	}
	var rows [][]string
	for _, g := range groups {
		rows = append(rows, []string{
			fmt.Sprintf("%08x", g.ID), fmt.Sprint(g.Conns), gauge(g.SndbufAlloc), gauge(g.DMBAlloc), g.PNETID,
		})
	}
	t.table([]string{"LG-ID", "Connections", "Sndbuf-Bytes", "DMB-Bytes", "PNET-ID"}, rows)
}

// handshakes writes the counters that the kernel keeps for both technologies together.
func (t text) handshakes(s *smcstats.Snapshot) {
	fmt.Fprintf(t, "%s\nHANDSHAKE STATISTICS (SMC-R and SMC-D together) :\n", ruler)
	t.section("As Client", "As Server")
	t.pair("Failed Handshakes", s.ClientHandshakeErrors, s.ServerHandshakeErrors)
	t.pair("Fallbacks to TCP", s.Fallback.ClientTotal, s.Fallback.ServerTotal)
	if t.details {
		t.reasons("Fallbacks as Client by Reason", s.Fallback.Client)
		t.reasons("Fallbacks as Server by Reason", s.Fallback.Server)
	}
}

func (t text) reasons(title string, counts []netlinksmc.FallbackCount) {
	t.section(title, "")
	// Reasons that have not occurred since the reset are still in the list.
	counts = slices.DeleteFunc(slices.Clone(counts), func(c netlinksmc.FallbackCount) bool { return c.Count == 0 })
	if len(counts) == 0 {
		fmt.Fprintln(t, "none")
		return
	}
	for _, c := range counts {
		r := c.Reason
		meaning := "a code that Linux does not use"
		if r.Known() {
			meaning = r.Text()
		}
		fmt.Fprintf(t, "%d x %s: %s\n", c.Count, r, meaning)
		if remedy := t.env.Hint(r.Remedy()); remedy != "" {
			fmt.Fprintf(t, "    %s\n", remedy)
		}
	}
}
