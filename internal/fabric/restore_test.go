// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fabric

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// keeps is a condition on what the service manager keeps: the beginnings of all names, sorted.
func keeps(prefixes ...string) func(map[string]int) bool {
	return func(names map[string]int) bool {
		all := slices.Sorted(maps.Keys(names))
		return slices.EqualFunc(all, prefixes, strings.HasPrefix)
	}
}

// keepsFabric is the same for a fabric of a number of members, with its doorbells and other files.
func keepsFabric(members int, others ...string) func(map[string]int) bool {
	all := append([]string{"blue/memory/", "blue/socket"}, others...)
	for n := range members {
		for i := range Vectors {
			all = append(all, "blue/"+vectorName(n, i))
		}
	}
	slices.Sort(all)
	return keeps(all...)
}

// startKept starts a server with a member. The service manager keeps both.
func startKept(t *testing.T) (m *manager, dir string, c Config, s *server, a *client) {
	t.Helper()
	m, dir, c = newManager(t), t.TempDir(), testConfig()
	c.Store = m.store()
	s = start(t, c, dir)
	a = s.join(t)
	m.wait(keepsFabric(4, "blue/peer/0/"))
	return m, dir, c, s, a
}

// TestRestart checks that members do not notice when the server restarts, and that one that has ended meanwhile is gone.
func TestRestart(t *testing.T) {
	m, dir, c := newManager(t), t.TempDir(), testConfig()
	c.Store = m.store()
	first := start(t, c, dir)
	a, b, gone := first.join(t), first.join(t), first.join(t)
	head := a.mapped()
	for n := range 3 {
		setGID(head, n, 1)
	}
	since := first.Status().Members[0].Since
	m.wait(keepsFabric(4, "blue/peer/0/", "blue/peer/1/", "blue/peer/2/"))
	first.stop()
	gone.close()
	if gid(head, 2) == 0 {
		t.Error("a restart removes members")
	}
	// This client connects while there is no server.
	early := first.dial(t)

	c.Store = m.store()
	second := start(t, c, dir)
	second.log.wait(t, "continued with 3 members")
	waitGID(t, head, 2, 0)
	for _, x := range []*client{a, b} {
		x.rung(VectorMembers)
	}
	early.join()
	// The third member may have its number yet when the new one joins.
	if early.number < 2 {
		t.Errorf("member %d joins with a number that another one has", early.number)
	}
	early.ring(0, VectorSignal)
	a.rung(VectorSignal)
	b.ring(early.number, VectorSignal)
	early.rung(VectorSignal)
	if gid(head, 0) == 0 || gid(head, 1) == 0 {
		t.Error("the GIDs are not those of the members that are there")
	}
	st := second.Status()
	if second.uuid != first.uuid || st.Members[0].Since.Unix() != since.Unix() || st.Members[0].PID != os.Getpid() {
		t.Errorf("the status has changed: %+v", st)
	}
	second.stop()
	for _, x := range []*client{a, b, early} {
		x.close()
	}
	c.Store = m.store()
	start(t, c, dir).waitMembers(t, 0)
	m.wait(keepsFabric(4))
}

// TestRestartWhileJoining checks that the number of a member that was joining when the server was killed stays taken: its guest may have
// the memory.
func TestRestartWhileJoining(t *testing.T) {
	m, dir, c, first, a := startKept(t)
	b := first.stall(t)
	m.wait(keepsFabric(4, "blue/joining/1", "blue/peer/0/", "blue/peer/1/"))
	head := a.mapped()
	setGID(head, 1, 1)
	first.stop()

	c.Store = m.store()
	second := start(t, c, dir)
	second.log.wait(t, "member 1 is removed, PID ")
	a.rung(VectorMembers)
	if g := gid(head, 1); g != removedGID {
		t.Errorf("its GID is %x", g)
	}
	if d := second.join(t); d.number != 2 {
		t.Errorf("the new member has number %d", d.number)
	}
	b.conn.Close()
	second.waitMembers(t, 2)
	m.wait(keepsFabric(4, "blue/peer/0/", "blue/peer/2/"))
}

// TestRestartBeforeMemory checks that nothing is left of a client whose connection the service manager does not have: it has not been sent
// the memory.
func TestRestartBeforeMemory(t *testing.T) {
	m, dir, c := newManager(t), t.TempDir(), testConfig()
	c.Store = m.store()
	first := start(t, c, dir)
	m.wait(keepsFabric(4))
	mark, err := makeEventfd()
	if err != nil {
		t.Fatal(err)
	}
	defer mark.put()
	if err := first.cfg.Store.Add("blue/joining/0", mark.fd); err != nil {
		t.Fatal(err)
	}
	first.stop()
	c.Store = m.store()
	if d := start(t, c, dir).join(t); d.number != 0 {
		t.Errorf("the new member has number %d", d.number)
	}
	m.wait(keepsFabric(4, "blue/peer/0/"))
}

