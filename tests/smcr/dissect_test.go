// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/tests/dissect"
)

// life is the traffic on the wire for connections between two hosts, from first contact to the end of the group.
type life struct {
	hosts     [2]side // client and server
	immediate bool    // whether peers with our module use immediate data and large buffers
	smcd      bool    // whether ours offer SMC-D, too
	idle      bool    // whether the group ends by itself, which takes ten minutes; else by the unloading of a module
	version1  bool    // whether the hosts have no EID in common, and may use version 1 with RoCEv2; both have our module

	capture  *dissect.Capture
	messages []dissect.Message
}

// TestDissector has Wireshark decode all SMC-R messages between two hosts, and compares our first contacts with the stock
// module's, and those of version 1 with a recording.
func TestDissector(t *testing.T) {
	lab.Need(t)
	dissect.Need(t)
	ours := side{lab.Newest(), lab.ModuleOurs}
	pairs := [][2]side{{ours, ours}}
	if lab.Full() {
		pairs = append(pairs, [2]side{ours, stock}, [2]side{stock, ours})
	}
	for _, p := range pairs {
		t.Run(fmt.Sprintf("%s to %s", p[0], p[1]), func(t *testing.T) {
			lt := start(t, p[0], p[1])
			onlyOurs := p[1] == p[0]
			t.Run("as it is", func(t *testing.T) {
				(&life{hosts: p, immediate: true, smcd: true}).test(t, lt)
			})
			t.Run("as stock", func(t *testing.T) {
				(&life{hosts: p, idle: onlyOurs && lab.Full()}).test(t, lt)
			})
			if onlyOurs {
				t.Run("version 1", func(t *testing.T) { version1AsRecorded(t, lt, p) })
			}
		})
	}
}

func (l *life) test(t *testing.T, lt *lab.Test) {
	t.Helper()
	l.live(t, lt)
	t.Run("message by message", func(t *testing.T) { l.understood(t) })
	t.Run("order", l.order)
	t.Run("control messages", l.control)
	t.Run("end", l.ended)
	t.Run("as in the capture of stock", l.likeStock)
}

// load reloads our modules with settings. Otherwise, old queue pairs would still repeat their last messages.
func (l *life) load(t *testing.T, lt *lab.Test) {
	t.Helper()
	number := map[bool]int{true: 1}
	for i, h := range lt.Hosts {
		if l.hosts[i].module == lab.ModuleOurs {
			lt.Must(h.Name, fmt.Sprintf("rmmod smc_diag smc || :; modprobe smc smcd=%d && modprobe smc_diag", number[l.smcd]))
			lt.Must(h.Name, "smc_pnet add LAB0 eth eth0 && smc_pnet add LAB0 ib rxe0 1")
			if l.version1 {
				lt.Must(h.Name, "sysctl -qw net.smc.smcr_v1_rocev2=1")
			} else {
				lt.Must(h.Name, "smcr ueid add "+lab.UEID)
			}
			lt.Must(h.Name, fmt.Sprintf("sysctl -qw net.smc.smcr_immediate=%d net.smc.smcr_large_conns_per_lgr=%d",
				number[l.immediate], 16*number[l.immediate]))
		}
		lt.Must(h.Name, "sysctl -qw net.smc.smcr_testlink_time=2")
	}
	for _, h := range lt.Hosts {
		if err := h.WaitFor(t.Context(), "! rdma resource show qp | grep -q 'type RC'"); err != nil {
			t.Fatal(err)
		}
	}
}

// live records the traffic on the wire.
func (l *life) live(t *testing.T, lt *lab.Test) {
	t.Helper()
	l.load(t, lt)
	const port = 5600 // for which Wireshark knows no other protocol
	address, echo := serve(t, lt, "echo", port)
	file := filepath.Join(t.TempDir(), "life.pcap")
	if err := lt.Wires[0].Capture(file); err != nil {
		t.Fatal(err)
	}
	before := counters(lt)
	lt.Must("a", "smcflow life "+address)
	if l.version1 {
		onlyVersion1(t, lt, before, 3)
	} else {
		onlySMCR(t, lt, before, 3)
	}
	limit := lab.Scale(10 * time.Second)
	if l.hosts[0] != l.hosts[1] {
		l.await(t, file, "Delete Rkey (v2)(Resp)", 3, limit)
	}
	l.await(t, file, l.named("Test Link (v2)(Resp)"), 1, limit)
	lab.Kill(t, echo)
	if l.idle {
		limit = 11 * time.Minute
	} else {
		unloads(t, lt, l.ender())
	}
	l.await(t, file, l.named("Delete Link (v2)"), 1, limit)
	if err := lt.Wires[0].Capture(os.DevNull); err != nil {
		t.Fatal(err)
	}
}

// named returns the name of an LLC message of version 2 as the version of these connections has it.
func (l *life) named(name string) string {
	if l.version1 {
		return strings.ReplaceAll(name, " (v2)", "")
	}
	return name
}

