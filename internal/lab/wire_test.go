// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// plugs returns the ends of a new wire that emulators use.
func plugs(t *testing.T, hosts int) (*Wire, []net.Conn) {
	t.Helper()
	w, err := newWire(hosts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	var ends []net.Conn
	for i := range hosts {
		f := w.plug(i)
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		ends = append(ends, c)
	}
	return w, ends
}

func send(t *testing.T, c net.Conn, frames ...string) {
	t.Helper()
	var b []byte
	for _, f := range frames {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(f))), f...)
	}
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
}

// next reads a frame. If none arrives, its deadline ends the test.
func next(c net.Conn) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	var n [4]byte
	if _, err := io.ReadFull(c, n[:]); err != nil {
		return "", err
	}
	frame := make([]byte, binary.BigEndian.Uint32(n[:]))
	_, err := io.ReadFull(c, frame)
	return string(frame), err
}

// expect reads frames.
func expect(t *testing.T, c net.Conn, want ...string) {
	t.Helper()
	for _, w := range want {
		got, err := next(c)
		if err != nil {
			t.Fatalf("waiting for %.40q: %v", w, err)
		}
		if got != w {
			t.Fatalf("got %.40q, want %.40q", got, w)
		}
	}
}

func TestWireForward(t *testing.T) {
	_, c := plugs(t, 3)
	send(t, c[0], "one", "", "two")
	expect(t, c[1], "one", "", "two")
	expect(t, c[2], "one", "", "two")
	send(t, c[1], "back")
	// A frame does not return to its sender, so the next frame comes from the other host.
	expect(t, c[0], "back")
	expect(t, c[2], "back")
	big := ethernet(9, 1, strings.Repeat("x", maxFrame-minFrame))
	send(t, c[2], big)
	expect(t, c[0], big)
	expect(t, c[1], big)
}

// ethernet is a frame between two addresses, which differ in their last byte.
func ethernet(to, from byte, data string) string {
	return string([]byte{0x52, 0, 0, 0, 0, to, 0x52, 0, 0, 0, 0, from, 0x08, 0}) + data
}

// TestWireAddresses checks that a frame goes only where its destination has sent from, on joined wires too, and follows an address
// that moves.
func TestWireAddresses(t *testing.T) {
	w, c := plugs(t, 3)
	send(t, c[0], ethernet(9, 1, "to whom?"))
	expect(t, c[1], ethernet(9, 1, "to whom?"))
	expect(t, c[2], ethernet(9, 1, "to whom?"))
	other, d := plugs(t, 2)
	w.Join(other)
	send(t, c[1], ethernet(1, 2, "known"))
	expect(t, c[0], ethernet(1, 2, "known"))
	send(t, d[0], ethernet(1, 3, "known on the other wire"))
	expect(t, c[0], ethernet(1, 3, "known on the other wire"))
	send(t, d[1], ethernet(0, 1, "moved"))
	for _, e := range []net.Conn{c[0], c[1], c[2], d[0]} {
		expect(t, e, ethernet(0, 1, "moved"))
	}
	send(t, c[1], ethernet(1, 2, "moved, too"))
	expect(t, d[1], ethernet(1, 2, "moved, too"))
	// To everybody: what the others got before shows that nothing else went to them.
	send(t, c[0], ethernet(0, 4, "all"), "\xff\xff\xff\xff\xff\xff"+ethernet(0, 4, "broadcast")[6:])
	for _, e := range []net.Conn{c[1], c[2], d[0], d[1]} {
		expect(t, e, ethernet(0, 4, "all"), "\xff\xff\xff\xff\xff\xff"+ethernet(0, 4, "broadcast")[6:])
	}
	other.Cut()
	send(t, c[1], ethernet(1, 2, "lost"), ethernet(4, 2, "not lost"))
	expect(t, c[0], ethernet(4, 2, "not lost"))
}

