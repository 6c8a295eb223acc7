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
//	vector/NUMBER/VECTOR    a doorbell, whether there is a member with this number or not
//	peer/NUMBER/SINCE       a member's connection, when everything has been sent to it
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

// keepMember has the Store keep a member's connection.
func (f *Fabric) keepMember(m *member) {
	f.stored(f.cfg.Store.AddConn(f.storeName(m.storeName()), m.conn))
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
	vectors         map[int]map[int]int // by number and vector
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
// configuration; then the Store does not keep it any more. The errors are those of creating doorbells.
func (f *Fabric) restore() (bool, error) {
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
		return false, nil
	}
	for name, fd := range k.useless {
		f.stored(f.cfg.Store.Remove(f.storeName(name)))
		unix.Close(fd)
	}
	if err := f.restoreDoorbells(k); err != nil {
		f.kept.close()
		f.closeDoorbells()
		f.mem.close()
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log("continued with %d members", f.restoreMembers(k))
	return true, nil
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

// restoreDoorbells takes over the doorbells, and makes those that a server of another version has not had.
func (f *Fabric) restoreDoorbells(k *keptFiles) error {
	f.doorbells = make([][Vectors]*eventfd, f.layout.Members)
	for number, vectors := range k.vectors {
		for vector, fd := range vectors {
			if number < len(f.doorbells) {
				f.doorbells[number][vector] = newEventfd(fd)
				continue
			}
			f.stored(f.cfg.Store.Remove(f.storeName(vectorName(number, vector))))
			unix.Close(fd)
		}
	}
	lacking, err := f.makeDoorbells()
	if len(lacking) > 0 && len(k.peers) > 0 {
		f.log("the last server had no doorbells of numbers %v: members of that time cannot ring those that join with them", lacking)
	}
	return err
}

// restoreMembers takes over connections, and returns how many. A number without one has no GID: a member that has joined while the last
// server was killed may have written it. Called with mu.
func (f *Fabric) restoreMembers(k *keptFiles) (n int) {
	f.members = make([]*member, f.layout.Members)
	for number, p := range k.peers {
		f.restorePeer(number, p, false)
	}
	for number, p := range k.expelled {
		f.restorePeer(number, p, true)
	}
	for number, m := range f.members {
		if m == nil {
			f.setGID(number, 0)
			continue
		}
		n++
		f.running.Go(func() { f.read(m) })
	}
	f.ringMembers()
	return n
}

// restorePeer takes over the connection of a member, or closes it. Called with mu.
func (f *Fabric) restorePeer(number int, p keptPeer, expelled bool) {
	if number < len(f.members) && f.members[number] == nil {
		if m, err := restoreMember(number, p); err == nil {
			m.expelled = expelled
			f.members[number] = m
			return
		}
	}
	f.stored(f.cfg.Store.Remove(f.storeName(p.name)))
	// The connection is closed with both copies of its file.
	unix.Close(p.fd)
}

// restoreMember makes a member of a kept connection. It closes the file descriptor unless it fails.
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
	m, err := newMember(conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	m.number, m.since = number, p.since
	close(m.welcomed)
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