// fewFiles has the process get no more files until the function that it returns is called.
func fewFiles(t *testing.T) (end func()) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRestartFails checks that the service manager keeps everything if a start fails for lack of files, and that the next one continues.
func TestRestartFails(t *testing.T) {
	m, dir, c, first, a := startKept(t)
	first.stop()

	c.Store = m.store()
	end := fewFiles(t)
	_, err := New(c)
	end()
	if !errors.Is(err, unix.EMFILE) {
		t.Fatalf("a start without files: %v", err)
	}
	m.settle()
	m.wait(keepsFabric(4, "blue/peer/0/"))
	c.Store = m.store()
	second := start(t, c, dir)
	second.log.wait(t, "continued with 1 members")
	if d := second.join(t); !a.knows(d) || d.number != 1 {
		t.Errorf("member %d is in another fabric", d.number)
	}
}

// TestRestoreMembersFails checks that a member is not dropped for lack of files.
func TestRestoreMembersFails(t *testing.T) {
	f, err := New(testConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeFDs(fds[:])
	end := fewFiles(t)
	_, err = f.restoreMembers(&keptFiles{peers: map[int]keptPeer{1: {fd: fds[0], name: "peer/1/5"}}})
	end()
	if !errors.Is(err, unix.EMFILE) {
		t.Fatalf("%v", err)
	}
	if _, err := unix.Write(fds[1], []byte{0}); err != nil {
		t.Errorf("its connection is closed: %v", err)
	}
}

// TestStoreNeed compares what is said to be needed with what a full fabric needs: each member can be joining, too.
func TestStoreNeed(t *testing.T) {
	m, c := newManager(t), testConfig()
	files, names := c.StoreNeed()
	c.Store = m.store()
	s := start(t, c, t.TempDir())
	for range c.Members {
		s.join(t)
	}
	m.wait(func(kept map[string]int) bool {
		all := 0
		for n := range c.Members {
			all += len("blue/"+joiningName(n)) + 1
		}
		for name := range kept {
			all += len(name) + 1
		}
		return len(kept) == files-c.Members && all == names
	})
}

// TestStoreIsFull checks that a client is refused if the service manager cannot keep it: the next server would give its number to another one.
func TestStoreIsFull(t *testing.T) {
	t.Setenv("FDSTORE", "13")
	m, c := newManager(t), testConfig()
	c.Store = m.store()
	s := start(t, c, t.TempDir())
	// 10 files of the fabric, and 2 while the first one joins.
	a := s.join(t)
	m.wait(keepsFabric(4, "blue/peer/0/"))
	s.join(t)
	m.wait(keepsFabric(4, "blue/peer/0/", "blue/peer/1/"))
	s.dial(t).checkRefused()
	s.log.wait(t, "refused a connection of PID ")
	a.close()
	s.waitMembers(t, 1)
	if d := s.join(t); d.number != 0 {
		t.Errorf("member %d", d.number)
	}
}

// TestRestartWithoutDoorbells checks that a server makes the doorbells that it has not been kept, and only these.
func TestRestartWithoutDoorbells(t *testing.T) {
	m, dir, c, first, a := startKept(t)
	first.stop()
	for _, name := range []string{"2/0", "2/1", "3/1"} {
		m.handle("FDSTOREREMOVE=1\nFDNAME=blue/vector/"+name, nil)
	}
	c.Store = m.store()
	second := start(t, c, dir)
	second.log.wait(t, "the last server had no doorbells of numbers [2 3]: ")
	m.wait(keepsFabric(4, "blue/peer/0/"))
	b, d := second.join(t), second.join(t)
	if !a.knows(b) || a.knows(d) || !b.knows(d) {
		t.Error("the doorbells are not the kept ones and new ones")
	}
}

// TestRestartWithOtherConfiguration checks that a fabric does not change while it has members.
func TestRestartWithOtherConfiguration(t *testing.T) {
	m, dir, c, first, a := startKept(t)
	first.stop()

	c.Members, c.Size, c.CHID, c.Store = 8, SizeMin(8), 0xff20, m.store()
	second := start(t, c, dir)
	second.log.wait(t, "stays as it is while it has members, with 8M for 4 members and CHID 0xff10: restart the server when they are gone")
	if st := second.Status(); st.Limit != 4 || st.CHID != DefaultCHID || second.uuid != first.uuid {
		t.Errorf("the fabric has changed: %+v", st)
	}
	a.close()
	second.waitMembers(t, 0)
	m.wait(keepsFabric(4))
	second.stop()

	c.Store = m.store()
	third := start(t, c, dir)
	if st := third.Status(); st.Limit != 8 || st.CHID != 0xff20 || third.uuid == first.uuid {
		t.Errorf("the fabric has not changed: %+v", st)
	}
	m.wait(keepsFabric(8))
	third.join(t)
}

// TestRestartWithExpelledMember checks that the number of a member that is not served stays taken.
func TestRestartWithExpelledMember(t *testing.T) {
	m, dir, c := newManager(t), t.TempDir(), testConfig()
	c.Store = m.store()
	c.stall = 100 * time.Millisecond
	first := start(t, c, dir)
	a := first.stall(t)
	first.join(t)
	first.log.wait(t, "member 0 removed")
	m.wait(keepsFabric(4, "blue/joining/0", "blue/peer/0/", "blue/peer/1/"))
	first.stop()

	c.Store = m.store()
	second := start(t, c, dir)
	if got := removed(second.Status()); !slices.Equal(got, []int{0}) {
		t.Errorf("the status has these removed members: %v", got)
	}
	if d := second.join(t); d.number != 2 {
		t.Errorf("the new member has number %d", d.number)
	}
	a.close()
	second.waitMembers(t, 2)
	if d := second.join(t); d.number != 0 {
		t.Errorf("the new member has number %d", d.number)
	}
}

// TestSocketIsGone checks that the socket is made again if its path has been removed.
func TestSocketIsGone(t *testing.T) {
	m, dir, c := newManager(t), t.TempDir(), testConfig()
	c.Store = m.store()
	first := start(t, c, dir)
	m.wait(keepsFabric(4))
	first.stop()
	if err := os.Remove(first.path); err != nil {
		t.Fatal(err)
	}
	c.Store = m.store()
	start(t, c, dir).join(t)
}

// TestKeptSocketOwner checks that a kept socket belongs to the server's user when the configuration does not name an owner any more.
func TestKeptSocketOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files to others")
	}
	m, c := newManager(t), testConfig()
	c.Store = m.store()
	first := start(t, c, t.TempDir())
	m.wait(keepsFabric(4))
	first.stop()
	if err := os.Lchown(first.path, 1, 1); err != nil {
		t.Fatal(err)
	}
	c.Store = m.store()
	start(t, c, filepath.Dir(first.path)).join(t)
	st, err := os.Lstat(first.path)
	if err != nil {
		t.Fatal(err)
	}
	if owner := st.Sys().(*syscall.Stat_t); owner.Uid != 0 || owner.Gid != 0 {
		t.Errorf("it belongs to user %d, group %d", owner.Uid, owner.Gid)
	}
}

