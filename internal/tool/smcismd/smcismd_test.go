// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcismd

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/fdstore"
	"github.com/smckit/smckit/internal/golden"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/jsondoc/jsontest"
	"github.com/spf13/cobra"
)

// result is what a command has printed, and its exit status.
type result struct {
	status      int
	out, stderr string
}

// run runs a command until it ends, or ctx.
func run(ctx context.Context, sys system, in string, args ...string) result {
	if sys.openStore == nil {
		sys.openStore = func() (*fdstore.Store, error) { return nil, nil }
	}
	var out, stderr bytes.Buffer
	env := &cli.Env{In: strings.NewReader(in), Out: &out, Err: &stderr, Getenv: func(string) string { return "" }}
	tool := cli.Tool{Name: toolName, New: func(env *cli.Env) *cobra.Command { return newRoot(env, sys) }}
	status := cli.Run(ctx, tool, env, args)
	return result{status, out.String(), stderr.String()}
}

// serve starts a server. stop ends it, and returns its result.
func serve(t *testing.T, sys system, args ...string) (stop func() result) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	sys.started = func() { close(started) }
	ended := make(chan result, 1)
	go func() { ended <- run(ctx, sys, "", args...) }()
	select {
	case <-started:
	case r := <-ended:
		t.Fatalf("it does not start: %+v", r)
	}
	stop = sync.OnceValue(func() result {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { stop() })
	return stop
}

