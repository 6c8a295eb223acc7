// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// period is a prime, so that a stream shifted by pages, rings or chunks always differs.
const period = 1<<20 - 3

// table contains two periods of noise. A stream repeats this noise from its own offset on. So each byte depends on its position
// in the stream, and lost, duplicated or swapped data is detected by comparing memory, which is fast.
var table = func() []byte {
	b := make([]byte, 2*period)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b[:period])
	copy(b[period:], b[:period])
	return b
}()

// noise is at most n bytes of a stream.
func noise(seed, pos int64, n int) []byte {
	at := int((seed + pos) % period)
	return table[at : at+min(n, period)]
}

// same checks bytes that have been read.
func same(got []byte, seed, pos int64) error {
	for at := 0; at < len(got); {
		want := noise(seed, pos+int64(at), len(got)-at)
		if !bytes.Equal(got[at:at+len(want)], want) {
			i := 0
			for got[at+i] == want[i] {
				i++
			}
			return fmt.Errorf("byte %d of the stream is wrong (read began at %d): %s", pos+int64(at+i), pos, whereIs(got[at+i:], seed))
		}
		at += len(want)
	}
	return nil
}

// whereIs finds the position in the stream to which misplaced bytes belong.
func whereIs(got []byte, seed int64) string {
	if len(got) < 8 {
		return fmt.Sprintf("%x", got)
	}
	i := bytes.Index(table, got[:8])
	if i < 0 {
		return fmt.Sprintf("%x is nowhere in it", got[:8])
	}
	return fmt.Sprintf("it is the one at %d (modulo %d)", (int64(i)-seed+2*period)%period, period)
}

// stream is one direction of a connection, and its position.
type stream struct{ seed, pos int64 }

// end is one end of a connection.
type end struct {
	f       *os.File
	raw     rawConn
	out, in stream
	buf     []byte
	// For splice and sendfile: pipes from and to the socket, and the table as a file.
	from, to [2]int
	file     *os.File
}

type rawConn interface {
	Read(func(fd uintptr) bool) error
	Write(func(fd uintptr) bool) error
}

// newEnd makes an end from a socket. A non-blocking end waits with epoll.
func newEnd(fd int, blocking bool, out, in int64, file *os.File) (*end, error) {
	if err := unix.SetNonblock(fd, !blocking); err != nil {
		return nil, err
	}
	e := &end{f: os.NewFile(uintptr(fd), "smc"), out: stream{out, 0}, in: stream{in, 0}, file: file}
	raw, err := e.f.SyscallConn()
	if err != nil {
		return nil, err
	}
	e.raw = raw
	return e, errors.Join(unix.Pipe2(e.from[:], unix.O_CLOEXEC), unix.Pipe2(e.to[:], unix.O_CLOEXEC))
}

func (e *end) close() {
	e.f.Close()
	for _, fd := range []int{e.from[0], e.from[1], e.to[0], e.to[1]} {
		unix.Close(fd)
	}
}

