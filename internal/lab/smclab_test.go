// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outcome is the exit status and the output of a command.
type outcome struct {
	Code        int
	Out, Errors string
}

// smclab runs the command to its end.
func smclab(t *testing.T, stdin io.Reader, args ...string) outcome {
	t.Helper()
	dir, err := Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "smclab"), args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	err = cmd.Run()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func TestSmclabUsage(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"run"}, 2, "requires at least 1 arg"},
		{[]string{"library"}, 2, "accepts 1 arg"},
		{[]string{"library", "--arch", "arm64-16k", "/dir"}, 2, `--arch "arm64-16k": choose one of s390x, arm64`},
		{[]string{"run", "--kernel", "5.4", "--", "true"}, 2, strings.Join(Series(), ", ")},
		{[]string{"run", "--module", "theirs", "--", "true"}, 2, "stock, ours or none"},
		{[]string{"run", "--host", "c", "--hosts", "2", "--", "true"}, 2, `--host "c"`},
		{[]string{"run", "--hosts", "0", "--", "true"}, 2, "--hosts 0"},
		{[]string{"run", "--mem", "12", "--", "true"}, 2, "--mem 12"},
		{[]string{"run", "--nics", "9", "--", "true"}, 2, "--nics 9"},
		{[]string{"run", "--ism=3M", "--", "true"}, 2, "--ism: the size of a fabric is a power of two"},
		{[]string{"run", "--ism=64K", "--", "true"}, 2, "too little for 2 members"},
		{[]string{"run", "--ism=much", "--", "true"}, 2, `"much" is no size`},
		{[]string{"kernels", "5.4"}, 2, "5.4"},
		{[]string{"modules", "--kernel", "6.12,5.4"}, 2, strings.Join(AllSeries(), ", ")},
		{[]string{"modules", "6.12"}, 2, "6.12"},
		{[]string{"modules", "--arch", "s390"}, 2, "choose one of amd64, s390x, arm64, arm64-16k"},
		{[]string{"modules", "--arch", "s390x", "--kernel", DebugSeries}, 2, "from " + strings.Join(Series(), ", ") + ";"},
		{[]string{"modules", "--arch", "arm64-16k", "--kernel", "6.1"}, 2, `--kernel "6.1"`},
		{[]string{"run", "--arch", "arm", "--", "true"}, 2, `--arch "arm": choose one of amd64, s390x, arm64, arm64-16k`},
		{[]string{"run", "--arch", "arm64-16k", "--kernel", "6.1", "--", "true"}, 2, "for arm64-16k choose one of 6.12"},
		{[]string{"run", "--arch", "s390x", "--kernel", DebugSeries, "--", "true"}, 2, "for s390x choose one of " + strings.Join(Series(), ", ")},
		{[]string{"shell"}, 2, "arg"},
		{[]string{"shell", "b"}, 1, "no lab is up: start one with 'smclab up'"},
		{[]string{"frobnicate"}, 2, "frobnicate"},
	} {
		got := smclab(t, nil, tc.args...)
		if got.Code != tc.code || got.Out != "" || !strings.Contains(got.Errors, tc.says) || strings.Count(got.Errors, "\n") != 1 {
			t.Errorf("%q: %+v, want status %d and one line with %q", tc.args, got, tc.code, tc.says)
		}
	}
}

// TestSmclabNames checks what the Makefile takes the names of the newest kernel and of the debug kernel from.
func TestSmclabNames(t *testing.T) {
	want := outcome{0, strings.Join(Series(), "\n") + "\n" + Newest() + "-debug\n", ""}
	if diff := cmp.Diff(want, smclab(t, nil, "kernels", "--names")); diff != "" {
		t.Error(diff)
	}
}

