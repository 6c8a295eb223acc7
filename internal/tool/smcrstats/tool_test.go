// SPDX-License-Identifier: Apache-2.0

package smcrstats

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/clitest"
	"github.com/smckit/smckit/internal/golden"
	"github.com/smckit/smckit/internal/jsondoc/jsontest"
	"github.com/smckit/smckit/internal/tool/statdoc/stattest"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcerr"
	"github.com/spf13/cobra"
)

func TestMain(m *testing.M) {
	// The golden files show local times.
	time.Local = time.UTC
	os.Exit(m.Run())
}

// fake is a fake kernel whose counters grow by step after each reading.
type fake struct {
	info     netlinksmc.SystemInfo
	stats    netlinksmc.Stats
	fallback netlinksmc.FallbackStats
	groupsR  []netlinksmc.LinkGroupR
	groupsD  []netlinksmc.LinkGroupD
	step     uint64
	listErr  error
}

func (f *fake) Close() error { return nil }

func (f *fake) SystemInfo(context.Context) (*netlinksmc.SystemInfo, error) { return &f.info, nil }

func (f *fake) Stats(context.Context) (*netlinksmc.Stats, error) {
	s := f.stats
	f.stats.SMCR.TxBytes += f.step
	return &s, nil
}

func (f *fake) FallbackStats(context.Context) (*netlinksmc.FallbackStats, error) {
	return &f.fallback, f.listErr
}

func (f *fake) LinkGroupsRWithLinks(context.Context) ([]netlinksmc.LinkGroupR, error) {
	return f.groupsR, f.listErr
}

func (f *fake) LinkGroupsD(context.Context) ([]netlinksmc.LinkGroupD, error) {
	return f.groupsD, f.listErr
}

func populated() *fake {
	some := netlinksmc.Some[uint64]
	return &fake{
		info: netlinksmc.SystemInfo{Version: 2, Release: 1, Hostname: "host.example"},
		stats: netlinksmc.Stats{
			SMCR: netlinksmc.TechStats{
				ClientV2: 70, ServerV1: 5, RxBytes: 200705600, TxBytes: 1194173445, RxCount: 5017741, TxCount: 5017640,
				RxBufUsage: some(65536), TxBufUsage: some(0), Cork: 3, NoDelay: 4, Sendpage: 1, Splice: 2, Urgent: 5,
				TxBuf:      netlinksmc.BufferStats{TooSmallPeer: 4, TooSmall: 5, FullPeer: 6, Full: 7, Reused: 8, Allocated: 9, Downgraded: 10},
				RxBuf:      netlinksmc.BufferStats{Full: 1234, Reused: 5000, Allocated: 76, Downgraded: 3},
				TxSizes:    netlinksmc.SizeHistogram{1, 2, 3, 4, 5, 6, 7, 8, 9},
				RxBufSizes: netlinksmc.SizeHistogram{5: 5076},
				Links: &netlinksmc.LinkStats{
					Added: 3, Refused: 1, RefusedByPeer: 2, NotAdded: 4, ConnsMoved: 12, ConnsNotMoved: 5,
					Lost: netlinksmc.LostLinks{NotRegistered: 6, NoPort: 1, Operator: 2},
				},
			},
			SMCD:                  netlinksmc.TechStats{ServerV2: 2, RxBytes: 10, RxCount: 1},
			ClientHandshakeErrors: 3, ServerHandshakeErrors: 4,
		},
		fallback: netlinksmc.FallbackStats{
			ClientTotal: 6, ServerTotal: 0,
			Client: []netlinksmc.FallbackCount{{Reason: 0x03010000, Count: 2}, {Reason: 0x12345678, Count: 4}},
		},
		groupsR: []netlinksmc.LinkGroupR{{
			ID: 0x100, Role: netlinksmc.RoleServer, Type: netlinksmc.LinkGroupSymmetric, PNETID: "NET1", Conns: 7,
			SndbufAlloc: some(65536), RMBAlloc: some(131072),
			Links: []netlinksmc.Link{
				{ID: 1, IBDev: "rxe0", IBPort: 1, NetIfindex: 2, Conns: 7, State: netlinksmc.LinkActive, TxBytes: some(123456789), RxBytes: some(42)},
				{ID: 2, IBDev: "a-very-long-device-name", IBPort: 1, State: netlinksmc.LinkActivating},
			},
		}},
	}
}

