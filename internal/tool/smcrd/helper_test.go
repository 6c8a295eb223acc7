// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/clitest"
	"github.com/smckit/smckit/internal/tool/statdoc/stattest"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcerr"
)

// fake is a fake kernel.
type fake struct {
	info             *netlinksmc.SystemInfo
	groupsR          []netlinksmc.LinkGroupR
	groupsD          []netlinksmc.LinkGroupD
	devicesR         []netlinksmc.Device
	devicesD         []netlinksmc.Device
	stats            netlinksmc.Stats
	fallback         netlinksmc.FallbackStats
	ueids            []string
	seid             *netlinksmc.SEID
	limit            bool
	err              error // error of every change
	listErr          error // error of every list, returned with the list
	lastUEIDSwitches bool  // removing the last UEID enables the SEID, as on s390
	closed           int
	calls            []string
}

func (f *fake) Close() error { f.closed++; return nil }

func (f *fake) SystemInfo(context.Context) (*netlinksmc.SystemInfo, error) { return f.info, nil }

func (f *fake) LinkGroupsR(context.Context) ([]netlinksmc.LinkGroupR, error) {
	bare := make([]netlinksmc.LinkGroupR, len(f.groupsR))
	for i, g := range f.groupsR {
		g.Links = nil
		bare[i] = g
	}
	return bare, f.listErr
}

func (f *fake) LinkGroupsRWithLinks(context.Context) ([]netlinksmc.LinkGroupR, error) {
	return f.groupsR, f.listErr
}

func (f *fake) LinkGroupsD(context.Context) ([]netlinksmc.LinkGroupD, error) {
	return f.groupsD, f.listErr
}

func (f *fake) DeleteLinkGroupR(_ context.Context, id uint32) error {
	f.calls = append(f.calls, fmt.Sprintf("delete R %08x", id))
	return f.err
}

func (f *fake) DeleteLinkGroupD(_ context.Context, id uint32) error {
	f.calls = append(f.calls, fmt.Sprintf("delete D %08x", id))
	return f.err
}

func (f *fake) DeleteLink(_ context.Context, group uint32, link uint8) error {
	f.calls = append(f.calls, fmt.Sprintf("delete link %08x %02x", group, link))
	return f.err
}

func (f *fake) DevicesR(context.Context) ([]netlinksmc.Device, error) { return f.devicesR, f.listErr }

func (f *fake) DevicesD(context.Context) ([]netlinksmc.Device, error) { return f.devicesD, f.listErr }

func (f *fake) Stats(context.Context) (*netlinksmc.Stats, error) { s := f.stats; return &s, nil }

func (f *fake) FallbackStats(context.Context) (*netlinksmc.FallbackStats, error) {
	s := f.fallback
	return &s, f.listErr
}
func (f *fake) UEIDs(context.Context) ([]string, error) { return f.ueids, f.listErr }

func (f *fake) AddUEID(_ context.Context, eid string) error {
	f.calls = append(f.calls, "add "+eid)
	return f.err
}

func (f *fake) RemoveUEID(_ context.Context, eid string) error {
	f.calls = append(f.calls, "del "+eid)
	if f.lastUEIDSwitches {
		return &smcerr.Error{Op: "remove user EID", Kind: netlinksmc.ErrSEIDActivated}
	}
	return f.err
}

func (f *fake) FlushUEIDs(context.Context) error {
	f.calls = append(f.calls, "flush")
	return f.err
}
func (f *fake) SEID(context.Context) (*netlinksmc.SEID, error) { return f.seid, nil }

func (f *fake) SetSEID(_ context.Context, on bool) error {
	f.calls = append(f.calls, "seid "+yesNo(on))
	return f.err
}
func (f *fake) HandshakeLimitation(context.Context) (bool, error) { return f.limit, nil }

func (f *fake) SetHandshakeLimitation(_ context.Context, on bool) error {
	f.calls = append(f.calls, "limit "+yesNo(on))
	return f.err
}

// bench is one run of a command.
type bench struct {
	fake    *fake
	memory  *stattest.Memory
	foreign bool // not in the initial network namespace
	open    error
	out     io.Writer
	rounds  int
	columns string
	opened  int
	// loopback is the file of the setting.
	loopback string
}