// TestWireStall has a host read nothing: the others go on, and when it reads again, it gets whole frames.
func TestWireStall(t *testing.T) {
	_, c := plugs(t, 3)
	frame := ethernet(9, 1, strings.Repeat("x", 10000))
	for range 10 * queueLimit / len(frame) {
		send(t, c[0], frame)
		expect(t, c[1], frame)
	}
	end := make(chan error, 1)
	go func() {
		got, err := next(c[2])
		for ; err == nil && got == frame; got, err = next(c[2]) {
		}
		if err == nil && got != "end" {
			err = fmt.Errorf("part of a frame: %d bytes", len(got))
		}
		end <- err
	}()
	// It is lost while the host has not read enough.
	for {
		send(t, c[0], "end")
		expect(t, c[1], "end")
		select {
		case err := <-end:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

// TestWireFragments checks frames that arrive in pieces, including pieces of the length.
func TestWireFragments(t *testing.T) {
	_, c := plugs(t, 2)
	for _, b := range []byte("\x00\x00\x00\x05hello\x00\x00\x00\x01!") {
		if _, err := c[0].Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, c[1], "hello", "!")
}

func TestWireCut(t *testing.T) {
	w, c := plugs(t, 2)
	send(t, c[0], "before")
	expect(t, c[1], "before")
	w.Cut()
	send(t, c[0], "lost", "too")
	w.sync(t, c[0])
	w.Restore()
	send(t, c[0], "after")
	expect(t, c[1], "after")
}

// sync returns when everything that from has sent so far was handled: frames of one host keep their order, so a marker
// that the drop function sees comes last.
func (w *Wire) sync(t *testing.T, from net.Conn) {
	t.Helper()
	const marker = "\x00sync marker\x00"
	seen := make(chan struct{})
	w.mu.Lock()
	cut, drop := w.cut, w.drop
	w.cut = false
	w.drop = func(i int, frame []byte) bool {
		if string(frame) == marker {
			close(seen)
			return true
		}
		return cut || (drop != nil && drop(i, frame))
	}
	w.mu.Unlock()
	send(t, from, marker)
	select {
	case <-seen:
	case <-time.After(10 * time.Second):
		t.Fatal("the wire does not take frames any more")
	}
	w.set(func() { w.cut, w.drop = cut, drop })
}

func TestWireDrop(t *testing.T) {
	w, c := plugs(t, 2)
	w.Drop(func(from int, frame []byte) bool { return from == 0 && bytes.Contains(frame, []byte("b")) })
	send(t, c[0], "a", "b", "cb", "d")
	expect(t, c[1], "a", "d")
	send(t, c[1], "b")
	expect(t, c[0], "b")
	w.Drop(nil)
	send(t, c[0], "b")
	expect(t, c[1], "b")
}

// TestWireOversized checks that only a host that announces a frame of impossible length is disconnected.
func TestWireOversized(t *testing.T) {
	_, c := plugs(t, 3)
	if _, err := c[0].Write([]byte{0xff, 0xff, 0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	_ = c[0].SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := c[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection stays: %v", err)
	}
	send(t, c[1], "alive")
	expect(t, c[2], "alive")
}

func TestWireHostGone(t *testing.T) {
	_, c := plugs(t, 3)
	c[0].Close()
	for range 10 {
		send(t, c[1], "still")
		expect(t, c[2], "still")
	}
}

func TestWireCapture(t *testing.T) {
	w, c := plugs(t, 2)
	first, second := filepath.Join(t.TempDir(), "1"), filepath.Join(t.TempDir(), "2")
	send(t, c[0], "not seen")
	expect(t, c[1], "not seen")
	begin := time.Now()
	if err := w.Capture(first); err != nil {
		t.Fatal(err)
	}
	send(t, c[0], "hello")
	expect(t, c[1], "hello")
	w.Drop(func(_ int, f []byte) bool { return string(f) == "lost" })
	send(t, c[1], "lost", "world")
	expect(t, c[0], "world")
	// The file contains all frames immediately.
	checkPcap(t, first, begin, "hello", "world")
	if err := w.Capture(second); err != nil {
		t.Fatal(err)
	}
	send(t, c[0], "other file")
	expect(t, c[1], "other file")
	checkPcap(t, first, begin, "hello", "world")
	checkPcap(t, second, begin, "other file")
	if err := w.Capture(filepath.Join(t.TempDir(), "no", "such", "place")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that cannot be made: %v", err)
	}
}

// checkPcap parses a capture file: magic of the nanosecond variant, version 2.4, Ethernet.
func checkPcap(t *testing.T, file string, begin time.Time, want ...string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	if len(data) < 24 || le.Uint32(data) != 0xa1b23c4d || le.Uint16(data[4:]) != 2 || le.Uint16(data[6:]) != 4 || le.Uint32(data[20:]) != 1 {
		t.Fatalf("header % x", data[:min(24, len(data))])
	}
	var got []string
	for data = data[24:]; len(data) >= 16; {
		at := time.Unix(int64(le.Uint32(data)), int64(le.Uint32(data[4:])))
		if at.Before(begin) || at.After(time.Now()) {
			t.Errorf("time %v", at)
		}
		n := int(le.Uint32(data[8:]))
		if m := int(le.Uint32(data[12:])); m != n || len(data) < 16+n {
			t.Fatalf("record of %d bytes, %d originally, %d in the file", n, m, len(data)-16)
		}
		got = append(got, string(data[16:16+n]))
		data = data[16+n:]
	}
	if diff := cmp.Diff(want, got); diff != "" || len(data) != 0 {
		t.Errorf("%d bytes too many; %s", len(data), diff)
	}
}

// TestUnplug replaces an emulator that has ended, while unread frames for it are pending.
func TestUnplug(t *testing.T) {
	w, c := plugs(t, 2)
	send(t, c[0], "first")
	expect(t, c[1], "first")
	many := make([]string, 4000)
	for i := range many {
		many[i] = strings.Repeat("lost", 250)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		send(t, c[0], many...)
	}()
	if err := w.unplug(1); err != nil {
		t.Fatal(err)
	}
	f := w.plug(1)
	there, err := net.FileConn(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	<-sent
	send(t, there, "from the next")
	expect(t, c[0], "from the next")
}

// BenchmarkWire measures the speed of the wire alone, with one write and one read per frame.
func BenchmarkWire(b *testing.B) {
	w, err := newWire(2)
	if err != nil {
		b.Fatal(err)
	}
	defer w.close()
	from, to := w.plug(0), w.plug(1)
	defer from.Close()
	defer to.Close()
	frame := append(binary.BigEndian.AppendUint32(nil, 1514), ethernet(9, 1, strings.Repeat("x", 1500))...)
	b.SetBytes(1514)
	go func() {
		for {
			if _, err := from.Write(frame); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, len(frame))
	for b.Loop() {
		if _, err := io.ReadFull(to, buf); err != nil {
			b.Fatal(err)
		}
	}
}