type bench struct {
	fake    *fake
	memory  *stattest.Memory
	open    error
	out     io.Writer
	rounds  int
	columns string
	opened  int
}

type result struct {
	stdout, stderr string
	status         int
}

func (b *bench) run(args ...string) result {
	env, stdout, stderr := clitest.Env(map[string]string{"COLUMNS": b.columns})
	if b.out != nil {
		env.Out = b.out
	}
	if b.memory == nil {
		b.memory = &stattest.Memory{}
	}
	clock := time.Date(2026, 1, 2, 4, 5, 6, 0, time.UTC)
	d := deps{
		open: func(context.Context) (client, error) {
			b.opened++
			if b.open != nil {
				return nil, b.open
			}
			return b.fake, nil
		},
		ifname:    func(i uint32) string { return map[uint32]string{2: "eth0"}[i] },
		baselines: func() (baselines, error) { return b.memory, nil },
		now:       func() time.Time { return clock },
		watch: cli.Watch{Wait: func(_ context.Context, every time.Duration) error {
			clock = clock.Add(every)
			if b.rounds--; b.rounds <= 0 {
				return context.Canceled
			}
			return nil
		}},
	}
	tool := Tool
	tool.New = func(env *cli.Env) *cobra.Command { return newRoot(env, d) }
	status := cli.Run(context.Background(), tool, env, args)
	return result{stdout.String(), stderr.String(), status}
}

func TestGolden(t *testing.T) {
	for _, args := range []string{"", "-d", "-R", "-D -d", "--json", "-d --json", "-D --json"} {
		t.Run(args, func(t *testing.T) {
			got := (&bench{fake: populated()}).run(strings.Fields(args)...)
			if got.status != 0 || got.stderr != "" {
				t.Fatalf("status %d, stderr %q", got.status, got.stderr)
			}
			if strings.Contains(args, "--json") {
				jsontest.Check(t, []byte(got.stdout))
				old := (&bench{fake: populated()}).run(strings.Fields(strings.Replace(args, "--json", "--json=1", 1))...)
				golden.Check(t, "testdata/schema1/"+strings.ReplaceAll("smcr-stats "+args, " ", "_")+".golden", old.stdout)
			}
			golden.Check(t, "testdata/"+strings.ReplaceAll(strings.TrimSpace("smcr-stats "+args), " ", "_")+".golden", got.stdout)
		})
	}
}

func TestReset(t *testing.T) {
	f := populated()
	m := &stattest.Memory{Taken: time.Date(2026, 1, 1, 1, 1, 1, 0, time.UTC)}
	first := (&bench{fake: f}).run()
	if got := (&bench{fake: f, memory: m}).run("-r"); got != first {
		t.Errorf("-r does not show the values first: %+v", got)
	}
	golden.Check(t, "testdata/after_reset.golden", (&bench{fake: f, memory: m}).run("-d").stdout)
	if got := (&bench{fake: f, memory: m}).run("-a"); got != first {
		t.Errorf("-a: %+v", got)
	}
	// There is one baseline: -D and -R limit what is shown, not what is reset.
	f.stats.SMCR.TxCount++
	f.stats.SMCD.RxCount++
	(&bench{fake: f, memory: m}).run("-D", "-r")
	if m.Base.SMCR.TxCount != f.stats.SMCR.TxCount || m.Base.SMCD.RxCount != f.stats.SMCD.RxCount {
		t.Errorf("baseline %d, %d of %d, %d", m.Base.SMCR.TxCount, m.Base.SMCD.RxCount, f.stats.SMCR.TxCount, f.stats.SMCD.RxCount)
	}
	got := (&bench{fake: f, memory: &stattest.Memory{Note: errors.New("a note")}}).run()
	if got.status != 0 || got.stderr != "smcr-stats: a note\n" {
		t.Errorf("note: %+v", got)
	}
}

