// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
	"golang.org/x/sys/unix"
)

// The documents use two hosts, hosta and hostb, with the addresses 10.0.0.1 and 10.0.0.2, as in docs/hosts.svg. Each has the
// interface ens1f0np0, a RoCE adapter mlx5_0 on it, and AF_SMC of this repository. They have an enterprise ID in common, except
// for documents that begin with nothing. Web servers listen at port 80. Programs of the reader exist under the names that the
// documents use.
const arrange = `
echo 10.0.0.1 hosta >>/etc/hosts
echo 10.0.0.2 hostb >>/etc/hosts
ip link set lo up
ip link set eth0 name ens1f0np0
ip link set ens1f0np0 up
ip addr add 10.0.0.%[1]d/24 dev ens1f0np0
ip addr add fd00::%[1]d/64 dev ens1f0np0 nodad
modprobe rdma_rxe
rdma link add mlx5_0 type rxe netdev ens1f0np0
mkdir -p /run/docs /run/www /etc/modprobe.d /etc/modules-load.d
cd /run/docs
for program in app run.sh; do
	printf '#!/bin/sh\nexec curl -s -o /dev/null http://10.0.0.%[1]d/\n' >$program
	chmod 755 $program
done
cp app /usr/local/bin/app
echo hello >/run/www/index.html
`

// reset undoes the changes of a document, so that they do not affect the next one.
const reset = `
for ns in $(ip -o netns list | cut -d' ' -f1); do ip netns del $ns; done
for link in $(ip -o link show type veth | sed 's/^[0-9]*: \([^:@]*\).*/\1/'); do ip link del $link 2>/dev/null || :; done # or its peer was
smc_pnet flush
smcr ueid flush
smcd loopback on
rm -rf /etc/modprobe.d/smc.conf /etc/modules-load.d/smckit.conf /etc/smc
mkdir /etc/smc # as the package has it
find /run/docs -type f ! -name app ! -name run.sh -delete
`

// begin is the setup that documents assume, except for those that describe it.
const begin = "smcr ueid add MYCLUSTER"

// beginners are the documents that begin with nothing.
var beginners = map[string]bool{
	"docs/containers.md": true, "docs/getting-started-cluster.md": true, "docs/getting-started-kvm.md": true, "docs/getting-started-laptop.md": true,
}

// network is the two hosts.
type network struct {
	*lab.Test
	// started are the programs that serve, by the host they are on.
	started []*lab.Process
}

// TestDocuments runs the command lines of the documents, each document's in their order. Full runs have all of them.
func TestDocuments(t *testing.T) {
	lab.Need(t)
	dir, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := &network{Test: lab.Start(t, lab.Options{Kernel: lab.Newest(), Hosts: 2, Memory: 1024, Programs: []string{dir}})}
	for i, h := range []string{"a", "b"} {
		n.Must(h, fmt.Sprintf(arrange, i+1))
	}
	if err := n.LoadSMC(t.Context(), lab.ModuleOurs); err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{"a", "b"} {
		n.serve(t, h, "smc_run python3 -m http.server --directory /run/www 80")
	}
	web := n.started
	for _, name := range files(t) {
		// Those that a reader begins with are in each run.
		if first := !strings.HasPrefix(name, "docs/") || beginners[name]; !first && !lab.Full() {
			continue
		}
		n.started = nil
		t.Run(name, func(t *testing.T) { n.document(t, name) })
	}
	for _, p := range web {
		lab.Kill(t, p)
	}
}

// shell runs a script, which must succeed.
func (n *network) shell(t *testing.T, host, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(60*time.Second))
	defer cancel()
	out, err := n.Host(host).Shell(ctx, script)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// document runs the command lines of one document. Those after one that fails are run, too.
func (n *network) document(t *testing.T, name string) {
	blocks := blocksOf(t, name)
	for _, h := range []string{"a", "b"} {
		n.shell(t, h, reset)
		if !beginners[name] {
			n.shell(t, h, begin)
		}
	}
	defer func() {
		for _, p := range n.started {
			lab.Kill(t, p)
		}
	}()
	for _, b := range blocks {
		if b.Skip != "" || b.By != "" {
			continue
		}
		for _, l := range b.Lines {
			if l.Skip != "" {
				continue
			}
			for _, host := range l.On {
				t.Run(fmt.Sprintf("%d %s", l.Number, host), func(t *testing.T) { n.line(t, host, l) })
			}
		}
	}
}

func (n *network) line(t *testing.T, host string, l Line) {
	t.Log(l.Text)
	switch {
	case l.Serves:
		n.serve(t, host, l.Text)
		return
	case l.GoesOn:
		n.interrupt(t, host, l.Text)
		return
	}
	want := 0
	if l.Fails {
		want = 1
	}
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(60*time.Second))
	defer cancel()
	r, err := n.Host(host).Run(ctx, lab.Cmd{Argv: []string{"/bin/sh", "-euc", l.Text}, Dir: "/run/docs"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Code != want {
		t.Errorf("%s: exit status %d, not %d:\n%s%s", l.Text, r.Code, want, r.Stdout, r.Stderr)
	}
}

// serve starts a program that keeps running, and waits until one more port is listened at.
func (n *network) serve(t *testing.T, host, text string) {
	t.Helper()
	const listeners = "{ ss -Htln; ip -all netns exec ss -Htln; } 2>/dev/null | wc -l"
	before, err := strconv.Atoi(strings.TrimSpace(n.shell(t, host, listeners)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := n.Host(host).Start(lab.Cmd{Argv: []string{"/bin/sh", "-c", "exec " + text}, Dir: "/run/docs"})
	if err != nil {
		t.Fatal(err)
	}
	n.started = append(n.started, p)
	if err := n.Host(host).WaitFor(t.Context(), fmt.Sprintf("[ $(%s) -gt %d ]", listeners, before)); err != nil {
		t.Fatalf("%s does not listen: %v", text, err)
	}
}

// interrupt starts a program that keeps running, and interrupts it after its first output.
func (n *network) interrupt(t *testing.T, host, text string) {
	t.Helper()
	said := make(firstWrite, 1)
	p, err := n.Host(host).Start(lab.Cmd{Argv: []string{"/bin/sh", "-c", "exec " + text}, Dir: "/run/docs", Stdout: said})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(30*time.Second))
	defer cancel()
	select {
	case <-said:
	case <-ctx.Done():
		t.Errorf("%s says nothing", text)
	}
	if err := p.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	r, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if r.Code != 128+int(unix.SIGINT) {
		t.Errorf("%s: exit status %d after being interrupted: %s", text, r.Code, r.Stderr)
	}
}

// firstWrite is sent to when something has been written.
type firstWrite chan struct{}

func (w firstWrite) Write(p []byte) (int, error) {
	select {
	case w <- struct{}{}:
	default:
	}
	return len(p), nil
}
