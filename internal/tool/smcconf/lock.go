// SPDX-License-Identifier: Apache-2.0

package smcconf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// withLock calls f while no other smc_conf changes anything: at boot time a device may come while the service starts.
func (c *command) withLock(ctx context.Context, f func() error) error {
	file, err := os.OpenFile(c.sys.lock, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("changing the configuration is not permitted (%w): run as root", err)
	}
	if err != nil {
		return fmt.Errorf("cannot lock the configuration: %w", err)
	}
	locked := make(chan error, 1)
	go func() { locked <- unix.Flock(int(file.Fd()), unix.LOCK_EX) }()
	select {
	case err = <-locked:
	case <-ctx.Done():
		// Who waits for the lock cannot be called back, and needs the file until then: the number may be another's afterwards.
		go func() {
			<-locked
			file.Close()
		}()
		return fmt.Errorf("cannot lock %s: %w", c.sys.lock, ctx.Err())
	}
	// The lock goes with the file, also if this process is killed.
	defer file.Close()
	if err != nil {
		return fmt.Errorf("cannot lock %s: %w", c.sys.lock, err)
	}
	return f()
}
