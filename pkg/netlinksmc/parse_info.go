// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"errors"

	"github.com/mdlayher/genetlink"
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
	found := false
	err := forEach(replies, fields{AttrGenSysInfo: nest("SYS_INFO", func(b []byte) error {
		found = true
		return info.parse(b)
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
		if err := (fields{AttrEIDTableEntry: required(to("EID_TABLE_ENTRY", getName, &eid))}).parse(m.Data); err != nil {
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
		AttrSEIDEntry:   to("SEID_ENTRY", getName, &seid.EID),
		AttrSEIDEnabled: to("SEID_ENABLED", getBool, &seid.Enabled),
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
	err := forEach(replies, fields{AttrHSLimitationEnabled: required(to("HS_LIMITATION_ENABLED", getBool, &enabled))})
	return enabled, err
}
