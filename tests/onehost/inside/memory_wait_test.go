// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// leastMemory is what the smallest buffer can always have.
const leastMemory = 16 << 10

// sendAll writes from a client until its connection takes no more, without waiting, and returns the bytes.
func (c *conns) sendAll(i int) (sent int, err error) {
	for {
		n, err := unix.SendmsgN(c.clients[i], pattern(sent, 4096), nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if errors.Is(err, unix.EAGAIN) {
			return sent, nil
		}
		if err != nil {
			return sent, fmt.Errorf("connection %d: %w", i, err)
		}
		sent += n
	}
}

// readAll reads n bytes at a server, of which pattern has the first at an offset, and checks them.
func (c *conns) readAll(i, offset, n int) error {
	for done := 0; done < n; {
		got, err := guest.ReadFull(c.servers[i], min(4096, n-done))
		if err != nil || !bytes.Equal(got, pattern(offset+done, len(got))) {
			return fmt.Errorf("connection %d: wrong bytes at %d of %d, %w", i, offset+done, n, err)
		}
		done += len(got)
	}
	return nil
}

// pattern returns bytes of a stream in which no two places look alike.
func pattern(offset, n int) []byte {
	out := make([]byte, 0, n+8)
	for at := offset &^ 7; len(out) < n+offset&7; at += 8 {
		out = fmt.Appendf(out, "%08x", at)
	}
	return out[offset&7:][:n]
}

// ready returns which of the events a socket has now.
func ready(fd int, events int16) (int16, error) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	_, err := unix.Poll(fds, 0)
	return fds[0].Revents & events, err
}

// TestMemoryWaits has a connection fill up all of a ceiling. Another one goes on with what each connection can always have: its writer waits,
// its reader is woken for less than it asked for, and all bytes arrive.
func TestMemoryWaits(t *testing.T) {
	ours.Need(t)
	needD(t)
	if err := inNewNamespace(func() error { return waitForMemory(t) }); err != nil {
		t.Error(err)
	}
	if err := isGone(t); err != nil {
		t.Error(err)
	}
}

func waitForMemory(t *testing.T) error {
	const limit = 256 << 10
	var all conns
	defer all.close()
	if err := errors.Join(all.add(2), setSMC("max_memory_kbytes", limit>>10)); err != nil {
		return err
	}
	first, err := all.sendAll(0)
	if err != nil {
		return err
	}
	second, err := all.sendAll(1)
	if err != nil {
		return err
	}
	m, err := readMemory()
	if err != nil {
		return err
	}
	// Three of the four DMBs have what they can always have. A page has the CDC message, besides data.
	if p := m.Namespace; p.Peak != limit || p.Reserved != limit || first < limit-4*leastMemory || first > limit-3*leastMemory {
		return fmt.Errorf("%d bytes are under way of %+v", first, p)
	}
	if second > leastMemory || second < leastMemory-4096 {
		return fmt.Errorf("the second connection took %d bytes", second)
	}
	if err := readerIsWoken(&all); err != nil {
		return err
	}
	if err := all.stream(1, second, 1<<20); err != nil {
		return err
	}
	if err := all.readAll(0, 0, first); err != nil {
		return err
	}
	return laterMemory(t, &all)
}

// laterMemory has the writer of one connection find out that another one has given memory back, though nobody reads what it has written.
func laterMemory(t *testing.T, all *conns) error {
	first, err1 := all.sendAll(0)
	_, err2 := all.sendAll(1)
	if err := errors.Join(err1, err2, all.readAll(0, 0, first)); err != nil {
		return err
	}
	guest.Await(t, 20*time.Second, func() string {
		if writable, err := ready(all.clients[1], unix.POLLOUT); writable == 0 || err != nil {
			return fmt.Sprintf("events of the writer: %#x, %v", writable, err)
		}
		return ""
	})
	return nil
}