type result struct {
	stdout, stderr string
	status         int
}

// run runs smcr or smcd.
func (b *bench) run(t tech, args ...string) result {
	return b.runTool(func(d deps) cli.Tool { return fakeTool(t, d) }, args...)
}

// runTool runs the tool that build makes.
func (b *bench) runTool(build func(deps) cli.Tool, args ...string) result {
	env, stdout, stderr := clitest.Env(map[string]string{"COLUMNS": b.columns})
	if b.out != nil {
		env.Out = b.out
	}
	if b.memory == nil {
		b.memory = &stattest.Memory{}
	}
	d := deps{
		open: func(context.Context) (client, error) {
			b.opened++
			if b.open != nil {
				return nil, b.open
			}
			return b.fake, nil
		},
		ifname:       func(i uint32) string { return map[uint32]string{2: "eth0", 3: "eth2"}[i] },
		initialNetNS: func() bool { return !b.foreign },
		baselines:    func() (baselines, error) { return b.memory, nil },
		loopback:     b.loopback,
		watch: cli.Watch{Wait: func(context.Context, time.Duration) error {
			if b.rounds--; b.rounds <= 0 {
				return context.Canceled
			}
			return nil
		}},
	}
	status := cli.Run(context.Background(), build(d), env, args)
	return result{stdout.String(), stderr.String(), status}
}

func some[T any](v T) netlinksmc.Optional[T] { return netlinksmc.Some(v) }

