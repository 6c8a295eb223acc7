// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"errors"

	"github.com/mdlayher/genetlink"
)

// Numbers of the top-level attributes.
const (
	genSysInfo       = 1
	genLinkGroupR    = 2
	genLinkR         = 3
	genLinkGroupD    = 4
	genDeviceD       = 5
	genDeviceR       = 6
	genStats         = 7
	genFallbackStats = 8
)

// errNoReply means that a request that always has one answer got none.
var errNoReply = errors.New("no data")

// forEach parses the attributes of each message in turn.
func forEach(replies []genetlink.Message, fs fields) error {
	for _, m := range replies {
		if err := fs.parse(m.Data); err != nil {
			return err
		}
	}
	return nil
}

func parseSystemInfo(replies []genetlink.Message) (*SystemInfo, error) {
	var info SystemInfo
	attrs := fields{
		1: required(to("SYS_VER", getU8, &info.Version)),
		2: to("SYS_REL", getU8, &info.Release),
		3: to("SYS_IS_ISM_V2", getBool, &info.ISMv2),
		4: to("SYS_LOCAL_HOST", getName, &info.Hostname),
		5: to("SYS_SEID", getName, &info.SEID),
		6: opt("SYS_IS_SMCR_V2", getBool, &info.SMCRv2),
	}
	found := false
	err := forEach(replies, fields{genSysInfo: nest("SYS_INFO", func(b []byte) error {
		found = true
		return attrs.parse(b)
	})})
	if err == nil && !found {
		err = errNoReply
	}
	if err != nil {
		return nil, err
	}
	return &info, nil
}

func parseUEIDs(replies []genetlink.Message) ([]string, error) {
	eids := make([]string, 0, len(replies))
	for _, m := range replies {
		var eid string
		if err := (fields{1: required(to("EID_TABLE_ENTRY", getName, &eid))}).parse(m.Data); err != nil {
			return nil, err
		}
		eids = append(eids, eid)
	}
	return eids, nil
}

// parseSEID returns nil for a host without a system EID: the kernel then sends nothing, or the switch only.
func parseSEID(replies []genetlink.Message) (*SEID, error) {
	var seid SEID
	err := forEach(replies, fields{
		1: to("SEID_ENTRY", getName, &seid.EID),
		2: to("SEID_ENABLED", getBool, &seid.Enabled),
	})
	if err != nil || seid.EID == "" {
		return nil, err
	}
	return &seid, nil
}

func parseHandshakeLimitation(replies []genetlink.Message) (bool, error) {
	if len(replies) == 0 {
		return false, errNoReply
	}
	var enabled bool
	err := forEach(replies, fields{1: required(to("HS_LIMITATION_ENABLED", getBool, &enabled))})
	return enabled, err
}
