// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Client makes a connection to a server and measures it.
type Client struct {
	// Target is the server.
	Target netip.AddrPort
	// Timeout limits the wait for one answer; 0 means 10 s. The whole test takes at most four times as long.
	Timeout time.Duration
	// Rounds is the number of bytes that go to the server and back, one after the other, to measure the latency; 0 means 200.
	// Stream is how long the client sends data to measure the throughput; 0 means 1 s.
	Rounds int
	Stream time.Duration
	// Inspect finds out the transport of the connection; nil means the function Inspect.
	Inspect Inspector
	// TCP makes the client use a TCP socket, for tests and comparison.
	TCP bool
}

// attempt is a running test. Its goroutine owns live until it sends it on done.
type attempt struct {
	Client
	live Live
	done chan Live
	fd   atomic.Int64
	// stage is the Failure to report if the test does not end in time.
	stage atomic.Value
}

// Run runs the test. It ends in time whatever the peer does. The result contains the failure, if any.
func (c Client) Run(ctx context.Context) Live {
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Rounds == 0 {
		c.Rounds = 200
	}
	if c.Stream == 0 {
		c.Stream = time.Second
	}
	if c.Inspect == nil {
		c.Inspect = Inspect
	}
	a := &attempt{Client: c, live: Live{Target: c.Target}, done: make(chan Live, 1)}
	a.fd.Store(-1)
	a.stage.Store(FailTimeout)
	go a.run(ctx)
	timer := time.NewTimer(4 * c.Timeout)
	defer timer.Stop()
	var err error
	select {
	case live := <-a.done:
		return live
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = os.ErrDeadlineExceeded
	}
	if fd := a.fd.Load(); fd >= 0 {
		conn{int(fd)}.wake()
	}
	// A faulty module may block the goroutine for ever. Give it up: the process ends soon.
	select {
	case live := <-a.done:
		live.Failure, live.Err = a.stage.Load().(Failure), err
		return live
	case <-time.After(c.Timeout / 10):
		return Live{Target: c.Target, Failure: a.stage.Load().(Failure), Err: err}
	}
}

func (a *attempt) run(ctx context.Context) {
	a.live.Failure, a.live.Err = a.test(ctx)
	if f := a.live.Failure; !a.TCP && (f == FailTimeout || f == FailHandshake) {
		a.live.Failure, a.live.Err = classifyConnect(a.live.Err, a.tryTCP())
	}
	a.done <- a.live
}

// classifyConnect finds the cause if connecting has failed: the SMC handshake if plain TCP connects, or else the error of TCP. It
// does not rely on the error of the SMC socket, because modules report failures of TCP differently.
func classifyConnect(smc, tcp error) (Failure, error) {
	if tcp == nil {
		return FailHandshake, smc
	}
	if f := connectFailure(tcp); f != FailHandshake {
		return f, tcp
	}
	return FailTimeout, tcp
}

// tryTCP connects with plain TCP and returns the error.
func (a *attempt) tryTCP() error {
	fd, err := newSocket(false, a.Target.Addr())
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := setTimeout(fd, a.Timeout/2); err != nil {
		return err
	}
	return connect(fd, a.Target, a.Timeout/2)
}

func (a *attempt) test(ctx context.Context) (Failure, error) {
	fd, err := newSocket(!a.TCP, a.Target.Addr())
	if err != nil {
		return FailSocket, err
	}
	c := conn{fd}
	defer c.close()
	if err := setTimeout(fd, a.Timeout); err != nil {
		return FailSocket, err
	}
	a.fd.Store(int64(fd))
	defer a.fd.Store(-1)
	if err := connect(fd, a.Target, a.Timeout); err != nil {
		return connectFailure(err), err
	}
	a.stage.Store(FailSilent)
	a.live.Transport, a.live.TransportErr = a.Inspect(ctx, c.inode())
	if f, err := a.greet(c); f != NotFailed {
		return f, err
	}
	a.stage.Store(FailBroken)
	if f, err := a.pingPong(c); f != NotFailed {
		return f, err
	}
	return a.stream(c)
}