func TestSmclabRun(t *testing.T) {
	Need(t)
	capture := filepath.Join(t.TempDir(), "wire.pcap")
	script := "cat; echo errors >&2; pwd; smcss --version >/dev/null || exit 99; exit 7"
	got := smclab(t, strings.NewReader("input\n"), "run", "-q", "--module", "none", "--nics", "2", "--capture", capture, "--", "sh", "-c", script)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(outcome{7, "input\n" + dir + "\n", "errors\n"}, got); diff != "" {
		t.Error(diff)
	}
	if st, err := os.Stat(capture); err != nil || st.Size() < 24 {
		t.Errorf("capture: %+v, %v", st, err)
	}
	without := names(func(s kernelSeries) bool { return !s.stock })
	got = smclab(t, nil, "run", "-q", "--kernel", without[0], "--", "true")
	if got.Code != 1 || !strings.Contains(got.Errors, "ships no AF_SMC module") {
		t.Errorf("a kernel without the module: %+v", got)
	}
}

// TestSmclabISM looks at a guest that shares a fabric with another one: its module is ours, without asking for it, and uses the device.
func TestSmclabISM(t *testing.T) {
	Need(t)
	script := `smc_rnics | grep -c ' D *fabric '; smcd device | grep -c 1110; echo $(smcr ueid show)
smc_chk --json | grep -o '"fabric-[a-z-]*"'; sysctl -n net.smc.loopback >/dev/null && echo ours`
	got := smclab(t, nil, "run", "--hosts", "2", "--ism=16M", "--kernel", Newest(), "--", "sh", "-c", script)
	if want := "1\n1\n" + UEID + "\nours\n"; got.Code != 0 || got.Out != want {
		t.Errorf("%+v, want %q", got, want)
	}
	if !strings.Contains(got.Errors, "booting 2 guests with kernel "+Newest()+", which share a fabric of 16M") {
		t.Errorf("progress: %s", got.Errors)
	}
}

// TestSmclabUp types commands into the first shell of `smclab up`. They open a shell on the second host with `smclab shell`,
// like a user with two terminals.
func TestSmclabUp(t *testing.T) {
	Need(t)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	dir, err := Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	up := exec.CommandContext(t.Context(), filepath.Join(dir, "smclab"), "up", "-q", "--kernel", "6.12")
	up.Stdin = in
	var errs bytes.Buffer
	up.Stderr = &errs
	out, err := up.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	ended := false
	defer func() {
		if !ended {
			_ = up.Process.Kill()
			_ = up.Wait()
		}
	}()
	say := func(line string) { _, _ = io.WriteString(feed, line+"\n") }
	say("hostname; smcr ueid show; echo ready")
	if got := readUntil(t, out, "ready\n"); !strings.HasPrefix(got, "a\n") || !strings.Contains(got, UEID) {
		t.Errorf("the first shell says %q, %s", got, errs.String())
	}
	pids := emulators(children(up.Process.Pid))
	if len(pids) != 2 {
		t.Errorf("emulators %v, want two", pids)
	}
	script := "hostname; ip -br -4 addr show eth0 | grep -o 10.0.0.2; rdma link show rxe0/1 | grep -o ACTIVE; exit 5\n"
	if diff := cmp.Diff(outcome{Code: 5, Out: "b\n10.0.0.2\nACTIVE\n"}, smclab(t, strings.NewReader(script), "shell", "b")); diff != "" {
		t.Error(diff)
	}
	if got := smclab(t, nil, "shell", "c"); got.Code != 1 || !strings.Contains(got.Errors, `no host "c"`) {
		t.Errorf("%+v", got)
	}
	if got := smclab(t, nil, "up"); got.Code != 1 || !strings.Contains(got.Errors, "a lab is up already") {
		t.Errorf("a second lab: %+v", got)
	}
	say("exit 3")
	err = up.Wait()
	ended = true
	if code := up.ProcessState.ExitCode(); code != 3 || errs.Len() != 0 {
		t.Errorf("status %d, %v, %s", code, err, errs.String())
	}
	waitEnd(t, pids)
	if got := smclab(t, nil, "shell", "b"); got.Code != 1 || !strings.Contains(got.Errors, "no lab is up") {
		t.Errorf("afterwards: %+v", got)
	}
}

// readUntil reads up to and including the wanted text.
func readUntil(t *testing.T, r io.Reader, mark string) string {
	t.Helper()
	var got []byte
	one := make([]byte, 1)
	for !strings.HasSuffix(string(got), mark) {
		if _, err := io.ReadFull(r, one); err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		got = append(got, one[0])
	}
	return string(got)
}
