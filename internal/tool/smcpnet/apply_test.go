// SPDX-License-Identifier: Apache-2.0

package smcpnet

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc/jsontest"
	"github.com/smckit/smckit/internal/pnettest"
)

// wanted is a table file that keeps, adds, moves and removes entries of someRows.
const wanted = `# fabric A
add net1 ib mlx4_0 2
add net1 eth eth1     # moved
add fabricB eth lo
`

func TestApply(t *testing.T) {
	const changes = "deleted NET1 eth eth0\ndeleted ABCDEFGHIJKLMNOP eth eth1\ndeleted NET2 ib 0000:00:1f.0 1\n" +
		"added NET1 eth eth1\nadded FABRICB eth lo\n"
	const diff = "-add NET1 eth eth0\n-add ABCDEFGHIJKLMNOP eth eth1\n-add NET2 ib 0000:00:1f.0 1\n" +
		"+add NET1 eth eth1\n+add FABRICB eth lo\n"
	const after = "FABRICB lo n/a 255\nNET1 n/a mlx4_0 2\nNET1 eth1 n/a 255\n"
	file := filepath.Join(t.TempDir(), "table")
	if err := os.WriteFile(file, []byte(wanted), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args, in string
		out      string
		same     bool // the table is not changed
	}{
		{args: "apply " + file, out: changes},
		{args: "apply -", in: wanted, out: changes},
		{args: "apply --diff " + file, out: diff},
		{args: "apply --check " + file, same: true, out: strings.NewReplacer("deleted", "would delete", "added", "would add").Replace(changes)},
		{args: "apply --check --diff " + file, same: true, out: diff},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			h := newHarness(t, someRows()...)
			h.in = tt.in
			before := h.table(t)
			if status := h.run(t, strings.Fields(tt.args)...); status != cli.ExitOK {
				t.Errorf("exit status %d, error %q", status, &h.err)
			}
			if diff := cmp.Diff(tt.out, h.out.String()); diff != "" {
				t.Error(diff)
			}
			want := after
			if tt.same {
				want = before
			}
			if diff := cmp.Diff(want, h.table(t)); diff != "" {
				t.Errorf("table: %s", diff)
			}
			if tt.same {
				return
			}
			h.in, h.kernel.Log = tt.in, nil
			h.run(t, strings.Fields(tt.args)...)
			if !strings.HasPrefix(h.out.String(), "unchanged: the table is the same as in ") || len(h.kernel.Log) > 0 {
				t.Errorf("applied again: %q, requests %q", &h.out, h.kernel.Log)
			}
		})
	}
}

// TestApplyRefused makes each change fail in turn, and checks that the table is restored.
func TestApplyRefused(t *testing.T) {
	for n := 1; ; n++ {
		h := newHarness(t, someRows()...)
		h.in = wanted
		failing(n, syscall.EIO)(h.kernel)
		before := h.table(t)
		status := h.run(t, "apply", "-")
		if len(h.kernel.Log) < n {
			if n < 5 || status != cli.ExitOK {
				t.Errorf("%d changes, status %d", n-1, status)
			}
			return
		}
		if diff := cmp.Diff(before, h.table(t)); diff != "" || status != cli.ExitFailure {
			t.Errorf("change %d: status %d, %s", n, status, diff)
		}
		if got := h.err.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "input/output error") {
			t.Errorf("change %d: error %q", n, got)
		}
	}
}

// TestInterrupted interrupts the command in the middle. It must print nothing if it has restored the table, and otherwise which
// entries are missing.
func TestInterrupted(t *testing.T) {
	for _, rollback := range []bool{true, false} {
		h := newHarness(t, someRows()...)
		h.in = wanted
		ctx, cancel := context.WithCancel(t.Context())
		h.kernel.Fail = func(n int) syscall.Errno {
			if n == 2 {
				cancel()
			}
			if n > 2 && !rollback {
				return syscall.ENOMEM
			}
			return 0
		}
		before := h.table(t)
		env := &cli.Env{In: strings.NewReader(h.in), Out: &h.out, Err: &h.err, Getenv: func(string) string { return "" }}
		status := cli.Run(ctx, h.tool(), env, []string{"apply", "-"})
		if rollback {
			if status != 130 || h.err.Len() > 0 || h.table(t) != before {
				t.Errorf("status %d, error %q, table %q", status, &h.err, h.table(t))
			}
			continue
		}
		if status != cli.ExitFailure || !strings.Contains(h.err.String(), "could not be restored") {
			t.Errorf("status %d, error %q", status, &h.err)
		}
	}
}