func TestWatch(t *testing.T) {
	f := populated()
	f.step = 3000
	got := (&bench{fake: f, rounds: 2}).run("-R", "--watch", "2")
	if got.status != 130 {
		t.Errorf("status %d", got.status)
	}
	golden.Check(t, "testdata/watch.golden", got.stdout)
	got = (&bench{fake: f, rounds: 2}).run("-R", "--watch", "2", "--json")
	jsontest.CheckLines(t, []byte(got.stdout))
	lines := strings.Split(got.stdout, "\n")
	if len(lines) != 3 || strings.Contains(lines[0], "rates") || !strings.Contains(lines[1], `"rates":{"rx_bytes":0,"tx_bytes":1500,`) {
		t.Errorf("%q", lines)
	}
	// If the module was loaded again, there is no rate and no failure.
	f = populated()
	f.step = math.MaxUint64 // one less each time
	got = (&bench{fake: f, rounds: 2}).run("--watch", "2")
	if got.status != 130 || strings.Contains(got.stdout, "per Second") {
		t.Errorf("%+v", got)
	}
}

func TestBadInput(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"x", "x"},
		{"--foo", "foo"},
		{"-x", "-x"},
		{"-D -R", "exclude each other"},
		{"-r --watch 1", "exclude each other"},
		{"--watch abc", "0.1 to 86400"},
		{"--watch -1", "0.1 to 86400"},
	} {
		b := &bench{fake: populated()}
		got := b.run(strings.Fields(tc.args)...)
		if got.status != 2 || got.stdout != "" || b.opened != 0 {
			t.Errorf("%s: %+v, %d sockets opened", tc.args, got, b.opened)
		}
		oneLine(t, got.stderr, tc.want)
	}
	gone := &smcerr.Error{Op: "look up", Kind: netlinksmc.ErrNoModule, Remedy: "load it", Err: os.ErrNotExist}
	got := (&bench{open: gone}).run("--json")
	jsontest.CheckFailure(t, []byte(got.stdout), got.stderr, got.status)
	for _, args := range []string{"", "-d", "-r", "--json=1"} {
		got := (&bench{open: gone}).run(strings.Fields(args)...)
		if got.status != 1 || got.stdout != "" {
			t.Errorf("%s: %+v", args, got)
		}
		oneLine(t, got.stderr, "SMC module not available: load it")
	}
	for _, args := range []string{"--version", "-v", "--help"} {
		b := &bench{open: gone}
		if got := b.run(args); got.status != 0 || got.stdout == "" || b.opened != 0 {
			t.Errorf("%s: %+v, %d sockets opened", args, got, b.opened)
		}
	}
}

func oneLine(t *testing.T, stderr, want string) {
	t.Helper()
	if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "smcr-stats: ") || !strings.Contains(stderr, want) {
		t.Errorf("stderr %q: not one line with %q", stderr, want)
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestBrokenOutput(t *testing.T) {
	for _, args := range []string{"", "-d", "--json"} {
		got := (&bench{fake: populated(), out: broken{syscall.EPIPE}}).run(strings.Fields(args)...)
		if got.status != 1 || got.stderr != "" {
			t.Errorf("%s | head: %+v", args, got)
		}
		got = (&bench{fake: populated(), out: broken{syscall.ENOSPC}}).run(strings.Fields(args)...)
		if got.status != 1 {
			t.Errorf("%s > full: %+v", args, got)
		}
		oneLine(t, got.stderr, "no space left")
	}
}

func TestHostileNames(t *testing.T) {
	const evil = "\x1b[2Jn\xff\n"
	f := populated()
	f.info.Hostname, f.groupsR[0].PNETID, f.groupsR[0].Links[0].IBDev = evil, evil, evil
	got := (&bench{fake: f, columns: "1"}).run("-d")
	if got.status != 0 || strings.Contains(got.stdout, "\x1b") || !utf8.ValidString(got.stdout) || strings.Count(got.stdout, `\x1b[2J`) != 4 {
		t.Errorf("%+v", got)
	}
}

func TestInterrupted(t *testing.T) {
	f := populated()
	f.listErr = &smcerr.Error{Op: "list", Kind: netlinksmc.ErrDumpInterrupted, Remedy: "try again"}
	got := (&bench{fake: f}).run("-d")
	if got.status != 1 || got.stdout == "" {
		t.Errorf("%+v", got)
	}
	oneLine(t, got.stderr, "changed while it was read")
}
