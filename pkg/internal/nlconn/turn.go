// SPDX-License-Identifier: Apache-2.0

package nlconn

import (
	"context"
	"time"
)

// deadliner is a connection whose reads and writes can be made to fail.
type deadliner interface {
	SetDeadline(t time.Time) error
}

// turns gives a connection to one request at a time. It is a mutex that a caller can stop waiting for.
type turns chan struct{}

func newTurns() turns { return make(turns, 1) }

// take waits until the connection is free. From then on conn fails as soon as ctx ends, until the caller calls done, which
// frees the connection. A connection without deadlines, such as those of package nltest, is not interrupted.
func (t turns) take(ctx context.Context, conn deadliner) (done func(), err error) {
	// If both the connection is free and the context has ended, select would choose at random.
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case t <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	stop := interruptOn(ctx, conn)
	return func() {
		stop()
		<-t
	}, nil
}

// interruptOn makes reads and writes of conn fail once ctx ends. The returned function stops that and leaves conn without
// a deadline.
func interruptOn(ctx context.Context, conn deadliner) (stop func()) {
	expired := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		_ = conn.SetDeadline(time.Unix(1, 0))
		close(expired)
	})
	return func() {
		if !cancel() {
			<-expired
			_ = conn.SetDeadline(time.Time{})
		}
	}
}

// contextError returns why ctx has ended, or err if it has not.
func contextError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
