// SPDX-License-Identifier: Apache-2.0

package smcconf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/smckit/smckit/internal/remedy"

	"github.com/gofrs/flock"
)

// lockPoll is the time between two attempts to take the lock.
const lockPoll = 50 * time.Millisecond

// withLock calls f while no other smc_conf changes anything: at boot time, udev may run one for a new device while the service
// starts another. withLock removes the lock file afterwards.
func (c *command) withLock(ctx context.Context, f func() error) error {
	lock, err := takeLock(ctx, c.sys.lock)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return remedy.Errorf("run as root", "changing the configuration is not permitted (%w)", err)
	case err != nil:
		return fmt.Errorf("cannot lock the configuration: %w", err)
	}
	// Remove the file before unlocking it: a process that locks a file that still has its name has the lock.
	defer lock.Close()
	defer os.Remove(c.sys.lock)
	return f()
}

// takeLock locks the file at path. The kernel releases the lock when this process ends, even if it is killed.
func takeLock(ctx context.Context, path string) (*flock.Flock, error) {
	for {
		lock := flock.New(path, flock.SetPermissions(0o600))
		if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		// The previous owner may have removed the file meanwhile. Then others lock a new file.
		ours, err := lock.Stat()
		if err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		if current, err := os.Stat(path); err == nil && os.SameFile(ours, current) {
			return lock, nil
		}
		if err := lock.Close(); err != nil {
			return nil, err
		}
	}
}
