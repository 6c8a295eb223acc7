// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// ending is how a peer ends a handshake.
type ending struct {
	name  string
	steps []step
}

// endOf is what the peer says of itself in ACCEPT or CONFIRM. No adapter has the queue pair.
func endOf(s *tcpSession) *peer.EndR {
	return &peer.EndR{
		First: true, Addr: s.Self.Addr(), QPN: 0x100, PSN: 1, Rkey: 0x1001, RMB: 1 << 32, Size: peer.SizeCode, MTU: peer.MTUCode, Token: 7,
		MaxConns: 255, MaxLinks: 1,
	}
}

// putEnd sends ACCEPT or CONFIRM, which change changes.
func putEnd(kind byte, change func(msg []byte) []byte) step {
	return func(s *tcpSession) error {
		msg := endOf(s).Message(kind)
		if change != nil {
			msg = change(msg)
		}
		return s.Write(s.ctx, msg)
	}
}

// propose sends a PROPOSAL for SMC-Rv2, which change changes.
func propose(change func(msg []byte) []byte) step {
	return func(s *tcpSession) error {
		msg := peer.ProposalOf(s.Self.Addr())
		if change != nil {
			msg = change(msg)
		}
		return s.Write(s.ctx, msg)
	}
}

// diagnosed is a DECLINE with a diagnosis.
func diagnosed(reason uint32) []byte {
	return peer.With(dec2, 16, binary.BigEndian.AppendUint32(nil, reason)...)
}

// halfOf returns the first half of a message.
func halfOf(msg []byte) []byte { return msg[:len(msg)/2] }

// endingsByServers are those of servers.
var endingsByServers = []ending{
	{"DECLINE, no device", []step{offered, put(diagnosed(reasonNoDevice))}},
	{"DECLINE, no memory", []step{offered, put(diagnosed(0x01010000))}},
	{"DECLINE, timeout", []step{offered, put(diagnosed(reasonTimeout))}},
	{"DECLINE, internal", []step{offered, put(diagnosed(reasonInternal))}},
	{"DECLINE, unknown", []step{offered, put(diagnosed(0x12345678))}},
	{"DECLINE, out of sync", []step{offered, put(peer.With(diagnosed(reasonSync), 7, 0x28))}},
	{"DECLINE of version 1", []step{offered, put(dec1)}},
	{"FIN", []step{offered, fin}},
	{"RST", []step{offered, rst}},
	{"silence", []step{offered}},
	{"half an ACCEPT", []step{offered, putEnd(peer.Accept, halfOf)}},
	{"garbage", []step{offered, put(bytes.Repeat([]byte("garbage "), 20))}},
	{"ACCEPT with a wrong eyecatcher", []step{offered, putEnd(peer.Accept, with(0, 0))}},
	{"ACCEPT with a wrong trailer", []step{offered, putEnd(peer.Accept, with(-1, 0))}},
	{"CONFIRM instead", []step{offered, putEnd(peer.Confirm, nil)}},
	{"ACCEPT of version 1", []step{offered, put(peer.AcceptR1(peer.Accept))}},
	{"ACCEPT of a link group that is not", []step{offered, func(s *tcpSession) error {
		end := endOf(s)
		end.First = false
		return s.Write(s.ctx, end.Message(peer.Accept))
	}}},
	{"ACCEPT without its extension", []step{offered, putEnd(peer.Accept, func(msg []byte) []byte { return short(msg, peer.AtRFCE+4) })}},
	{"ACCEPT without limits", []step{offered, putEnd(peer.Accept, with(peer.AtRMaxConns, 0))}},
	{"ACCEPT, then no RDMA", []step{offered, putEnd(peer.Accept, nil), get(peer.Confirm)}},
	{"DECLINE after CONFIRM", []step{offered, putEnd(peer.Accept, nil), get(peer.Confirm), put(dec2)}},
	{"FIN after CONFIRM", []step{offered, putEnd(peer.Accept, nil), get(peer.Confirm), fin}},
}

