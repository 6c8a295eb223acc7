// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/smckit/smckit/internal/fabric"
	"golang.org/x/sys/unix"
)

// AwaitFabric waits until what the server of the fabric knows of the members matches a condition.
func (lt *Test) AwaitFabric(what string, condition func(fabric.Status) bool) {
	lt.t.Helper()
	for end := time.Now().Add(Scale(20 * time.Second)); ; time.Sleep(10 * time.Millisecond) {
		s := lt.fabric.fabric.Status()
		if condition(s) {
			return
		}
		if time.Now().After(end) {
			lt.t.Fatalf("the fabric does not have %s: %+v", what, s)
		}
	}
}

// CrashWhileJoining starts the emulator of a host after Crash, and kills it when it has received a number of the messages by which the server
// of the fabric makes it a member.
func (lt *Test) CrashWhileJoining(host string, messages int) {
	lt.t.Helper()
	if err := lt.crashWhileJoining(lt.Host(host), messages); err != nil {
		lt.t.Fatalf("after %d messages: %v", messages, err)
	}
}

func (lt *Test) crashWhileJoining(h *Host, messages int) error {
	ctx, cancel := context.WithTimeout(lt.t.Context(), Scale(20*time.Second))
	defer cancel()
	if err := h.unplug(); err != nil {
		return err
	}
	r, err := newRelay(lt.fabric.socket(), filepath.Join(lt.fabric.dir, "relay"), messages)
	if err != nil {
		return err
	}
	defer r.listener.Close()
	lt.fabric.entrance = r.path
	defer func() { lt.fabric.entrance = lt.fabric.socket() }()
	initrd, err := initramfs(ctx, h.Kernel, bootModules, h.agent)
	if err != nil {
		return err
	}
	port, err := h.launch(initrd)
	if err != nil {
		return err
	}
	defer port.Close()
	select {
	case <-r.received:
	case err = <-r.ended:
	case <-h.machine.done:
		err = errors.New("the emulator has ended" + h.lastWords())
	case <-ctx.Done():
		err = ctx.Err()
	}
	h.machine.kill()
	if err != nil {
		return err
	}
	return <-r.ended
}

// relay stands between an emulator and the server of a fabric.
type relay struct {
	path     string
	server   string
	messages int
	listener *net.UnixListener
	// received is closed when the emulator has received the messages, and ended has the result when it has ended.
	received chan struct{}
	ended    chan error
}

// newRelay waits at a path for an emulator, and passes on a number of messages from the server at another one.
func newRelay(server, path string, messages int) (*relay, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	r := &relay{path: path, server: server, messages: messages, listener: l, received: make(chan struct{}), ended: make(chan error, 1)}
	go func() { r.ended <- r.run() }()
	return r, nil
}

func (r *relay) run() error {
	emulator, err := r.listener.AcceptUnix()
	if err != nil {
		return err
	}
	defer emulator.Close()
	server, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: r.server, Net: "unix"})
	if err != nil {
		return err
	}
	defer server.Close()
	for range r.messages {
		if err := pass(server, emulator); err != nil {
			return err
		}
	}
	if err := awaitEmpty(emulator); err != nil {
		return err
	}
	close(r.received)
	// Emulators send nothing: this waits for the end of this one.
	_, _ = emulator.Read(make([]byte, 1))
	return nil
}

// pass passes on a message, and its file if it has one.
func pass(from, to *net.UnixConn) error {
	b, oob := make([]byte, 8), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := from.ReadMsgUnix(b, oob)
	if err != nil {
		return err
	}
	_, _, err = to.WriteMsgUnix(b[:n], oob[:oobn], nil)
	messages, perr := unix.ParseSocketControlMessage(oob[:oobn])
	for i := range messages {
		fds, rerr := unix.ParseUnixRights(&messages[i])
		for _, fd := range fds {
			unix.Close(fd)
		}
		perr = errors.Join(perr, rerr)
	}
	return errors.Join(err, perr)
}

// awaitEmpty waits until the other end has received everything.
func awaitEmpty(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	for end := time.Now().Add(Scale(20 * time.Second)); ; time.Sleep(time.Millisecond) {
		var n int
		if cerr := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }); cerr != nil || err != nil {
			return errors.Join(cerr, err)
		}
		if n == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d bytes are not received: %w", n, os.ErrDeadlineExceeded)
		}
	}
}
