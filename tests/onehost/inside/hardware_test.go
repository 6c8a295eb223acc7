// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// fakeISM has the parameters of the test module that stands in for an ISM device.
const fakeISM = "/sys/module/smc_fake_ism/parameters/"

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

// endWithDevice has connections when remove removes the device: all end with an error, whether they were silent, had unread data or were
// busy. The removal takes until they are closed, because the driver has their buffers.
func endWithDevice(t *testing.T, remove func() error) {
	t.Helper()
	clients, servers := pairs(t, here, 3, 0)
	for i := range clients {
		if err := errors.Join(transfer(clients[i], servers[i], 20_000), transfer(servers[i], clients[i], 20_000)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := unix.Write(clients[1], []byte("unread")); err != nil {
		t.Fatal(err)
	}
	// The first call that fails takes the error, so nobody reads from this client.
	busy := make(chan error, 1)
	go func() {
		for {
			if _, err := unix.SendmsgN(clients[2], make([]byte, 5000), nil, nil, unix.MSG_NOSIGNAL); err != nil {
				busy <- err
				return
			}
		}
	}()
	removed := make(chan error, 1)
	go func() { removed <- remove() }()
	ends := []error{<-busy}
	for _, fd := range append(servers, clients[:2]...) {
		ends = append(ends, readError(fd))
	}
	for _, err := range ends {
		if !errors.Is(err, unix.ECONNABORTED) && !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("a connection ends with %v, want %v", err, unix.ECONNABORTED)
		}
	}
	select {
	case err := <-removed:
		t.Errorf("the device was removed while connections had buffers of it: %v", err)
		removed <- err
	default:
	}
	for _, fd := range append(servers, clients...) {
		unix.Close(fd)
	}
	select {
	case err := <-removed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the device is not removed, although all sockets are closed")
	}
}

// readError reads until there is an error, and returns that.
func readError(fd int) error {
	if err := guest.Timeout(fd, 10*time.Second); err != nil {
		return err
	}
	for b := make([]byte, 4096); ; {
		n, err := unix.Read(fd, b)
		if err != nil {
			return err
		}
		if n == 0 {
			return io.EOF
		}
	}
}

// TestHardwareRemoved has the driver remove the device, as if it were unplugged, while it has connections. Connections are TCP then, until
// it comes back.
func TestHardwareRemoved(t *testing.T) {
	needFakeISM(t)
	before := count(t)
	endWithDevice(t, func() error { return os.WriteFile(fakeISM+"present", []byte("0"), 0) })
	if n := count(t).clients - before.clients; n != 3 {
		t.Errorf("%d connections were SMC, not 3", n)
	}
	if n := askISM(t, "dmbs"); n != "0" {
		t.Errorf("the device was removed with %s DMBs", n)
	}
	connections := func() uint64 {
		before := count(t)
		clients, servers := pairs(t, here, 1, 0)
		defer unix.Close(clients[0])
		defer unix.Close(servers[0])
		if err := transfer(clients[0], servers[0], 20_000); err != nil {
			t.Error(err)
		}
		return count(t).clients - before.clients
	}
	if connections() != 0 {
		t.Error("a connection is SMC without a device")
	}
	tellISM(t, "present", "1")
	guest.Await(t, 10*time.Second, func() string {
		if connections() == 0 {
			return "connections are TCP although the device is back"
		}
		return ""
	})
}

// TestUnloadHardware unloads the driver of the device, and with it the client of that, while there are connections. It has to be the last
// test that needs the device.
func TestUnloadHardware(t *testing.T) {
	needFakeISM(t)
	onlySMC(t, 3)
	endWithDevice(t, func() error {
		if out, err := exec.Command("rmmod", "smc_fake_ism").CombinedOutput(); err != nil {
			return fmt.Errorf("rmmod: %w: %s", err, out)
		}
		return nil
	})
}