// TestJSON compares whole documents, so that it detects every added or removed field.
func TestJSON(t *testing.T) {
	eth0 := `{"pnet_id":"NET1","type":"eth","device":"eth0"}`
	mlx := `{"pnet_id":"NET1","type":"ib","device":"mlx4_0","port":2}`
	tests := []struct {
		args string
		rows []pnettest.Row
		want string
	}{
		{args: "--json=1", want: `{"schema":1,"entries":[]}`},
		{args: "show --json=1", rows: someRows()[:2], want: `{"schema":1,"entries":[` + eth0 + "," + mlx + `]}`},
		{args: "-s NET9 --json=1", rows: someRows()[:2], want: `{"schema":1,"entries":[]}`},
		{args: "export --json=1", rows: someRows()[:1], want: `{"schema":1,"entries":[` + eth0 + `]}`},
		{
			args: "show --json=1", rows: []pnettest.Row{pnettest.Eth("N\xd6T", "\xff\x1b")},
			want: `{"schema":1,"entries":[{"pnet_id":"N\\xd6T","type":"eth","device":"\\xff\\x1b"}]}`,
		},
		{args: "add NET1 eth eth0 --json=1", want: `{"schema":1,"changed":true,"check":false,"added":[` + eth0 + `],"removed":[]}`},
		{args: "-a NET1 -I eth0 --json=1", want: `{"schema":1,"changed":true,"check":false,"added":[` + eth0 + `],"removed":[]}`},
		{args: "add NET1 eth eth0 --json=1 --check", want: `{"schema":1,"changed":true,"check":true,"added":[` + eth0 + `],"removed":[]}`},
		{
			args: "add NET1 eth eth0 --json=1", rows: someRows(),
			want: `{"schema":1,"changed":false,"check":false,"added":[],"removed":[]}`,
		},
		{
			args: "del NET1 ib mlx4_0 --json=1 --diff", rows: someRows()[:2],
			want: `{"schema":1,"changed":true,"check":false,"added":[],"removed":[` + mlx + `],` +
				`"diff":{"before":"add NET1 eth eth0\nadd NET1 ib mlx4_0 2\n","after":"add NET1 eth eth0\n"}}`,
		},
		{args: "del NET9 --json=1 --ignore-missing", want: `{"schema":1,"changed":false,"check":false,"added":[],"removed":[]}`},
		{args: "flush --json=1", want: `{"schema":1,"changed":false,"check":false,"added":[],"removed":[]}`},
		{
			args: "-f --json=1", rows: someRows()[:1],
			want: `{"schema":1,"changed":true,"check":false,"added":[],"removed":[` + eth0 + `]}`,
		},
		{
			args: "apply /dev/null --json=1 --check", rows: someRows()[:1],
			want: `{"schema":1,"changed":true,"check":true,"added":[],"removed":[` + eth0 + `]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			h := newHarness(t, tt.rows...)
			if status := h.run(t, strings.Fields(tt.args)...); status != cli.ExitOK {
				t.Errorf("exit status %d, error %q", status, &h.err)
			}
			present := newHarness(t, tt.rows...)
			present.run(t, strings.Fields(strings.Replace(tt.args, "--json=1", "--json", 1))...)
			jsontest.Check(t, present.out.Bytes())
			if !strings.HasPrefix(h.out.String(), "{\n  \"schema\": 1,") {
				t.Errorf("document begins with %.40q", &h.out)
			}
			var got, want any
			if err := errors.Join(json.Unmarshal(h.out.Bytes(), &got), json.Unmarshal([]byte(tt.want), &want)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStrangeNames checks that names with control characters are escaped.
func TestStrangeNames(t *testing.T) {
	h := newHarness(t, pnettest.Eth("N\xd6T", "\x1b[2J"), pnettest.Eth("NET1", "\xff\x1b"), pnettest.IB("NET1", "a\nb", 1))
	h.run(t, "show")
	if want := `N\xd6T \x1b[2J n/a 255` + "\n" + `NET1 \xff\x1b n/a 255` + "\n" + `NET1 n/a a\x0ab 1` + "\n"; h.out.String() != want {
		t.Errorf("show: %q, want %q", &h.out, want)
	}
	h.run(t, "del", "net1")
	if want := `deleted NET1 eth \xff\x1b` + "\n" + `deleted NET1 ib a\x0ab 1` + "\n"; h.out.String() != want {
		t.Errorf("del: %q, want %q", &h.out, want)
	}
	h = newHarness(t, pnettest.Eth("NET1", "\xff"))
	for _, h.terminal = range []bool{true, false} {
		want := "add NET1 eth \xff\n"
		if h.terminal {
			want = `add NET1 eth \xff` + "\n"
		}
		if h.run(t, "export"); h.out.String() != want {
			t.Errorf("export, terminal %v: %q, want %q", h.terminal, &h.out, want)
		}
	}
}

// TestRoundTrip applies what export prints.
func TestRoundTrip(t *testing.T) {
	h := newHarness(t, someRows()...)
	before := h.table(t)
	h.run(t, "export")
	h.in = h.out.String()
	h.run(t, "flush")
	if status := h.run(t, "apply", "-"); status != cli.ExitOK || h.table(t) != before {
		t.Errorf("status %d, error %q, table %q, was %q", status, &h.err, h.table(t), before)
	}
}

// TestWrongDevices runs on a system whose devices cannot be listed.
func TestWrongDevices(t *testing.T) {
	h := newHarness(t)
	h.sys.devices = brokenDevices{}
	h.expectFailure(t, cli.ExitFailure, "cannot find out which devices exist: input/output error; use --force", "add", "NET1", "eth", "eth0")
	if status := h.run(t, "add", "NET1", "eth", "eth0", "--force"); status != cli.ExitOK {
		t.Errorf("with --force: status %d, error %q", status, &h.err)
	}
}

type brokenDevices struct{ fakeDevices }

func (brokenDevices) Interfaces() ([]string, error) { return nil, syscall.EIO }
