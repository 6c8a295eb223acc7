// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package badpeer runs peers that break the rules of a layer, which tests/peer implements in user space, and checks the
// reaction of our module. There is a file for each layer: the TCP option, CLC by clients and by servers, LLC, CDC, packets of
// RoCE, immediate data; and for peers that are silent, that flood, or that come at a bad moment. A case is an entry of its
// file's table, or a function.
//
// The tests here that boot guests run all others of this package in them. Elsewhere the others are skipped.
package badpeer

import (
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
)

const (
	peers    = "github.com/smckit/smckit/tests/peer"
	badPeers = "github.com/smckit/smckit/tests/badpeer"
)

// TestPeersOverTCP boots one guest for each kernel, whose SMC-D is that of smc_null.ko: all of the handshake happens, and then each
// connection is TCP. In the end the modules can be unloaded.
func TestPeersOverTCP(t *testing.T) {
	lab.EachKernel(t, peersOverTCP)
}

func peersOverTCP(t *testing.T, kernel string, length lab.Length) {
	lt := lab.StartInside(t, lab.Options{
		Kernel: kernel, CPUs: 2, Memory: 1024,
		// smc_null.ko takes the place of our SMC-D, and /proc/slabinfo counts our objects.
		KernelArgs: "smc.smcd=0 smc.smcr=0 slab_nomerge",
	}, "/run/smckit-null", length)
	lt.Must("a", "modprobe -aq tun veth || :")
	// Each part has a deadline of its own.
	for _, part := range lab.Parts(
		"OptionBy|CLCBy|CLCWithout|Attempt|SYNCookies|SlowProposal|UrgentBeforeProposal|HandshakeLimit|Overtaken|FullBacklog|ForgedSYNs|"+
			"RepeatedSYNACK|LateACK|VRF|CopiedSYNACK|NFQUEUE|PromisedClient", "HeldClients|SilentBacklog", "Remembered",
	) {
		lt.GoTest(t, "a", badPeers, "^Test("+part+")")
	}
	if r := lt.Run("a", "rmmod", "smc_null", "smc_diag", "smc"); r.Code != 0 {
		t.Errorf("the modules cannot be unloaded: %+v", r)
	}
}

// TestPeersOverSMCR boots one guest for each kernel, whose peers are RDMA adapters in user space. They are well-behaved in the tests of
// tests/peer, and not in those here. In the end the modules can be unloaded.
func TestPeersOverSMCR(t *testing.T) {
	lab.EachKernel(t, peersOverSMCR)
}

// deadlines are those of parts that take longer in full runs than others.
var deadlines = map[string]time.Duration{"OutOfSync$": 5 * time.Minute, "RMBsOfStopping": 5 * time.Minute}

func peersOverSMCR(t *testing.T, kernel string, length lab.Length) {
	lt := lab.StartInside(t, lab.Options{
		Kernel: kernel, CPUs: 2, Memory: 1024,
		// Nothing but SMC-R, and /proc/slabinfo counts our objects. The network loses nothing, so buffers can be registered as with
		// hardware.
		KernelArgs: "smc.smcd=0 smc.rxe_in_turn=1 slab_nomerge",
	}, "/run/smckit-roce", length)
	// Peers have one adapter, but those of tests of second links. They decline, and then connect again.
	lt.Must("a", "modprobe -aq tun rdma_rxe || :; sysctl -qw net.smc.smcr_max_links_per_lgr=1 net.smc.remember_peers=0")
	// Each part has a deadline of its own. Full runs have those that wait for time-outs, or depend on which side is first.
	wellBehaved := []string{"WellBehaved|Version20|LinkTested|IdleServers|Buffers", "Receives|SendQueue|LinkGroupIDs|CompletionVectors|PortFlap|TrafficClass"}
	bad := []string{
		"OutOfSync$", "OutOfSyncSilent|TestLinkWrong|Keepalive|Abort|Abandoned", "CDC", "LLC$", "DeleteLink|LongLLC", "RoCE", "Immediate", "StalledHandshakes",
		"KeysOfStopping", "AsymmetricLinks|AnswersCrossed|Unacknowledged|ProvenServer", "RefusedKeys|RefusedForLink|OperatorDeletes|ParallelLinks", "TwoLinks$", "TwoLinksData$", "AddedLinksByRole$",
	}
	if lab.Full() {
		wellBehaved = append(wellBehaved, "MostConns", "IdleClients")
		bad = append(bad, "RMBsOfStopping", "Version1", "Forming", "CLCOverRoCE", "Silence", "DeleteRkeyLate|DeleteRkeyNever", "DeleteRkeyLost",
			"SecondLink$", "SecondLinkLater|RefusedLater", "SecondLinkHurried|RequestedAgain|RequestedSoon", "TwoLinksV2$", "AddedLinks$", "AddedLinksV2", "SecondLinkVersion1", "TwoLinksV1$", "TwoLinksDataV1", "AddedLinksV1", "AddedLinksByRoleV1", "Continuations")
	}
	for _, part := range lab.Parts(append(bad, wellBehaved...)...) {
		pkg := badPeers
		if strings.Contains(strings.Join(wellBehaved, "|"), part) {
			pkg = peers
		}
		if limit, long := deadlines[part]; long {
			lt.LongGoTest(t, "a", pkg, "^Test("+part+")", limit)
		} else {
			lt.GoTest(t, "a", pkg, "^Test("+part+")")
		}
	}
	if r := lt.Run("a", "rmmod", "smc_diag", "smc"); r.Code != 0 {
		t.Errorf("the modules cannot be unloaded: %+v", r)
	}
}
