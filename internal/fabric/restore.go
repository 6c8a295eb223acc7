// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fabric

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The Store has the files of a fabric under these names, each of which begins with the fabric's:
//
//	memory/MEMBERS/CHID/UUID/HUGEPAGES
//	socket
//	vector/NUMBER/VECTOR    as soon as a member has its number
//	peer/NUMBER/SINCE       its connection, when it has received everything
//	expelled/NUMBER/SINCE   instead, if it is not served any more
//
// The names have all that the server needs to know: members can change the memory.

// storeName returns the name of a file in the Store.
func (f *Fabric) storeName(name string) string { return f.cfg.Name + "/" + name }

func (f *Fabric) memoryName() string {
	return fmt.Sprintf("memory/%d/%04x/%x/%t", f.layout.Members, f.cfg.CHID, f.uuid, f.cfg.HugePages)
}

func vectorName(number, vector int) string { return fmt.Sprintf("vector/%d/%d", number, vector) }

func (m *member) storeName() string {
	kind := "peer"
	if m.expelled {
		kind = "expelled"
	}
	return fmt.Sprintf("%s/%d/%d", kind, m.number, m.since.Unix())
}

// keep has the Store keep a file.
func (f *Fabric) keep(name string, file *os.File) {
	f.stored(f.cfg.Store.Add(f.storeName(name), int(file.Fd())))
}

// keepVectors has the Store keep a member's doorbells.
func (f *Fabric) keepVectors(m *member) {
	for i, v := range m.vectors {
		f.stored(f.cfg.Store.Add(f.storeName(vectorName(m.number, i)), v.fd))
	}
}

// keepMember has the Store keep a member's connection.
func (f *Fabric) keepMember(m *member) {
	f.stored(f.cfg.Store.AddConn(f.storeName(m.storeName()), m.conn))
}

// forget removes a member's files from the Store.
func (f *Fabric) forget(m *member) {
	for i := range m.vectors {
		f.stored(f.cfg.Store.Remove(f.storeName(vectorName(m.number, i))))
	}
	f.stored(f.cfg.Store.Remove(f.storeName(m.storeName())))
}

func (f *Fabric) stored(err error) {
	if err != nil {
		f.log("%v: a restart of the server will separate it from its members", err)
	}
}

// keptSocket is the listening socket that the Store has kept.
type keptSocket struct {
	fd int
	is bool
}

func (k *keptSocket) close() {
	if k.is {
		unix.Close(k.fd)
		k.is = false
	}
}

// keptFiles are what the Store has kept of a fabric, sorted.
type keptFiles struct {
	memory          int
	hasMemory       bool
	members         int
	chid            uint16
	uuid            [16]byte
	huge            bool
	peers, expelled map[int]keptPeer
	vectors         map[int]map[int]int // by member and vector
	useless         map[string]int
}

// keptPeer is a connection.
type keptPeer struct {
	fd    int
	since time.Time
	name  string
}

var errName = errors.New("unknown name, or a second one of the same file")

// sortKept sorts files by their names.
func sortKept(files map[string]int) *keptFiles {
	k := &keptFiles{peers: map[int]keptPeer{}, expelled: map[int]keptPeer{}, vectors: map[int]map[int]int{}, useless: map[string]int{}}
	for name, fd := range files {
		if err := k.add(name, strings.Split(name, "/"), fd); err != nil {
			k.useless[name] = fd
		}
	}
	return k
}

func (k *keptFiles) add(name string, words []string, fd int) error {
	switch {
	case words[0] == "memory" && len(words) == 5 && !k.hasMemory:
		uuid, err := hex.DecodeString(words[3])
		members, merr := strconv.Atoi(words[1])
		chid, cerr := strconv.ParseUint(words[2], 16, 16)
		if err = errors.Join(err, merr, cerr); err != nil || len(uuid) != len(k.uuid) {
			return errName
		}
		copy(k.uuid[:], uuid)
		k.memory, k.hasMemory, k.members, k.chid, k.huge = fd, true, members, uint16(chid), words[4] == "true"
		return nil
	case len(words) != 3:
		return errName
	}
	number, err := strconv.Atoi(words[1])
	last, lerr := strconv.ParseInt(words[2], 10, 64)
	if err = errors.Join(err, lerr); err != nil || number < 0 || number >= MembersMax {
		return errName
	}
	switch words[0] {
	case "peer":
		if _, ok := k.peers[number]; ok {
			return errName
		}
		k.peers[number] = keptPeer{fd, time.Unix(last, 0), name}
	case "expelled":
		if _, ok := k.expelled[number]; ok {
			return errName
		}
		k.expelled[number] = keptPeer{fd, time.Unix(last, 0), name}
	case "vector":
		if last < 0 || last >= Vectors {
			return errName
		}
		if k.vectors[number] == nil {
			k.vectors[number] = map[int]int{}
		}
		if _, ok := k.vectors[number][int(last)]; ok {
			return errName
		}
		k.vectors[number][int(last)] = fd
	default:
		return errName
	}
	return nil
}

