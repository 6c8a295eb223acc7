// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fabric

import (
	"encoding/binary"
	"time"
)

// Status describes a fabric at a moment.
type Status struct {
	Name string
	// Size is that of the memory in bytes, AreaBytes what each member can use for DMBs.
	Size, AreaBytes uint64
	CHID            uint16
	HugePages       bool
	// GID is the first half of the members' GIDs.
	GID uint64
	// Limit is how many members there can be.
	Limit int
	// Members are in the order of their numbers.
	Members []MemberStatus
}

// MemberStatus describes a member. The fields without a comment that says otherwise are what its guest has written in the directory:
// the server does not rely on them.
type MemberStatus struct {
	// Number is what the server has given it.
	Number int
	// PID is the process that connected, 0 if it is in a PID namespace that the server cannot see. From the kernel.
	PID int
	// Since is when it connected, by the server's clock.
	Since time.Time
	// Removed says that the server does not serve it any more, because it has not read; its connection has not ended.
	Removed bool
	// ExtGID is the second half of its GID, 0 while its guest does not use the fabric.
	ExtGID uint64
	// Host has 0 to 31 characters of printable ASCII.
	Host string
	// Used is how many bytes of its area are DMBs, at most AreaBytes.
	Used uint64
	// Rung counts doorbells that it has rung, Spared signals that needed none.
	Rung, Spared uint64
}

// Status returns what the server and the directory know of the members.
func (f *Fabric) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{
		Name: f.cfg.Name, Size: f.layout.Size, AreaBytes: uint64(f.layout.Blocks) * BlockLen, CHID: f.cfg.CHID, HugePages: f.cfg.HugePages,
		GID: binary.LittleEndian.Uint64(f.uuid[:]), Limit: f.layout.Members,
	}
	for _, m := range f.members {
		if m == nil || f.closed {
			continue
		}
		ms := MemberStatus{Number: m.number, PID: m.pid, Since: m.since, Removed: m.expelled}
		if raw, err := f.mem.readEntry(m.number); err == nil {
			e := f.layout.decodeEntry(raw)
			ms.ExtGID, ms.Host, ms.Used, ms.Rung, ms.Spared = e.gid, e.host, e.used, e.rung, e.spared
		}
		s.Members = append(s.Members, ms)
	}
	return s
}
