// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ism

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/fabric"
	"github.com/smckit/smckit/internal/lab"
	"golang.org/x/sys/unix"
)

// The fabric of TestHostileMember.
const (
	hostileSize    = 16 << 20
	hostileMembers = 6
)

// hostileTime returns $SMCKIT_HOSTILE: how long the hostile member writes to everything in the end, 0 if that is not set.
func hostileTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SMCKIT_HOSTILE")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("SMCKIT_HOSTILE=%s: not a duration, 60m for example", text)
	}
	return d
}

// TestHostileMember has a member, c, write garbage to the fabric. The connections of a and b stay right as long as it does not touch their
// parts; in the end it touches all but those of d and e, and the kernels survive. Data between d and e is right all the time.
func TestHostileMember(t *testing.T) {
	onKernels(t, hostileMember)
}

func hostileMember(t *testing.T, kernel string) {
	limit := hostileTime(t)
	lt := boot(t, lab.Options{Kernel: kernel, Hosts: 5, Fabric: lab.Fabric{Size: hostileSize, Members: hostileMembers}})
	path := "/sys/bus/pci/devices/" + device(lt, "c")
	lt.Must("c", "rmmod smc_diag smc")
	address, echo := serve(lt, "echo", 5010)
	const uninvolved = "10.0.0.5:5015"
	defer lab.Kill(t, lt.Serve("e", "", "echo", uninvolved))
	stream := keepFrom(t, lt, "d", uninvolved, 4, "--size", "10000")

	// A host that is marked as removed has no SMC-D until it joins again, which it can when the server has cleared the mark.
	p := keep(t, lt, address, 4)
	remover := lt.StartIn("c", "", "scribble", "-device", path, "-remove", "a")
	fails(t, p)
	before := lt.Counters("b")
	lt.Must("a", "smcflow check "+address)
	if now := lt.Counters("b"); now.FellBack() != before.FellBack()+1 {
		t.Errorf("without a: %+v, was %+v", now, before)
	}
	pci := device(lt, "a")
	lt.Must("a", fmt.Sprintf("echo %[1]s >%[2]s/unbind; ! echo %[1]s >%[2]s/bind", pci, driver))
	lab.Stop(t, remover)
	if err := lt.Host("a").WaitFor(t.Context(), fmt.Sprintf("echo %s >%s/bind", pci, driver)); err != nil {
		t.Errorf("the server does not clear the mark: %v", err)
	}

	w := words{lt: lt, path: path}
	t.Run("strangers", func(t *testing.T) { strangers(t, w, address) })
	t.Run("kept blocks", func(t *testing.T) { keptBlocks(t, w) })
	t.Run("taken number", func(t *testing.T) { takenNumber(t, w, address) })
	p = keep(t, lt, address, 4)
	hostile := lt.StartIn("c", "", "sh", "-c", "exec scribble -device "+path+" -spare a,b -never d,e >/run/scribbled")
	scribbled(t, lt, "some")
	lt.Must("a", "smcflow check --conns 4 --size 3000000 "+address)
	lab.Stop(t, p)

	if err := hostile.Signal(unix.SIGHUP); err != nil {
		t.Fatal(err)
	}
	scribbled(t, lt, "all")
	underFire(t, lt, kernel, address, limit)
	lab.Stop(t, stream, hostile)
	lab.Kill(t, echo)
	for _, host := range []string{"a", "b", "d"} {
		nothingUsed(t, lt, host)
		unloads(t, lt, host)
	}
}

// underFire makes connections between a and b while their parts are overwritten: for a time, if there is a limit, else a number of rounds.
func underFire(t *testing.T, lt *lab.Test, kernel, address string, limit time.Duration) {
	t.Helper()
	rounds := 2
	if lab.Full() && kernel == lab.Newest() {
		rounds = 500
	}
	begun, done := time.Now(), 0
	for ; limit == 0 && done < rounds || time.Since(begun) < limit; done++ {
		// It may fail, or its bytes may be wrong, but it comes to an end.
		if r := lt.Run("a", "timeout", "60", "smcflow", "check", "--conns", "4", "--size", "300000", address); r.Code == 124 {
			t.Errorf("connections hang: %+v\n%s", r, lt.Must("a", "smcss -a; smcss -D"))
		}
	}
	t.Logf("%d rounds in %v", done, time.Since(begun))
}

// scribbled waits until the hostile member has overwritten some or all of the memory.
func scribbled(t *testing.T, lt *lab.Test, what string) {
	t.Helper()
	if err := lt.Host("c").WaitFor(t.Context(), "grep -q "+what+" /run/scribbled"); err != nil {
		t.Fatal(err)
	}
}

// words reads and writes words of the memory by the hostile member.
type words struct {
	lt   *lab.Test
	path string
}

// The layout is that of kernel/transport/ism/fabric_layout.h.
const (
	directoryAt, entryLen, entryUsed = 4096, 64, 8
	areaBeat, areaSignals, dmbLen    = 8, 4096, 64
)

// number returns that of a host.
func (w words) number(t *testing.T, host string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimSpace(w.lt.Must("c", "scribble -device "+w.path+" -number "+host)), 10, 8)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// write writes words.
func (w words) write(pairs ...uint64) {
	var all []string
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, fmt.Sprintf("%d=%d", pairs[i], pairs[i+1]))
	}
	w.lt.Must("c", "scribble -device "+w.path+" -write "+strings.Join(all, ","))
}

// read reads a word.
func (w words) read(at uint64) string {
	return strings.TrimSpace(w.lt.Must("c", fmt.Sprintf("scribble -device %s -read %d", w.path, at)))
}

