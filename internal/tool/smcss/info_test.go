// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/vishvananda/netlink"
)

func addr(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

// infoSockets are a connection with smckit's module, one with a stock module, one over TCP, and a listener.
func infoSockets() []netlinksmc.Socket {
	cursor := func(wrap uint16, count uint32) netlinksmc.Cursor { return netlinksmc.Cursor{Wrap: wrap, Count: count} }
	ours := netlinksmc.Socket{
		State: netlinksmc.StateActive, Mode: netlinksmc.ModeSMCD, Cookie: 1, Inode: 1, Local: addr("10.0.0.1:80"), Peer: addr("10.0.0.2:1000"),
		// The cursors of the send buffer count in the peer's ring.
		Conn: &netlinksmc.ConnInfo{
			SndbufSize: 500, PeerRMBESize: 1000, RMBESize: 2000, TxProdFlags: 0x80,
			TxPrep: cursor(2, 10), TxSent: cursor(1, 910), TxProd: cursor(1, 910), RxCons: cursor(1, 900), RxProd: cursor(0, 9), TxCons: cursor(0, 9),
		},
		Progress: &netlinksmc.Progress{Sent: 2010, Acked: 1900, Received: 4000, Read: 3993, Age: 2 * time.Second, Failovers: 3},
	}
	stock := netlinksmc.Socket{
		State: netlinksmc.StateActive, Mode: netlinksmc.ModeSMCR, Cookie: 2, Inode: 2, Local: addr("10.0.0.1:81"), Peer: addr("10.0.0.2:1001"),
		Conn: &netlinksmc.ConnInfo{
			SndbufSize: 500, PeerRMBESize: 1000, RMBESize: 2000,
			TxPrep: cursor(0, 30), TxSent: cursor(65535, 480), TxProd: cursor(3, 7), RxCons: cursor(3, 8), RxProd: cursor(1, 5), TxCons: cursor(1, 5),
		},
	}
	tcp := netlinksmc.Socket{
		State: netlinksmc.StateActive, Mode: netlinksmc.ModeTCP, Cookie: 3, Inode: 3, Local: addr("[::ffff:10.0.0.1]:82"), Peer: addr("10.0.0.2:1002"),
		Fallback: &netlinksmc.Fallback{Reason: 0x03010000},
	}
	listener := netlinksmc.Socket{State: netlinksmc.StateListen, Inode: 4, Local: addr("10.0.0.1:80")}
	return []netlinksmc.Socket{listener, tcp, stock, ours}
}

// tcpTable has the facts of the TCP connections that belong to infoSockets, except that with the stock module.
func tcpTable() (map[ends]jsonTCP, error) {
	return map[ends]jsonTCP{
		newEnds(addr("10.0.0.1:80"), addr("10.0.0.2:1000")): {RTTMilliseconds: 0.05, RTTVarianceMilliseconds: 0.025},
		newEnds(addr("10.0.0.1:82"), addr("10.0.0.2:1002")): {
			RTTMilliseconds: 10, RTTVarianceMilliseconds: 5, Retransmits: 2, BytesSent: 1500, BytesAcked: 1400, BytesReceived: 77,
			BytesRetransmitted: 20, SendQueueBytes: 100, ReceiveQueueBytes: 1,
		},
	}, nil
}

func newInfoHarness(t *testing.T, sockets []netlinksmc.Socket) *harness {
	t.Helper()
	h := newHarness(t, &fakeSource{sockets: sockets})
	h.deps.tcp = tcpTable
	return h
}

// infoLines returns the lines of -i by the mode of the row above.
func infoLines(out string) map[string]string {
	lines, mode := map[string]string{}, ""
	for line := range strings.Lines(out) {
		if fact, ok := strings.CutPrefix(line, "\t "); ok {
			lines[mode] = strings.TrimSuffix(fact, "\n")
			continue
		}
		for _, m := range []string{"SMCD", "SMCR", "TCP"} {
			if strings.Contains(line, m) {
				mode = m
			}
		}
	}
	return lines
}

func TestInfo(t *testing.T) {
	h := newInfoHarness(t, infoSockets())
	if status := h.run("-ai"); status != 0 {
		t.Fatal(status, h.err.String())
	}
	want := map[string]string{
		"SMCD": "age:2.0s sent:2010 acked:1900 received:4000 send_rate:8.04Kbps recv_rate:16Kbps sendq:100/500 peerq:10/1000 recvq:7/2000 " +
			"failovers:3 blocked tcp_rtt:0.050/0.025ms tcp_retrans:0 tcp_bytes_retrans:0",
		// The peer's queue is negative: its positions are not of one moment.
		"SMCR": "age:n/a sent:n/a acked:n/a received:n/a send_rate:n/a recv_rate:n/a sendq:50/500 peerq:n/a/1000 recvq:0/2000 failovers:n/a",
		"TCP": "sent:1500 acked:1400 received:77 send_rate:n/a recv_rate:n/a sendq:100 recvq:1 tcp_rtt:10.000/5.000ms tcp_retrans:2 " +
			"tcp_bytes_retrans:20",
	}
	if diff := cmp.Diff(want, infoLines(h.out.String())); diff != "" {
		t.Errorf("%s\n%s", diff, h.out.String())
	}
}

// TestInfoJSON checks which facts are in JSON, and that the rest of the connection is not.
func TestInfoJSON(t *testing.T) {
	h := newInfoHarness(t, infoSockets())
	if status := h.run("-ai", "--json"); status != 0 {
		t.Fatal(status, h.err.String())
	}
	var doc struct {
		Sockets []struct {
			Info       map[string]any
			Connection map[string]any
		}
	}
	if err := json.Unmarshal(h.out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Sockets) != 4 || doc.Sockets[0].Info != nil || doc.Sockets[3].Connection != nil {
		t.Fatalf("%+v", doc)
	}
	rtt := map[string]any{
		"rtt_milliseconds": 0.05, "rtt_variance_milliseconds": 0.025, "retransmits": 0.0, "bytes_sent": 0.0, "bytes_acked": 0.0,
		"bytes_received": 0.0, "bytes_retransmitted": 0.0, "send_queue_bytes": 0.0, "receive_queue_bytes": 0.0,
	}
	want := map[string]any{
		"age_seconds": 2.0, "bytes_sent": 2010.0, "bytes_acked": 1900.0, "bytes_received": 4000.0, "bytes_read": 3993.0,
		"bytes_sent_per_second": 1005.0, "bytes_received_per_second": 2000.0, "send_queue_bytes": 100.0, "peer_queue_bytes": 10.0,
		"receive_queue_bytes": 7.0, "sndbuf_bytes": 500.0, "rcvbuf_bytes": 2000.0, "peer_rcvbuf_bytes": 1000.0, "send_blocked": true,
		"failovers": 3.0, "tcp": rtt,
	}
	if diff := cmp.Diff(want, doc.Sockets[3].Info); diff != "" {
		t.Error(diff)
	}
	want = map[string]any{"send_queue_bytes": 50.0, "receive_queue_bytes": 0.0, "sndbuf_bytes": 500.0, "rcvbuf_bytes": 2000.0, "peer_rcvbuf_bytes": 1000.0}
	if diff := cmp.Diff(want, doc.Sockets[2].Info); diff != "" {
		t.Error(diff)
	}
}

// TestRatesOfRounds checks that rates are those since the last round, also of TCP, and not those of a cookie's earlier connection.
func TestRatesOfRounds(t *testing.T) {
	at := time.Unix(1000, 0)
	round := func(r *infoReader, seconds int, sent uint64) (*infoReader, *jsonInfo) {
		r = r.nextRound(at.Add(time.Duration(seconds)*time.Second), nil)
		return r, r.info(&netlinksmc.Socket{
			State: netlinksmc.StateActive, Cookie: 7, Conn: &netlinksmc.ConnInfo{},
			Progress: &netlinksmc.Progress{Sent: sent, Age: 10 * time.Second},
		})
	}
	var r *infoReader
	for i, test := range []struct {
		seconds int
		sent    uint64
		want    float64
	}{{0, 100, 10}, {2, 300, 100}, {3, 300, 0}, {4, 50, 5}, {4, 60, 0}} {
		var info *jsonInfo
		r, info = round(r, test.seconds, test.sent)
		if got := info.SentPerSecond.Or(0); got != test.want {
			t.Errorf("round %d: %v bytes per second, want %v", i, got, test.want)
		}
	}
}

func TestAppendRate(t *testing.T) {
	for rate, want := range map[float64]string{0: "0bps", 10: "80bps", 125: "1Kbps", 1e6: "8Mbps", 1.5e9: "12Gbps", 1e12: "8Tbps", 1e15: "8e+03Tbps"} {
		if got := string(appendRate(nil, "", netlinksmc.Some(rate))); got != want {
			t.Errorf("%v: %s, want %s", rate, got, want)
		}
	}
}

func TestBetween(t *testing.T) {
	for _, test := range []struct {
		from, to netlinksmc.Cursor
		size     uint32
		want     int64
	}{
		{netlinksmc.Cursor{}, netlinksmc.Cursor{Count: 5}, 10, 5},
		{netlinksmc.Cursor{Wrap: 65535, Count: 8}, netlinksmc.Cursor{Count: 1}, 10, 3},
		{netlinksmc.Cursor{}, netlinksmc.Cursor{Wrap: 1}, 10, 10},
		{netlinksmc.Cursor{}, netlinksmc.Cursor{Wrap: 1, Count: 1}, 10, -1},
		{netlinksmc.Cursor{Count: 1}, netlinksmc.Cursor{}, 10, -1},
		{netlinksmc.Cursor{}, netlinksmc.Cursor{}, 0, 0},
	} {
		got, ok := between(test.from, test.to, test.size).Get()
		if ok != (test.want >= 0) || ok && int64(got) != test.want {
			t.Errorf("%+v: %d, %v", test, got, ok)
		}
	}
}

// TestSort checks the order of the inodes for each key.
func TestSort(t *testing.T) {
	for key, want := range map[string]string{
		"state": "3 2 1 4", "mode": "1 4 2 3", "uid": "4 3 2 1", "local": "4 1 2 3", "peer": "4 1 2 3", "-peer": "3 2 1 4",
		"age": "1 4 3 2", "sent": "1 3 4 2", "received": "1 3 4 2", "send-rate": "1 4 3 2", "recv-rate": "1 4 3 2",
		"sendq": "3 1 2 4", "peerq": "1 4 3 2", "recvq": "1 3 2 4", "-sendq": "4 2 3 1",
	} {
		h := newInfoHarness(t, infoSockets())
		if status := h.run("-a", "--sort", key, "--json"); status != 0 {
			t.Fatal(status, h.err.String())
		}
		var doc struct {
			Sockets []struct {
				Inode json.Number
				Info  any
			}
		}
		if err := json.Unmarshal(h.out.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range doc.Sockets {
			got = append(got, s.Inode.String())
			if s.Info != nil {
				t.Errorf("%s: facts without -i", key)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}

func TestInfoFails(t *testing.T) {
	h := newInfoHarness(t, nil)
	h.deps.tcp = func() (map[ends]jsonTCP, error) { return nil, errors.New("no sock_diag") }
	if status := h.run("-i"); status != 0 || h.err.String() != "smcss: warning: facts of TCP are missing: no sock_diag\n" {
		t.Errorf("%d %s", status, h.err.String())
	}
	h = newInfoHarness(t, nil)
	h.deps.tcp = nil
	if status := h.run("--sort", "uid"); status != 0 {
		t.Errorf("a sort by user: %d %s", status, h.err.String())
	}
	h = newInfoHarness(t, nil)
	if status := h.run("--sort", "size"); status != 2 || !strings.Contains(h.err.String(), `"size" is not a key: choose state, mode, uid, `) {
		t.Errorf("%d %s", status, h.err.String())
	}
}

// TestTCPEnds checks that the connection beneath is found whatever the family of its addresses.
func TestTCPEnds(t *testing.T) {
	s := &netlink.Socket{ID: netlink.SocketID{
		Source: []byte{10: 0xff, 11: 0xff, 12: 10, 15: 1}, Destination: []byte{10, 0, 0, 2}, SourcePort: 80, DestinationPort: 1000,
	}}
	if got, want := tcpEnds(s), newEnds(addr("10.0.0.1:80"), addr("10.0.0.2:1000")); got != want {
		t.Errorf("%+v", got)
	}
	info := newJSONTCP(&netlink.InetDiagTCPInfoResp{InetDiagMsg: &netlink.Socket{RQueue: 1, WQueue: 2}, TCPInfo: &netlink.TCPInfo{
		Rtt: 1500, Rttvar: 250, Total_retrans: 3, Bytes_sent: 4, Bytes_acked: 5, Bytes_received: 6, Bytes_retrans: 7,
	}})
	if want := (jsonTCP{1.5, 0.25, 3, 4, 5, 6, 7, 2, 1}); info != want {
		t.Errorf("%+v", info)
	}
}
