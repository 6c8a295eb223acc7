// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Seeds of the two streams between a survivor and its victim.
const (
	ofSurvivor = 1000
	ofVictim   = 2000
)

// noticeTimeout limits the time in which a survivor must notice the death of its peer on a busy machine.
const noticeTimeout = 60 * time.Second

// victim is the program that is killed: it moves data both ways as fast as it can.
func victim(role string) int {
	if where, ok := strings.CutPrefix(role, "reconnects "); ok {
		if err := reconnectAsNobody(netip.MustParseAddrPort(where)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	fd, err := victimSocket(role)
	if err != nil {
		fmt.Fprintln(os.Stderr, "victim:", err)
		return 1
	}
	e, err := newEnd(fd, true, ofVictim, ofSurvivor, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, "victim:", err)
		return 1
	}
	var group errgroup.Group
	group.Go(func() error { return e.write(1<<40, always(writers["send"], 30_000)) })
	group.Go(func() error { return e.read(1<<40, always(readers["recv"], 20_000)) })
	fmt.Fprintln(os.Stderr, "victim:", group.Wait())
	return 1
}

// victimSocket opens the victim's end: a client's, a server's, or one that it has inherited.
func victimSocket(role string) (int, error) {
	kind, where, _ := strings.Cut(role, " ")
	if kind == "inherits" {
		return 3, nil
	}
	addr, err := netip.ParseAddrPort(where)
	if err != nil {
		return -1, err
	}
	if kind == "connects" {
		fmt.Println("ready")
		return connect(addr, 0)
	}
	l, err := listen(addr, 0)
	if err != nil {
		return -1, err
	}
	fmt.Println("ready")
	return guest.Accept(l)
}

// kinds of victims, in turn.
var kinds = []string{"inherits", "connects", "accepts"}

// killing is one round: a victim, its survivor, and the moment of the kill.
type killing struct {
	kind string
	addr netip.AddrPort
	// Kill the victim after the survivor has read this many bytes, or if it is less than 0, after a delay.
	after int64
	delay time.Duration
}

// newKilling chooses to kill the victim after less than 2^most bytes, or after some time.
func newKilling(i int, r *rand.Rand, most int) killing {
	m := killing{
		kind:  kinds[i%len(kinds)],
		addr:  netip.AddrPortFrom(here.Addr(), uint16(8000+i%4000)),
		after: -1,
	}
	if r.IntN(2) == 0 {
		m.after = r.Int64N(1 << (1 + r.IntN(most)))
	} else {
		m.delay = time.Duration(r.Int64N(int64(20 * time.Millisecond)))
	}
	return m
}

// start starts the victim, and returns once it is ready.
func (m killing) start(ctx context.Context, inherits int) (*exec.Cmd, error) {
	role := m.kind + " " + m.addr.String()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), "SMCKIT_VICTIM="+role, "GOMAXPROCS=2")
	if inherits >= 0 {
		cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(inherits), "smc")}
		err := cmd.Start()
		cmd.ExtraFiles[0].Close()
		return cmd, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		return cmd, fmt.Errorf("the victim says %q, %w", line, err)
	}
	return cmd, nil
}