// wait waits until a word fulfils a condition of test(1).
func (w words) wait(t *testing.T, at uint64, condition string) {
	t.Helper()
	if err := w.lt.Host("c").WaitFor(t.Context(), fmt.Sprintf("test $(scribble -device %s -read %d) %s", w.path, at, condition)); err != nil {
		t.Fatal(err)
	}
}

// looked waits until a host has compared the memory with what it knows twice: one of these was after now.
func (w words) looked(t *testing.T, layout fabric.Layout, host string) {
	t.Helper()
	at := layout.Area(int(w.number(t, host))) + areaBeat
	w.wait(t, at, "-ge $(("+w.read(at)+" + 2))")
}

// hostileLayout is that of the memory in TestHostileMember.
func hostileLayout(t *testing.T) fabric.Layout {
	t.Helper()
	layout, err := fabric.NewLayout(hostileSize, hostileMembers)
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

// unused returns the numbers of members that no host has whose module is loaded: that of c, and a free one.
func (w words) unused(t *testing.T) (numbers []uint64) {
	t.Helper()
	var used []uint64
	for _, host := range []string{"a", "b", "d", "e"} {
		used = append(used, w.number(t, host))
	}
	for n := range uint64(hostileMembers) {
		if !slices.Contains(used, n) {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// strangers has members appear in the directory that are not there. A host forgets which peers cannot use SMC because of the first one, but
// not because of those that follow within net.smc.remember_peers.
func strangers(t *testing.T, w words, address string) {
	layout, lt := hostileLayout(t), w.lt
	number := w.unused(t)[0]
	gid := directoryAt + number*entryLen
	lt.Must("a", "sysctl -qw net.smc.remember_peers=86400")
	lt.Must("b", "smcr ueid del LAB; smcr ueid add OTHER")
	defer func() {
		lt.Must("b", "smcr ueid del OTHER; smcr ueid add LAB")
		lt.Must("a", "sysctl -qw net.smc.remember_peers=0; smc_policy peers flush")
	}()
	const listed = "smc_policy peers | grep -q 10.0.0.2"
	lt.Must("a", "smcflow check "+address+"; "+listed)
	w.write(gid, number<<56|1)
	// A host that has joined less than a minute before may have been the last one for which they were forgotten.
	if err := lt.Host("a").WaitFor(t.Context(), "! "+listed); err != nil {
		t.Fatal(err)
	}
	lt.Must("a", "smcflow check "+address+"; "+listed)
	for i := range uint64(3) {
		w.write(gid, number<<56|(i+2))
		w.looked(t, layout, "a")
	}
	if r := lt.Run("a", "sh", "-c", listed); r.Code != 0 {
		t.Errorf("the host has forgotten its peers: %+v", r)
	}
	w.write(gid, 0)
}

// descriptors returns where those of a member begin, each with the token of a DMB.
func descriptors(layout fabric.Layout, member uint64) uint64 {
	return layout.Area(int(member)) + (areaSignals+uint64(layout.Blocks)+dmbLen-1)/dmbLen*dmbLen
}

// keptBlocks has two members name the same memory of a host before that joins: it uses none of it until both do not name it any more.
func keptBlocks(t *testing.T, w words) {
	layout, lt := hostileLayout(t), w.lt
	a, others := w.number(t, "a"), w.unused(t)
	// The first word of a descriptor that names a token.
	copies := func(member uint64) uint64 { return descriptors(layout, member) + 8 }
	pci := device(lt, "a")
	lt.Must("a", fmt.Sprintf("echo %s >%s/unbind", pci, driver))
	for _, m := range others {
		w.write(directoryAt+m*entryLen, m<<56|1)
	}
	w.write(copies(others[0]), a<<56|1<<40|5, copies(others[1]), a<<56|2<<36|6)
	lt.Must("a", fmt.Sprintf("echo %s >%s/bind", pci, driver))
	used := directoryAt + a*entryLen + entryUsed
	w.wait(t, used, fmt.Sprintf("-eq %d", 4*fabric.BlockLen))
	w.write(copies(others[0]), 0)
	w.looked(t, layout, "a")
	w.looked(t, layout, "a")
	w.wait(t, used, fmt.Sprintf("-eq %d", 4*fabric.BlockLen))
	w.write(copies(others[1]), 0)
	w.wait(t, used, "-eq 0")
	for _, m := range others {
		w.write(directoryAt+m*entryLen, 0)
	}
}

// takenNumber has another guest appear with the number of a host: the host leaves, its connections end, and it writes nothing more to the
// area, which may be the other guest's.
func takenNumber(t *testing.T, w words, address string) {
	lt, a := w.lt, w.number(t, "a")
	p := keep(t, lt, address, 1)
	token := descriptors(hostileLayout(t), a)
	before := w.read(token)
	if before == "0" {
		t.Fatal("the first block of the area has no DMB")
	}
	w.write(directoryAt+a*entryLen, a<<56|1)
	if err := lt.Host("a").WaitFor(t.Context(), "dmesg | grep -q 'another host has its number'"); err != nil {
		t.Fatal(err)
	}
	fails(t, p)
	if now := w.read(token); now != before {
		t.Errorf("the host has written to the area: %s instead of the token %s", now, before)
	}
	pci := device(lt, "a")
	lt.Must("a", fmt.Sprintf("echo %[1]s >%[2]s/unbind; echo %[1]s >%[2]s/bind", pci, driver))
	lt.Must("a", "smcflow check "+address)
}
