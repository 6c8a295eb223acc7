// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// run runs the command.
func (o *options) run(ctx context.Context) error {
	if o.watch == 0 {
		return o.list(ctx)
	}
	ticks, stop := o.deps.tick(o.watch)
	defer stop()
	for first := true; ; first = false {
		if err := o.separate(first); err != nil {
			return err
		}
		if err := o.list(ctx); err != nil {
			return err
		}
		if err := o.env.Flush(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks:
		}
	}
}

// separate begins a listing of --watch.
func (o *options) separate(first bool) error {
	var text string
	switch {
	case o.json:
	case o.env.Terminal:
		text = cli.ClearScreen
	case !first:
		text = "\n"
	}
	_, err := io.WriteString(o.env.Out, text)
	return err
}

// list prints one listing.
func (o *options) list(ctx context.Context) error {
	src, err := o.deps.open()
	if err != nil {
		return err
	}
	defer src.Close()

	var own owners
	if o.cols.processes {
		if own, err = o.findOwners(ctx, src); err != nil {
			return err
		}
	}
	if o.needsFacts() {
		tcp, err := o.deps.tcp()
		if err != nil && o.facts == nil {
			o.env.Note("warning: facts of TCP are missing: %v", err)
		}
		o.facts = o.facts.nextRound(o.deps.now(), tcp)
	}
	v := o.newView(own)
	begun := false
	begin := func() error {
		if begun {
			return nil
		}
		begun = true
		return v.begin()
	}
	interrupted, err := o.show(ctx, src, begin, v.socket)
	if err != nil {
		return err
	}
	if err := begin(); err != nil {
		return err
	}
	if interrupted {
		o.env.Note("warning: the list of sockets changed while it was read: some may be missing or listed twice")
	}
	return v.end(interrupted)
}

// show calls visit for each socket to list, in the order that --sort asks for. Only then it keeps them.
func (o *options) show(ctx context.Context, src source, begin func() error, visit func(*netlinksmc.Socket) error) (interrupted bool, err error) {
	if o.order.key == nil {
		return o.each(ctx, src, o.extensions(), begin, visit)
	}
	var list []item
	interrupted, err = o.each(ctx, src, o.extensions(), begin, func(s *netlinksmc.Socket) error {
		it := item{socket: *s}
		if o.order.key.facts {
			it.info = o.facts.info(s)
		}
		list = append(list, it)
		return nil
	})
	if err != nil {
		return interrupted, err
	}
	o.order.sort(list)
	for i := range list {
		if err := visit(&list[i].socket); err != nil {
			return interrupted, err
		}
	}
	return interrupted, nil
}

// needsFacts reports whether the facts of -i are shown, or sorted by.
func (o *options) needsFacts() bool { return o.info || o.order.key != nil && o.order.key.facts }

// findOwners looks up the processes of the sockets to list. It lists the sockets once only for their inodes: keeping all
// sockets, or the whole content of procfs, would need unlimited memory.
func (o *options) findOwners(ctx context.Context, src source) (owners, error) {
	var inodes []uint64
	_, err := o.each(ctx, src, 0, func() error { return nil }, func(s *netlinksmc.Socket) error {
		if s.Inode != 0 {
			inodes = append(inodes, s.Inode)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	own, err := scanProcesses(ctx, o.deps.proc, inodes)
	if err != nil {
		return nil, fmt.Errorf("--processes needs a procfs: %w", err)
	}
	return own, nil
}

// each calls visit for each socket to list, and begin once the kernel has sent the first socket of all, listed or not.
// It reports whether the list changed while it was read.
func (o *options) each(ctx context.Context, src source, ext netlinksmc.DiagExt, begin func() error,
	visit func(*netlinksmc.Socket) error,
) (interrupted bool, err error) {
	for s, err := range src.Sockets(ctx, ext) {
		if errors.Is(err, netlinksmc.ErrDumpInterrupted) {
			interrupted = true
			continue
		}
		if err != nil {
			return interrupted, err
		}
		if err := begin(); err != nil {
			return interrupted, err
		}
		if !o.selects(&s) {
			continue
		}
		if err := visit(&s); err != nil {
			return interrupted, err
		}
	}
	return interrupted, nil
}

// extensions returns the extensions to request from the kernel. JSON has no limit of columns, so --debug requests all of them
// for JSON.
func (o *options) extensions() netlinksmc.DiagExt {
	if o.summary {
		return 0
	}
	var ext netlinksmc.DiagExt
	if o.cols.debug || o.needsFacts() {
		ext |= netlinksmc.DiagConnInfo
	}
	if o.cols.smcr || o.json && o.cols.debug {
		ext |= netlinksmc.DiagLinkGroup
	}
	if o.cols.smcd || o.json && o.cols.debug {
		ext |= netlinksmc.DiagDMB
	}
	return ext
}

// selects reports whether s is to be listed.
func (o *options) selects(s *netlinksmc.Socket) bool {
	switch {
	case o.listening:
		if s.State != netlinksmc.StateListen {
			return false
		}
	case o.all, o.summary, len(o.filter.states) > 0:
	case s.State == netlinksmc.StateInit, s.State == netlinksmc.StateListen:
		return false
	}
	if o.cols.smcr && s.Mode != netlinksmc.ModeSMCR || o.cols.smcd && s.Mode != netlinksmc.ModeSMCD {
		return false
	}
	return o.filter.match(s)
}

func (o *options) newView(own owners) view {
	var at time.Time
	if o.watch != 0 {
		at = o.deps.now()
	}
	var info func(*netlinksmc.Socket) *jsonInfo
	if o.info {
		info = o.facts.info
	}
	switch {
	case o.summary:
		return newSummaryView(o, at)
	case o.json:
		return &jsonView{w: o.env.Out, cols: o.cols, owners: own, ifName: o.deps.ifName, reason: o.reason, as: o.env.JSON, info: info, time: at}
	default:
		return &textView{w: o.env.Out, cols: o.cols, owners: own, reason: o.reason, info: info}
	}
}

// reason returns a reason, with text and remedy if they are to be shown.
func (o *options) reason(r netlinksmc.Reason) jsondoc.Reason {
	if !o.cols.explain {
		return jsondoc.Reason{Code: r.String(), Name: r.Name()}
	}
	return o.env.Reason(r)
}