// ender is the host that ends the group: the server, which does so first if both are idle, or else the one with our module.
func (l *life) ender() string {
	if l.hosts[1].module == lab.ModuleOurs {
		return "b"
	}
	return "a"
}

// await reads the capture until it has this many messages of a name.
func (l *life) await(t *testing.T, file, name string, n int, limit time.Duration) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if l.capture, err = dissect.Parse(data); err != nil {
			t.Fatal(err)
		}
		if l.messages, err = l.capture.Messages(); err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, m := range l.once() {
			if m.Name == name {
				found++
			}
		}
		if found >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d times %s among %d messages", found, n, name, len(l.messages))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// once returns the messages without repetitions.
func (l *life) once() []dissect.Message {
	return slices.DeleteFunc(slices.Clone(l.messages), func(m dissect.Message) bool { return m.Again })
}

// gap returns why Wireshark 4.0 does not decode a valid message.
func gap(m *dissect.Message) string {
	switch {
	case m.ListsRMBs():
		return dissect.GapRMBs
	case m.LittleLength():
		return dissect.GapLength
	case m.Kind == dissect.Immediate:
		return "immediate data are an agreement between two of our modules"
	default:
		return ""
	}
}

// read reports whether Wireshark has decoded a message correctly.
func read(m *dissect.Message, d dissect.Dissected) bool {
	known := false
	switch m.Kind {
	case dissect.Option:
		known = d.Protocol == "TCP" && strings.Contains(d.Info, "["+m.Name+"]") && strings.HasSuffix(d.Info, "ExID=E2D4")
	case dissect.CLC:
		known = d.Protocol == "SMCv2" && strings.Contains(d.Info, "v2-"+m.Name+"]")
	case dissect.LLC:
		known = d.Protocol == "SMC-Rv2" && strings.HasSuffix(d.Info, "[SMC-Rv2] "+m.Name)
	case dissect.CDC:
		known = d.Protocol == "SMC-R" && strings.HasSuffix(d.Info, "[SMC-R] "+m.Name)
	case dissect.Immediate:
		known = strings.HasPrefix(d.Protocol, "SMC")
	}
	return known && d.Malformed == ""
}

// understood checks that Wireshark decodes every message, except those that it is known not to decode, and those whose byte
// order it reads wrongly.
func (l *life) understood(t *testing.T) {
	plain, turned := l.capture.Dissect(t, ""), l.capture.BigLengths(l.messages).Dissect(t, "")
	if len(plain) != len(l.capture.Packets) || len(turned) != len(plain) {
		t.Fatalf("tshark saw %d and %d of %d packets", len(plain), len(turned), len(l.capture.Packets))
	}
	gaps := map[string]int{}
	missed, turnedMissed := map[int]bool{}, map[int]bool{}
	for i := range l.messages {
		m := &l.messages[i]
		if m.Kind == dissect.CLC && m.Again {
			continue // Wireshark shows this message as part of TCP
		}
		why := gap(m)
		switch got := plain[m.Frame-1]; {
		case why == "" && !read(m, got):
			t.Errorf("%s of %s, % x, is read as %+v", m.Name, m.Src, m.Bytes, got)
		case why != "" && read(m, got):
			t.Errorf("%s is read as %+v, so that this is no gap any more: %s", m.Name, got, why)
		case why != "":
			gaps[why]++
			missed[m.Frame] = true
		}
		turnedMissed[m.Frame] = turnedMissed[m.Frame] || m.ListsRMBs()
		if got := turned[m.Frame-1]; m.Kind != dissect.Immediate && !m.ListsRMBs() && !read(m, got) {
			t.Errorf("%s of %s, % x, is read as %+v", m.Name, m.Src, m.Bytes, got)
		}
	}
	for i := range plain {
		if plain[i].Malformed != "" && !missed[i+1] || turned[i].Malformed != "" && !turnedMissed[i+1] {
			t.Errorf("packet %d is read as %+v, and then as %+v", i+1, plain[i], turned[i])
		}
	}
	t.Logf("%d messages; not read: %v", len(l.messages), gaps)
	if some := gaps[gap(&dissect.Message{Kind: dissect.Immediate})] > 0; some != l.withImmediate() {
		t.Errorf("immediate data: %t, want %t", some, l.withImmediate())
	}
}

// withImmediate reports whether there are messages as immediate data.
func (l *life) withImmediate() bool { return l.immediate && l.hosts[0] == l.hosts[1] }

// name returns a host's name by its address.
func name(t *testing.T, addr netip.Addr) string {
	t.Helper()
	for i, host := range []string{"a", "b"} {
		if addr == netip.MustParseAddr(lab.Addr4(0, i)) {
			return host
		}
	}
	t.Fatalf("no host has the address %s", addr)
	return ""
}

// Messages of CLC and LLC by which hosts make a connection.
const (
	firstContact = "a Proposal, b Accept, a Confirm, b Confirm Link (v2), a Confirm Link (v2)(Resp), "
	nextContact  = "a Proposal, b Confirm Rkey (v2), a Confirm Rkey (v2)(Resp), b Accept, " +
		"a Confirm Rkey (v2), b Confirm Rkey (v2)(Resp), a Confirm, "
)

