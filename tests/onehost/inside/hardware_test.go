// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// fakeISM has the parameters of the test module that stands in for an ISM device.
const fakeISM = "/sys/module/smc_fake_dibs/parameters/"

func needFakeISM(t *testing.T) {
	t.Helper()
	ours.Need(t)
	if !exists(fakeISM) {
		t.Skip("connections do not use an ISM device")
	}
}

func tellISM(t *testing.T, parameter, value string) {
	t.Helper()
	if err := os.WriteFile(fakeISM+parameter, []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}

func askISM(t *testing.T, parameter string) string {
	t.Helper()
	b, err := os.ReadFile(fakeISM + parameter)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// TestHardwarePeerGone has the device report that the peer of a connection is gone: both ends get an error at once, by the report, or by the
// end of the other one. The next connection works.
func TestHardwarePeerGone(t *testing.T) {
	needFakeISM(t)
	onlySMC(t, 2)
	clients, servers := pairs(t, here, 1, 0)
	defer unix.Close(clients[0])
	defer unix.Close(servers[0])
	tellISM(t, "gone", "1")
	for _, fd := range []int{clients[0], servers[0]} {
		if err := guest.Timeout(fd, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Read(fd, make([]byte, 1)); !errors.Is(err, unix.ECONNABORTED) && !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("read: %v, want %v", err, unix.ECONNABORTED)
		}
	}
	clients, servers = pairs(t, here, 1, 0)
	defer unix.Close(clients[0])
	defer unix.Close(servers[0])
	if err := transfer(clients[0], servers[0], 20_000); err != nil {
		t.Error(err)
	}
}

// TestHardwareTest has a peer ask whether this end is there: it gets one answer, with the same link group and VLAN. An answer is not
// answered, and other events are ignored.
func TestHardwareTest(t *testing.T) {
	needFakeISM(t)
	// Four bytes of the link group, two of the VLAN, and two that say what it is.
	info := func(kind uint16) uint64 {
		return binary.NativeEndian.Uint64(binary.NativeEndian.AppendUint16([]byte{1, 2, 3, 4, 5, 6}, kind))
	}
	request, response := info(1), info(2)
	answers := func() (n int) {
		n, err := strconv.Atoi(askISM(t, "answers"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := answers()
	for _, event := range []struct {
		code int
		info uint64
	}{{0x84, request}, {0x83, response}, {0x83, request}} {
		tellISM(t, "event", fmt.Sprintf("%x %x", event.code, event.info))
	}
	guest.Await(t, 10*time.Second, func() string {
		if answers() == before {
			return "there is no answer"
		}
		return ""
	})
	if n, last := answers()-before, askISM(t, "last_answer"); n != 1 || last != fmt.Sprint(response) {
		t.Errorf("%d answers, the last one is %s, want %d", n, last, response)
	}
}

// TestHardwareFull opens connections until the device has no DMB left: the next one is TCP, with the reason, and works.
func TestHardwareFull(t *testing.T) {
	needFakeISM(t)
	l, err := listen(here, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	full := func() int {
		client, server, err := fallbacks(netlinksmc.ReasonMaxDMB)
		if err != nil {
			t.Fatal(err)
		}
		return client + server
	}
	const most = 400
	before := full()
	for n := range most {
		client, server := pairAt(t, l, here, 0)
		defer unix.Close(client)
		defer unix.Close(server)
		if err := transfer(client, server, 1000); err != nil {
			t.Fatalf("connection %d: %v", n, err)
		}
		if full() > before {
			t.Logf("%d connections before, %s DMBs", n, askISM(t, "dmbs"))
			return
		}
	}
	t.Errorf("%d connections have fitted", most)
}
