// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcmonitor

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/jsondoc/jsontest"
	"github.com/smckit/smckit/internal/smctrace"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// listing is what the kernel lists at one time.
type listing struct {
	groups   []netlinksmc.LinkGroupR
	groupsD  []netlinksmc.LinkGroupD
	devices  []netlinksmc.Device
	devicesD []netlinksmc.Device
	client   []netlinksmc.FallbackCount
	err      error
}

// fakeKernel has a listing for each round. The last one stays.
type fakeKernel struct {
	rounds []listing
	now    listing
	closed bool
}

func (k *fakeKernel) LinkGroupsRWithLinks(context.Context) ([]netlinksmc.LinkGroupR, error) {
	if len(k.rounds) > 0 {
		k.now, k.rounds = k.rounds[0], k.rounds[1:]
	}
	return k.now.groups, k.now.err
}

func (k *fakeKernel) LinkGroupsD(context.Context) ([]netlinksmc.LinkGroupD, error) {
	return k.now.groupsD, nil
}

func (k *fakeKernel) DevicesR(context.Context) ([]netlinksmc.Device, error) {
	return k.now.devices, nil
}

func (k *fakeKernel) DevicesD(context.Context) ([]netlinksmc.Device, error) {
	return k.now.devicesD, nil
}

func (k *fakeKernel) FallbackStats(context.Context) (*netlinksmc.FallbackStats, error) {
	return &netlinksmc.FallbackStats{Client: k.now.client}, netlinksmc.ErrNotSupported
}

func (k *fakeKernel) Close() error { k.closed = true; return nil }

// harness runs the command. Each value that the test sends has been handled when it can send the next one.
type harness struct {
	kernel   *fakeKernel
	traceErr error
	traceEnd error // why the tracer ends when the test closes lines
	events   []string
	lines    chan string
	ticks    chan time.Time
	hints    chan struct{}
	hangup   chan os.Signal
	settled  chan time.Time
	noted    chan struct{} // gets a value for each write to standard error, if there is room
	removed  int
	out, err bytes.Buffer
}

func newHarness(rounds ...listing) *harness {
	return &harness{
		kernel: &fakeKernel{rounds: rounds}, events: []string{"smc/smc_switch_to_fallback", "smc/smcr_link_down"},
		lines: make(chan string), ticks: make(chan time.Time), hints: make(chan struct{}), settled: make(chan time.Time),
		noted: make(chan struct{}, 1),
	}
}

func (h *harness) deps() deps {
	return deps{
		open:   func(context.Context) (kernel, error) { return h.kernel, nil },
		ifName: func(index uint32) string { return map[uint32]string{2: "eth0"}[index] },
		now:    func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC) },
		trace: func() (*traceSource, error) {
			if h.traceErr != nil {
				return nil, h.traceErr
			}
			return &traceSource{events: h.events, lines: h.readLines, hangup: h.hangup, close: func() error { h.removed++; return nil }}, nil
		},
		hints:  func(context.Context) <-chan struct{} { return h.hints },
		tick:   func(time.Duration) (<-chan time.Time, func()) { return h.ticks, func() {} },
		after:  func(time.Duration) <-chan time.Time { return h.settled },
		cookie: func() (uint64, error) { return 1, nil },
	}
}

// Write is standard error.
func (h *harness) Write(b []byte) (int, error) {
	defer func() {
		select {
		case h.noted <- struct{}{}:
		default:
		}
	}()
	return h.err.Write(b)
}

