// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fabric

import (
	"encoding/binary"
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// member is a guest's QEMU that is connected.
type member struct {
	number int
	conn   *net.UnixConn
	// pid is that of the process which connected, 0 if the server cannot see it.
	pid   int
	since time.Time
	// welcomed is closed when there is nothing more to send.
	welcomed chan struct{}

	// expelled is set when the server does not serve the member any more, but its connection, and so its guest, still exist. Protected by
	// Fabric.mu.
	expelled bool
	// marked is set while the Store keeps the file that says that the member is joining. Protected by Fabric.mu.
	marked bool
	// suspect is set when the directory has this member as one that is removed, although the server serves it. Protected by Fabric.mu.
	suspect bool
}

// newMember makes a member of a connection, which has no number yet.
func newMember(conn *net.UnixConn) (*member, error) {
	pid, err := peerPID(conn)
	if err != nil {
		return nil, err
	}
	// The kernel makes it the least that there can be, a few messages: files in messages that no one reads count for all fabrics together,
	// and whether a client reads is seen only if the rest has no room.
	if err := conn.SetWriteBuffer(1); err != nil {
		return nil, err
	}
	return &member{conn: conn, since: time.Now(), pid: pid, welcomed: make(chan struct{})}, nil
}

func peerPID(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil {
		err = cerr
	}
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

// message is a number that a client is sent, and perhaps a file.
type message struct {
	number int64
	fd     int // -1: none
}

// send sends messages, until a deadline. It returns how many the client has, or will have.
func (m *member) send(messages []message, deadline time.Time) (sent int, err error) {
	if err := m.conn.SetWriteDeadline(deadline); err != nil {
		return 0, err
	}
	for i, msg := range messages {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(msg.number))
		var rights []byte
		if msg.fd >= 0 {
			rights = unix.UnixRights(msg.fd)
		}
		n, _, err := m.conn.WriteMsgUnix(b[:], rights, nil)
		if err == nil && n != len(b) {
			err = errors.New("the socket took a part of a message")
		}
		if err != nil {
			return i, err
		}
	}
	return len(messages), nil
}
