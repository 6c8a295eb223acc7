// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command scribble is a hostile member of a fabric: it maps the memory of an ivshmem device, which no driver uses, and writes garbage
// there until a signal comes. It leaves the parts of some hosts alone until SIGHUP comes, those of others always, and prints 'some' and 'all'
// when it has written to everything else once. Or it marks a host as removed from the fabric, as smc_ismd would, until a signal comes. Or it
// reads or writes single words.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The layout is that of kernel/transport/ism/fabric_layout.h.
const (
	headerLen = 96
	directory = 4096
	entryLen  = 64
	entryHost = 32
	blockLen  = 16384
)

// region is a part of the memory.
type region struct{ at, size uint64 }

// target is where to write.
type target struct {
	mem     []byte
	regions []region
	// areas are those with structures that are worth writing to.
	areas           []region
	blocks, blocks0 uint64
}

func main() {
	path := flag.String("device", "", "directory of the PCI device")
	spare := flag.String("spare", "", "names of hosts whose parts to leave alone, with commas")
	never := flag.String("never", "", "names of hosts whose parts to leave alone even after SIGHUP, with commas")
	remove := flag.String("remove", "", "only mark this host as removed, again and again")
	number := flag.String("number", "", "only print the number of this host")
	read := flag.Uint64("read", 0, "only print the word at this offset")
	write := flag.String("write", "", "only write words: OFFSET=VALUE, with commas")
	flag.Parse()
	mem, err := openDevice(*path)
	switch {
	case err != nil:
	case *remove != "":
		err = markRemoved(mem, *remove)
	case *number != "":
		var m uint64
		if m, err = memberOf(mem, *number); err == nil {
			fmt.Println(m)
		}
	case *read != 0:
		fmt.Println(binary.LittleEndian.Uint64(mem[*read:]))
	case *write != "":
		err = writeWords(mem, *write)
	default:
		scribble(mem, strings.Split(*spare, ","), strings.Split(*never, ","))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scribble:", err)
		os.Exit(1)
	}
}

// openDevice maps the memory of a PCI device.
func openDevice(path string) ([]byte, error) {
	f, err := os.OpenFile(path+"/resource2", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	return mem, nil
}

// scribble writes garbage.
func scribble(mem []byte, spare, never []string) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGTERM, unix.SIGINT)
	more := make(chan os.Signal, 1)
	signal.Notify(more, unix.SIGHUP)
	// The header is soon overwritten.
	some, all := plan(mem, slices.Concat(spare, never)), plan(mem, never)
	rng := rand.New(rand.NewPCG(1, uint64(len(some.areas))))
	t, say := some, "some"
	for {
		t.everywhere(rng)
		for range 2000 {
			t.once(rng)
		}
		if say != "" {
			fmt.Println(say)
			say = ""
		}
		select {
		case <-ended:
			return
		case <-more:
			t, say = all, "all"
		case <-time.After(time.Millisecond): // leaves this machine's processors to the other guests
		}
	}
}

// plan reads the header and the directory, before they are overwritten.
func plan(mem []byte, spare []string) *target {
	le := binary.LittleEndian
	members := int(le.Uint32(mem[8:]))
	areas, size := le.Uint64(mem[40:]), le.Uint64(mem[48:])
	t := &target{mem: mem, blocks: uint64(le.Uint32(mem[56:])), blocks0: uint64(le.Uint32(mem[60:]))}
	t.regions = []region{{0, headerLen}}
	for m := range uint64(members) {
		entry, area := region{directory + m*entryLen, entryLen}, region{areas + m*size, size}
		name := hostOf(mem, m)
		if !slices.Contains(spare, name) || name == "" {
			t.areas = append(t.areas, area)
			t.regions = append(t.regions, area, entry)
		}
	}
	return t
}

// hostOf returns the name of the host that is a member.
func hostOf(mem []byte, member uint64) string {
	at := directory + member*entryLen
	name, _, _ := strings.Cut(string(mem[at+entryHost:at+entryLen]), "\x00")
	return name
}

// memberOf returns the number of a host.
func memberOf(mem []byte, host string) (uint64, error) {
	for m := range uint64(binary.LittleEndian.Uint32(mem[8:])) {
		if hostOf(mem, m) == host {
			return m, nil
		}
	}
	return 0, fmt.Errorf("no member is host %s", host)
}

// markRemoved overwrites the GID of a host until a signal comes: the server clears the mark.
func markRemoved(mem []byte, host string) error {
	m, err := memberOf(mem, host)
	if err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGTERM, unix.SIGINT)
	for {
		store(mem[directory+m*entryLen:], ^uint64(0))
		select {
		case <-ended:
			return nil
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// writeWords writes words in their order.
func writeWords(mem []byte, words string) error {
	for word := range strings.SplitSeq(words, ",") {
		var at, value uint64
		if n, err := fmt.Sscanf(word, "%v=%v", &at, &value); n != 2 {
			return fmt.Errorf("%q is not OFFSET=VALUE: %w", word, err)
		}
		store(mem[at:], value)
	}
	return nil
}

// everywhere writes random bytes to some of each page.
func (t *target) everywhere(rng *rand.Rand) {
	for _, r := range t.regions {
		for at := r.at; at < r.at+r.size; at += 4096 {
			fill(t.mem[at:min(at+rng.Uint64N(64), r.at+r.size)], rng)
		}
	}
}

func fill(b []byte, rng *rand.Rand) {
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
}

// once writes to one structure: a flag, a signal, a descriptor, a CDC message, an entry of the directory, or any bytes.
func (t *target) once(rng *rand.Rand) {
	area := t.areas[rng.IntN(len(t.areas))]
	mem := t.mem[area.at : area.at+area.size]
	block := rng.Uint64N(t.blocks)
	if rng.IntN(2) == 0 {
		block = rng.Uint64N(min(t.blocks, 64)) // which are used first
	}
	dmbs := (4096 + t.blocks + 63) / 64 * 64
	switch rng.IntN(8) {
	case 0:
		mem[0] = byte(rng.Uint32())
	case 1:
		mem[4096+block] = byte(rng.Uint32())
	case 2:
		store(mem[dmbs+block*64:], rng.Uint64()>>(rng.UintN(3)*32))
	case 3:
		fill(mem[dmbs+block*64+8:dmbs+block*64+24], rng)
	case 4:
		store(mem[t.blocks0+block*blockLen:], rng.Uint64())
	case 5:
		store(mem[t.blocks0+block*blockLen+8:], rng.Uint64())
	case 6:
		r := t.regions[rng.IntN(len(t.regions))]
		at := r.at + rng.Uint64N(r.size)
		fill(t.mem[at:min(at+64, r.at+r.size)], rng)
	case 7:
		at := rng.Uint64N(area.size)
		fill(mem[at:min(at+256, area.size)], rng)
	}
}

// store writes an aligned word at once.
func store(b []byte, v uint64) {
	atomic.StoreUint64((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), v)
}
