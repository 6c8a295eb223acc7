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
	// Patience is how long the client waits for one answer; 10 s if zero. The whole test takes at most four times that.
	Patience time.Duration
	// Rounds is how many bytes go to and fro for the latency, one after the other; 200 if zero. Stream is how long data
	// is sent for the throughput; 1 s if zero.
	Rounds int
	Stream time.Duration
	// Inspect tells what carries the connection, function Inspect if nil.
	Inspect Inspector
	// TCP uses a socket of TCP, for tests and comparison.
	TCP bool
}

// attempt is a test under way. Its goroutine owns live until it has sent it.
type attempt struct {
	Client
	live Live
	done chan Live
	fd   atomic.Int64
	// stage is the failure that a test without end is to be called.
	stage atomic.Value
}

// Run makes the test. Whatever the peer does, it ends in time. What failed is in the result.
func (c Client) Run(ctx context.Context) Live {
	if c.Patience == 0 {
		c.Patience = 10 * time.Second
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
	timer := time.NewTimer(4 * c.Patience)
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
	// A module may hold on to a socket for ever. The process ends soon, and that with it.
	select {
	case live := <-a.done:
		live.Failure, live.Err = a.stage.Load().(Failure), err
		return live
	case <-time.After(c.Patience / 10):
		return Live{Target: c.Target, Failure: a.stage.Load().(Failure), Err: err}
	}
}

func (a *attempt) run(ctx context.Context) {
	a.live.Failure, a.live.Err = a.test(ctx)
	if f := a.live.Failure; !a.TCP && (f == FailTimeout || f == FailHandshake) {
		a.live.Failure, a.live.Err = blame(a.live.Err, a.tryTCP())
	}
	a.done <- a.live
}

// blame says what is at fault when connecting has failed: the handshake of SMC, if TCP gets there, or else what keeps TCP from
// it. Modules do not agree in what they call a failure of TCP.
func blame(smc, tcp error) (Failure, error) {
	if tcp == nil {
		return FailHandshake, smc
	}
	if f := connectFailure(tcp); f != FailHandshake {
		return f, tcp
	}
	return FailTimeout, tcp
}

// tryTCP says what keeps plain TCP from getting there; nil if it does.
func (a *attempt) tryTCP() error {
	fd, err := newSocket(false, a.Target.Addr())
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := setTimeout(fd, a.Patience/2); err != nil {
		return err
	}
	return connect(fd, a.Target, a.Patience/2)
}

func (a *attempt) test(ctx context.Context) (Failure, error) {
	fd, err := newSocket(!a.TCP, a.Target.Addr())
	if err != nil {
		return FailSocket, err
	}
	c := conn{fd}
	defer c.close()
	if err := setTimeout(fd, a.Patience); err != nil {
		return FailSocket, err
	}
	a.fd.Store(int64(fd))
	defer a.fd.Store(-1)
	if err := connect(fd, a.Target, a.Patience); err != nil {
		return connectFailure(err), err
	}
	a.stage.Store(FailSilent)
	a.live.Carrier, a.live.CarrierErr = a.Inspect(ctx, c.inode())
	if f, err := a.greet(c); f != NotFailed {
		return f, err
	}
	a.stage.Store(FailBroken)
	if f, err := a.pingPong(c); f != NotFailed {
		return f, err
	}
	return a.stream(c)
}

// connectFailure says what an error of connect means.
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

// ioFailure says what an error of reading or writing means, after the first answer.
func ioFailure(err error) Failure {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return FailSilent
	}
	return FailBroken
}

// greet finds out who is at the other end. One that says the same is an echo, which is as good.
func (a *attempt) greet(c conn) (Failure, error) {
	if _, err := io.WriteString(c, clientLine); err != nil {
		return ioFailure(err), err
	}
	line, err := readLine(c, time.Now().Add(a.Patience))
	switch {
	case line+"\n" == clientLine:
		return NotFailed, nil
	case err == nil, errors.Is(err, errLine):
	case line == "" && errors.Is(err, io.EOF):
		return FailStranger, errors.New("it ends the connection")
	case line == "":
		return ioFailure(err), err
	}
	h, ok := parseHello(line)
	if !ok {
		return FailStranger, fmt.Errorf("it says %q", line[:min(len(line), 40)])
	}
	a.live.Peer = h
	return NotFailed, nil
}

// pingPong measures the latency: the median, lest one interruption spoil it.
func (a *attempt) pingPong(c conn) (Failure, error) {
	var times []time.Duration
	b := make([]byte, 1)
	for begin := time.Now(); len(times) < a.Rounds && time.Since(begin) < a.Patience/2; {
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

// period is the length of the pattern that is streamed: a prime, so that no buffer's size hides a shift.
const period = 251

// chunk is how much is written or read at once.
const chunk = 64 << 10

// pattern holds what is streamed, from any position in its period.
var pattern = func() []byte {
	b := make([]byte, chunk+period)
	for i := range b {
		b[i] = byte(i % period)
	}
	return b
}()

// patternAt returns n bytes, at most a chunk, of what is streamed at a position.
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
	got, failure, err := a.receive(c, begin.Add(2*a.Patience))
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
