// SPDX-License-Identifier: Apache-2.0

//go:build linux

package run

import (
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// afar are programs for two hosts. SERVER is the address of the server's host.
var afar = []program{
	{
		"nginx and curl", "preload",
		server{[]string{"nginx", "-p", work, "-c", work + "/nginx.conf"}, 8080},
		[]string{"curl", "-fsS", "http://SERVER:8080/page"},
		"the page\n", 1, "",
	},
	{
		"redis", "preload",
		server{[]string{"redis-server", "--port", "6379", "--protected-mode", "no", "--save", "", "--appendonly", "no"}, 6379},
		[]string{"redis-cli", "-h", "SERVER", "echo", "by redis"},
		"by redis\n", 1, "",
	},
	{
		"Go", "seccomp",
		server{[]string{web, "serve", ":8090"}, 8090},
		[]string{web, "get", "http://SERVER:8090/"},
		"from Go\n", 1, "",
	},
}

// TestHosts runs programs between a host with the stock module and one with ours, in both roles. They must use SMC-R, and TCP
// where rules exclude SMC.
func TestHosts(t *testing.T) {
	hosts := bootHosts(t, "6.12", kernel)
	if err := hosts[0].SetUpSMC(t.Context(), lab.ModuleStock, lab.ModuleOurs); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"stock serves", "stock calls"} {
		t.Run(name, func(t *testing.T) {
			serving, calling := hosts[i], hosts[1-i]
			addr := lab.Addr4(0, i)
			for _, p := range afar {
				serving.start(t, p.server)
				t.Run(p.name, func(t *testing.T) { call(t, serving, calling, p, addr) })
			}
			farRules(t, calling, "http://"+addr+":8080/page")
		})
	}
}

func call(t *testing.T, serving, calling *guest, p program, addr string) {
	before := [2]lab.Counters{calling.CountersR(calling.name), serving.CountersR(serving.name)}
	argv := []string{"smc_run", "-d"}
	for _, arg := range p.client {
		argv = append(argv, strings.ReplaceAll(arg, "SERVER", addr))
	}
	r := calling.run(t, argv...)
	if !strings.Contains(r.Stdout, p.want) {
		t.Errorf("the client prints %q, not %q", r.Stdout, p.want)
	}
	if want := "smc_run: method " + p.method + ": "; !strings.HasPrefix(r.Stderr, want) {
		t.Errorf("says %q, not %q", r.Stderr, want)
	}
	after := [2]lab.Counters{calling.CountersR(calling.name), serving.CountersR(serving.name)}
	if got, want := between(before[0], after[0]), (became{smc: p.connections}); got != want {
		t.Errorf("the client's connections: %+v, want %+v; before: %+v, now: %+v", got, want, before[0], after[0])
	}
	if got, want := between(before[1], after[1]), (became{served: p.connections}); got != want {
		t.Errorf("the server's: %+v, want %+v; before: %+v, now: %+v", got, want, before[1], after[1])
	}
}

// farRules checks that rules keep a client of any module on TCP, except the connections that they allow.
func farRules(t *testing.T, calling *guest, url string) {
	for _, method := range []string{"preload", "seccomp"} {
		for rule, want := range map[string]became{"--port 8080": {smc: 1}, "--not 8080": {client: 1, byOption: 1}} {
			before := calling.CountersR(calling.name)
			argv := append([]string{"smc_run", "--method", method}, strings.Fields(rule)...)
			if r := calling.run(t, append(argv, "curl", "-fsS", url)...); r.Stdout != "the page\n" || r.Stderr != "" {
				t.Errorf("%s: %q, %q", argv, r.Stdout, r.Stderr)
			}
			if got := between(before, calling.CountersR(calling.name)); got != want {
				t.Errorf("%s: %+v, want %+v", argv, got, want)
			}
		}
	}
}
