// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/smckit/smckit/internal/jsondoc/jsontest"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcerr"
)

var errTest = errors.New("a note")

// TestUsage checks that invalid command lines are refused with status 2 and one line, without access to the system.
func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		tech tech
		args []string
		want string // part of the line
	}{
		{techR, []string{"foo"}, `object "foo" is unknown`},
		{techR, []string{""}, `object "" is unknown`},
		{techR, []string{"devices"}, `object "devices" is unknown`},
		{techR, []string{"seid"}, `use 'smcd seid'`},
		{techR, []string{"-x", "stats"}, `-x`},
		{techR, []string{"-daXYZ", "stats"}, `-XYZ`},
		{techR, []string{"--foo", "stats"}, `--foo`},
		{techR, []string{"stats", "foo"}, `"foo" is not one of show, reset, json`},
		{techR, []string{"stats", "show", "x"}, `"x" is an unexpected word`},
		{techR, []string{"stats", "--watch", "0"}, `0.1 to 86400`},
		{techR, []string{"stats", "--watch", "NaN"}, `0.1 to 86400`},
		{techR, []string{"stats", "--watch"}, `--watch needs a value`},
		{techR, []string{"-N"}, `--netns needs a value`},
		{techR, []string{"stats", "reset", "--watch", "1"}, `exclude each other`},
		{techR, []string{"linkgroup", "xyz"}, `"xyz" is not an LG-ID`},
		{techR, []string{"linkgroup", "foo"}, `"foo" is not an LG-ID`},
		{techR, []string{"linkgroup", ""}, `"" is not an LG-ID`},
		{techR, []string{"linkgroup", "0x"}, `"0x" is not an LG-ID`},
		{techR, []string{"linkgroup", "123456789"}, `"123456789" is not an LG-ID`},
		{techR, []string{"linkgroup", "+100"}, `"+100" is not an LG-ID`},
		{techR, []string{"linkgroup", "--", "-1"}, `"-1" is not an LG-ID`},
		{techR, []string{"linkgroup", "100", "200"}, `"200" is an unexpected word`},
		{techR, []string{"linkgroup", "ibdev"}, `ibdev: the name of a device is missing`},
		{techR, []string{"linkgroup", "link-show", "netdev", ""}, `netdev: the name of a device is missing`},
		{techR, []string{"linkgroup", "ibdev", "a", "ibdev", "b"}, `ibdev is given twice`},
		{techR, []string{"link", "link-show"}, `"link-show" is not an LG-ID`},
		{techD, []string{"linkgroup", "link-show"}, `"link-show" is not an LG-ID`},
		{techD, []string{"linkgroup", "netdev", "eth0"}, `"netdev" is not an LG-ID`},
		{techR, []string{"device", "netdev"}, `netdev: the name of a device is missing`},
		{techR, []string{"device", "eth0"}, `"eth0" is an unexpected word`},
		{techD, []string{"device", "ibdev", "x"}, `"ibdev" is an unexpected word`},
		{techR, []string{"info", "all"}, `"all" is not one of show`},
		{techR, []string{"ueid", "foo"}, `"foo" is not one of show, add, del, flush`},
		{techR, []string{"ueid", "add"}, `the EID is missing`},
		{techR, []string{"ueid", "del"}, `the EID is missing`},
		{techR, []string{"ueid", "flush", "x"}, `"x" is an unexpected word`},
		{techR, []string{"ueid", "add", "A", "B"}, `"B" is an unexpected word`},
		{techR, []string{"ueid", "add", ""}, `it is empty`},
		{techR, []string{"ueid", "add", "lower"}, `invalid user EID`},
		{techR, []string{"ueid", "add", "A..B"}, `two dots in a row`},
		{techR, []string{"ueid", "add", ".A"}, `first character`},
		{techR, []string{"ueid", "add", "A_B"}, `character 2`},
		{techR, []string{"ueid", "add", "A\xff"}, `character 2`},
		{techR, []string{"ueid", "add", strings.Repeat("A", 33)}, `longer than 32`},
		{techR, []string{"ueid", "del", "A B"}, `character 2`},
		{techD, []string{"seid", "on"}, `"on" is not one of show, enable, disable`},
		{techR, []string{"handshake-limit", "maybe"}, `"maybe" is not one of show, enable, disable`},
	} {
		t.Run(tc.tech.name()+" "+strings.Join(tc.args, " "), func(t *testing.T) {
			b := &bench{fake: populated()}
			got := b.run(tc.tech, tc.args...)
			if got.status != 2 || got.stdout != "" || b.opened != 0 {
				t.Errorf("status %d, stdout %q, %d sockets opened", got.status, got.stdout, b.opened)
			}
			oneLine(t, tc.tech, got.stderr, tc.want)
		})
	}
}