// TestSortKeptTwice checks that the second file of a member is not lost, so that it is closed.
func TestSortKeptTwice(t *testing.T) {
	k := sortKept(map[string]int{
		"peer/1/5": 10, "peer/1/6": 11, "joining/2": 12, "joining/02": 13, "vector/1/0": 14, "vector/01/0": 15, "vector/1/1": 16,
	})
	if len(k.useless) != 3 || len(k.peers) != 1 || len(k.joining) != 1 || len(k.vectors[1]) != 2 {
		t.Errorf("%+v", k)
	}
}

// FuzzSortKept checks that any names that the service manager may pass are no problem.
func FuzzSortKept(f *testing.F) {
	f.Add("memory/4/ff10/000102030405060708090a0b0c0d0e0f/false,peer/1/5,joining/1,joining/2,vector/1/0")
	f.Add("memory/-4/ff10/00/false,peer/-1/5,vector/1/2,vector/64/0,joining/64,joining/9/x,,/,///")
	f.Fuzz(func(t *testing.T, names string) {
		m := newManager(t)
		file, err := createMemfd("test", false)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(file)
		if err := unix.Ftruncate(file, int64(SizeMin(4))); err != nil {
			t.Fatal(err)
		}
		for name := range strings.SplitSeq(names, ",") {
			fd, err := unix.FcntlInt(uintptr(file), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			if old, ok := m.kept["blue/"+name]; ok {
				unix.Close(old)
			}
			m.kept["blue/"+name] = fd
		}
		c := testConfig()
		c.Store = m.store()
		start(t, c, t.TempDir()).join(t)
	})
}

// TestStoreIsGone checks that the fabric serves when the service manager does not answer.
func TestStoreIsGone(t *testing.T) {
	m, c := newManager(t), testConfig()
	c.Store = m.store()
	m.conn.Close()
	s := start(t, c, t.TempDir())
	s.join(t)
	s.log.wait(t, "a restart of the server will separate it from its members")
}
