// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"errors"
	"strings"
	"testing"

	"github.com/mdlayher/genetlink"
)

const (
	testSEID = "IBM-SYSZ-ISMSEID0000000012345678"
	testGID  = "fe80:0000:0000:0000:0000:00ff:fe00:0001"
	peerGID  = "fe80:0000:0000:0000:0000:00ff:fe00:0002"
)

// pad fills s up with blanks to the 32 characters of an EID.
func pad(s string) string { return s + strings.Repeat(" ", eidLen-len(s)) }

// v2Common is the nest whose numbers start at zero.
func v2Common(typ uint16) []byte {
	return nested(typ, u8(0, 2), u8(1, 1), u8(2, 2), str(3, pad("LAB.ONE")), str(4, "zebra"))
}

var wantV2 = &LinkGroupV2{Version: 2, Release: 1, PeerOS: PeerOSLinux, EID: "LAB.ONE", PeerHost: "zebra"}

// lgrR61 is a group of version 2 as Linux 6.1 sends it; newer ones add attributes.
var lgrR61 = join(
	u32(1, 0x100), u8(2, 1), u8(3, 2), str(4, "NET1            "), u8(5, 100), u32(6, 7), v2Common(7),
	nested(8, u8(1, 1)), u64(9, 4711), u8(11, 1),
)

func TestParseSystemInfo(t *testing.T) {
	base := join(u8(1, 2), u8(2, 1), u8(3, 1), str(4, "host.example"), str(5, testSEID))
	runParseTests(t, (*Client).SystemInfo, []parseTest[*SystemInfo]{
		{
			"full", replies(reply(nested(AttrGenSysInfo, base, u8(6, 1)))),
			&SystemInfo{
				Version: 2, Release: 1, ISMv2: true, SMCRv2: Some(true), Hostname: "host.example", SEID: testSEID,
			}, "",
		},
		{
			"before SMC-Rv2", replies(reply(nested(AttrGenSysInfo, base))),
			&SystemInfo{Version: 2, Release: 1, ISMv2: true, Hostname: "host.example", SEID: testSEID}, "",
		},
		{
			"no ISM", replies(reply(nested(AttrGenSysInfo, u8(1, 2), u8(2, 2), u8(3, 0), str(4, "h"), u8(6, 0)))),
			&SystemInfo{Version: 2, Release: 2, SMCRv2: Some(false), Hostname: "h"}, "",
		},
		{
			"name that is not text", replies(reply(nested(AttrGenSysInfo, u8(1, 2), attr(4, []byte("a\xff\x1b\n"))))),
			&SystemInfo{Version: 2, Hostname: "a\xff\x1b\n"}, "",
		},
		{"nothing", nil, nil, "no data"},
		{"no version", replies(reply(nested(AttrGenSysInfo, u8(2, 1)))), nil, "SYS_VER is missing"},
		{"other nest", replies(reply(nested(AttrGenStats, u8(1, 1)))), nil, "no data"},
	})
}

func TestParseLinkGroupsR(t *testing.T) {
	v61 := LinkGroupR{
		ID: 0x100, Role: RoleServer, Type: LinkGroupSymmetric, PNETID: "NET1", VLAN: 100, Conns: 7, V2: wantV2,
		Direct: Some(true), NetCookie: Some(uint64(4711)), BufType: Some(BufferVirtContiguous),
	}
	v72 := v61
	v72.MaxConns, v72.MaxLinks = Some(uint8(255)), Some(uint8(2))
	v72.SndbufAlloc, v72.RMBAlloc = Some(uint64(65536)), Some(uint64(1<<33))
	runParseTests(t, (*Client).LinkGroupsR, []parseTest[[]LinkGroupR]{
		{
			"7.2", replies(reply(nested(AttrGenLGRSMCR,
				u32(1, 0x100), u8(2, 1), u8(3, 2), str(4, "NET1            "), u8(5, 100), u32(6, 7), v2Common(7),
				nested(8, u8(1, 1), u8(2, 255), u8(3, 2)), u64(9, 4711), attr(10, nil), u8(11, 1),
				u32(12, 65536), u64(13, 1<<33)))),
			[]LinkGroupR{v72},
			"",
		},
		{"6.1", replies(reply(nested(AttrGenLGRSMCR, lgrR61))), []LinkGroupR{v61}, ""},
		{
			"5.11, version 1", replies(reply(attr(AttrGenLGRSMCR, join(u32(1, 0x200), u8(2, 0), u8(3, 1), str(4, ""))))),
			[]LinkGroupR{{ID: 0x200, Role: RoleClient, Type: LinkGroupSingle}},
			"",
		},
		{"none", nil, []LinkGroupR{}, ""},
		{"no ID", replies(reply(nested(AttrGenLGRSMCR, u8(2, 0)))), nil, "LGR_R_ID is missing"},
		{
			"no version in the nest", replies(reply(nested(AttrGenLGRSMCR, u32(1, 1), nested(7, u8(1, 1))))), nil,
			"LGR_R_V2_COMMON: LGR_V2_VER is missing",
		},
	})
}

