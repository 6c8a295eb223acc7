// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// compileLoad compiles the load generator in load/. It is written in C because the Go runtime would
// take more time than the sockets.
func compileLoad(t testing.TB) (program string) {
	t.Helper()
	return lab.CompileC(t, "load", "-O2")
}

// outcome is the output of the load generator for one run: values by name.
type outcome map[string]float64

// Names of the values in every outcome of a job.
var (
	ofTraffic = []string{"rate", "cpu_us", "busy_us", "starved", "total"}
	ofIdle    = []string{"connected_kib", "used_kib"}
)

// parseOutcome parses the load generator's line, which must contain these names.
func parseOutcome(output string, names []string) (outcome, error) {
	line, ok := strings.CutSuffix(output, "\n")
	if !ok || strings.Contains(line, "\n") {
		return nil, fmt.Errorf("not one line: %q", output)
	}
	o := outcome{}
	for _, field := range strings.Fields(line) {
		name, value, ok := strings.Cut(field, "=")
		if name == "unit" {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("no number in %q: %q", field, output)
		}
		o[name] = n
	}
	for _, name := range names {
		if _, ok := o[name]; !ok {
			return nil, fmt.Errorf("no %s: %q", name, output)
		}
	}
	return o, nil
}

// TestParseOutcome checks that incomplete or wrong output is refused.
func TestParseOutcome(t *testing.T) {
	o, err := parseOutcome("unit=MB rate=1200.5 cpu_us=3.25 busy_us=4 starved=0 total=9\n", ofTraffic)
	if err != nil || o["rate"] != 1200.5 || o["cpu_us"] != 3.25 || o["busy_us"] != 4 || o["starved"] != 0 {
		t.Errorf("%v, %v", o, err)
	}
	for output, want := range map[string]string{
		"":                       "not one line",
		"rate=1":                 "not one line",
		"rate=1\nrate=2\n":       "not one line",
		"rate=fast\n":            `no number in "rate=fast"`,
		"rate\n":                 `no number in "rate"`,
		"rate=1 cpu_us=1\n":      "no busy_us",
		"connected_kib=6\n":      "no rate",
		"Segmentation fault\n":   "no number",
		"unit=connection\n":      "no rate",
		"rate=nan=1 cpu_us=-1\n": "no number",
	} {
		if _, err := parseOutcome(output, ofTraffic); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", output, err, want)
		}
	}
}

// TestLoad runs each job of the load generator once, over the transports that every machine has. It
// ignores the rates, which may be zero on a busy machine, but all connections must end.
func TestLoad(t *testing.T) {
	binary := compileLoad(t)
	for _, family := range []string{"unix", "tcp"} {
		for _, job := range []string{"rr", "stream", "connect", "idle"} {
			t.Run(family+"/"+job, func(t *testing.T) {
				w := workload{job: job, connections: 20}
				args := append(w.args(family), "--seconds", "0.2", "--warmup", "0.05")
				out, err := exec.CommandContext(t.Context(), binary, args...).Output()
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				if _, err := parseOutcome(string(out), w.names()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestLoadOfTwoHosts runs client and server as two programs, as on two hosts. The server uses an
// address of this process.
func TestLoadOfTwoHosts(t *testing.T) {
	binary := compileLoad(t)
	place := fmt.Sprintf("127.%d.%d.1:3141", 1+os.Getpid()>>8%254, os.Getpid()&0xff)
	for i, job := range []string{"rr", "stream", "connect"} {
		t.Run(job, func(t *testing.T) {
			// A server may run a moment longer than its client, and uses two ports.
			place := fmt.Sprint(place, 2*i)
			w := workload{job: job, connections: 20}
			args := append(w.args("tcp"), "--seconds", "0.2", "--warmup", "0.05")
			// The command returns when the server listens. The server ends with its client.
			if err := exec.CommandContext(t.Context(), binary, append(args, "--listen", place)...).Run(); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), binary, append(args, "--connect", place)...).Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if _, err := parseOutcome(string(out), w.names()); err != nil {
				t.Error(err)
			}
		})
	}
	out, err := exec.CommandContext(t.Context(), binary, "--family", "tcp", "--job", "rr", "--connect", place+"9").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Connection refused") {
		t.Errorf("without a server: %v\n%s", err, out)
	}
}

// TestLoadUsage checks the command lines that the load generator refuses.
func TestLoadUsage(t *testing.T) {
	binary := compileLoad(t)
	for _, c := range []struct {
		code int
		args string
	}{
		{2, ""},
		{2, "--family tcp"},
		{2, "--family ipx --job rr"},
		{2, "--family tcp --job sing"},
		{2, "--family tcp --job rr --connections 0"},
		{2, "--family tcp --job rr --seconds soon"},
		{2, "--family tcp --job rr more"},
		{2, "--family tcp --job rr --listen 127.0.0.1"},
		{2, "--family tcp --job rr --listen localhost:7000"},
		{2, "--family tcp --job rr --connect 127.0.0.1:65535"},
		{2, "--family unix --job rr --listen 127.0.0.1:7000"},
		{2, "--family tcp --job idle --connect 127.0.0.1:7000"},
		{2, "--frobnicate"},
		{0, "--help"},
	} {
		cmd := exec.CommandContext(t.Context(), binary, strings.Fields(c.args)...)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(string(out), "usage: load") {
			t.Errorf("%q: exit status %d\n%s", c.args, cmd.ProcessState.ExitCode(), out)
		}
	}
}
