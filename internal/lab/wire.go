// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxFrame bounds the length of an Ethernet frame that a guest may announce: the largest segmentation offload.
const maxFrame = 128 << 10

// Wire is a private network segment between guests. QEMU sends each Ethernet frame over a unix socket as a 4-byte length in
// network order and the frame; Wire passes it on as a switch does: to the guest that has sent from the destination's address, or
// to every other guest. The test can cut it, make it lose chosen frames, and capture its frames.
type Wire struct {
	mu      sync.Mutex
	ports   []*wirePort // one a host, so that a port's number is its host's; replaced as a whole
	macs    map[mac]*wirePort
	cut     bool
	joined  []*Wire
	drop    func(from int, frame []byte) bool
	capture *pcapWriter
}

// wirePort connects an emulator.
type wirePort struct {
	index int
	conn  net.Conn
	there *os.File // the emulator's end
	out   *frameQueue
	swaps *atomic.Bool // swapICRC for each frame, in both directions
}

// send sends a copy of a frame, behind its length, to the emulator.
func (p *wirePort) send(frame []byte) {
	if p.swaps.Load() {
		frame = slices.Clone(frame)
		swapICRC(frame[4:])
	}
	p.out.put(frame)
}

type mac [6]byte

// minFrame is the length of an Ethernet header: the addresses of destination and source, and a type.
const minFrame = 14

// newWire makes a wire with a port for each host.
func newWire(hosts int) (*Wire, error) {
	w := &Wire{macs: map[mac]*wirePort{}}
	for host := range hosts {
		p, err := newPort(host, new(atomic.Bool))
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
		w.ports = append(w.ports, p)
	}
	for _, p := range w.ports {
		go w.forward(p)
	}
	return w, nil
}

func newPort(index int, swaps *atomic.Bool) (*wirePort, error) {
	conn, there, err := socketpair()
	if err != nil {
		return nil, err
	}
	return &wirePort{index: index, conn: conn, there: there, out: newFrameQueue(conn), swaps: swaps}, nil
}

// swapICRC corrects the byte order of the CRC in RoCE packets from a host, and for it.
func (w *Wire) swapICRC(host int) { w.ports[host].swaps.Store(true) }

// plug returns the socket that a host's emulator connects to; the caller closes it.
func (w *Wire) plug(host int) *os.File {
	there := w.ports[host].there
	w.ports[host].there = nil
	return there
}

// unplug prepares the port of a host whose emulator has ended for the next emulator.
func (w *Wire) unplug(host int) error {
	old := w.ports[host]
	fresh, err := newPort(host, old.swaps)
	if err != nil {
		return err
	}
	w.set(func() {
		w.ports = slices.Clone(w.ports)
		w.ports[host] = fresh
		maps.DeleteFunc(w.macs, func(_ mac, p *wirePort) bool { return p == old })
	})
	old.out.close()
	go w.forward(fresh)
	return nil
}

// forward forwards the frames of one guest until the guest ends.
func (w *Wire) forward(from *wirePort) {
	r := bufio.NewReaderSize(from.conn, maxFrame)
	frame := make([]byte, 4+maxFrame)
	for {
		if _, err := io.ReadFull(r, frame[:4]); err != nil {
			return
		}
		n := binary.BigEndian.Uint32(frame)
		if n > maxFrame {
			from.conn.Close()
			return
		}
		if _, err := io.ReadFull(r, frame[4:4+n]); err != nil {
			return
		}
		if from.swaps.Load() {
			swapICRC(frame[4 : 4+n])
		}
		// The file of a capture is complete when the sender pauses.
		w.deliver(from, frame[:4+n], r.Buffered() == 0)
	}
}

func (w *Wire) deliver(from *wirePort, frame []byte, flush bool) {
	w.mu.Lock()
	lost := w.cut || (w.drop != nil && w.drop(from.index, frame[4:]))
	if !lost && w.capture != nil {
		w.capture.write(time.Now(), frame[4:], flush)
	}
	joined := w.joined
	w.mu.Unlock()
	if lost {
		return
	}
	w.learn(from, frame[4:])
	if w.unicast(from, frame) {
		return
	}
	for _, other := range joined {
		if other.unicast(from, frame) {
			return
		}
	}
	w.flood(from, frame)
	for _, other := range joined {
		other.flood(from, frame)
	}
}