func TestParseLinks(t *testing.T) {
	link := func(id uint8) []byte {
		return join(u8(1, id), u32(10, 3), u32(6, 5), u8(3, 1), u32(7, 4), str(2, "mlx5_1"),
			attr(8, []byte{0, 0, 1, 1}), attr(9, []byte{0, 0, 2, 1}), str(4, testGID), str(5, peerGID))
	}
	want := func(id uint8) Link {
		return Link{
			ID: id, IBDev: "mlx5_1", IBPort: 1, GID: testGID, PeerGID: peerGID, Conns: 5, NetIfindex: 4,
			UID: 0x101, PeerUID: 0x201, State: LinkActive,
		}
	}
	runParseTests(t, (*Client).LinkGroupsRWithLinks, []parseTest[[]LinkGroupR]{
		{
			"groups and links alternate", replies(
				reply(nested(AttrGenLGRSMCR, u32(1, 0x100))), reply(nested(AttrGenLinkSMCR, link(1))),
				reply(nested(AttrGenLinkSMCR, link(2))),
				reply(nested(AttrGenLGRSMCR, u32(1, 0x200))),
				reply(nested(AttrGenLGRSMCR, u32(1, 0x300))), reply(nested(AttrGenLinkSMCR, link(1))),
			),
			[]LinkGroupR{{ID: 0x100, Links: []Link{want(1), want(2)}}, {ID: 0x200}, {ID: 0x300, Links: []Link{want(1)}}},
			"",
		},
		{"link first", replies(reply(nested(AttrGenLinkSMCR, link(1)))), nil, "a link without its link group"},
		{
			"no ID", replies(reply(nested(AttrGenLGRSMCR, u32(1, 1))), reply(nested(AttrGenLinkSMCR, u8(3, 1)))), nil,
			"LINK_ID is missing",
		},
	})
}

func TestParseLinkGroupsD(t *testing.T) {
	v61 := LinkGroupD{
		ID: 0x300, GID: 1 << 63, PeerGID: 2, VLAN: 9, Conns: 3, PNETID: "NET2", CHID: Some(uint16(0x7c2)), V2: wantV2,
	}
	v72 := v61
	v72.CHID = Some(uint16(0xffff))
	v72.ExtGID, v72.PeerExtGID = Some(uint64(3)), Some(uint64(4))
	v72.SndbufAlloc, v72.DMBAlloc = Some(uint64(1)), Some(uint64(0))
	base := join(u32(1, 0x300), u64(2, 1<<63), u64(3, 2), u8(4, 9), u32(5, 3), str(6, " NET2"), v2Common(9))
	runParseTests(t, (*Client).LinkGroupsD, []parseTest[[]LinkGroupD]{
		{
			"7.2", replies(reply(nested(AttrGenLGRSMCD, base, u32(7, 0xffff), attr(8, nil), u64(10, 3), u64(11, 4),
				u32(12, 1), u64(13, 0)))),
			[]LinkGroupD{v72},
			"",
		},
		{"6.1", replies(reply(nested(AttrGenLGRSMCD, base, u32(7, 0x7c2)))), []LinkGroupD{v61}, ""},
		{"CHID as documented", replies(reply(nested(AttrGenLGRSMCD, base, u16(7, 0x7c2)))), []LinkGroupD{v61}, ""},
		{"5.11, version 1", replies(reply(nested(AttrGenLGRSMCD, u32(1, 1)))), []LinkGroupD{{ID: 1}}, ""},
		{"none", nil, []LinkGroupD{}, ""},
		{"no ID", replies(reply(nested(AttrGenLGRSMCD, u64(2, 1)))), nil, "LGR_D_ID is missing"},
		{
			"large CHID", replies(reply(nested(AttrGenLGRSMCD, u32(1, 1), u32(7, 0x10000)))), nil,
			"LGR_D_CHID: value 0x10000 exceeds 16 bits",
		},
	})
}

