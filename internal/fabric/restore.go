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
//	joining/NUMBER          a file that means nothing, until a member has been sent everything; for good if it is expelled
//	peer/NUMBER/SINCE       a member's connection, from before it is sent the memory
//
// The service manager keeps a file under one name only, and drops a second one. So the name of a connection cannot change.
//
// The names have all that the server needs to know: members can change the memory.

// storeName returns the name of a file in the Store.
func (f *Fabric) storeName(name string) string { return f.cfg.Name + "/" + name }

func (f *Fabric) memoryName() string {
	return fmt.Sprintf("memory/%d/%04x/%x/%t", f.layout.Members, f.cfg.CHID, f.uuid, f.cfg.HugePages)
}

func vectorName(number, vector int) string { return fmt.Sprintf("vector/%d/%d", number, vector) }

func joiningName(number int) string { return fmt.Sprintf("joining/%d", number) }

func peerName(number int, since time.Time) string {
	return fmt.Sprintf("peer/%d/%d", number, since.Unix())
}

// keepMemory has the Store keep the memory.
func (f *Fabric) keepMemory() {
	err := f.cfg.Store.Add(f.storeName(f.memoryName()), int(f.mem.file.Fd()))
	f.stored(err)
	f.inStore = f.cfg.Store != nil && err == nil
}

// keepMember has the Store keep a member's connection, as one that is joining: if the server is killed before it has sent everything, the
// next one does not know whether the guest has the memory, and must not give its number to another one. Called with mu.
func (f *Fabric) keepMember(m *member) error {
	if f.cfg.Store == nil {
		return nil
	}
	mark, err := makeEventfd()
	if err != nil {
		return err
	}
	defer mark.put()
	if err = f.cfg.Store.Add(f.storeName(joiningName(m.number)), mark.fd); err == nil {
		m.marked = true
		err = f.cfg.Store.AddConn(f.storeName(peerName(m.number, m.since)), m.conn)
	}
	// A fabric that ends with this server has no second member of this number.
	if err != nil && !f.inStore {
		f.stored(err)
		return nil
	}
	if err != nil {
		f.unmark(m)
	}
	return err
}

// unmark has the Store forget that a member is joining. Called with mu.
func (f *Fabric) unmark(m *member) {
	if m.marked {
		f.stored(f.cfg.Store.Remove(f.storeName(joiningName(m.number))))
		m.marked = false
	}
}