// endingsByClients are those of clients. A DECLINE after ACCEPT with the sync bit is not among them: the stock module ends the link group,
// and waits for soft-RoCE for ever.
var endingsByClients = []ending{
	{"DECLINE instead", []step{smc, put(dec2)}},
	{"FIN", []step{smc, fin}},
	{"silence", []step{smc}},
	{"half a PROPOSAL", []step{smc, propose(halfOf)}},
	{"half a PROPOSAL, FIN", []step{smc, propose(halfOf), fin}},
	{"garbage", []step{smc, put([]byte("GET / HTTP/1.1\r\n\r\n"))}},
	{"wrong eyecatcher", []step{smc, propose(with(3, 0))}},
	{"wrong trailer", []step{smc, propose(with(-1, 0))}},
	{"CONFIRM instead", []step{smc, putEnd(peer.Confirm, nil)}},
	{"nothing offered", []step{smc, put(peer.ProposalNone())}},
	{"version 1 alone", []step{smc, func(s *tcpSession) error {
		return s.Write(s.ctx, peer.ProposalR([4]byte{10, 97}, 16))
	}}},
	{"another EID", []step{smc, propose(with(peer.AtV2+40, 'X'))}},
	{"no connections", []step{smc, propose(with(peer.AtMaxConns, 0))}},
	{"DECLINE after ACCEPT", []step{smc, propose(nil), get(peer.Accept), put(dec2)}},
	{"FIN after ACCEPT", []step{smc, propose(nil), get(peer.Accept), fin}},
	{"silence after ACCEPT", []step{smc, propose(nil), get(peer.Accept)}},
	{"garbage after ACCEPT", []step{smc, propose(nil), get(peer.Accept), put(bytes.Repeat([]byte("garbage "), 20))}},
	{"CONFIRM, then no RDMA", []step{smc, propose(nil), get(peer.Accept), putEnd(peer.Confirm, nil)}},
}

// play takes the steps of a case. The kernel may reset the connection before the last one.
func (e *ending) play(t *testing.T, s *tcpSession) {
	t.Helper()
	for i, step := range e.steps {
		if err := step(s); err != nil && !errors.Is(err, peer.ErrReset) {
			t.Fatalf("step %d: %v\n%+v", i+1, err, s.TCP)
		}
	}
}

// byServer runs a case against our connecting socket, and returns how it ends.
func (e *ending) byServer(t *testing.T, _ *peer.RoCENet, s *tcpSession) string {
	t.Helper()
	var fd int
	var result error
	done := make(chan struct{})
	go func() {
		defer close(done)
		fd, result = guest.Connect(s.Self, 2*peer.Timeout)
	}()
	e.play(t, s)
	if err := s.Serve(s.ctx, done); err != nil {
		t.Fatalf("connect() does not return: %v", err)
	}
	<-done
	if result == nil {
		defer unix.Close(fd)
		outcome := "works over " + transportOf(t, s)
		if err := guest.WriteAll(fd, s.hello); err != nil {
			t.Errorf("write: %v", err)
		}
		return outcome + e.helloAfter(t, s)
	}
	unix.Close(fd)
	outcome := "connect(): " + result.Error()
	var errno unix.Errno
	if errors.As(result, &errno) {
		outcome = "connect(): " + unix.ErrnoName(errno)
	}
	if e.name == "RST" {
		return outcome
	}
	if err := s.Ended(s.ctx); err != nil {
		t.Errorf("the connection does not end: %v", err)
	}
	return outcome + sent(s, nil)
}

