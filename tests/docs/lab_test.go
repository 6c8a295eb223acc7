// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
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

// TestDocuments runs the command lines of the documents, each document's in their order. Full runs have all of them.
func TestDocuments(t *testing.T) {
	lab.Need(t)
	dir, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lt := lab.Start(t, lab.Options{Kernel: lab.Newest(), Hosts: 2, Memory: 1024, Programs: []string{dir}})
	for i, h := range []string{"a", "b"} {
		lt.Must(h, fmt.Sprintf(arrange, i+1))
	}
	if err := lt.LoadSMC(t.Context(), lab.ModuleOurs); err != nil {
		t.Fatal(err)
	}
	web := runner(lt)
	for _, h := range []string{"a", "b"} {
		web.Serve(t, h, "smc_run python3 -m http.server --directory /run/www 80")
	}
	defer web.Stop(t)
	for _, name := range files(t) {
		// Those that a reader begins with are in each run.
		if first := !strings.HasPrefix(name, "docs/") || beginners[name]; !first && !lab.Full() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := runner(lt)
			for _, h := range []string{"a", "b"} {
				r.Shell(t, h, reset)
				if !beginners[name] {
					r.Shell(t, h, begin)
				}
			}
			defer r.Stop(t)
			r.Run(t, blocksOf(t, name))
		})
	}
}

// runner runs command lines where the reader's programs are.
func runner(lt *lab.Test) *Runner { return &Runner{Test: lt, Dir: "/run/docs", Limit: time.Minute} }