// order checks the sequence of CLC and LLC messages. It ignores the number of TEST LINK messages, and when the server offers a second link,
// which the client refuses.
func (l *life) order(t *testing.T) {
	var said strings.Builder
	offers := 0
	for _, m := range l.once() {
		switch {
		case strings.HasPrefix(m.Name, "Add Link"):
			offers++
		case (m.Kind == dissect.CLC || m.Kind == dissect.LLC) && !strings.HasPrefix(m.Name, "Test Link"):
			fmt.Fprintf(&said, "%s %s, ", name(t, m.Src), m.Name)
		}
	}
	if offers != 2 {
		t.Errorf("%d messages about a second link", offers)
	}
	want := "^" + regexp.QuoteMeta(l.named(firstContact+nextContact+nextContact))
	for i, h := range l.hosts {
		// The stock module deletes the rkey of each RMB; ours reuses its RMBs.
		if h.module == lab.ModuleStock {
			pair := fmt.Sprintf("%c Delete Rkey (v2), %c Delete Rkey (v2)(Resp), ", 'a'+i, 'b'-i)
			want += "(" + regexp.QuoteMeta(pair) + "){3}"
		}
	}
	// A client responds to a server of ours; the stock module answers in kind.
	end := regexp.QuoteMeta(l.named("Delete Link (v2)"))
	want += l.ender() + " " + end + ", ([ab] " + end + `(\(Resp\))?, )*$`
	if !regexp.MustCompile(want).MatchString(said.String()) {
		t.Errorf("said:\n%s\nwant:\n%s", said.String(), want)
	}
}

// flags are the flags of CDC messages, by the names of Wireshark.
var flags = []string{
	"smc.rmbe.ctrl.urgent.pending", "smc.rmbe.ctrl.urgent.present", "smc.rmbe.ctrl.peer.sending.done",
	"smc.rmbe.ctrl.peer.closed.conn", "smc.rmbe.ctrl.peer.abnormal.close",
}

// control checks that the CDC messages, as Wireshark decodes them, are consistent: they belong to connections whose beginning
// it has seen, are numbered without a gap, and have the flags that match the actions of the connections.
func (l *life) control(t *testing.T) {
	fields := append([]string{
		"smc.accept.server.rmb.element.alert.token", "smc.client.rmb.element.alert.token",
		"smc.rmbe.ctrl.alert.token", "smc.rmbe.ctrl.seqno", "ip.src",
	}, flags...)
	first := map[int]bool{} // packets that are not sent again
	for _, m := range l.once() {
		first[m.Frame] = true
	}
	numbers := map[string]uint64{} // of the last message, by host and token
	said := map[string]bool{}
	for _, d := range l.capture.Dissect(t, "smc", fields...) {
		if !first[d.Frame] {
			continue
		}
		host := name(t, netip.MustParseAddr(d.Fields[4]))
		switch accept, confirm, token := d.Fields[0], d.Fields[1], d.Fields[2]; {
		case accept != "":
			numbers["a "+accept] = 0
		case confirm != "":
			numbers["b "+confirm] = 0
		case token != "":
			last, known := numbers[host+" "+token]
			n, err := strconv.ParseUint(d.Fields[3], 0, 16)
			// Immediate data take a number, too.
			if err != nil || !known || n <= last || n != last+1 && !l.withImmediate() {
				t.Errorf("packet %d: of %s for %s, message %s (%v) after %d", d.Frame, host, token, d.Fields[3], err, last)
			}
			numbers[host+" "+token] = n
		}
		for i, flag := range flags {
			if value := d.Fields[len(fields)-len(flags)+i]; value == "1" {
				said[host+" "+flag] = true
			}
		}
	}
	for _, flag := range flags {
		if !said["a "+flag] {
			t.Errorf("the client never said %s", flag)
		}
	}
	if len(numbers) != 6 || !said["b "+flags[3]] || !said["b "+flags[4]] {
		t.Errorf("tokens %v; said: %v", numbers, said)
	}
}

// ended checks that the host that has ended the group has sent DELETE LINK, orderly and with the reason that no program uses
// the group: for the link if it is a server of ours, which waits for the response, else for all links.
func (l *life) ended(t *testing.T) {
	fields := []string{
		"ip.src", "smc.delete.link.response", "smc.delete.link.all", "smc.delete.link.orderly", "smc.delete.link.reason.code",
	}
	all := l.capture.BigLengths(l.messages).Dissect(t, fields[len(fields)-1], fields...)
	if len(all) == 0 {
		t.Fatal("no end")
	}
	got := slices.Clone(all[0].Fields)
	got[0] = name(t, netip.MustParseAddr(got[0]))
	ofAll := "1"
	if l.ender() == "b" && l.hosts[1].module == lab.ModuleOurs {
		ofAll = "0"
	}
	if want := []string{l.ender(), "0", ofAll, "1", "0x00030000"}; !slices.Equal(got, want) {
		t.Errorf("%v are %v, want %v", fields, got, want)
	}
}
