// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import "testing"

func TestTry(t *testing.T) {
	for _, k := range []string{"6.12", "6.1"} {
		t.Run(k, func(t *testing.T) {
			lt := StartSMC(t, Options{Kernel: k, Hosts: 2})
			t.Log(lt.Must("b", "smcflow sink 0.0.0.0:5001 >/dev/null 2>&1 & sleep 1"))
			p, err := lt.Host("a").Start(Cmd{Argv: []string{"smcflow", "source", "10.0.0.2:5001", "--seconds", "6"}})
			if err != nil {
				t.Fatal(err)
			}
			t.Log(lt.Must("a", "sleep 3; smcss -a; smcss -R; smcss -d; smcr linkgroup; smcr -dd linkgroup; smcr linkgroup link-show; smcr device; smcr -d device; smcr info; smcr -d stats; smcr-stats -d; smcd info; smcd device"))
			t.Log(p.Wait(t.Context()))
		})
	}
}