// connectFailure classifies an error of connect.
func connectFailure(err error) Failure {
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return FailRefused
	case errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EADDRNOTAVAIL),
		errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.ENETDOWN), errors.Is(err, unix.EINVAL):
		return FailUnreachable
	case errors.Is(err, unix.ETIMEDOUT), errors.Is(err, unix.EINPROGRESS), errors.Is(err, unix.EAGAIN):
		return FailTimeout
	}
	return FailHandshake
}

// ioFailure classifies an error of reading or writing.
func ioFailure(err error) Failure {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return FailSilent
	}
	return FailBroken
}

// greet sends the client's line and reads the answer of the server. An echo server, which returns the same line, is accepted,
// too.
func (a *attempt) greet(c conn) (Failure, error) {
	if _, err := io.WriteString(c, clientLine); err != nil {
		return ioFailure(err), err
	}
	line, err := readLine(c, time.Now().Add(a.Timeout))
	switch {
	case line+"\n" == clientLine:
		return NotFailed, nil
	case err == nil, errors.Is(err, errLine):
	case line == "" && errors.Is(err, io.EOF):
		return FailStranger, errors.New("it closed the connection")
	case line == "":
		return ioFailure(err), err
	}
	h, ok := parseHello(line)
	if !ok {
		return FailStranger, fmt.Errorf("it answered %q", line[:min(len(line), 40)])
	}
	a.live.Peer = h
	return NotFailed, nil
}

// pingPong measures the latency. It uses the median, which a single interruption does not change.
func (a *attempt) pingPong(c conn) (Failure, error) {
	var times []time.Duration
	b := make([]byte, 1)
	for begin := time.Now(); len(times) < a.Rounds && time.Since(begin) < a.Timeout/2; {
		start := time.Now()
		want := byte(len(times))
		b[0] = want
		if _, err := c.Write(b); err != nil {
			return ioFailure(err), err
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return ioFailure(err), err
		}
		if b[0] != want {
			return FailCorrupt, fmt.Errorf("byte %d of the stream", len(times))
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	a.live.Latency = times[len(times)/2]
	return NotFailed, nil
}

// period is the length of the pattern in the stream. It is a prime, so that data shifted by the size of a buffer differ.
const period = 251

// chunk is the size of each read and write.
const chunk = 64 << 10

// pattern contains a chunk of the stream from any position in its period.
var pattern = func() []byte {
	b := make([]byte, chunk+period)
	for i := range b {
		b[i] = byte(i % period)
	}
	return b
}()

// patternAt returns n bytes, at most a chunk, of the stream from a position on.
func patternAt(at int64, n int) []byte {
	begin := int(at % period)
	return pattern[begin : begin+n]
}

// stream measures the throughput. Another goroutine sends, so that neither end waits for the other to read.
func (a *attempt) stream(c conn) (Failure, error) {
	begin := time.Now()
	type sent struct {
		bytes int64
		err   error
	}
	sending := make(chan sent, 1)
	go func() {
		var s sent
		for s.err == nil && (s.bytes == 0 || time.Since(begin) < a.Stream) {
			var n int
			n, s.err = c.Write(patternAt(s.bytes, chunk))
			s.bytes += int64(n)
		}
		if s.err == nil {
			s.err = c.finish()
		}
		sending <- s
	}()
	got, failure, err := a.receive(c, begin.Add(2*a.Timeout))
	if failure != NotFailed {
		c.wake()
	}
	s := <-sending
	switch {
	case failure != NotFailed:
		return failure, err
	case s.err != nil:
		return ioFailure(s.err), s.err
	case got != s.bytes:
		return FailBroken, fmt.Errorf("%d of %d bytes came back", got, s.bytes)
	}
	a.live.Throughput = float64(got) / time.Since(begin).Seconds()
	return NotFailed, nil
}

// receive reads the pattern up to the end of the stream.
func (a *attempt) receive(c conn, until time.Time) (int64, Failure, error) {
	var got int64
	b := make([]byte, chunk)
	for time.Now().Before(until) {
		n, err := c.Read(b)
		if !bytes.Equal(b[:n], patternAt(got, n)) {
			return got, FailCorrupt, fmt.Errorf("within %d bytes from byte %d of the stream", n, got)
		}
		got += int64(n)
		if errors.Is(err, io.EOF) {
			return got, NotFailed, nil
		}
		if err != nil {
			return got, ioFailure(err), err
		}
	}
	return got, FailSilent, os.ErrDeadlineExceeded
}