// dial makes a member of a fabric, and waits until it has its number.
func dial(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestServeAndList(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ism.conf")
	if err := os.WriteFile(file, []byte("# Fabrics\n\nred:2G,members=2,chid=0xff11 # a pair\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "run")
	stop := serve(t, system{}, "--fabric", "blue:16M,mode=0600", "--config", file, "--dir", dir)
	dial(t, filepath.Join(dir, "blue.sock"))

	r := run(t.Context(), system{}, "", "list", "--dir", dir)
	got := regexp.MustCompile(`[0-9a-f]{16}`).ReplaceAllString(r.out, "0123456789abcdef")
	got = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`).ReplaceAllString(got, "2026-11-27 05:00:00")
	got = regexp.MustCompile(`unused  n/a   \d+ +n`).ReplaceAllString(got, "unused  n/a   1234  n")
	got = strings.Replace(got, "Host  PID      ", "Host  PID   ", 1)
	got = regexp.MustCompile(`PID +GID`).ReplaceAllString(got, "PID   GID")
	golden.Check(t, "testdata/list.txt", got)
	if r.status != 0 || r.stderr != "" {
		t.Errorf("%+v", r)
	}

	r = run(t.Context(), system{}, "", "list", "--json", "--dir", dir)
	var doc listJSON
	jsontest.Check(t, []byte(r.out))
	if err := jsondoc.Decode([]byte(r.out), &doc); err != nil || len(doc.Fabrics) != 2 {
		t.Fatalf("%v: %+v", err, r)
	}
	blue, red := doc.Fabrics[0], doc.Fabrics[1]
	if blue.Name != "blue" || blue.Limit != 8 || len(blue.Members) != 1 || blue.Members[0].PID != os.Getpid() || blue.Members[0].State != "unused" {
		t.Errorf("%+v", blue)
	}
	if red.CHID != "ff11" || red.Limit != 2 || red.Size != 2<<30 || red.Socket != filepath.Join(dir, "red.sock") || red.Members == nil {
		t.Errorf("%+v", red)
	}
	for path, mode := range map[string]fs.FileMode{"blue.sock": 0o600, "red.sock": 0o660, "status": 0o600} {
		if st, err := os.Lstat(filepath.Join(dir, path)); err != nil || st.Mode() != mode|fs.ModeSocket {
			t.Errorf("%s: %v, %v", path, st, err)
		}
	}

	r = run(t.Context(), system{}, "", "--fabric", "green:16M", "--dir", dir)
	if want := "smc_ismd: another smc_ismd serves " + dir + ": stop it, or give another directory with --dir\n"; r.status != 1 || r.stderr != want {
		t.Errorf("a second server: %+v", r)
	}

	r = stop()
	if !strings.Contains(r.stderr, "smc_ismd: fabric blue: member 0 joined, PID ") || r.status != 0 {
		t.Errorf("%+v", r)
	}
	for _, path := range []string{"blue.sock", "red.sock", "status"} {
		if _, err := os.Lstat(filepath.Join(dir, path)); !os.IsNotExist(err) {
			t.Errorf("%s still exists: %v", path, err)
		}
	}
	r = run(t.Context(), system{}, "", "list", "--dir", dir)
	if want := "smc_ismd: no smc_ismd serves " + dir + ": start it, or give the directory of its sockets with --dir\n"; r.status != 1 || r.stderr != want {
		t.Errorf("no server: %+v", r)
	}
}

// TestStale checks that a server starts after one that was killed.
func TestStale(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"blue.sock", "status"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	serve(t, system{}, "--fabric", "blue:16M", "--dir", dir)
	dial(t, filepath.Join(dir, "blue.sock"))
}

// TestRestart checks that a fabric that is not configured any more is given back to the service manager.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	notify := filepath.Join(dir, "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	ready := make(chan struct{})
	removed := make(chan string, 100)
	go func() {
		b := make([]byte, 4096)
		for {
			n, _, _, _, err := manager.ReadMsgUnix(b, nil)
			if err != nil {
				return
			}
			switch state := string(b[:n]); {
			case state == "READY=1":
				close(ready)
			case strings.HasPrefix(state, "FDSTOREREMOVE=1"):
				removed <- state
			}
		}
	}()
	store := func() (*fdstore.Store, error) {
		kept := map[string]int{}
		for _, name := range []string{"old/vector/0/0", "old/vector/0/1"} {
			p, err := os.Open(os.DevNull)
			if err != nil {
				return nil, err
			}
			defer p.Close()
			if kept[name], err = dup(p); err != nil {
				return nil, err
			}
		}
		return fdstore.Dial(notify, kept)
	}
	old := filepath.Join(dir, "old.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: old, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	stop := serve(t, system{openStore: store}, "--fabric", "blue:16M", "--dir", dir)
	<-ready
	if _, err := os.Lstat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket of the fabric that is not configured any more: %v", err)
	}
	for _, want := range []string{"blue/socket", "old/vector/0/0", "old/vector/0/1"} {
		if got := <-removed; got != "FDSTOREREMOVE=1\nFDNAME="+want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if r := stop(); strings.Count(r.stderr, "fabric old: it is not configured any more: its members go on among themselves") != 1 {
		t.Errorf("%+v", r)
	}
	// Clients that connect while the service restarts wait.
	if _, err := os.Lstat(filepath.Join(dir, "blue.sock")); err != nil {
		t.Error(err)
	}
}

func TestFailures(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args, in string
		status   int
		want     string
	}{
		{"", "", 2, "there is no fabric to serve: name one with --fabric, or a file with --config; see 'smc_ismd --help'"},
		{"--config -", "# none\n", 1, "standard input has no fabric: add a line such as blue:256M"},
		{"--config -", "blue:16M\nred\n", 1, `standard input:2: fabric "red" has no size: write NAME:SIZE, such as blue:256M`},
		{"--config -", "blue:16M red:16M\n", 1, "standard input:1: more than one word: write NAME:SIZE and options without blanks"},
		{"--config " + file + ".missing", "", 1, "cannot read the fabrics: open " + file + ".missing: no such file or directory"},
		{"-f blue:16M -f blue:32M", "", 2, `fabric "blue" is named twice; see 'smc_ismd --help'`},
		{"-f blue:16M --config -", "red:16M\nblue:16M\n", 1, `standard input:2: fabric "blue" is named twice`},
		{"-f blue:1M", "", 2, `fabric "blue": 1M is too little for 8 members: they need at least 16M; see 'smc_ismd --help'`},
		{"-f blue:16M --dir " + file, "", 1, "cannot make the directory of the sockets: mkdir " + file + ": not a directory: give another one with --dir"},
		{"-f blue:16M --dir=", "", 2, "the name of the directory is empty; see 'smc_ismd --help'"},
		{"-f blue:16M --status-mode 8", "", 2, `--status-mode: "8" is no mode: write it in octal, such as 0660; see 'smc_ismd --help'`},
		{"-f blue:16M --status-group no-such-group", "", 2, `--status-group: there is no group "no-such-group": give the number or the name of one that exists; see 'smc_ismd --help'`},
		{"-f blue:16M extra", "", 2, `unknown command "extra" for "smc_ismd"; see 'smc_ismd --help'`},
		{"check " + file, "", 1, file + " has no fabric: add a line such as blue:256M"},
		{"check " + file + ".missing", "", 1, "cannot read the fabrics: open " + file + ".missing: no such file or directory"},
		{"check -", "blue:16M\n\nred:24M # no power of two\n", 1, `standard input:3: fabric "red": the size of a fabric is a power of two, as that of a PCI device's memory: 24M is not`},
		{"check -", "blue:16M\nred:16M\nblue:32M\n", 1, `standard input:3: fabric "blue" is named twice`},
		{"check - --dir x", "blue:16M", 2, "unknown flag: --dir; see 'smc_ismd check --help'"},
		{"check a b", "", 2, "accepts at most 1 arg(s), received 2; see 'smc_ismd check --help'"},
		{"list extra", "", 2, `unknown command "extra" for "smc_ismd list"; see 'smc_ismd list --help'`},
	} {
		r := run(t.Context(), system{}, tc.in, strings.Fields(tc.args)...)
		if r.status != tc.status || r.stderr != "smc_ismd: "+tc.want+"\n" || r.out != "" {
			t.Errorf("%s: %+v, want %d: %s", tc.args, r, tc.status, tc.want)
		}
	}
}

// TestCheck checks a file without mistakes, which is not served.
func TestCheck(t *testing.T) {
	if r := run(t.Context(), system{}, "blue:256M,group=0\n", "check", "-"); r.status != 0 || r.out+r.stderr != "" {
		t.Errorf("%+v", r)
	}
	if r := run(t.Context(), system{}, "", "check", ""); r.status != 2 {
		t.Errorf("%+v", r)
	}
}

// TestOpenFails checks that a server that cannot serve all fabrics leaves nothing behind.
func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "red.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t.Context(), system{}, "", "-f", "blue:16M", "-f", "red:16M", "--dir", dir)
	if want := `smc_ismd: fabric "red": ` + filepath.Join(dir, "red.sock") + " exists and is not a socket: remove it\n"; r.status != 1 || r.stderr != want {
		t.Errorf("%+v", r)
	}
	if _, err := os.Lstat(filepath.Join(dir, "blue.sock")); !os.IsNotExist(err) {
		t.Errorf("the socket of the first fabric is there: %v", err)
	}
}

// TestBadStatus checks that list survives a server that is none.
func TestBadStatus(t *testing.T) {
	for answer, want := range map[string]string{
		"":               "does not describe itself: EOF: try again",
		"{":              "does not describe itself: unexpected EOF: try again",
		"nonsense":       "does not describe itself: invalid character",
		`{"schema": 3}`:  "has another version: restart it",
		`{"schema": "1"`: "does not describe itself",
	} {
		dir := t.TempDir()
		l, err := net.Listen("unix", filepath.Join(dir, "status"))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := l.Accept()
			if err == nil {
				_, _ = conn.Write([]byte(answer))
				conn.Close()
			}
		}()
		if r := run(t.Context(), system{}, "", "list", "--dir", dir); r.status != 1 || !strings.Contains(r.stderr, want) || r.out != "" {
			t.Errorf("%q: %+v, want %q", answer, r, want)
		}
		l.Close()
	}
}

func TestPermission(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root has access to all files")
	}
	dir := t.TempDir()
	serve(t, system{}, "-f", "blue:16M", "--dir", dir, "--status-mode", "0")
	r := run(t.Context(), system{}, "", "list", "--dir", dir)
	if want := "smc_ismd: you have no access to " + dir + "/status: run as root, or start smc_ismd with --status-mode and --status-group\n"; r.stderr != want {
		t.Errorf("%+v", r)
	}
}

// TestHelp compares the help of every command with a golden file.
func TestHelp(t *testing.T) {
	for _, name := range []string{"", "check", "list"} {
		r := run(t.Context(), system{}, "", append(strings.Fields(name), "--help")...)
		golden.Check(t, "testdata/"+strings.TrimSuffix("help-"+name, "-")+".txt", r.out)
	}
}

var errTest = errors.New("of a test")

// TestStoreFails checks that a service manager that is not there is an error.
func TestStoreFails(t *testing.T) {
	sys := system{openStore: func() (*fdstore.Store, error) { return nil, errTest }}
	if r := run(t.Context(), sys, "", "-f", "blue:16M", "--dir", t.TempDir()); r.status != 1 || r.stderr != "smc_ismd: of a test\n" {
		t.Errorf("%+v", r)
	}
}
