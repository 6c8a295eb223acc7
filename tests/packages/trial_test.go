// SPDX-License-Identifier: Apache-2.0

//go:build linux

package packages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/need"
	"github.com/smckit/smckit/internal/version"
	"github.com/smckit/smckit/tests/docs"
)

// user is a new user, who types the command lines of the guides.
type user struct {
	docs.Runner
	// promised is what the guides promise: for each command line, regular expressions for its output, one for each time that it is run.
	// After a ! comes one that must not match.
	promised map[string][]string
}

// home is the directory in which the user has the packages, in dist/.
const home = "/root/smckit"

// TestTrial has new users of Debian 12 follow README and the guides, from installing the packages to removing them: one has redis use SMC-D
// on one machine, one SMC-R between two.
func TestTrial(t *testing.T) {
	if !lab.Full() {
		t.Skip("boots Debian machines three times: set SMCKIT_FULL=1, or run 'make test-full'")
	}
	need.Programs(t, "debootstrap", "mke2fs")
	dist := build(t, version.Version)
	d := lab.NewMachine(t, "bookworm", "dkms", "linux-headers-amd64")
	d.Offer("redis-server")
	// The modules are compiled here, by the line of README: a guest would take a quarter of an hour. When the same line is run in a guest, the
	// package is there already.
	for _, b := range sections(t, "README.md", "Install") {
		for _, l := range b.Lines {
			if strings.Contains(l.Text, "smckit-dkms") {
				d.Must(dist, "mkdir -p "+home+"; cd "+home+"; ln -s /mnt dist; "+l.Text+"; rm dist")
			}
		}
	}
	disk := d.Disk()
	t.Run("laptop", func(t *testing.T) { laptop(t, disk, dist) })
	t.Run("cluster", func(t *testing.T) { cluster(t, disk, dist) })
}

// laptop has redis use SMC-D.
func laptop(t *testing.T, disk *lab.Disk, dist string) {
	u := newUser(t, lab.Options{Disk: disk}, dist)
	const within = `SMC is possible\n\s+SMC-D version 2 over loopback-ism, within this host`
	const dropIn = ` /etc/systemd/system/redis-server\.service\.d/zz-smc\.conf\n`
	const listens = `LISTEN .* 127\.0\.0\.1:6379 .*"redis-server"`
	u.promised = map[string][]string{
		"smckit": {
			`smckit's AF_SMC module .*SMC-D version 2 over loopback-ism.*connections: 0 SMC-R, 0 SMC-D`, // after the installation
			`Sockets +2 listening;.* 0 connections were TCP`,                                            // by a rule
			`Sockets +2 listening; connections: 0 SMC-R, [2-9] SMC-D, 0 TCP`,                            // by a drop-in
		},
		"smckit check":                                      {within, within},
		"smckit check --connect 127.0.0.1":                  {"Success, using SMC-D"},
		"smc_policy explain :6379":                          {`rule 1: smc name redis port 6379`},
		"smckit sockets -l -p":                              {listens, listens},
		"redis-cli ping":                                    {`^PONG\n$`, `^PONG\n$`},
		"smckit run --unit redis-server --check --diff":     {"^would write" + dropIn + added(t, "docs/smc_run.md")},
		"smckit run --unit redis-server --restart":          {"^wrote" + dropIn},
		"smckit run redis-cli ping":                         {`^PONG\n$`},
		"smckit sockets":                                    {`ACTIVE .*:6379 .*SMCD.*ACTIVE .*:6379 .*SMCD`},
		"smckit run --unit redis-server --undo --restart":   {"^removed" + dropIn},
		"smc_run --unit redis-server --check --diff":        {"^would write" + dropIn + added(t, "docs/smc_run.md")},
		"smc_run --unit redis-server --port 6379 --restart": {"^wrote" + dropIn},
		"smcss -l -p":                                       {listens},
		"smc_run --unit redis-server --undo --restart":      {"^removed" + dropIn},
		"smckit sockets -a":                                 {`!LISTEN`},
	}
	u.read(t, "README.md", "Install")
	u.read(t, "docs/getting-started-laptop.md", "Install", "Look")
	u.read(t, "docs/services.md")
	u.read(t, "docs/smc_run.md", "Services")
	u.read(t, "docs/getting-started-laptop.md", "Undo")
	u.finish(t)
}

// added returns a regular expression for the lines that smc_run says it adds, if its drop-in is that of a document.
func added(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "/redis-server.service.d/zz-smc.conf\n")
	file, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatalf("%s has no drop-in", name)
	}
	return `\+# Written by .*\n\+` + regexp.QuoteMeta(strings.ReplaceAll(strings.TrimSpace(file), "\n", "\n+"))
}

// adapters gives a host of the guides its network: docs/hosts.svg.
const adapters = `
echo 10.0.0.1 hosta >>/etc/hosts
echo 10.0.0.2 hostb >>/etc/hosts
ip link set eth0 name ens1f0np0
ip link set ens1f0np0 up
ip addr add $1/24 dev ens1f0np0
modprobe rdma_rxe
rdma link add mlx5_0 type rxe netdev ens1f0np0
`

