// SPDX-License-Identifier: Apache-2.0

// Package smcrd is the command tree of smcr and smcd, which share their code.
package smcrd

import (
	"context"
	"errors"
	"io"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/statdoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcstats"
	"github.com/spf13/cobra"
)

// ToolR is the command smcr.
var ToolR = newTool(techR)

// ToolD is the command smcd.
var ToolD = newTool(techD)

// tech is the technology of a command, SMC-R or SMC-D.
type tech int

const (
	techR tech = iota
	techD
)

// name returns the name of the command.
func (t tech) name() string {
	if t == techD {
		return "smcd"
	}
	return "smcr"
}

// label returns the technology's name in running text.
func (t tech) label() string {
	if t == techD {
		return "SMC-D"
	}
	return "SMC-R"
}

func newTool(t tech) cli.Tool {
	return cli.Tool{
		Name:    t.name(),
		New:     func(env *cli.Env) *cobra.Command { return newRoot(t, env, systemDeps(t, env)) },
		Rewrite: grammar(t).rewrite,
		Long:    incumbentOptions,
	}
}

// client has the commands' requests to the kernel; *netlinksmc.Client implements it.
type client interface {
	io.Closer
	smcstats.Source
	SystemInfo(context.Context) (*netlinksmc.SystemInfo, error)
	LinkGroupsR(context.Context) ([]netlinksmc.LinkGroupR, error)
	LinkGroupsRWithLinks(context.Context) ([]netlinksmc.LinkGroupR, error)
	LinkGroupsD(context.Context) ([]netlinksmc.LinkGroupD, error)
	DeleteLinkGroupR(ctx context.Context, id uint32) error
	DeleteLinkGroupD(ctx context.Context, id uint32) error
	DeleteLink(ctx context.Context, group uint32, link uint8) error
	DevicesR(context.Context) ([]netlinksmc.Device, error)
	DevicesD(context.Context) ([]netlinksmc.Device, error)
	UEIDs(context.Context) ([]string, error)
	AddUEID(ctx context.Context, eid string) error
	RemoveUEID(ctx context.Context, eid string) error
	FlushUEIDs(context.Context) error
	SEID(context.Context) (*netlinksmc.SEID, error)
	SetSEID(ctx context.Context, enabled bool) error
	HandshakeLimitation(context.Context) (bool, error)
	SetHandshakeLimitation(ctx context.Context, enabled bool) error
}

// baselines keeps the values at the last reset; *smcstats.Store implements it.
type baselines interface {
	Reduce(cur *smcstats.Snapshot) smcstats.Reading
	Reset(ctx context.Context, cur *smcstats.Snapshot) error
}

// deps has the functions that the commands use to access the system. Commands use them only after the command line has been
// parsed.
type deps struct {
	open func(context.Context) (client, error)
	// ifname returns the name of an interface in the process's network namespace, "" if there is none.
	ifname func(index uint32) string
	// initialNetNS reports whether the process's network namespace is the initial one.
	initialNetNS func() bool
	baselines    func() (baselines, error)
	// loopback is the file of the setting net.smc.loopback.
	loopback string
	watch    cli.Watch
}

func systemDeps(t tech, env *cli.Env) deps {
	return deps{
		open:         func(ctx context.Context) (client, error) { return netlinksmc.NewContext(ctx) },
		ifname:       cli.InterfaceName,
		initialNetNS: smcstats.InInitialNetNS,
		baselines:    func() (baselines, error) { return statdoc.OpenBaseline(env.Getenv) },
		loopback:     loopbackFile,
	}
}

// options are the options that all objects share.
type options struct {
	tech tech
	env  *cli.Env
	deps
	absolute bool
	details  int
	json     bool
}

// withClient runs f with an open client.
func (o *options) withClient(ctx context.Context, f func(c client) error) error {
	c, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

// show prints a listing once, or repeatedly with --watch.
func (o *options) show(ctx context.Context, list func(ctx context.Context, c client) error) error {
	return o.withClient(ctx, func(c client) error {
		return o.watch.List(ctx, o.env, o.json, func() error { return list(ctx, c) })
	})
}

// writeJSON prints a document.
func (o *options) writeJSON(doc any) error { return o.watch.WriteJSON(o.env, doc) }

// complete separates warnings from failures. A list that changed while it was read can be shown; afterwards the command returns
// warn, which warns that the list may be wrong.
func complete(err error) (warn, fail error) {
	if errors.Is(err, netlinksmc.ErrDumpInterrupted) {
		return err, nil
	}
	return nil, err
}
