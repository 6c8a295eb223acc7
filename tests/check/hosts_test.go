// SPDX-License-Identifier: Apache-2.0

//go:build linux

package check

import (
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// TestHosts runs smc_chk for the path between a host with the stock module and one with ours, from both ends: with SMC-R, and
// after the hosts no longer have an EID in common.
func TestHosts(t *testing.T) {
	lab.Need(t)
	dir, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lt := lab.Start(t, lab.Options{Kernels: []string{"6.12", lab.Newest()}, Programs: []string{dir}})
	if err := lt.SetUpSMC(t.Context(), lab.ModuleStock, lab.ModuleOurs); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"stock serves", "stock calls"} {
		t.Run(name, func(t *testing.T) {
			here, there := string(rune('b'-i)), string(rune('a'+i))
			b := &bench{Test: lt}
			server := b.startOn(t, there, "smcss -l | grep -q :37373", "smc_chk", "--server")
			defer lab.Kill(t, server)
			able := b.askOn(t, here, []string{"smc_chk", "--json", "--connect", lab.Addr4(0, i)})
			if !able.Able || able.transport() != "smcr" {
				t.Errorf("%+v", able)
			}
			lt.Must(there, "smcr ueid del "+lab.UEID)
			defer lt.Must(there, "smcr ueid add "+lab.UEID)
			unable := b.askOn(t, here, []string{"smc_chk", "--json", "--connect", lab.Addr4(0, i)})
			if unable.Able || unable.transport() != "tcp" || !unable.has("live-declined-there") {
				t.Errorf("%+v", unable)
			}
			if there == "b" && !strings.Contains(unable.Findings[0].Text, "(0x03030008 NOUEID)") {
				t.Errorf("our module gives another reason: %+v", unable)
			}
		})
	}
}