// cluster has redis use SMC-R.
func cluster(t *testing.T, disk *lab.Disk, dist string) {
	u := newUser(t, lab.Options{Disk: disk, Hosts: 2}, dist)
	for i, h := range u.Hosts {
		u.Shell(t, h.Name, "set -- "+lab.Addr4(0, i)+"\n"+adapters)
	}
	const (
		port  = `mlx5_0 +1 +ACTIVE +Rv2 [^\n]* ens1f0np0\n`
		table = `FABRICA ens1f0np0 n/a 255\nFABRICA n/a mlx5_0 1\n`
	)
	u.promised = map[string][]string{
		"smc_rnics":               {port, port},
		"smc_chk":                 {`SMC is possible\n`, `SMC is possible\n`},
		"smcr ueid":               {`^MYCLUSTER *\n$`, `^MYCLUSTER *\n$`},
		"smc_pnet show":           {table, table},
		"smc_chk --connect hostb": {"Success, using SMC-R"},
		"smc_run redis-cli -h hostb -p 7379 ping": {`^PONG\n$`},
		"smckit":            {`connections: [1-9] SMC-R, 0 SMC-D, 0 TCP`},
		"smcss -R":          {`ACTIVE .* 10\.0\.0\.2:7379 .*mlx5_0`},
		"smcr -d linkgroup": {`CLNT.*FABRICA.*MYCLUSTER`},
		"smcr link":         {`CLNT +SINGLE +ens1f0np0 +LINK_ACTIVE`},
		"smcr -d stats":     {`SMC connections +[1-9]\d* .*TCP fallback +0 `},
	}
	const guide = "docs/getting-started-cluster.md"
	u.read(t, guide, "Install", "Look at each host", "Version 1 or 2?", "Which adapter for which interface", "First connection", "See that it is used")
	u.read(t, guide, "Go back")
	u.finish(t)
}

// newUser boots machines, and copies the packages to them.
func newUser(t *testing.T, o lab.Options, dist string) *user {
	t.Helper()
	u := &user{Runner: docs.Runner{Test: lab.Start(t, o), Dir: home, Limit: 3 * time.Minute}}
	for _, h := range u.Hosts {
		u.Shell(t, h.Name, "mkdir -p "+home+"/dist")
		for _, file := range glob(t, dist, "*.deb") {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.WriteFile(t.Context(), filepath.Join(home, "dist", filepath.Base(file)), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	u.Check = u.check
	return u
}

// check compares the output of a command line with what the guides promise.
func (u *user) check(t *testing.T, host string, l docs.Line, r lab.Result) {
	out := r.Stdout + r.Stderr
	t.Log(out)
	left, ok := u.promised[l.Text]
	if !ok {
		return
	}
	if len(left) == 0 {
		t.Errorf("%s runs more often than promises are known", l.Text)
		return
	}
	u.promised[l.Text] = left[1:]
	pattern, not := strings.CutPrefix(left[0], "!")
	if regexp.MustCompile("(?s)"+pattern).MatchString(out) == not {
		t.Errorf("%s on host %s prints what %s does not allow:\n%s", l.Text, host, left[0], out)
	}
}

// sections returns the blocks of some sections of a document, or of all, that are run here.
func sections(t *testing.T, name string, titles ...string) []docs.Block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := docs.Blocks(name, string(text))
	if err != nil {
		t.Fatal(err)
	}
	blocks = slices.DeleteFunc(blocks, func(b docs.Block) bool {
		return b.Skip != "" || b.By != "" && b.By != "tests/packages/trial_test.go" || titles != nil && !slices.Contains(titles, b.Section)
	})
	for _, title := range titles {
		if !slices.ContainsFunc(blocks, func(b docs.Block) bool { return b.Section == title }) {
			t.Fatalf("%s: nothing is to be run below %q", name, title)
		}
	}
	return blocks
}

// read types the command lines of some sections of a guide, or of all. Then it ends programs that go on, and waits until the kernel has closed
// their sockets.
func (u *user) read(t *testing.T, name string, titles ...string) {
	t.Helper()
	for _, b := range sections(t, name, titles...) {
		u.RunBlock(t, b)
	}
	u.Stop(t)
	for _, h := range u.Hosts {
		if err := h.WaitFor(t.Context(), "test $(smcss -a 2>/dev/null | wc -l) -le 1"); err != nil {
			t.Fatalf("%s: there are AF_SMC sockets: %v", name, err)
		}
	}
}

// finish checks that all promises were kept, and that nothing is left of the packages.
func (u *user) finish(t *testing.T) {
	t.Helper()
	for text, left := range u.promised {
		if len(left) > 0 {
			t.Errorf("%s was to be run %d times more", text, len(left))
		}
	}
	for _, h := range u.Hosts {
		checkGone(t, u.Test, h.Name)
	}
}