func (h *harness) readLines(ctx context.Context, line func(string)) error {
	for {
		select {
		case text, open := <-h.lines:
			if !open {
				return h.traceEnd
			}
			line(text)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// run runs the command while script runs, then interrupts it, and returns its status.
func (h *harness) run(t *testing.T, args string, script func()) int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	env := &cli.Env{In: strings.NewReader(""), Out: &h.out, Err: h, Getenv: func(string) string { return "" }}
	monitor := Tool
	monitor.New = func(env *cli.Env) *cobra.Command { return newCommand(env, h.deps()) }
	smckit := cli.Tool{
		Name: "smckit", New: func(*cli.Env) *cobra.Command { return &cobra.Command{Use: "smckit"} },
		Subs: []cli.Sub{{Name: "monitor", Tool: monitor}},
	}
	status := make(chan int)
	go func() { status <- cli.Run(ctx, smckit, env, strings.Fields("monitor "+args)) }()
	if script != nil {
		script()
		// The round that is under way ends before this one is taken.
		h.ticks <- time.Time{}
		cancel()
	}
	return <-status
}

func link(id uint8, state netlinksmc.LinkState) netlinksmc.Link {
	return netlinksmc.Link{ID: id, IBDev: "rxe0", IBPort: 1, GID: "0000:0000:0000:0000:0000:0000:0000:0001", PeerGID: "0000:0000:0000:0000:0000:0000:0000:0002", NetIfindex: 2, UID: uint32(id) << 8, State: state}
}

func port(state netlinksmc.PortState) []netlinksmc.Device {
	return []netlinksmc.Device{{IBName: "rxe0", Ports: []netlinksmc.Port{{Number: 1, PNETID: "NET", NetIfindex: 2, State: state}}}}
}

var (
	empty = listing{devices: port(netlinksmc.PortActive), client: []netlinksmc.FallbackCount{{Reason: 0x03030000, Count: 65535}}}
	full  = listing{
		devices: port(netlinksmc.PortInactive), devicesD: []netlinksmc.Device{{PCIID: "loopback-ism"}},
		groups: []netlinksmc.LinkGroupR{{
			ID: 0x101, Role: netlinksmc.RoleServer, Type: netlinksmc.LinkGroupSingle, PNETID: "NET\x1b",
			Links: []netlinksmc.Link{link(1, netlinksmc.LinkActive)},
		}},
		groupsD: []netlinksmc.LinkGroupD{{ID: 0x200, GID: 1, PeerGID: 2}},
		client:  []netlinksmc.FallbackCount{{Reason: 0x03030000, Count: 1}, {Reason: 0x01010000, Count: 3}},
	}
	second = listing{
		devices: port(netlinksmc.PortInactive), devicesD: full.devicesD, groupsD: full.groupsD, client: full.client,
		groups: []netlinksmc.LinkGroupR{{
			ID: 0x102, Role: netlinksmc.RoleServer, Type: netlinksmc.LinkGroupSymmetric,
			Links: []netlinksmc.Link{link(1, netlinksmc.LinkInactive), link(2, netlinksmc.LinkActivating)},
		}},
	}
	interrupted = listing{err: netlinksmc.ErrDumpInterrupted}
)

const (
	groupAdd = "linkgroup add 00000200 SMC-D gid 0000000000000001 peer_gid 0000000000000002\n" + `linkgroup add 00000100 SMC-R SERV type SINGLE pnet_id NET\x1b` + "\n"
	linkAdd  = "link add 00000100 link 01 uid 00000100 dev rxe0 port 1 interface eth0 gid 0000:0000:0000:0000:0000:0000:0000:0001 peer_gid 0000:0000:0000:0000:0000:0000:0000:0002\n"
	linkUp   = "link up 00000100 link 01 uid 00000100 dev rxe0 port 1 interface eth0 gid 0000:0000:0000:0000:0000:0000:0000:0001 peer_gid 0000:0000:0000:0000:0000:0000:0000:0002\n"
	linkDown = "link down 00000100 link 01 uid 00000100 dev rxe0 port 1 interface eth0 gid 0000:0000:0000:0000:0000:0000:0000:0001 peer_gid 0000:0000:0000:0000:0000:0000:0000:0002\n"
	portDown = "port down SMC-R pnet_id NET dev rxe0 port 1 interface eth0\n"
)

func TestListings(t *testing.T) {
	for _, test := range []struct {
		args   string
		rounds []listing
		want   string
	}{
		{"", []listing{empty, empty}, ""},
		{"-t port", []listing{empty, full}, "[2026-01-02T03:04:05.000006] " + portDown},
		{"linkgroup link port device", []listing{empty, full}, groupAdd + linkAdd + linkUp + "device add SMC-D dev loopback-ism\n" + portDown},
		{"link", []listing{full, second}, linkDown + "link add 00000100 link 02 uid 00000200 dev rxe0 port 1 interface eth0 gid 0000:0000:0000:0000:0000:0000:0000:0001 peer_gid 0000:0000:0000:0000:0000:0000:0000:0002\n"},
		{"linkgroup", []listing{full, second}, "linkgroup change 00000100 SMC-R SERV type SYM\n"},
		{"linkgroup", []listing{interrupted, full, interrupted, second}, "linkgroup change 00000100 SMC-R SERV type SYM\n"},
		{"all", []listing{full, {devices: full.devices, client: full.client}}, strings.ReplaceAll(groupAdd+strings.ReplaceAll(linkAdd, "up", "add"), " add ", " delete ") +
			"device delete SMC-D dev loopback-ism\n"},
		// Counters have 16 bits.
		{"fallback", []listing{empty, full}, "fallback tcp CLNT reason " + reasonText(newReason(0x01010000)) + " connections 3\nfallback tcp CLNT reason " +
			reasonText(newReason(0x03030000)) + " connections 2\n"},
	} {
		h := newHarness(test.rounds...)
		h.traceErr = fs.ErrPermission
		status := h.run(t, test.args, func() {
			for range test.rounds {
				h.ticks <- time.Time{}
			}
		})
		if diff := cmp.Diff(test.want, h.out.String()); diff != "" {
			t.Errorf("%s: %s", test.args, diff)
		}
		if status != 130 || !h.kernel.closed {
			t.Errorf("%s: status %d, closed %v", test.args, status, h.kernel.closed)
		}
	}
}

const (
	fallbackLine = "     kworker/0:1-22      [000] .....     5.100000: smc_switch_to_fallback: sk=00aa clcsk=00bb net=1 fallback_rsn=50528256" // 0x03030000
	oursLine     = "         smcflow-411     [000] .....     5.000000: smc_fallback: sk=00aa server reason=0x03030000 peer=0x03010000"
)

// TestTrace checks that fallbacks of this namespace are printed at once, with what smckit's module knows, and not counted again.
func TestTrace(t *testing.T) {
	h := newHarness(empty, full)
	status := h.run(t, "--json fallback link", func() {
		h.lines <- oursLine
		h.lines <- fallbackLine
		h.lines <- strings.Replace(fallbackLine, "net=1", "net=2", 1)
		h.lines <- fallbackLine
		h.lines <- "CPU:0 [LOST 4 EVENTS]"
		h.lines <- "garbage"
		h.settled <- time.Time{}
	})
	var got []eventJSON
	for line := range strings.Lines(h.out.String()) {
		jsontest.Check(t, []byte(line))
		var e eventJSON
		if err := jsondoc.Decode([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if e.Time != "2026-01-02T03:04:05.000006Z" {
			t.Errorf("%s", line)
		}
		if e.Object == objFallback {
			got = append(got, e)
		}
	}
	want := eventJSON{Schema: jsondoc.Schema, Time: "2026-01-02T03:04:05.000006Z", Object: objFallback, Action: "tcp", Reason: newReason(0x03030000)}
	first := want
	first.Role, first.PeerReason = jsondoc.RoleServer, newReason(0x03010000)
	if diff := cmp.Diff([]eventJSON{first, want}, got); diff != "" || status != 130 {
		t.Errorf("status %d: %s", status, diff)
	}
	if h.err.String() != "smckit monitor: note: 4 events were lost, because too many came at a time\n" || h.removed != 1 {
		t.Errorf("removed %d times: %s", h.removed, h.err.String())
	}
}

// TestHints checks that changes are listed after a hint, without a tick.
func TestHints(t *testing.T) {
	h := newHarness(empty, full)
	h.run(t, "port", func() {
		h.hints <- struct{}{}
		h.settled <- time.Time{}
		h.hints <- struct{}{}
		if h.out.String() != portDown {
			t.Errorf("printed: %s", h.out.String())
		}
	})
}

// TestTracerEnds checks that fallbacks are counted when the tracer has ended.
func TestTracerEnds(t *testing.T) {
	h := newHarness(empty, full)
	h.traceEnd = errors.New("no such device")
	h.run(t, "fallback", func() {
		close(h.lines)
		<-h.noted
		h.ticks <- time.Time{}
	})
	if !strings.Contains(h.err.String(), "note: the tracer has ended (no such device): fallbacks are counted from now on") || h.removed != 1 ||
		strings.Count(h.out.String(), "fallback tcp CLNT") != 2 {
		t.Errorf("%s; removed %d times; %s", h.err.String(), h.removed, h.out.String())
	}
}

// TestHangup checks that SIGHUP ends the command, and that it removes the tracer.
func TestHangup(t *testing.T) {
	h := newHarness(empty)
	h.hangup = make(chan os.Signal, 1)
	h.hangup <- unix.SIGHUP
	if status := h.run(t, "", nil); status != 1 || h.removed != 1 || h.err.String() != "smckit monitor: ended by SIGHUP\n" {
		t.Errorf("status %d, removed %d times: %s", status, h.removed, h.err.String())
	}
}

// TestHoldSignals checks that two signals in a row do not end the process while the tracer is there.
func TestHoldSignals(t *testing.T) {
	if signal.Ignored(unix.SIGHUP) {
		t.Skip("this process ignores SIGHUP, as nohup has it")
	}
	hangup, release := holdSignals()
	defer release()
	for _, s := range []unix.Signal{unix.SIGTERM, unix.SIGTERM, unix.SIGHUP} {
		if err := unix.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-hangup; got != unix.SIGHUP {
		t.Errorf("%v", got)
	}
}

// TestTracer checks the events of links from both modules.
func TestTracer(t *testing.T) {
	ours := []string{"smc/smcr_link_down", "smckit/smc_link_fail"}
	stock := []string{"smc/smcr_link_down"}
	for _, test := range []struct {
		events []string
		line   string
		want   string
		look   bool
	}{
		{ours, "               x-1       [000] .....     1.000000: smc_link_fail: link=00000101 NOT_SENT detail=12", "link fail 00000100 link 01 SMC-R cause NOT_SENT detail 12", true},
		{ours, "               x-1       [000] .....     1.000000: smcr_link_down: lnk=0 lgr=0 net=1 state=1 dev=rxe0 location=x", "", true},
		{stock, "               x-1       [000] .....     1.000000: smcr_link_down: lnk=0 lgr=0 net=1 state=1 dev=rxe0 location=x", "link fail dev rxe0", true},
		{ours, "               x-1       [000] .....     1.000000: smc_link_add: link=00000102 server", "", true},
		{ours, "               x-1       [000] .....     1.000000: smc_link_not_added: link=00000100 client step=3 err=-110", "link not-added 00000100 SMC-R CLNT cause STEP_3 detail -110", false},
		{ours, "               x-1       [000] .....     1.000000: smc_switch_to_fallback: sk=0 clcsk=0 net=x fallback_rsn=1", "", false},
		{ours, "               x-1       [000] .....     1.000000: smc_switch_to_fallback: sk=0 clcsk=0 net=1 fallback_rsn=x", "", false},
		{ours, "               x-1       [000] .....     1.000000: other: a=b", "", false},
	} {
		e, ok := smctrace.Parse(test.line)
		if !ok {
			t.Fatal(test.line)
		}
		event, ok, look := newTracer(1, test.events).event(e)
		got := ""
		if ok {
			got = event.text()
		}
		if got != test.want || look != test.look {
			t.Errorf("%s: %s, %v", test.line, got, look)
		}
	}
}

// TestTracerForgets checks that the tracer keeps a limited number of sockets if the second event of each was lost.
func TestTracerForgets(t *testing.T) {
	tr := newTracer(1, nil)
	for i := range 3 * mostBegun {
		tr.event(smctrace.Event{Name: "smc_fallback", Fields: map[string]string{"sk": string(rune(i + 1))}})
	}
	if len(tr.begun) > mostBegun {
		t.Errorf("%d sockets are kept", len(tr.begun))
	}
}

func TestBad(t *testing.T) {
	for args, want := range map[string]string{
		"links":          `2 "links" is not an object: choose all, linkgroup, link, device, port, fallback; see 'smckit monitor --help'`,
		"--interval 0":   `2 invalid argument "0" for "--interval" flag: give the seconds between two rounds, 0.1 to 86400; see 'smckit monitor --help'`,
		"--interval NaN": `2 invalid argument "NaN" for "--interval" flag: give the seconds between two rounds, 0.1 to 86400; see 'smckit monitor --help'`,
		"--interval x":   `2 invalid argument "x" for "--interval" flag: give the seconds between two rounds, 0.1 to 86400; see 'smckit monitor --help'`,
		"":               "1 no module",
	} {
		h := newHarness(listing{err: errors.New("no module")})
		h.traceErr = smctrace.ErrNoEvents
		status := h.run(t, args, nil)
		text := strings.TrimPrefix(h.err.String(), "smckit monitor: note: fallbacks are counted, and causes of failed links are not shown: the tracer cannot be used: "+
			"the loaded SMC module has no tracepoints (Linux 5.16 and newer have)\n")
		if status != int(want[0]-'0') || text != "smckit monitor: "+want[2:]+"\n" || h.out.Len() > 0 {
			t.Errorf("%s: %d %s", args, status, h.err.String())
		}
	}
}
