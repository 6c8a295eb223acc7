// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// holdSockets opens n listening AF_SMC sockets until the test ends.
func holdSockets(t *testing.T, n int) {
	t.Helper()
	if os.Getenv("SMCKIT_LAB") == "" {
		t.Skip("needs AF_SMC: runs in the lab's guests")
	}
	limit := unix.Rlimit{Cur: uint64(n) + 100, Max: uint64(n) + 100}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	for range n {
		fd, err := unix.Socket(unix.AF_SMC, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if errors.Is(err, unix.EAFNOSUPPORT) {
			t.Skip("this kernel has no AF_SMC")
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			t.Fatal(err)
		}
		if err := unix.Listen(fd, 1); err != nil {
			t.Fatal(err)
		}
	}
}

// TestIntegrationMany lists 10,000 sockets of a real kernel with the installed command, and checks its peak memory usage.
func TestIntegrationMany(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes on an emulated processor")
	}
	const sockets, limitKiB = 10_000, 64 << 10
	holdSockets(t, sockets)
	for _, args := range [][]string{{"-a"}, {"-ap"}, {"-a", "--json", "-p", "-d"}, {"-s"}} {
		cmd := exec.Command("smcss", args...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("smcss %s: %v", args, err)
		}
		peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
		t.Logf("smcss %s: %d KiB at most, %v of processor time", args, peak,
			cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		if peak > limitKiB {
			t.Errorf("smcss %s: %d KiB at most, limit %d", args, peak, limitKiB)
		}
		switch args[0] {
		case "-s":
			if !bytes.HasPrefix(out, []byte("Sockets: 1000")) {
				t.Errorf("smcss %s: %.40s", args, out)
			}
		default:
			if n := countListed(t, out); n < sockets {
				t.Errorf("smcss %s: %d sockets listed of %d", args, n, sockets)
			}
		}
	}
}

// countListed counts the sockets in state LISTEN in a listing as text or JSON.
func countListed(t *testing.T, out []byte) int {
	t.Helper()
	if out[0] != '{' {
		return bytes.Count(out, []byte("\nLISTEN "))
	}
	var doc struct {
		Sockets []struct{ State string }
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range doc.Sockets {
		if s.State == "LISTEN" {
			n++
		}
	}
	return n
}