func TestParseDevicesR(t *testing.T) {
	port := func(typ uint16, valid uint8) []byte {
		return nested(typ, u8(1, 1), str(2, "NET1            "), u32(3, 4), u8(4, 1), u8(5, valid), u32(6, 2))
	}
	want := Port{Number: 1, PNETID: "NET1", PNETIDByUser: true, NetIfindex: 4, State: PortActive, Links: 2}
	second := want
	second.Number = 2
	runParseTests(t, (*Client).DevicesR, []parseTest[[]Device]{
		{
			"two ports", replies(reply(nested(AttrGenDevSMCR, u32(1, 0), u8(2, 1), u32(3, 0x23), u16(4, 0x1c4), u16(5, 0x15b3),
				u16(6, 0x1016), str(7, "0001:00:00.0"), str(10, "mlx5_1"), port(8, 1), port(9, 1)))),
			[]Device{{
				Critical: true, FID: 0x23, CHID: 0x1c4, Vendor: 0x15b3, Device: 0x1016, PCIID: "0001:00:00.0",
				IBName: "mlx5_1", Ports: []Port{want, second},
			}},
			"",
		},
		{
			"soft-RoCE, second port only", replies(reply(nested(AttrGenDevSMCR, u8(2, 0), str(10, "rxe0"), port(8, 0), port(9, 1)))),
			[]Device{{IBName: "rxe0", Ports: []Port{second}}},
			"",
		},
		{"none", nil, []Device{}, ""},
		{"no name", replies(reply(nested(AttrGenDevSMCR, str(7, "0001:00:00.0")))), nil, "DEV_IB_NAME is missing"},
	})
}

func TestParseDevicesD(t *testing.T) {
	runParseTests(t, (*Client).DevicesD, []parseTest[[]Device]{
		{
			"ISM and loopback", replies(
				reply(nested(AttrGenDevSMCD, u32(1, 2), u8(2, 1), u32(3, 0x102a), u16(4, 0x7c2), u16(5, 0x1014), u16(6, 0x4ed),
					str(7, "0000:00:00.0"), nested(8, u8(1, 0), str(2, "NET1")))),
				reply(nested(AttrGenDevSMCD, u32(1, 0), u8(2, 0), u16(4, 0xffff), str(7, "loopback-ism"), nested(8, u8(1, 0), str(2, "")))),
			),
			[]Device{
				{
					UseCount: 2, Critical: true, FID: 0x102a, CHID: 0x7c2, Vendor: 0x1014, Device: 0x4ed, PCIID: "0000:00:00.0",
					Ports: []Port{{Number: 1, PNETID: "NET1"}},
				},
				{CHID: 0xffff, PCIID: "loopback-ism", Ports: []Port{{Number: 1}}},
			},
			"",
		},
		{"no PCI ID", replies(reply(nested(AttrGenDevSMCD, u32(1, 0)))), nil, "DEV_PCI_ID is missing"},
	})
}

func TestParseEIDs(t *testing.T) {
	runParseTests(t, (*Client).UEIDs, []parseTest[[]string]{
		{"two", replies(reply(str(1, pad("LAB.ONE"))), reply(str(1, pad("X")))), []string{"LAB.ONE", "X"}, ""},
		{"not terminated", replies(reply(attr(1, []byte(pad("LAB.ONE"))))), []string{"LAB.ONE"}, ""},
		{"none", nil, []string{}, ""},
		{"no entry", replies(reply(u8(2, 1))), nil, "EID_TABLE_ENTRY is missing"},
	})
	runParseTests(t, (*Client).SEID, []parseTest[*SEID]{
		{"enabled", replies(reply(str(1, testSEID), u8(2, 1))), &SEID{EID: testSEID, Enabled: true}, ""},
		{"disabled", replies(reply(u8(2, 0), str(1, testSEID))), &SEID{EID: testSEID}, ""},
		{"switch only", replies(reply(u8(2, 1))), nil, ""},
		{"nothing", nil, nil, ""},
		{"wrong length", replies(reply(u32(2, 1))), nil, "SEID_ENABLED: value of 4 bytes, want 1"},
	})
}

func TestParseHandshakeLimitation(t *testing.T) {
	runParseTests(t, (*Client).HandshakeLimitation, []parseTest[bool]{
		{"on", replies(reply(u8(1, 1))), true, ""},
		{"off", replies(reply(u8(1, 0))), false, ""},
		{"nothing", nil, false, "no data"},
		{"other attribute", replies(reply(u8(2, 1))), false, "HS_LIMITATION_ENABLED is missing"},
	})
}

// parseTest is an answer of the kernel and what becomes of it: a value, or an error with a text.
type parseTest[T any] struct {
	name    string
	replies []genetlink.Message
	want    T
	wantErr string
}

func runParseTests[T any](t *testing.T, method contextMethod[T], tests []parseTest[T]) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := method(listing(t, tt.replies), t.Context())
			if tt.wantErr != "" {
				if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got error %v, want one with %q", err, tt.wantErr)
				}
			} else if err != nil {
				t.Error(err)
			}
			diff(t, tt.want, got)
		})
	}
}