// StoreNeed returns how many files of a fabric the Store keeps at most, and how long their names are, with a separator for each.
func (c Config) StoreNeed() (files, names int) {
	c = c.withDefaults()
	f := &Fabric{cfg: c, layout: Layout{Members: c.Members}}
	all := []string{f.memoryName(), "socket"}
	for number := range c.Members {
		all = append(all, joiningName(number), peerName(number, time.Now()))
		for vector := range Vectors {
			all = append(all, vectorName(number, vector))
		}
	}
	for _, name := range all {
		names += len(f.storeName(name)) + 1
	}
	return len(all), names
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
	memory    int
	hasMemory bool
	members   int
	chid      uint16
	uuid      [16]byte
	huge      bool
	peers     map[int]keptPeer
	joining   map[int]int         // files without meaning, by number
	vectors   map[int]map[int]int // by number and vector
	useless   map[string]int
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
	k := &keptFiles{peers: map[int]keptPeer{}, joining: map[int]int{}, vectors: map[int]map[int]int{}, useless: map[string]int{}}
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
	case len(words) < 2:
		return errName
	}
	number, err := strconv.Atoi(words[1])
	if err != nil || number < 0 || number >= MembersMax {
		return errName
	}
	if words[0] == "joining" && name == joiningName(number) {
		k.joining[number] = fd
		return nil
	}
	if len(words) != 3 {
		return errName
	}
	last, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return errName
	}
	switch words[0] {
	case "peer":
		if _, ok := k.peers[number]; ok {
			return errName
		}
		k.peers[number] = keptPeer{fd, time.Unix(last, 0), name}
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
// configuration; then the Store does not keep it any more. After an error, the Store keeps everything for the next attempt.
func (f *Fabric) restore() (bool, error) {
	files := f.cfg.Store.Take(f.storeName(""))
	if fd, ok := files["socket"]; ok {
		f.kept = keptSocket{fd: fd, is: true}
		delete(files, "socket")
	}
	k := sortKept(files)
	ok, err := f.restoreMemory(k)
	if err != nil {
		f.kept.close()
		return false, err
	}
	if !ok {
		for name, fd := range files {
			f.stored(f.cfg.Store.Remove(f.storeName(name)))
			unix.Close(fd)
		}
		return false, nil
	}
	f.inStore = true
	for name, fd := range k.useless {
		f.stored(f.cfg.Store.Remove(f.storeName(name)))
		unix.Close(fd)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.restoreMembers(k)
	if err == nil {
		err = f.restoreDoorbells(k)
	}
	if err != nil {
		f.kept.close()
		f.closeMembers()
		f.closeDoorbells()
		f.mem.close()
		return false, err
	}
	f.serveRestored()
	f.log("continued with %d members", n)
	return true, nil
}

// restoreMemory takes over the memory. It returns false if there is none, or it is not useful: what is kept cannot be a fabric, or no one
// uses it and another one is wanted. Other errors may be over at the next attempt.
func (f *Fabric) restoreMemory(k *keptFiles) (bool, error) {
	if !k.hasMemory {
		return false, nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(k.memory, &st); err != nil {
		return false, fmt.Errorf("cannot continue: cannot examine the memory: %w", err)
	}
	layout, err := NewLayout(uint64(st.Size), k.members)
	if err != nil {
		return false, nil
	}
	same := layout == f.layout && k.chid == f.cfg.CHID && k.huge == f.cfg.HugePages
	if !same && len(k.peers) == 0 {
		return false, nil
	}
	file, err := openFD(k.memory, "memory of fabric "+f.cfg.Name)
	if err != nil {
		return false, fmt.Errorf("cannot continue: cannot open the memory: %w", err)
	}
	mem, err := mapMemory(file, k.huge)
	if err != nil {
		return false, fmt.Errorf("cannot continue: %w", err)
	}
	if !same {
		f.log("stays as it is while it has members, with %s for %d members and CHID 0x%04x: restart the server when they are gone",
			FormatSize(layout.Size), layout.Members, k.chid)
	}
	unix.Close(k.memory)
	f.mem, f.layout, f.uuid, f.cfg.CHID, f.cfg.HugePages = mem, layout, k.uuid, k.chid, k.huge
	return true, nil
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

// restoreMembers takes over connections, and returns how many. Called with mu.
func (f *Fabric) restoreMembers(k *keptFiles) (n int, err error) {
	f.members = make([]*member, f.layout.Members)
	for number, p := range k.peers {
		m, err := f.restorePeer(number, p)
		if err != nil {
			return 0, fmt.Errorf("cannot continue with member %d: %w", number, err)
		}
		if m == nil {
			continue
		}
		f.members[number] = m
		n++
	}
	for number, fd := range k.joining {
		unix.Close(fd)
		if number < len(f.members) && f.members[number] != nil {
			f.members[number].marked, f.members[number].expelled = true, true
			continue
		}
		f.stored(f.cfg.Store.Remove(f.storeName(joiningName(number))))
	}
	return n, nil
}

// serveRestored serves the members that restoreMembers has taken over. A number without one has no GID. One that was joining, or was expelled
// then, has to leave, but its guest may have the memory, so its number stays taken. Called with mu.
func (f *Fabric) serveRestored() {
	for number, m := range f.members {
		switch {
		case m == nil:
			f.setGID(number, 0)
			continue
		case m.expelled:
			f.log("member %d is removed, PID %d: it had not read its doorbells when the last server ended", number, m.pid)
			f.setGID(number, removedGID)
		}
		f.running.Go(func() { f.read(m) })
	}
	f.ringMembers()
}

// restorePeer takes over the connection of a member. It returns nil if the file is no such connection; then the Store does not keep
// it any more.
func (f *Fabric) restorePeer(number int, p keptPeer) (*member, error) {
	if number < len(f.members) {
		m, err := restoreMember(number, p)
		if !errors.Is(err, unix.ENOTSOCK) {
			return m, err
		}
	}
	f.stored(f.cfg.Store.Remove(f.storeName(p.name)))
	// The connection is closed with both copies of its file.
	unix.Close(p.fd)
	return nil, nil
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
		return nil, fmt.Errorf("%s is no connection: %w", p.name, unix.ENOTSOCK)
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
