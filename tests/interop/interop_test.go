// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package interop connects our module with the stock module of another host, in both roles. The application's data must arrive
// whatever the handshake chooses, and both hosts must report the same reason for a fallback to TCP.
package interop

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
)

func TestWithStock(t *testing.T) {
	lab.Need(t)
	dir, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lt := lab.Start(t, lab.Options{
		Kernels: []string{lab.Newest(), "6.12"}, Hosts: 2, Programs: []string{dir},
		KernelArgs: "smc.smcd=0 smc.smcr=0", // smc_null.ko takes the place of our SMC-D
	})
	setUp(t, lt)
	for _, c := range []struct {
		name           string
		null           bool
		client, server string
		// The output of smcss on the client and on the server: the reason, and the peer's reason behind it.
		clientWhy, serverWhy string
	}{
		{"our client without transport", false, "a", "b", "0x03030000", "0x03010000"},
		{"our server without transport", false, "b", "a", "0x03010000", "0x03030000"},
		{"our client offers SMC-D", true, "a", "b", "0x05000000/0x0303000[0-9a-f]", "0x0303000[0-9a-f]"},
		{"our server has SMC-D only", true, "b", "a", "0x05000000/0x03030000", "0x03030000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.null {
				lt.Must("a", "modprobe smc_null")
			}
			between(t, lt, c.client, c.server, c.clientWhy, c.serverWhy)
			if c.null {
				lt.Must("a", "modprobe -r smc_null")
			}
		})
	}
}

// setUp loads the stock module on b, and ours on a. Both would use SMC-R over soft-RoCE if they could.
func setUp(t *testing.T, lt *lab.Test) {
	t.Helper()
	ctx := t.Context()
	for _, step := range []func(context.Context) error{
		lt.SetUpAddresses,
		lt.SetUpRDMA,
		func(ctx context.Context) error {
			_, err := lt.Host("b").Shell(ctx, "modprobe smc && modprobe smc_diag")
			return err
		},
		lt.InstallSMC,
		func(ctx context.Context) error {
			_, err := lt.Host("a").Shell(ctx, "modprobe smc && modprobe smc_diag")
			return err
		},
	} {
		if err := step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// Each connection has a handshake.
	lt.Must("a", "sysctl -qw net.smc.remember_peers=0")
	for _, host := range []string{"a", "b"} {
		lt.Must(host, "smcr ueid add "+lab.UEID+" && smc_pnet add LAB0 eth eth0 && smc_pnet add LAB0 ib rxe0 1")
	}
}

// between moves data from a client to a server, and checks the connection at both ends.
func between(t *testing.T, lt *lab.Test, client, server, clientWhy, serverWhy string) {
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(60*time.Second))
	defer cancel()
	address := fmt.Sprintf("%s:5001", lab.Addr4(0, map[string]int{"a": 0, "b": 1}[server]))
	sink, err := lt.Host(server).Start(lab.Cmd{Argv: []string{"smcflow", "sink", "0.0.0.0:5001"}})
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Kill(t, sink)
	// Run one transfer to its end, and another to observe with smcss.
	lt.Must(client, "smcflow source --wait --seconds 0.5 "+address)
	source, err := lt.Host(client).Start(lab.Cmd{Argv: []string{"smcflow", "source", "--seconds", "600", address}})
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Kill(t, source)
	for _, host := range []string{client, server} {
		if err := lt.Host(host).WaitFor(ctx, "smcss --state active --port 5001 | grep -q :5001"); err != nil {
			t.Fatal(err)
		}
	}
	lab.Suspend(t, source)
	for _, end := range []struct{ host, why string }{{client, clientWhy}, {server, serverWhy}} {
		out := lt.Must(end.host, "smcss --state active --port 5001")
		if !regexp.MustCompile(`TCP ` + end.why + ` *\n`).MatchString(out) {
			t.Errorf("host %s: want a fallback for %s, got\n%s", end.host, end.why, out)
		}
	}
}