// call makes a system call on the socket until it neither is interrupted nor would block.
func call(wait func(func(uintptr) bool) error, do func(fd int) (int, error)) (n int, err error) {
	werr := wait(func(fd uintptr) bool {
		n, err = do(int(fd))
		for errors.Is(err, unix.EINTR) {
			n, err = do(int(fd))
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	return n, errors.Join(err, werr)
}

// writer is a way to write at most n bytes. It returns the number of bytes written.
type writer func(e *end, n int) (int, error)

// reader is a way to read and check at most n bytes. It returns the number of bytes, and io.EOF at the end.
type reader func(e *end, n int) (int, error)

var (
	writers = map[string]writer{
		"send": send(0), "more": send(unix.MSG_MORE), "writev": writev, "sendfile": sendfile, "splice": spliceTo, "corked": corked,
	}
	readers = map[string]reader{
		"recv": recv(0), "waitall": recv(unix.MSG_WAITALL), "peek": peek, "readv": readv, "splice": spliceFrom,
	}
)

func (e *end) noise(n int) []byte { return noise(e.out.seed, e.out.pos, n) }

func send(flags int) writer {
	return func(e *end, n int) (int, error) {
		data := e.noise(n)
		return call(e.raw.Write, func(fd int) (int, error) {
			return unix.SendmsgN(fd, data, nil, nil, flags|unix.MSG_NOSIGNAL)
		})
	}
}

func writev(e *end, n int) (int, error) {
	data := e.noise(n)
	parts := [][]byte{data[:len(data)/3], data[len(data)/3 : len(data)/2], data[len(data)/2:]}
	return call(e.raw.Write, func(fd int) (int, error) { return unix.Writev(fd, parts) })
}

// sendfile sends from a file in memory with the content of the table.
func sendfile(e *end, n int) (int, error) {
	at := (e.out.seed + e.out.pos) % period
	return call(e.raw.Write, func(fd int) (int, error) {
		offset := at
		return unix.Sendfile(fd, int(e.file.Fd()), &offset, min(n, period))
	})
}

// spliceTo writes data into a pipe, and sends all of it.
func spliceTo(e *end, n int) (int, error) {
	n, err := unix.Write(e.to[1], e.noise(min(n, 1<<16)))
	done := 0
	for err == nil && done < n {
		var m int
		m, err = call(e.raw.Write, func(fd int) (int, error) {
			m, err := unix.Splice(e.to[0], nil, fd, nil, n-done, 0)
			return int(m), err
		})
		done += max(m, 0)
	}
	return done, err
}

// corked writes three times while the socket is corked.
func corked(e *end, n int) (done int, err error) {
	cork := func(on int) error {
		_, err := call(e.raw.Write, func(fd int) (int, error) {
			return 0, unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_CORK, on)
		})
		return err
	}
	err = cork(1)
	for _, part := range []int{n / 3, n / 3, n - 2*(n/3)} {
		if err != nil || part == 0 {
			continue
		}
		var m int
		data := noise(e.out.seed, e.out.pos+int64(done), part)
		m, err = call(e.raw.Write, func(fd int) (int, error) { return unix.SendmsgN(fd, data, nil, nil, unix.MSG_NOSIGNAL) })
		if done += max(m, 0); m != part {
			break
		}
	}
	return done, errors.Join(err, cork(0))
}

// room returns a buffer of n bytes.
func (e *end) room(n int) []byte {
	if len(e.buf) < n {
		e.buf = make([]byte, n)
	}
	return e.buf[:n]
}

// check checks the bytes that have been read.
func (e *end) check(got []byte) error {
	if len(got) == 0 {
		return io.EOF
	}
	return same(got, e.in.seed, e.in.pos)
}

func recv(flags int) reader {
	return func(e *end, n int) (int, error) {
		buf := e.room(n)
		m, err := call(e.raw.Read, func(fd int) (int, error) {
			m, _, err := unix.Recvfrom(fd, buf, flags)
			return m, err
		})
		if err != nil {
			return 0, err
		}
		return m, e.check(buf[:m])
	}
}

func readv(e *end, n int) (int, error) {
	buf := e.room(n)
	parts := [][]byte{buf[:n/2], buf[n/2:]}
	m, err := call(e.raw.Read, func(fd int) (int, error) { return unix.Readv(fd, parts) })
	if err != nil {
		return 0, err
	}
	return m, e.check(buf[:m])
}

// peek peeks at data, then reads it, and checks that both are the same.
func peek(e *end, n int) (int, error) {
	m, err := recv(unix.MSG_PEEK)(e, n)
	if err != nil {
		return 0, err
	}
	return recv(0)(e, m)
}

// spliceFrom receives data through a pipe.
func spliceFrom(e *end, n int) (int, error) {
	m, err := call(e.raw.Read, func(fd int) (int, error) {
		m, err := unix.Splice(fd, nil, e.from[1], nil, min(n, 1<<16), 0)
		return int(m), err
	})
	if err != nil || m == 0 {
		return 0, errors.Join(err, io.EOF)
	}
	buf := e.room(m)
	for done := 0; done < m; {
		k, err := unix.Read(e.from[0], buf[done:])
		if err != nil {
			return 0, fmt.Errorf("pipe: %w", err)
		}
		done += k
	}
	return m, e.check(buf)
}

// write writes total bytes, in the chunks and ways that next returns.
func (e *end) write(total int64, next func() (writer, int)) error {
	for target := e.out.pos + total; e.out.pos < target; {
		w, n := next()
		m, err := w(e, int(min(int64(n), target-e.out.pos)))
		e.out.pos += int64(max(m, 0))
		if err != nil {
			return fmt.Errorf("writing at %d: %w", e.out.pos, err)
		}
	}
	return nil
}

// read reads total bytes, in the chunks and ways that next returns.
func (e *end) read(total int64, next func() (reader, int)) error {
	for target := e.in.pos + total; e.in.pos < target; {
		r, n := next()
		m, err := r(e, int(min(int64(n), target-e.in.pos)))
		if err != nil {
			return fmt.Errorf("reading at %d: %w", e.in.pos, err)
		}
		e.in.pos += int64(m)
	}
	return nil
}

// couple is a connection.
type couple [2]*end

// newCouple makes a couple from two sockets.
func newCouple(client, server int, blocking bool, id int64, file *os.File) (couple, error) {
	a, aerr := newEnd(client, blocking, 2*id*7919, (2*id+1)*7919, file)
	b, berr := newEnd(server, blocking, (2*id+1)*7919, 2*id*7919, file)
	return couple{a, b}, errors.Join(aerr, berr)
}

func (c couple) close() {
	c[0].close()
	c[1].close()
}

// exchange moves total bytes both ways at once.
func (c couple) exchange(total int64, w func() (writer, int), r func() (reader, int)) error {
	var group errgroup.Group
	for _, e := range c {
		group.Go(func() error { return e.write(total, w) })
		group.Go(func() error { return e.read(total, r) })
	}
	return group.Wait()
}

// finish closes both ends for writing and checks that neither has more to read.
func (c couple) finish() error {
	var all error
	for _, e := range c {
		_, err := call(e.raw.Write, func(fd int) (int, error) { return 0, unix.Shutdown(fd, unix.SHUT_WR) })
		all = errors.Join(all, err)
	}
	for _, e := range c {
		if n, err := recv(0)(e, 1000); err != io.EOF {
			all = errors.Join(all, fmt.Errorf("at the end: %d bytes, %w", n, err))
		}
	}
	return all
}

// tableFile returns the table as a file in memory, which is longer than each transfer.
func tableFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("noise", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "noise")
	_, err = f.Write(table)
	return f, err
}
