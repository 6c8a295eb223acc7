// SPDX-License-Identifier: Apache-2.0

package smcmonitor

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// TestIntegrationFallback has a connection fall back on a real kernel, and checks that the command prints it at once and that nothing is
// left of its trace instance.
func TestIntegrationFallback(t *testing.T) {
	if os.Getenv("SMCKIT_LAB") == "" {
		t.Skip("needs AF_SMC and the tracer: runs in the lab's guests")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready := make(chan struct{})
	d := systemDeps()
	d.tick = func(time.Duration) (<-chan time.Time, func()) {
		close(ready)
		return nil, func() {} // so the event cannot come from a listing
	}
	tool := Tool
	tool.New = func(env *cli.Env) *cobra.Command { return newCommand(env, d) }
	out, in := io.Pipe()
	var errOut bytes.Buffer
	status := make(chan int)
	go func() {
		env := &cli.Env{In: strings.NewReader(""), Out: in, Err: &errOut, Getenv: os.Getenv}
		got := cli.Run(ctx, tool, env, []string{"--json", "fallback"})
		in.Close()
		status <- got
	}()
	select {
	case <-ready:
	case got := <-status:
		t.Fatalf("status %d: %s", got, errOut.String())
	}
	connectToTCP(t)
	var event eventJSON
	if err := json.NewDecoder(out).Decode(&event); err != nil {
		t.Fatal(err)
	}
	if event.Action != "tcp" || event.Reason == nil || event.Reason.Name != "PEER_NO_SMC" || event.Connections != 0 {
		t.Errorf("%+v", event)
	}
	cancel()
	if got := <-status; got != 130 || errOut.Len() > 0 {
		t.Errorf("status %d: %s", got, errOut.String())
	}
	if left, err := filepath.Glob("/sys/kernel/tracing/instances/smckit-*"); err != nil || left != nil {
		t.Errorf("left: %q, %v", left, err)
	}
}

// connectToTCP connects an AF_SMC socket to a listener of TCP.
func connectToTCP(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	fd, err := unix.Socket(unix.AF_SMC, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	to := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: l.Addr().(*net.TCPAddr).Port}
	if err := unix.Connect(fd, to); err != nil {
		t.Fatal(err)
	}
}
