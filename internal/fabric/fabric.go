// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package fabric serves memory that guests of this host share by ivshmem devices, so that they have SMC-D among themselves. A fabric is
// one memory and the guests that may use it, its members. The protocol is that of QEMU's ivshmem server, see ivshmem-spec in QEMU's
// documentation; what is in the memory, kernel/transport/ism/fabric_layout.h says.
//
// Members are not trusted: they can write anything anywhere in the memory, and send anything to the server.
package fabric

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/smckit/smckit/internal/fdstore"
)

const (
	// DefaultMembers is the number of members of a fabric for which none is given.
	DefaultMembers = 8
	// DefaultCHID is the CHID of the members' devices if none is given.
	DefaultCHID = 0xff10

	// stallTime is how long a member may take to read what the server sends. QEMU connects long before it reads if it has much memory to
	// allocate, or little time.
	stallTime = 10 * time.Minute
	// repairTime is how often the server compares the directory with what it knows.
	repairTime = 5 * time.Second
	// lingerMax is how many refused clients at a time may keep their connections until they have read why.
	lingerMax = 16
	// closeTime is how long Close waits for members to read.
	closeTime = time.Second
)

// Config describes a fabric.
type Config struct {
	// Name is as CheckName wants it.
	Name string
	// Size is that of the memory in bytes: a power of two between SizeMin and SizeMax of Members.
	Size uint64
	// Members is how many members there can be, 2 to MembersMax; 0 means DefaultMembers.
	Members int
	// CHID is that of the members' devices, CHIDMin to CHIDMax; 0 means DefaultCHID.
	CHID uint16
	// HugePages allocates the memory from the host's huge pages.
	HugePages bool
	// Store keeps the fabric while the server restarts; nil if nothing does.
	Store *fdstore.Store
	// Log, if not nil, receives a line for each event that concerns the administrator.
	Log func(line string)

	// stall replaces stallTime in tests, joinRate the constant, and repair repairTime.
	stall, repair time.Duration
	joinRate      float64
}

// Check returns an error if there can be no such fabric.
func (c Config) Check() error {
	_, err := c.withDefaults().layout()
	return err
}

func (c Config) withDefaults() Config {
	c.Members = cmp.Or(c.Members, DefaultMembers)
	c.CHID = cmp.Or(c.CHID, DefaultCHID)
	c.stall, c.repair, c.joinRate = cmp.Or(c.stall, stallTime), cmp.Or(c.repair, repairTime), cmp.Or(c.joinRate, joinRate)
	return c
}

func (c Config) layout() (Layout, error) {
	if err := CheckName(c.Name); err != nil {
		return Layout{}, err
	}
	if c.CHID < CHIDMin || c.CHID > CHIDMax {
		return Layout{}, fmt.Errorf("CHID 0x%04x is not one of virtual ISM devices, which are 0x%04x to 0x%04x", c.CHID, CHIDMin, CHIDMax)
	}
	return NewLayout(c.Size, c.Members)
}

// Fabric is a memory and its members. Listen comes first, and once. All other methods can be called at the same time.
type Fabric struct {
	cfg    Config
	layout Layout
	uuid   [16]byte
	mem    *memory
	// doorbells are by number and vector.
	doorbells [][Vectors]*eventfd
	// kept is the socket that the Store has kept, until Listen uses it.
	kept keptSocket
	// inStore says that the Store keeps the memory, so that the next server continues the fabric.
	inStore bool

	mu      sync.Mutex
	members []*member // by number; nil if no one has it
	closed  bool
	refused refusals
	// lingering are clients that have been refused, and whose connections have not ended.
	lingering map[*member]bool
	// joins and lines limit clients that join, and lines about members; unlogged is how many of these are left out.
	joins, lines bucket
	unlogged     int
	running      sync.WaitGroup
}

// New allocates a fabric, or continues the one of this name that c.Store has kept. If that has members and another configuration, it
// stays as it is until all members are gone and the server is restarted; a line in the log says so. The errors are those of Check, and
// that the host lacks memory or files; c.Store still keeps the fabric then.
func New(c Config) (*Fabric, error) {
	c = c.withDefaults()
	layout, err := c.layout()
	if err != nil {
		return nil, fmt.Errorf("fabric %q: %w", c.Name, err)
	}
	f := &Fabric{cfg: c, layout: layout, lingering: map[*member]bool{}, joins: newBucket(joinBurst, c.joinRate), lines: newBucket(lineBurst, lineRate)}
	if ok, err := f.restore(); ok || err != nil {
		if err != nil {
			return nil, fmt.Errorf("fabric %q: %w", c.Name, err)
		}
		return f, nil
	}
	// A random UUID of version 4.
	_, _ = rand.Read(f.uuid[:])
	f.uuid[6], f.uuid[8] = f.uuid[6]&0x0f|0x40, f.uuid[8]&0x3f|0x80
	if f.mem, err = newMemory(c.Name, c.Size, c.HugePages, layout.header(c.Name, c.CHID, f.uuid)); err != nil {
		f.kept.close()
		return nil, fmt.Errorf("fabric %q: %w", c.Name, err)
	}
	f.members, f.doorbells = make([]*member, c.Members), make([][Vectors]*eventfd, c.Members)
	if _, err := f.makeDoorbells(); err != nil {
		f.kept.close()
		f.closeDoorbells()
		f.mem.close()
		return nil, fmt.Errorf("fabric %q: %w", c.Name, err)
	}
	// The Store has the memory last: with it, it has everything.
	f.keepMemory()
	return f, nil
}

// writeHeader writes the header again, from which a new member learns the layout.
func (f *Fabric) writeHeader() error {
	return f.mem.write(0, f.layout.header(f.cfg.Name, f.cfg.CHID, f.uuid))
}

// log reports an event.
func (f *Fabric) log(format string, args ...any) {
	if f.cfg.Log != nil {
		f.cfg.Log("fabric " + f.cfg.Name + ": " + fmt.Sprintf(format, args...))
	}
}

// Close ends serving. The members' connections end, unless the Store has kept them; QEMU does not notice that, and members that are
// connected go on among themselves in both cases. It always returns nil.
func (f *Fabric) Close() error {
	f.flush()
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	f.closeMembers()
	f.mu.Unlock()
	f.kept.close()

	ended := make(chan struct{})
	go func() {
		f.running.Wait()
		f.closeDoorbells()
		f.mem.close()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(closeTime):
		// A goroutine waits for a thing that it should not. It ends with this process.
	}
	return nil
}

// closeMembers closes the connections of all members, and of clients that have become none. Called with mu.
func (f *Fabric) closeMembers() {
	for m := range f.lingering {
		m.conn.Close()
	}
	for _, m := range f.members {
		if m != nil {
			m.conn.Close()
		}
	}
}

// flush waits until members that are joining have been sent everything, so that the next server goes on serving them.
func (f *Fabric) flush() {
	f.mu.Lock()
	members := slices.Clone(f.members)
	f.mu.Unlock()
	end := time.After(min(closeTime, f.cfg.stall))
	for _, m := range members {
		if m == nil {
			continue
		}
		select {
		case <-m.welcomed:
		case <-end:
			return
		}
	}
}

// errFull is the reason for which a connection is refused.
var errFull = errors.New("all numbers of members are taken")

// refusals limits the lines about refused connections to one in a second.
type refusals struct {
	last  time.Time
	count int
}

// add counts a refused connection, and returns how many there were since the last line, 0 if it is too early for another one.
func (r *refusals) add(now time.Time) int {
	r.count++
	if now.Sub(r.last) < time.Second {
		return 0
	}
	n := r.count
	r.last, r.count = now, 0
	return n
}