// restore continues the fabric that the Store has kept. It returns false if there is none, or if it has no members and another
// configuration; then the Store does not keep it any more.
func (f *Fabric) restore() bool {
	files := f.cfg.Store.Take(f.storeName(""))
	if fd, ok := files["socket"]; ok {
		f.kept = keptSocket{fd: fd, is: true}
		delete(files, "socket")
	}
	k := sortKept(files)
	if !f.restoreMemory(k) {
		for name, fd := range files {
			f.stored(f.cfg.Store.Remove(f.storeName(name)))
			unix.Close(fd)
		}
		return false
	}
	for name, fd := range k.useless {
		f.stored(f.cfg.Store.Remove(f.storeName(name)))
		unix.Close(fd)
	}
	f.members = make([]*member, f.layout.Members)
	f.mu.Lock()
	defer f.mu.Unlock()
	lost := f.restoreMembers(k)
	n := 0
	for _, m := range f.members {
		if m != nil {
			n++
			// The server may have been killed before it sent these. They are not sent again, because it is unknown what the client
			// has: QEMU refuses doorbells of a peer whose doorbells it has, and frees memory twice if a peer is gone of which it
			// has none.
			for number := range k.vectors {
				m.out.sent(number)
			}
			f.start(m)
		}
	}
	f.log("continued with %d members", n)
	for _, number := range lost {
		f.removeLost(number)
	}
	return true
}

// restoreMemory takes over the memory. It returns false if that is not possible, or not useful.
func (f *Fabric) restoreMemory(k *keptFiles) bool {
	if !k.hasMemory {
		return false
	}
	var st unix.Stat_t
	if err := unix.Fstat(k.memory, &st); err != nil {
		return false
	}
	layout, err := NewLayout(uint64(st.Size), k.members)
	if err != nil {
		return false
	}
	same := layout == f.layout && k.chid == f.cfg.CHID && k.huge == f.cfg.HugePages
	if !same && len(k.peers)+len(k.expelled) == 0 {
		return false
	}
	file, err := openFD(k.memory, "memory of fabric "+f.cfg.Name)
	if err != nil {
		return false
	}
	mem, err := mapMemory(file, k.huge)
	if err != nil {
		f.log("cannot continue: %v", err)
		return false
	}
	if !same {
		f.log("stays as it is while it has members, with %s for %d members and CHID 0x%04x: restart the server when they are gone",
			FormatSize(layout.Size), layout.Members, k.chid)
	}
	unix.Close(k.memory)
	f.mem, f.layout, f.uuid, f.cfg.CHID, f.cfg.HugePages = mem, layout, k.uuid, k.chid, k.huge
	return true
}

// restoreMembers takes over connections with their doorbells. It returns the numbers of members that had not received everything when
// the last server ended.
func (f *Fabric) restoreMembers(k *keptFiles) (lost []int) {
	for number, vectors := range k.vectors {
		p, connected := k.peers[number]
		if connected && len(vectors) == Vectors && number < len(f.members) {
			if m, err := restoreMember(number, p); err == nil {
				for i, fd := range vectors {
					m.vectors[i] = newEventfd(fd)
				}
				f.members[number] = m
				delete(k.peers, number)
				continue
			}
		}
		for i, fd := range vectors {
			f.stored(f.cfg.Store.Remove(f.storeName(vectorName(number, i))))
			unix.Close(fd)
		}
		if number < len(f.members) {
			lost = append(lost, number)
		}
	}
	for _, p := range k.peers {
		f.stored(f.cfg.Store.Remove(f.storeName(p.name)))
		// The connection is closed with both copies of its file.
		unix.Close(p.fd)
	}
	for number, p := range k.expelled {
		if number < len(f.members) && f.members[number] == nil {
			if m, err := restoreMember(number, p); err == nil {
				m.expelled = true
				f.members[number] = m
				continue
			}
		}
		f.stored(f.cfg.Store.Remove(f.storeName(p.name)))
		unix.Close(p.fd)
	}
	return lost
}

// restoreMember makes a member of a kept connection, without doorbells. It closes the file descriptor unless it fails.
func restoreMember(number int, p keptPeer) (*member, error) {
	file, err := openFD(p.fd, p.name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("%s is no connection", p.name)
	}
	m := &member{number: number, conn: conn, since: p.since}
	m.out.init()
	if m.pid, err = peerPID(conn); err != nil {
		conn.Close()
		return nil, err
	}
	unix.Close(p.fd)
	return m, nil
}

// openFD returns a file for a duplicate of a file descriptor.
func openFD(fd int, name string) (*os.File, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(dup), name), nil
}

// removeLost announces that a member is gone, which was joining when the server was killed. Called with mu.
func (f *Fabric) removeLost(number int) {
	f.log("member %d removed: the server was killed while it joined", number)
	f.retire(number, 0)
	f.announceGone(number)
}