// populated returns a host with at least one object of every kind.
func populated() *fake {
	v2 := &netlinksmc.LinkGroupV2{
		Version: 2, Release: 1, PeerOS: netlinksmc.PeerOSLinux, EID: "MYCLUSTER", PeerHost: "peer.example",
	}
	return &fake{
		info: &netlinksmc.SystemInfo{
			Version: 2, Release: 1, ISMv2: true, SMCRv2: some(true), Hostname: "host.example",
			SEID: "IBM-SYSZ-ISMSEID0000000012345678",
		},
		groupsR: []netlinksmc.LinkGroupR{
			{
				ID: 0x100, Role: netlinksmc.RoleClient, Type: netlinksmc.LinkGroupSymmetric, PNETID: "NET1", Conns: 1,
				Links: []netlinksmc.Link{
					{
						ID: 1, IBDev: "mlx5_1", IBPort: 1, Conns: 1, NetIfindex: 3, UID: 0x101, PeerUID: 0x201,
						GID:     "fe80:0000:0000:0000:0000:00ff:fe00:0001",
						PeerGID: "fe80:0000:0000:0000:0000:00ff:fe00:0002", State: netlinksmc.LinkActive,
					},
					{
						ID: 2, IBDev: "rocep0s31f6", IBPort: 2, NetIfindex: 99, UID: 0x102, PeerUID: 0x202,
						GID:     "fe80:0000:0000:0000:0000:00ff:fe00:0003",
						PeerGID: "fe80:0000:0000:0000:0000:00ff:fe00:0004", State: netlinksmc.LinkState(9),
					},
				},
			},
			{
				ID: 0x200, Role: netlinksmc.RoleServer, Type: netlinksmc.LinkGroupSingle, PNETID: "SIXTEENCHARSNET1",
				VLAN: 0x64, Conns: 123, V2: v2, Direct: some(true), MaxConns: some[uint8](32), MaxLinks: some[uint8](2),
				NetCookie: some[uint64](1), BufType: some(netlinksmc.BufferVirtContiguous),
				SndbufAlloc: some[uint64](65536), RMBAlloc: some[uint64](131072),
				Links: []netlinksmc.Link{{
					ID: 1, IBDev: "rxe0", IBPort: 1, Conns: 123, NetIfindex: 2, UID: 0x301, PeerUID: 0x401,
					GID:     "0000:0000:0000:0000:0000:ffff:0a00:0001",
					PeerGID: "0000:0000:0000:0000:0000:ffff:0a00:0002", State: netlinksmc.LinkActive,
					TxBytes: some[uint64](5000000000), RxBytes: some[uint64](0),
				}},
			},
		},
		groupsD: []netlinksmc.LinkGroupD{
			{ID: 0x100, VLAN: 0x64, Conns: 2, PNETID: "NET1            ", GID: 0xa1, PeerGID: 0xa2},
			{
				ID: 0x201, Conns: 5, V2: v2, GID: 0xb1, PeerGID: 0xb2, ExtGID: some[uint64](7), PeerExtGID: some[uint64](8),
				CHID: some[uint16](0xffff), SndbufAlloc: some[uint64](4096), DMBAlloc: some[uint64](0),
			},
		},
		devicesR: []netlinksmc.Device{
			{
				FID: 0x23, CHID: 0x1c4, Vendor: 0x15b3, Device: 0x1016, PCIID: "0001:00:00.0", IBName: "mlx5_1",
				Ports: []netlinksmc.Port{{Number: 1, PNETID: "NET1", NetIfindex: 3, State: netlinksmc.PortActive}},
			},
			{
				Critical: true, IBName: "rxe_wlp0s20f3",
				Ports: []netlinksmc.Port{
					{Number: 1, PNETID: "SIXTEENCHARSNET1", PNETIDByUser: true, NetIfindex: 2, State: netlinksmc.PortActive, Links: 7},
					{Number: 2, State: netlinksmc.PortInactive},
				},
			},
		},
		devicesD: []netlinksmc.Device{
			{
				FID: 0x102a, CHID: 0x7c2, Vendor: 0x1014, Device: 0x04ed, PCIID: "0000:00:00.0",
				Ports: []netlinksmc.Port{{Number: 1, PNETID: "NET1"}},
			},
			{CHID: 0xffff, PCIID: "loopback-ism", UseCount: 12, Critical: true, Ports: []netlinksmc.Port{{Number: 1}}},
		},
		stats: netlinksmc.Stats{
			SMCR: netlinksmc.TechStats{
				RxBufSizes: netlinksmc.SizeHistogram{5: 5076}, RxSizes: netlinksmc.SizeHistogram{5017741},
				TxBufSizes: netlinksmc.SizeHistogram{1, 22, 333, 4444, 55555, 666666, 7777777, 8, 9},
				TxSizes:    netlinksmc.SizeHistogram{5017640},
				RxBuf:      netlinksmc.BufferStats{Full: 1234, Reused: 5000, Allocated: 76, Downgraded: 3},
				TxBuf:      netlinksmc.BufferStats{TooSmallPeer: 4, TooSmall: 5, FullPeer: 501764, Full: 7, Reused: 8, Allocated: 9, Downgraded: 10},
				ClientV1:   5000, ClientV2: 70, ServerV1: 5, ServerV2: 1,
				Sendpage: 1, Splice: 2, Cork: 3, NoDelay: 4, Urgent: 5,
				RxBytes: 200705600, TxBytes: 1194173445, RxCount: 5017741, TxCount: 5017640,
				RxBufUsage: some[uint64](65536),
				Links: &netlinksmc.LinkStats{
					Added: 3, Refused: 1, RefusedByPeer: 2, NotAdded: 4, ConnsMoved: 12, ConnsNotMoved: 5,
					Lost: netlinksmc.LostLinks{NotRegistered: 6, NoPort: 1, Operator: 2},
				},
			},
			SMCD:                  netlinksmc.TechStats{ServerV2: 2, RxBytes: 10, RxCount: 1},
			ClientHandshakeErrors: 3, ServerHandshakeErrors: 4,
		},
		fallback: netlinksmc.FallbackStats{
			ClientTotal: 13, ServerTotal: 1,
			Client: []netlinksmc.FallbackCount{
				{Reason: 0x03010000, Count: 2},
				{Reason: 0x05000000, Count: 6},
				{Reason: 0x0303000b, Count: 1},
				{Reason: 0x12345678, Count: 4},
			},
			Server: []netlinksmc.FallbackCount{{Reason: 0x03030000, Count: 1}},
		},
		ueids: []string{"MYCLUSTER", "A.B-C"},
		seid:  &netlinksmc.SEID{EID: "IBM-SYSZ-ISMSEID0000000012345678", Enabled: true},
	}
}
