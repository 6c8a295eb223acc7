// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/tests/peer"
)

// endingsFile is where TestEndings writes how handshakes have ended.
const endingsFile = "/run/handshakes.json"

// listed is a difference between our module and the stock one: how a handshake ends with each, and why that is right.
type listed struct{ ours, stock, why string }

// listedDifferences are the differences, by the names of cases.
var listedDifferences = map[string]listed{
	"client: another EID": {
		"works over TCP, 0x03030008/0x00000000, DECLINE 0x03030008 of version 2",
		"works over TCP, 0x03030000/0x00000000, DECLINE 0x03030000 of version 2",
		"our reason names what is missing, an EID; the stock module's is about devices",
	},
	"client: nothing offered": {
		"works over TCP, 0x03030000/0x00000000, DECLINE 0x03030000 of version 2",
		"works over TCP, 0x03010000/0x00000000, DECLINE 0x03010000 of version 2",
		"the client has signaled SMC by the option, which the stock module's reason denies",
	},
	"client: version 1 alone": {
		"works over TCP, 0x03030002/0x00000000, DECLINE 0x03030002 of version 2",
		"works over TCP, 0x03030000/0x00000000, DECLINE 0x03030000 of version 2",
		"the client offers SMC-R only, so that ISM devices do not matter",
	},
	"server: ACCEPT without its extension": {
		"connect(): EPROTO",
		"works over TCP, 0x0303000a/0x00000000, DECLINE 0x0303000a of version 2",
		"the message is malformed; the stock module takes what follows it for the extension",
	},
	"server: half an ACCEPT": {
		"connect(): ETIMEDOUT",
		"connect(): EPROTO",
		"the rest has not come in time, which is no error of the protocol",
	},
}

// TestHandshakes has peers end handshakes in many ways with our module and with the stock one. Programs get the same errors, sockets have
// the same reason for a fallback, and peers get the same answers, except for listedDifferences. How the TCP connection of a broken
// handshake ends is not compared: our module resets it, and the stock one mostly closes it.
func TestHandshakes(t *testing.T) {
	lab.Need(t)
	if !lab.Full() {
		t.Skip("it takes minutes: set SMCKIT_FULL")
	}
	ours := endingsWith(t, lab.Newest(), lab.ModuleOurs)
	stock := endingsWith(t, "6.12", lab.ModuleStock)
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		o, s := ours[name], stock[name]
		d, ok := listedDifferences[name]
		switch {
		case ok && (d.ours != o || d.stock != s):
			t.Errorf("%s: ours: %s; stock: %s. Listed: ours: %s; stock: %s", name, o, s, d.ours, d.stock)
		case !ok && o != s:
			t.Errorf("%s: ours: %s; stock: %s", name, o, s)
		}
	}
	for name := range listedDifferences {
		if ours[name] == "" || stock[name] == "" {
			t.Errorf("%s is listed, and there is no such case", name)
		}
	}
}

// endingsWith boots a guest with a module, and returns how handshakes end there, by the names of cases.
func endingsWith(t *testing.T, kernel string, module lab.Module) map[string]string {
	t.Helper()
	programs, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lt := lab.Start(t, lab.Options{Kernel: kernel, CPUs: 2, Memory: 1024, Programs: []string{programs}})
	if err := lt.LoadSMC(t.Context(), module); err != nil {
		t.Fatal(err)
	}
	lt.Must("a", "echo short >"+string(peer.RoCEGuest)+"; ip link set lo up; modprobe -a tun rdma_rxe; sysctl -qw net.smc.smcr_max_links_per_lgr=1")
	if module == lab.ModuleOurs {
		lt.Must("a", "sysctl -qw net.smc.remember_peers=0; smcd loopback off")
	}
	lt.GoTest(t, "a", badPeers, "^TestEndings")
	var endings map[string]string
	if err := json.Unmarshal([]byte(lt.Must("a", "cat "+endingsFile)), &endings); err != nil {
		t.Fatal(err)
	}
	return endings
}
