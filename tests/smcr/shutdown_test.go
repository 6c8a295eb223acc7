// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
)

// shutdownGroups is the number of link groups of the host that shuts down.
const shutdownGroups = 1000

// TestShutdown shuts down a host with many link groups. Their peers, in user space on the other host, all get DELETE LINK, within a
// second on real hardware.
func TestShutdown(t *testing.T) {
	lab.Need(t)
	if !lab.Full() {
		t.Skip("it takes minutes: set SMCKIT_FULL")
	}
	lt := startWith(t, lab.Options{Memory: 2048, KernelArgs: "smc.smcd=0 smc.rxe_in_turn=1 tp_printk"},
		side{lab.Newest(), lab.ModuleOurs}, side{lab.Newest(), lab.ModuleNone})
	// The peers' network, as tests/peer has it. The other events would go to the console, too.
	lt.Must("a", `echo 0 >/sys/kernel/tracing/events/smckit/enable
ip addr flush dev eth0
ip addr add 10.97.0.1/16 dev eth0
sysctl -qw net.smc.rmem=16384 net.smc.wmem=16384 net.smc.smcr_max_links_per_lgr=1 net.smc.smcr_testlink_time=0
echo 'p:smc_shutdown_begins smc:lgr_reboot_notify' >>/sys/kernel/tracing/kprobe_events
echo 'r:smc_shutdown_ends smc:lgr_reboot_notify' >>/sys/kernel/tracing/kprobe_events
echo 1 >/sys/kernel/tracing/events/kprobes/enable
dmesg -n 8`)
	if err := lt.Host("a").WaitFor(t.Context(), "grep -q ffff:0a61:0001 /sys/class/infiniband/rxe0/ports/1/gids/*"); err != nil {
		t.Fatal(err)
	}
	awaitAdapter(t, lt, "a")
	lt.Serve("a", "", "echo", "10.97.0.1:7000")
	mac := strings.TrimSpace(lt.Must("a", "cat /sys/class/net/eth0/address"))
	lt.Must("b", fmt.Sprintf("modprobe -a tun bridge; rdma link delete rxe0; echo %s %d >/run/smckit-shutdown", mac, shutdownGroups))
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		defer cancel()
		lt.LongGoTest(t, "b", "github.com/smckit/smckit/tests/smcr/inside", "^TestShutdown$", 20*time.Minute)
	}()
	if !formed(ctx, t, lt) {
		<-done
		return
	}
	lt.PowerOff("a")
	<-done
	text := strings.TrimSpace(lt.Must("b", "cat /run/deleted"))
	took, err := time.ParseDuration(text)
	notifier, limit := notifierTime(t, lt.Host("a").Console()), lab.Scale(time.Second)
	t.Logf("%d peers got DELETE LINK within %s; the notifier took %s", shutdownGroups, text, notifier)
	if err != nil || took > limit || notifier > limit {
		t.Errorf("want at most %s: %v", limit, err)
	}
}

// formed waits until all groups exist, or until the peers' test has ended because of an error.
func formed(ctx context.Context, t *testing.T, lt *lab.Test) bool {
	t.Helper()
	p := lt.StartIn("b", "", "sh", "-c", "until test -e /run/formed; do sleep 1; done")
	if r, err := p.Wait(ctx); err != nil || r.Code != 0 {
		t.Errorf("the link groups were not formed: %v, %+v", err, r)
		return false
	}
	if n := len(groupsOf(t, lt, "a")); n != shutdownGroups {
		t.Errorf("host a has %d link groups, want %d", n, shutdownGroups)
	}
	return true
}

var notifierEvent = regexp.MustCompile(`\[ *(\d+\.\d+)\] smc_shutdown_(begins|ends):`)

// notifierTime returns how long the notifier took, as the host's kernel has written it to its console.
func notifierTime(t *testing.T, console string) time.Duration {
	t.Helper()
	var at [2]float64
	events := notifierEvent.FindAllStringSubmatch(console, -1)
	if len(events) != 2 {
		t.Errorf("the notifier was called and returned %d times:\n%s", len(events), console)
		return 0
	}
	for i, e := range events {
		at[i], _ = strconv.ParseFloat(e[1], 64)
	}
	return time.Duration((at[1] - at[0]) * float64(time.Second)).Round(time.Millisecond)
}