// byClient runs a case against our listener, and returns how it ends.
func (e *ending) byClient(t *testing.T, n *peer.RoCENet, s *tcpSession) string {
	t.Helper()
	e.play(t, s)
	for n.Echo.App(s.Self) == nil && s.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(s.ctx, 50*time.Millisecond)
		err := s.Ended(ctx)
		cancel()
		// accept() may have returned a connection that has ended since.
		if err == nil && n.Echo.App(s.Self) == nil {
			return "not accepted" + sent(s, nil)
		}
	}
	if s.ctx.Err() != nil {
		t.Fatalf("the connection is neither accepted nor ended: %+v", s.TCP)
	}
	outcome := "works over " + transportOf(t, s)
	if s.Fin {
		return outcome + sent(s, nil)
	}
	if err := s.Write(s.ctx, s.hello); err != nil {
		t.Errorf("write: %v", err)
	}
	return outcome + e.helloAfter(t, s)
}

// helloAfter waits for the hello of the application, and describes what has come before it.
func (e *ending) helloAfter(t *testing.T, s *tcpSession) string {
	t.Helper()
	err := s.Until(s.ctx, func() bool { return bytes.HasSuffix(s.Got, s.hello) || s.Fin })
	if err != nil || !bytes.HasSuffix(s.Got, s.hello) {
		t.Errorf("no hello from the application, but %q: %v", s.Got, err)
	}
	return sent(s, s.hello)
}

// transportOf describes whether the connection of a case is SMC or TCP, and the reasons for TCP.
func transportOf(t *testing.T, s *tcpSession) string {
	t.Helper()
	d, err := netlinksmc.NewDiag()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for socket, err := range d.Sockets(t.Context(), 0) {
		switch {
		case err != nil:
			t.Fatal(err)
		case socket.Peer != s.Self:
		case socket.Fallback == nil:
			return socket.Mode.String()
		default:
			return fmt.Sprintf("TCP, %#08x/%#08x", uint32(socket.Fallback.Reason), uint32(socket.Fallback.PeerDiagnosis))
		}
	}
	return "no socket of SMC"
}

// sent describes what the kernel has sent since the last step, except the bytes at the end.
func sent(s *tcpSession, end []byte) string {
	names := map[byte]string{peer.Proposal: "PROPOSAL", peer.Accept: "ACCEPT", peer.Confirm: "CONFIRM", peer.Decline: "DECLINE"}
	text, rest := "", bytes.TrimSuffix(s.Got, end)
	for len(rest) >= 8 && bytes.HasPrefix(rest, []byte{0xe2, 0xd4, 0xc3}) {
		n := int(binary.BigEndian.Uint16(rest[5:]))
		if n < 8 || n > len(rest) {
			break
		}
		text += ", " + names[rest[4]]
		if rest[4] == peer.Decline {
			text += fmt.Sprintf(" %#08x of version %d", peer.Reason(rest), rest[7]>>4)
		}
		rest = rest[n:]
	}
	if len(rest) > 0 {
		text += fmt.Sprintf(", %d bytes", len(rest))
	}
	return text
}

// TestEndings runs these cases, one after another because the stock module has one handshake at a time, and writes their outcomes into
// a file. The guest may have the stock module, and is not used for other tests.
func TestEndings(t *testing.T) {
	peer.RoCEGuest.Need(t)
	// The stock module would wait for ever when an adapter goes. This device outlives the test.
	guest.Run(t, "ip tuntap add mode tap name "+peer.Device)
	n := peer.StartRoCE(t)
	all := map[string]string{}
	for role, cases := range map[string][]ending{"server": endingsByServers, "client": endingsByClients} {
		for i, e := range cases {
			name := role + ": " + e.name
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Timeout)
				defer cancel()
				third := map[string]byte{"server": 41, "client": 42}[role]
				s := &tcpSession{
					ctx: ctx, TCP: n.NewTCP(netip.AddrPortFrom(peer.Address(third, byte(i+1)), 6000)), service: peer.Service, hello: []byte("hello from " + e.name),
				}
				run := e.byClient
				if role == "server" {
					run = e.byServer
				}
				all[name] = run(t, n, s)
				t.Log(all[name])
				if err := s.Put(s.Segment(peer.RST | peer.ACK)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	text, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(endingsFile, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