// run kills a victim, and checks that the survivor has received no wrong data and notices the death.
func (m killing) run(ctx context.Context) error {
	l, inherited, fd, err := m.prepare()
	if err != nil {
		return err
	}
	if l >= 0 {
		defer unix.Close(l)
	}
	cmd, err := m.start(ctx, inherited)
	if cmd != nil && cmd.Process != nil {
		defer func() { _ = cmd.Process.Kill() }()
	}
	if err != nil {
		return err
	}
	reached := make(chan struct{})
	done := make(chan error, 1)
	go func() { done <- m.survive(l, fd, reached) }()
	if m.after >= 0 {
		select {
		case <-reached:
		case err := <-done:
			return fmt.Errorf("before the victim is killed: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("no %d bytes come: %w", m.after, ctx.Err())
		}
	} else {
		time.Sleep(m.delay) // this does not wait for a condition: it varies the moment
	}
	if err := cmd.Process.Signal(unix.SIGKILL); err != nil {
		return err
	}
	_ = cmd.Wait() // the error is that it was killed
	if l >= 0 {
		// A survivor in accept() whose victim has died before it was connected gets EINVAL.
		_ = unix.Shutdown(l, unix.SHUT_RDWR)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.New("the survivor has not noticed it")
	}
}

// prepare opens a listener, or both ends, before the victim starts. It returns -1 for those not needed.
func (m killing) prepare() (l, inherited, own int, err error) {
	l, inherited, own = -1, -1, -1
	if m.kind == "accepts" {
		return l, inherited, own, nil
	}
	if l, err = listen(m.addr, 0); err != nil || m.kind == "connects" {
		return l, inherited, own, err
	}
	defer unix.Close(l)
	a, err := connect(m.addr, 0)
	if err != nil {
		return -1, -1, -1, err
	}
	b, err := guest.Accept(l)
	if rand.IntN(2) == 0 {
		a, b = b, a
	}
	return -1, a, b, err
}

// survive moves data both ways until the victim is dead.
func (m killing) survive(l, fd int, reached chan struct{}) (err error) {
	switch m.kind {
	case "connects":
		fd, err = guest.Accept(l)
	case "accepts":
		fd, err = connect(m.addr, 0)
	}
	if err != nil {
		if m.after >= 0 {
			return err
		}
		return allowed(err, unix.ECONNRESET, unix.ECONNREFUSED, unix.EINVAL, unix.ECONNABORTED, unix.EPIPE)
	}
	e, err := newEnd(fd, rand.IntN(2) == 0, ofSurvivor, ofVictim, nil)
	if err != nil {
		return err
	}
	defer e.close()
	var group errgroup.Group
	group.Go(func() error {
		return allowed(e.write(1<<40, always(writers["send"], 25_000)), unix.EPIPE, unix.ECONNRESET)
	})
	group.Go(func() error {
		err := e.read(max(m.after, 1), always(readers["recv"], 10_000))
		if err == nil {
			close(reached)
			err = e.read(1<<40, always(readers["recv"], 30_000))
		}
		return allowed(err, io.EOF, unix.ECONNRESET)
	})
	return group.Wait()
}

// allowed returns nil if an error is one of these.
func allowed(err error, these ...error) error {
	for _, this := range these {
		if errors.Is(err, this) {
			return nil
		}
	}
	if err == nil {
		return errors.New("no error, and no end")
	}
	return err
}

// bystanders are connections that must not be disturbed. They transfer checked data until they are stopped.
type bystanders struct {
	all   []couple
	group errgroup.Group
	stop  chan struct{}
	moved []int64
}

func startBystanders(t *testing.T, n int) *bystanders {
	t.Helper()
	b := &bystanders{all: couples(t, n, 0, false), stop: make(chan struct{}), moved: make([]int64, n)}
	for i, c := range b.all {
		b.group.Go(func() error {
			for {
				select {
				case <-b.stop:
					return c.finish()
				default:
				}
				const part = 100_000
				if err := c.exchange(part, mixed(writers, uint64(i)), mixed(readers, uint64(i))); err != nil {
					return fmt.Errorf("bystander %d: %w", i, err)
				}
				b.moved[i] += part
			}
		})
	}
	return b
}

// TestKill kills processes in the middle of their transfers.
func TestKill(t *testing.T) {
	ours.Need(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	before := count(t)
	many, atOnce, most := 4, 3, 20
	if overR && guest.Checked(t) {
		many, atOnce, most = 1, 1, 16
	}
	b := startBystanders(t, many)
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range length(60, 200) {
		m := newKilling(i, r, most)
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), noticeTimeout)
			defer cancel()
			if err := m.run(ctx); err != nil {
				t.Errorf("%d: %+v: %v", i, m, err)
			}
			return nil
		})
	}
	_ = group.Wait()
	oneGroup(t, uint32(many))
	close(b.stop)
	if err := b.group.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("bystanders have moved %d bytes each way", b.moved)
	if now := count(t); now.fallbacks != before.fallbacks {
		t.Errorf("connections fell back: %+v became %+v", before, now)
	}
}

// oneGroup checks that the connections of victims and of bystanders were in one group.
func oneGroup(t *testing.T, many uint32) {
	t.Helper()
	c, err := netlinksmc.New()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if overR {
		// Each end has one of its own: those of clients, and those of servers.
		groups, err := c.LinkGroupsR(t.Context())
		if err != nil || len(groups) != 2 || groups[0].Conns < many || groups[1].Conns < many {
			t.Errorf("want two link groups, with the bystanders' connections: %+v, %v", groups, err)
		}
		return
	}
	groups, err := c.LinkGroupsD(t.Context())
	if err != nil || len(groups) != 1 || groups[0].Conns < 2*many {
		t.Errorf("want one link group, with the bystanders' connections: %+v, %v", groups, err)
	}
}