func oneLine(t *testing.T, tc tech, stderr, want string) {
	t.Helper()
	if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, tc.name()+": ") || !strings.Contains(stderr, want) {
		t.Errorf("stderr %q: not one line of %s with %q", stderr, tc.name(), want)
	}
}

// TestWithoutModule checks every object where SMC does not exist, and that help needs no SMC.
func TestWithoutModule(t *testing.T) {
	gone := &smcerr.Error{
		Op: "look up", Kind: netlinksmc.ErrNoModule, Remedy: "load it", Err: os.ErrNotExist,
	}
	for _, args := range []string{
		"info", "linkgroup", "-dd link", "device", "stats", "stats reset", "stats json", "ueid", "ueid add A", "ueid del A",
		"ueid flush", "handshake-limit", "handshake-limit enable", "info --json=1", "linkgroup --json=1",
	} {
		got := (&bench{open: gone}).run(techR, strings.Fields(args)...)
		if got.status != 1 || got.stdout != "" {
			t.Errorf("%s: status %d, stdout %q", args, got.status, got.stdout)
		}
		oneLine(t, techR, got.stderr, "SMC module not available: load it")
	}
	for _, args := range []string{"info --json", "linkgroup --json", "ueid add A -json"} {
		got := (&bench{open: gone}).run(techR, strings.Fields(args)...)
		jsontest.CheckFailure(t, []byte(got.stdout), got.stderr, 1)
	}
	for _, args := range []string{"", "-h", "help", "help stats", "stats help", "ueid h", "-v", "--version", "linkgroup --help"} {
		b := &bench{open: gone}
		got := b.run(techR, strings.Fields(args)...)
		if got.status != 0 || got.stderr != "" || got.stdout == "" || b.opened != 0 {
			t.Errorf("%q: %+v, %d sockets opened", args, got, b.opened)
		}
	}
}

