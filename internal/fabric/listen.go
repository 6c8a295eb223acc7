// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fabric

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/smckit/smckit/internal/remedy"

	"golang.org/x/sys/unix"
)

// Permissions are those of a socket: which processes can connect.
type Permissions struct {
	// Mode has the bits of chmod().
	Mode fs.FileMode
	// UID and GID own the socket; -1 leaves those of the process.
	UID, GID int
}

// Listen returns the fabric's socket at a path. One that the Store has kept continues, if it is at this path. Else a socket that is
// there is removed, unless a program listens to it. The errors name the path.
func (f *Fabric) Listen(path string, p Permissions) (*net.UnixListener, error) {
	if l := f.keptListener(path); l != nil {
		// An earlier configuration may have given it to others.
		if p.UID < 0 {
			p.UID = os.Geteuid()
		}
		if p.GID < 0 {
			p.GID = os.Getegid()
		}
		if err := p.set(path); err != nil {
			l.Close()
			return nil, err
		}
		return l, nil
	}
	f.stored(f.cfg.Store.Remove(f.storeName("socket")))
	l, err := Listen(path, p)
	if err != nil {
		return nil, err
	}
	// Connections that come while the server restarts wait in the socket.
	l.SetUnlinkOnClose(f.cfg.Store == nil)
	f.stored(f.cfg.Store.AddConn(f.storeName("socket"), l))
	return l, nil
}

// RemoveSocket removes the socket of a fabric that is not served any more, if there is one. The errors are those of os.Remove.
func RemoveSocket(path string) error {
	if st, err := os.Lstat(path); err != nil || st.Mode().Type() != fs.ModeSocket {
		return nil
	}
	return os.Remove(path)
}

// keptListener returns the socket that the Store has kept, nil if there is none at the path.
func (f *Fabric) keptListener(path string) *net.UnixListener {
	if !f.kept.is {
		return nil
	}
	defer f.kept.close()
	if st, err := os.Lstat(path); err != nil || st.Mode().Type() != fs.ModeSocket {
		return nil
	}
	file, err := openFD(f.kept.fd, path)
	if err != nil {
		return nil
	}
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		return nil
	}
	if u, ok := l.(*net.UnixListener); ok && u.Addr().String() == path {
		u.SetUnlinkOnClose(false)
		return u
	}
	l.Close()
	return nil
}

// Listen returns a socket at a path, with permissions. A socket that is there is removed, unless a program listens to it. The errors name the path.
func Listen(path string, p Permissions) (*net.UnixListener, error) {
	switch st, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case st.Mode().Type() != fs.ModeSocket:
		return nil, remedy.Errorf("remove it", "%s exists and is not a socket", path)
	default:
		if err := removeStale(path); err != nil {
			return nil, err
		}
	}
	// The kernel gives the mode of the unbound socket to the path, so that no one can connect before the owner is right.
	noAccess := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if cerr := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0) }); cerr != nil {
			return cerr
		}
		return err
	}}
	l, err := noAccess.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen at %s: %w", path, errno(err))
	}
	if err := p.set(path); err != nil {
		l.Close()
		return nil, err
	}
	return l.(*net.UnixListener), nil
}

// removeStale removes a socket that no program listens to.
func removeStale(path string) error {
	if conn, err := net.DialTimeout("unix", path, time.Second); !errors.Is(err, syscall.ECONNREFUSED) {
		if err == nil {
			conn.Close()
		}
		return remedy.Errorf("stop it, or use another directory", "another program listens at %s", path)
	}
	return os.Remove(path)
}

// errno returns the error number within an error, if there is one: its text is shorter than the chain of packages net and os.
func errno(err error) error {
	var n syscall.Errno
	if errors.As(err, &n) {
		return n
	}
	return err
}

func (p Permissions) set(path string) error {
	if p.UID >= 0 || p.GID >= 0 {
		if err := os.Lchown(path, p.UID, p.GID); err != nil {
			return err
		}
	}
	return os.Chmod(path, p.Mode)
}
