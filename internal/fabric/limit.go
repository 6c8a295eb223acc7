// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fabric

import "time"

// A client that joins and leaves all the time costs the members, the service manager and the journal something each time.
const (
	// joinBurst is how many clients can join at once: a whole fabric, twice. joinRate is how many can join in a second after that.
	joinBurst, joinRate = 2 * MembersMax, 32
	// lineBurst and lineRate are the same for lines about members.
	lineBurst, lineRate = 4 * MembersMax, 8
)

// bucket limits how often a thing happens.
type bucket struct {
	burst, rate float64
	level       float64
	last        time.Time
}

func newBucket(burst, rate float64) bucket { return bucket{burst: burst, rate: rate, level: burst} }

// take counts a thing, and returns 0. If there were too many, it does not count it, and returns how long to wait.
func (b *bucket) take(now time.Time) time.Duration {
	if !b.last.IsZero() {
		b.level = min(b.burst, b.level+b.rate*max(0, now.Sub(b.last).Seconds()))
	}
	b.last = now
	if b.level < 1 {
		return time.Duration((1-b.level)/b.rate*float64(time.Second)) + 1
	}
	b.level--
	return 0
}

// logMember reports an event of a member, unless there were too many of these. Called with mu.
func (f *Fabric) logMember(m *member, how string) {
	if f.lines.take(time.Now()) > 0 {
		f.unlogged++
		return
	}
	if f.unlogged > 0 {
		f.log("%d lines about members are left out", f.unlogged)
		f.unlogged = 0
	}
	f.log("member %d %s, PID %d", m.number, how, m.pid)
}