// TestChanges checks the requests, the output and the status of commands that change something.
func TestChanges(t *testing.T) {
	perm := &smcerr.Error{Op: "add user EID", Remedy: "run as root", Err: syscall.EPERM}
	kind := func(k error) error { return &smcerr.Error{Op: "user EID A", Kind: k, Remedy: "see 'smcr ueid'"} }
	for _, tc := range []struct {
		tech   tech
		args   string
		fake   fake
		status int
		stdout string
		stderr string // part of
		call   string
	}{
		{techR, "ueid add A", fake{}, 0, "", "", "add A"},
		{techR, "u a A", fake{}, 0, "", "", "add A"},
		{techR, "ueid add A --json=1", fake{}, 0, "{\n  \"schema\": 1,\n  \"changed\": true\n}\n", "", "add A"},
		{techR, "ueid add A", fake{err: kind(netlinksmc.ErrUEIDTableFull), ueids: []string{"B", "A"}}, 0, "user EID A is already defined\n", "", "add A"},
		{techR, "ueid add A", fake{err: kind(netlinksmc.ErrUEIDExists)}, 0, "user EID A is already defined\n", "", "add A"},
		{techR, "ueid add A --json=1", fake{err: kind(netlinksmc.ErrUEIDExists)}, 0, "{\n  \"schema\": 1,\n  \"changed\": false\n}\n", "", "add A"},
		{techR, "ueid add A", fake{err: kind(netlinksmc.ErrUEIDTableFull)}, 1, "", "maximum number", "add A"},
		{techR, "ueid add A", fake{err: perm}, 1, "", "operation not permitted: run as root", "add A"},
		{techR, "ueid del A", fake{}, 0, "", "", "del A"},
		{techR, "ueid delete A", fake{}, 0, "", "", "del A"},
		{techR, "ueid d A", fake{}, 0, "", "", "del A"},
		{techR, "ueid del A", fake{err: kind(netlinksmc.ErrUEIDNotFound)}, 1, "", "user EID A: user EID not defined", "del A"},
		{techR, "ueid del A", fake{err: perm}, 1, "", "not permitted", "del A"},
		{techR, "ueid del A", fake{lastUEIDSwitches: true}, 0, "", "the kernel has enabled the system EID", "del A"},
		{techR, "ueid flush", fake{ueids: []string{"A"}}, 0, "", "", "flush"},
		{techR, "ueid flush --json=1", fake{}, 0, "{\n  \"schema\": 1,\n  \"changed\": false\n}\n", "", "flush"},
		{techR, "ueid flush", fake{err: perm}, 1, "", "not permitted", "flush"},
		{techD, "seid enable", fake{seid: &netlinksmc.SEID{}}, 0, "", "", "seid Yes"},
		{techD, "seid d", fake{seid: &netlinksmc.SEID{}}, 0, "", "", "seid No"},
		{techD, "seid disable --json=1", fake{seid: &netlinksmc.SEID{}}, 0, "{\n  \"schema\": 1,\n  \"changed\": false\n}\n", "", "seid No"},
		{techD, "seid enable", fake{err: kind(netlinksmc.ErrNoSEID)}, 1, "", "system EID not available", "seid Yes"},
		{techR, "handshake-limit enable", fake{}, 0, "", "", "limit Yes"},
		{techD, "ha d", fake{limit: true}, 0, "", "", "limit No"},
		{techD, "ha d", fake{}, 0, "handshake limit is already disabled\n", "", ""},
		{techD, "ha enable", fake{err: perm}, 1, "", "not permitted", "limit Yes"},
	} {
		t.Run(tc.tech.name()+" "+tc.args, func(t *testing.T) {
			b := &bench{fake: &tc.fake}
			got := b.run(tc.tech, strings.Fields(tc.args)...)
			if got.status != tc.status || got.stdout != tc.stdout {
				t.Errorf("%+v", got)
			}
			if tc.stderr == "" && got.stderr != "" {
				t.Errorf("stderr %q", got.stderr)
			}
			if tc.stderr != "" {
				oneLine(t, tc.tech, got.stderr, tc.stderr)
			}
			if call := strings.Join(b.fake.calls, ","); call != tc.call {
				t.Errorf("requested %q, want %q", call, tc.call)
			}
		})
	}
}

// TestInterrupted checks that a list that changed while it was read is shown, and that the command fails.
func TestInterrupted(t *testing.T) {
	for _, args := range []string{"linkgroup", "link", "-d linkgroup", "device", "stats", "ueid", "info", "linkgroup --json=1"} {
		f := populated()
		f.listErr = &smcerr.Error{Op: "list", Kind: netlinksmc.ErrDumpInterrupted, Remedy: "try again"}
		got := (&bench{fake: f}).run(techR, strings.Fields(args)...)
		if got.status != 1 || got.stdout == "" {
			t.Errorf("%s: %+v", args, got)
		}
		oneLine(t, techR, got.stderr, "changed while it was read")
	}
}

// closedPipe is a pipe whose reading end is closed.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// fullDisk is a file to which every write fails.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestBrokenOutput(t *testing.T) {
	for _, args := range []string{"info", "linkgroup", "-dd link", "device", "stats", "stats json", "ueid", "stats --json=1"} {
		if got := (&bench{fake: populated(), out: closedPipe{}}).run(techR, strings.Fields(args)...); got.status != 1 || got.stderr != "" {
			t.Errorf("%s | head: %+v", args, got)
		}
		got := (&bench{fake: populated(), out: fullDisk{}}).run(techR, strings.Fields(args)...)
		if got.status != 1 {
			t.Errorf("%s > full: %+v", args, got)
		}
		oneLine(t, techR, got.stderr, "no space left on device")
	}
}