// readerIsWoken checks that the reader of a connection that waits for memory need not wait for more data than there is, and that its writer does
// not find room before that is read.
func readerIsWoken(all *conns) error {
	client, server := all.clients[1], all.servers[1]
	if err := unix.SetsockoptInt(server, unix.SOL_SOCKET, unix.SO_RCVLOWAT, leastMemory*2); err != nil {
		return err
	}
	defer unix.SetsockoptInt(server, unix.SOL_SOCKET, unix.SO_RCVLOWAT, 1)
	readable, err1 := ready(server, unix.POLLIN)
	writable, err2 := ready(client, unix.POLLOUT)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if readable == 0 || writable != 0 {
		return fmt.Errorf("events of the reader: %#x, of the writer: %#x", readable, writable)
	}
	return nil
}

// stream writes n bytes by a client while its server reads them, behind the bytes that are there already.
func (c *conns) stream(i, there, n int) error {
	var g errgroup.Group
	g.Go(func() error { return guest.WriteAll(c.clients[i], pattern(there, n)) })
	g.Go(func() error { return c.readAll(i, 0, there+n) })
	return g.Wait()
}

// TestPressure comes in a guest with little memory, of which it takes all but some more than TCP may have for data. Then connections are filled
// up whose buffers could take more than that. Nothing is killed, over TCP and over SMC-D, and by SMC-D all bytes arrive. With TCP that would
// take minutes, as it drops segments for which there is no memory.
func TestPressure(t *testing.T) {
	ours.Need(t)
	needD(t)
	if guest.Checked(t) {
		t.Skip("guests with the debug kernel have more memory")
	}
	settled(t)
	const n, spare = 400, 32 << 20
	guest.RaiseFiles(t, 2*n+1000)
	limit, err := tcpLimit()
	if err != nil {
		t.Fatal(err)
	}
	available, err := statistic("/proc/meminfo", "MemAvailable:")
	if err != nil {
		t.Fatal(err)
	}
	taken, err := unix.Mmap(-1, 0, available<<10-limit-spare, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(taken) }()
	guest.Run(t, "smc_policy off")
	err = fillUp(t, n, func(*conns, []int) error { return nil })
	guest.Run(t, "smc_policy on")
	if err != nil {
		t.Errorf("TCP: %v", err)
	}
	err = fillUp(t, n, func(all *conns, sent []int) error {
		m, err := readMemory()
		if err != nil {
			return err
		}
		t.Logf("TCP may have %d; %+v", limit, *m.Host)
		if m.Host.Peak > uint64(limit) || m.Host.Peak < uint64(limit/10*9) {
			t.Errorf("SMC had %d bytes, where TCP may have %d", m.Host.Peak, limit)
		}
		for i, n := range sent {
			if err := all.readAll(i, 0, n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("SMC-D: %v", err)
	}
}

// fillUp fills up connections, and goes on with what was sent by each. The kernel must kill nothing meanwhile.
func fillUp(t *testing.T, n int, then func(all *conns, sent []int) error) error {
	before, err := statistic("/proc/vmstat", "oom_kill")
	if err != nil {
		return err
	}
	var all conns
	defer all.close()
	if err := all.add(n); err != nil {
		return err
	}
	sent, total := make([]int, n), 0
	for i := range n {
		if sent[i], err = all.sendAll(i); err != nil {
			return err
		}
		total += sent[i]
	}
	t.Logf("%d bytes are under way", total)
	if err := then(&all, sent); err != nil {
		return err
	}
	after, err := statistic("/proc/vmstat", "oom_kill")
	if err == nil && after != before {
		err = fmt.Errorf("the kernel has killed %d processes", after-before)
	}
	return err
}

// tcpLimit returns the bytes that TCP may have for data, which is the ceiling of the host by default.
func tcpLimit() (int, error) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/tcp_mem")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	pages, err := strconv.Atoi(fields[len(fields)-1])
	return pages * os.Getpagesize(), err
}

// statistic returns the first number of a line.
func statistic(file, name string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			return strconv.Atoi(fields[1])
		}
	}
	return 0, fmt.Errorf("%s has no line %s", file, name)
}
