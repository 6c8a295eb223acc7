// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// kernelMemory returns the bytes of kernel memory that a control group pays for.
func kernelMemory(group string) (int, error) { return statistic(group+"/memory.stat", "kernel") }

// cgroupWriter is a program that has made a connection in a control group, to a server that does not read, and has left the group. It says on
// out that it has written.
type cgroupWriter struct {
	group  string
	server int
	in     io.WriteCloser
	out    io.ReadCloser
}

// startWriter starts a program that connects in a new control group, and begins to write bytes when it reads a line.
func startWriter(t *testing.T, bytes int) *cgroupWriter {
	t.Helper()
	needRules(t)
	top := t.TempDir()
	if err := unix.Mount("none", top, "cgroup2", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(top, 0) })
	w := &cgroupWriter{group: top + "/writer"}
	if err := errors.Join(os.WriteFile(top+"/cgroup.subtree_control", []byte("+memory"), 0), os.Mkdir(w.group, 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Rmdir(w.group) })
	setRules(t, "smc port 6379")
	ours.Set(t, "net.smc.rmem", "262144") // DMBs of 1 MiB
	l, err := guest.Listen(service, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	// The test's context ends before its cleanups, and would have the program killed while the group has no memory.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "bash", "-c", "echo $$ >$0/cgroup.procs && exec 3<>/dev/tcp/127.0.0.1/6379 && "+
		fmt.Sprintf("echo $$ >$1/cgroup.procs && read && head -c %d /dev/zero >&3 && echo written && read", bytes), w.group, top)
	var err1, err2 error
	w.in, err1 = cmd.StdinPipe()
	w.out, err2 = cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.in.Close()
		_ = cmd.Wait()
	})
	if w.server, err = guest.Accept(l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(w.server) })
	return w
}

// begin has the program write.
func (w *cgroupWriter) begin() error {
	_, err := w.in.Write([]byte("\n"))
	return err
}

// written waits until the program has written all.
func (w *cgroupWriter) written() error {
	line := make([]byte, 8)
	if _, err := w.out.Read(line); err != nil || string(line) != "written\n" {
		return fmt.Errorf("%q, %w", line, err)
	}
	return nil
}

// TestMemoryCgroup has a program make a connection to a server that does not read, and write from another control group: the control group in
// which the connection was made pays for the pages.
func TestMemoryCgroup(t *testing.T) {
	const bytes = 900_000
	w := startWriter(t, bytes)
	before, err := kernelMemory(w.group)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.begin(), w.written()); err != nil {
		t.Fatal(err)
	}
	// The kernel adds up what each processor has counted from time to time.
	guest.Await(t, 20*time.Second, func() string {
		now, err := kernelMemory(w.group)
		if err != nil || now-before < bytes*9/10 {
			return fmt.Sprintf("the group pays for %d bytes, before it wrote %d for %d, %v", now, bytes, before, err)
		}
		return ""
	})
}

// TestMemoryCgroupFull leaves a control group less memory than data that is written to its connection. The writer waits for the reader, all
// bytes arrive, and the kernel kills nothing in the group.
func TestMemoryCgroupFull(t *testing.T) {
	const bytes, left = 3_000_000, 256 << 10
	w := startWriter(t, bytes)
	now, err := readNumber(w.group + "/memory.current")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(w.group+"/memory.max", []byte(strconv.Itoa(now+left)), 0), w.begin()); err != nil {
		t.Fatal(err)
	}
	// When the writer is killed, TCP wants memory for its FIN, for which the kernel would search the group.
	t.Cleanup(func() {
		if err := os.WriteFile(w.group+"/memory.max", []byte("max"), 0); err != nil {
			t.Error(err)
		}
	})
	guest.Await(t, 20*time.Second, func() string {
		n, err := statistic(w.group+"/memory.events", "max")
		if err != nil || n == 0 {
			return fmt.Sprintf("the group is not at its limit: %d, %v", n, err)
		}
		return ""
	})
	for done := 0; done < bytes; {
		got, err := guest.ReadFull(w.server, min(4096, bytes-done))
		if err != nil {
			t.Fatalf("after %d bytes: %v", done, err)
		}
		done += len(got)
	}
	if err := w.written(); err != nil {
		t.Error(err)
	}
	if n, err := statistic(w.group+"/memory.events", "oom_kill"); err != nil || n != 0 {
		t.Errorf("the kernel has killed %d processes of the group, %v", n, err)
	}
}

// readNumber returns the number that a file has.
func readNumber(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
