// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcismd

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/fabric"
	"github.com/smckit/smckit/internal/fdstore"
	"github.com/smckit/smckit/internal/remedy"
	"golang.org/x/sync/errgroup"
)

// served is a fabric and its socket.
type served struct {
	*fabric.Fabric
	path     string
	listener *net.UnixListener
}

// server is a running smc_ismd.
type server struct {
	store   *fdstore.Store
	fabrics []served
	status  *net.UnixListener
	// log prints a line.
	log func(line string)
}

// run serves until ctx ends. That is no error, because a service has no other end.
func (c *command) run(ctx context.Context, o options) error {
	specs, err := c.specs(o)
	if err != nil {
		return err
	}
	if c.env.Getenv("NOTIFY_SOCKET") != "" {
		if err := c.checkStore(specs); err != nil {
			return err
		}
	}
	status := fabric.Permissions{UID: -1, GID: -1}
	if status.Mode, err = parseMode(o.statusMode); err != nil {
		return &cli.UsageError{Err: fmt.Errorf("--status-mode: %w", err)}
	}
	if o.statusGroup != "" {
		if status.GID, err = parseGroup(o.statusGroup); err != nil {
			return &cli.UsageError{Err: fmt.Errorf("--status-group: %w", err)}
		}
	}
	lock, err := lockDir(c.dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	s := &server{log: c.logger()}
	if s.store, err = c.sys.openStore(); err != nil {
		return err
	}
	defer s.store.Close()
	defer s.close()
	if err := s.open(c.dir, specs, status); err != nil {
		return err
	}
	if err := s.store.Notify("READY=1"); err != nil {
		return err
	}
	if c.sys.started != nil {
		c.sys.started()
	}
	return s.serve(ctx)
}

// logger returns a function that prints lines on standard error.
func (c *command) logger() func(line string) {
	var mu sync.Mutex
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		c.env.Note("%s", line)
	}
}

// lockDir makes the directory of the sockets, and keeps other servers out of it. The kernel releases the lock when this process ends.
func lockDir(dir string) (*flock.Flock, error) {
	if dir == "" {
		return nil, cli.Usagef("the name of the directory is empty")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, remedy.Errorf("give another one with --dir", "cannot make the directory of the sockets: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err == nil && ok {
		return lock, nil
	}
	lock.Close()
	if err != nil {
		return nil, remedy.Errorf("run as its owner, or give another one with --dir", "cannot lock the directory of the sockets: %w", err)
	}
	return nil, remedy.Errorf("stop it, or give another directory with --dir", "another smc_ismd serves %s", dir)
}

// open makes all fabrics and sockets.
func (s *server) open(dir string, specs []spec, status fabric.Permissions) error {
	for _, spec := range specs {
		spec.Log, spec.Store = s.log, s.store
		f, err := fabric.New(spec.Config)
		if err != nil {
			return err
		}
		s.fabrics = append(s.fabrics, served{Fabric: f, path: filepath.Join(dir, spec.Name+".sock")})
		last := &s.fabrics[len(s.fabrics)-1]
		if last.listener, err = f.Listen(last.path, spec.permissions); err != nil {
			return fmt.Errorf("fabric %q: %w", spec.Name, err)
		}
	}
	reported := map[string]bool{}
	for _, name := range s.store.Discard() {
		if name, _, _ = strings.Cut(name, "/"); !reported[name] {
			s.log(fmt.Sprintf("fabric %s: it is not configured any more: its members go on among themselves", name))
			reported[name] = true
			// Clients that connect would wait for ever.
			if err := fabric.RemoveSocket(filepath.Join(dir, name+".sock")); err != nil {
				s.log(fmt.Sprintf("fabric %s: cannot remove its socket: %v", name, err))
			}
		}
	}
	var err error
	s.status, err = fabric.Listen(filepath.Join(dir, statusName), status)
	return err
}

// close ends what open has made.
func (s *server) close() {
	for _, f := range s.fabrics {
		if f.listener != nil {
			f.listener.Close()
		}
		_ = f.Close()
	}
	if s.status != nil {
		s.status.Close()
	}
}

// serve serves until ctx ends, or a socket fails. The end of ctx is no error.
func (s *server) serve(ctx context.Context) error {
	group, gctx := errgroup.WithContext(ctx)
	for _, f := range s.fabrics {
		group.Go(func() error { return f.Serve(gctx, f.listener) })
	}
	group.Go(func() error { return s.serveStatus(gctx) })
	err := group.Wait()
	_ = s.store.Notify("STOPPING=1")
	return err
}