// learn notes which port the source address of a frame is behind.
func (w *Wire) learn(from *wirePort, frame []byte) {
	if len(frame) < minFrame {
		return
	}
	source := mac(frame[6:12])
	w.mu.Lock()
	moved := w.macs[source] != from
	w.macs[source] = from
	joined := w.joined
	w.mu.Unlock()
	if moved {
		for _, other := range joined {
			other.set(func() { delete(other.macs, source) })
		}
	}
}

// unicast passes a frame on to the port that its destination address is behind, and returns false if that is not known.
func (w *Wire) unicast(from *wirePort, frame []byte) bool {
	if len(frame) < 4+minFrame {
		return false
	}
	w.mu.Lock()
	to := w.macs[mac(frame[4:10])]
	cut := w.cut
	w.mu.Unlock()
	if to != nil && to != from && !cut {
		to.send(frame)
	}
	return to != nil
}

// flood passes a frame on to all ports but the one that it comes from.
func (w *Wire) flood(from *wirePort, frame []byte) {
	w.mu.Lock()
	ports, cut := w.ports, w.cut
	w.mu.Unlock()
	for _, to := range ports {
		if to != from && !cut {
			to.send(frame)
		}
	}
}

// Join makes two wires one network, as a switch does. Each can still be cut.
func (w *Wire) Join(other *Wire) {
	w.set(func() { w.joined = append(w.joined, other) })
	other.set(func() { other.joined = append(other.joined, w) })
}

// Cut makes the wire lose every frame until Restore. The guests see no change of carrier.
func (w *Wire) Cut() { w.set(func() { w.cut = true }) }

// Restore ends Cut.
func (w *Wire) Restore() { w.set(func() { w.cut = false }) }

// Drop makes the wire lose the frames for which lose returns true; from is 0 for the first guest. nil ends it. lose is
// called with the wire's lock held: it must be quick and must not call the wire.
func (w *Wire) Drop(lose func(from int, frame []byte) bool) { w.set(func() { w.drop = lose }) }

func (w *Wire) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// Capture writes the frames from now on into a pcap file, until the wire is closed or Capture is called again.
func (w *Wire) Capture(file string) error {
	p, err := newPcap(file)
	if err != nil {
		return err
	}
	w.mu.Lock()
	old := w.capture
	w.capture = p
	w.mu.Unlock()
	return old.close()
}

func (w *Wire) close() error {
	var err error
	for _, p := range w.ports {
		p.out.close()
		if p.there != nil {
			err = errors.Join(err, p.there.Close())
			p.there = nil
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	err = errors.Join(err, w.capture.close())
	w.capture = nil
	return err
}

// pcapWriter writes the classic pcap format, nanosecond variant, link type Ethernet.
type pcapWriter struct {
	f   *os.File
	w   *bufio.Writer
	err error
}

func newPcap(file string) (*pcapWriter, error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	p := &pcapWriter{f: f, w: bufio.NewWriter(f)}
	head := binary.LittleEndian.AppendUint32(nil, 0xa1b23c4d)
	head = binary.LittleEndian.AppendUint16(head, 2)
	head = binary.LittleEndian.AppendUint16(head, 4)
	head = append(head, make([]byte, 8)...)
	head = binary.LittleEndian.AppendUint32(head, maxFrame)
	head = binary.LittleEndian.AppendUint32(head, 1)
	_, p.err = p.w.Write(head)
	p.err = errors.Join(p.err, p.w.Flush())
	return p, nil
}

// write adds a frame. With flush, the file is complete up to this frame for a program that follows it, and if this process
// is killed.
func (p *pcapWriter) write(at time.Time, frame []byte, flush bool) {
	rec := binary.LittleEndian.AppendUint32(nil, uint32(at.Unix()))
	rec = binary.LittleEndian.AppendUint32(rec, uint32(at.Nanosecond()))
	rec = binary.LittleEndian.AppendUint32(rec, uint32(len(frame)))
	rec = binary.LittleEndian.AppendUint32(rec, uint32(len(frame)))
	if p.err == nil {
		_, p.err = p.w.Write(append(rec, frame...))
	}
	if p.err == nil && flush {
		p.err = p.w.Flush()
	}
}

// close ends the file. p is nil if no capture was started.
func (p *pcapWriter) close() error {
	if p == nil {
		return nil
	}
	if p.err == nil {
		p.err = p.w.Flush()
	}
	return errors.Join(p.err, p.f.Close())
}
