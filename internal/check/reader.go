// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/catalogue"
	"github.com/smckit/smckit/internal/rootdir"
	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/smckit/smckit/pkg/smcstats"
	"golang.org/x/sys/unix"
)

// Reader collects the facts of a host. The zero Reader reads those of this one, in the network namespace of the process.
type Reader struct {
	// Root is the root directory of the files to read. Sockets are always those of this host.
	Root rootdir.Dir
}

// Read collects all facts. It adds a line to Snapshot.Unknown for each fact that it cannot read. The error is that of the
// context.
//
// The attempts to make sockets and to use netlink families make the kernel load the module, like any program that uses SMC.
// Read changes nothing else on the host.
func (r Reader) Read(ctx context.Context) (*Snapshot, error) {
	s := &Snapshot{}
	s.Sockets = readSockets()
	r.readControl(ctx, s)
	host := catalogue.Read(r.Root)
	s.Kernel, s.Module, s.Setup = host.Kernel, host.Module, host.Setup
	s.Settings = r.readSettings()
	s.Namespace = readNamespace(s)
	readInterfaces(s)
	r.readDevices(ctx, s)
	r.readRules(s)
	return s, ctx.Err()
}

// unknown records a fact that could not be read.
func (s *Snapshot) unknown(what string, err error) {
	s.Unknown = append(s.Unknown, fmt.Sprintf("%s: %v", what, err))
}

// Protocols of AF_SMC sockets, and the protocol SMC of AF_INET sockets.
const (
	protoSMC     = 0
	protoSMC6    = 1
	protoInetSMC = 256
)

func readSockets() Sockets {
	try := func(family, proto int) error {
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, proto)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
	return Sockets{
		IPv4:    try(unix.AF_SMC, protoSMC),
		IPv6:    try(unix.AF_SMC, protoSMC6),
		IPProto: try(unix.AF_INET, protoInetSMC),
	}
}

// readControl reads all information that the module provides by netlink.
func (r Reader) readControl(ctx context.Context, s *Snapshot) {
	s.Control.Diag = readDiag(ctx)
	s.Table, s.Control.PNET = readTable(ctx)
	c, err := netlinksmc.NewContext(ctx)
	if err != nil {
		s.Control.Netlink = err
		return
	}
	defer c.Close()
	if s.Control.Info, err = c.SystemInfo(ctx); err != nil {
		s.unknown("what the module can do", err)
	}
	if s.ISM, err = c.DevicesD(ctx); ignorable(err) != nil {
		s.unknown("ISM devices of the module", err)
	}
	readIdentity(ctx, s, c)
	if s.Fallbacks, err = c.FallbackStats(ctx); ignorable(err) != nil {
		s.unknown("connections that fell back", err)
	}
	if stats, err := c.Stats(ctx); err == nil {
		for _, t := range []netlinksmc.TechStats{stats.SMCD, stats.SMCR} {
			s.Connections += t.ClientV1 + t.ClientV2 + t.ServerV1 + t.ServerV2
		}
	}
}

// ignorable returns nil for errors that do not matter: a list changed while it was read, or the kernel does not have it. It
// returns other errors unchanged.
func ignorable(err error) error {
	if errors.Is(err, netlinksmc.ErrDumpInterrupted) || errors.Is(err, netlinksmc.ErrNotSupported) {
		return nil
	}
	return err
}

func readIdentity(ctx context.Context, s *Snapshot, c *netlinksmc.Client) {
	var err error
	if s.Identity.UEIDs, err = c.UEIDs(ctx); err != nil {
		if ignorable(err) != nil {
			s.unknown("enterprise IDs", err)
		}
		return
	}
	s.Identity.Known = true
	if s.Identity.SEID, err = c.SEID(ctx); ignorable(err) != nil {
		s.unknown("system EID", err)
	}
}

// readDiag tries to list sockets, which requires the module smc_diag.
func readDiag(ctx context.Context) error {
	d, err := netlinksmc.NewDiag()
	if err != nil {
		return err
	}
	defer d.Close()
	for _, err := range d.Sockets(ctx, 0) {
		if err != nil {
			return ignorable(err)
		}
	}
	return nil
}

func readTable(ctx context.Context) (pnet.Table, error) {
	c, err := pnet.NewContext(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	t, err := c.List(ctx)
	if errors.Is(err, pnet.ErrDumpInterrupted) {
		err = nil
	}
	return t, err
}

// readSettings reads the sysctls that conditions use: those of net.smc, and those in Condition.Sysctls.
func (r Reader) readSettings() map[string]int {
	out := map[string]int{}
	var names []string
	for _, c := range Conditions() {
		names = append(names, c.Sysctls...)
	}
	entries, _ := os.ReadDir(r.Root.Path("proc/sys/net/smc"))
	for _, e := range entries {
		names = append(names, "net.smc."+e.Name())
	}
	for _, name := range names {
		if n, err := strconv.Atoi(r.Root.Text("proc/sys", strings.ReplaceAll(name, ".", "/"))); err == nil {
			out[name] = n
		}
	}
	return out
}

func readNamespace(s *Snapshot) Namespace {
	n := Namespace{Initial: smcstats.InInitialNetNS()}
	exclusive, err := rdmaExclusive()
	if err != nil {
		s.unknown("whether RDMA devices are shared between network namespaces", err)
	}
	n.RDMAExclusive = exclusive
	return n
}

// tableList provides a table that has already been read to the scanner.
type tableList pnet.Table

func (t tableList) List(context.Context) (pnet.Table, error) { return pnet.Table(t), nil }

func (r Reader) readDevices(ctx context.Context, s *Snapshot) {
	scanner := &ism.Scanner{Root: r.Root.Path("sys"), PNET: tableList(s.Table)}
	if r.Root == "" {
		scanner.RDMA = ism.Netlink{}
	}
	inv, err := scanner.Scan(ctx)
	if err != nil {
		s.unknown("devices", err)
		return
	}
	for _, p := range inv.Problems {
		s.unknown("devices", p)
	}
	s.Adapters = inv.Devices
	for _, d := range inv.Devices {
		for _, p := range d.Ports {
			s.Ports = append(s.Ports, Port{
				Device: d.Name, Number: p.Number, RoCE: d.Kind == ism.KindRoCE && p.LinkLayer != "InfiniBand",
				Software: d.Software, State: p.State, NetDev: p.NetDev, PNETID: p.PNETID, GIDs: p.Table,
			})
		}
	}
	hardware := pnet.Sysfs{Root: r.Root.Path("sys")}
	for i := range s.Interfaces {
		s.Interfaces[i].PNETID = pnetOfInterface(hardware, s.Table, s.Interfaces[i].Name)
	}
}

func pnetOfInterface(hardware pnet.Sysfs, t pnet.Table, name string) ism.PNETID {
	if id, err := hardware.Interface(name); err == nil && id != "" {
		return ism.PNETID{ID: id, Source: ism.SourceHardware}
	}
	for _, e := range t {
		if e.Eth == name && name != "" {
			return ism.PNETID{ID: string(e.ID), Source: ism.SourceTable}
		}
	}
	return ism.PNETID{}
}
