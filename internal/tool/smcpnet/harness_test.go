// SPDX-License-Identifier: Apache-2.0

package smcpnet

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/pnettest"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/spf13/cobra"
)

// harness runs the command with a fake kernel and fake devices.
type harness struct {
	kernel   *pnettest.Kernel
	sys      system
	in       string
	terminal bool
	out, err bytes.Buffer
	dialed   int
}

// fakeDevices are devices that exist.
type fakeDevices struct{ interfaces, rdma, pci []string }

func (f fakeDevices) Interfaces() ([]string, error) { return slices.Clone(f.interfaces), nil }
func (f fakeDevices) RDMA() ([]string, error)       { return slices.Clone(f.rdma), nil }
func (f fakeDevices) Exists(name string) bool       { return slices.Contains(f.pci, name) }

// fakeHardware has the PNET IDs that firmware sets, by the names of devices.
type fakeHardware map[string]string

func (f fakeHardware) Interface(name string) (string, error)     { return f[name], nil }
func (f fakeHardware) RDMA(name string, _ uint8) (string, error) { return f[name], nil }
func (f fakeHardware) PCI(address string) ([]string, error) {
	if id := f[address]; id != "" {
		return []string{id}, nil
	}
	return nil, nil
}

func newHarness(t *testing.T, rows ...pnettest.Row) *harness {
	t.Helper()
	h := &harness{kernel: &pnettest.Kernel{Rows: rows}}
	h.sys = system{
		dial: func(context.Context) (table, error) {
			h.dialed++
			c, err := pnet.NewFromConn(h.kernel.Dial())
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		devices: fakeDevices{
			interfaces: []string{"lo", "eth0", "eth1", "\xff\x1b"},
			rdma:       []string{"mlx4_0", "rxe0"},
			pci:        []string{"0000:00:1f.0"},
		},
		hardware: fakeHardware{},
	}
	return h
}

// run runs the command and returns its exit status. The output is in out and err.
func (h *harness) run(t *testing.T, args ...string) int {
	t.Helper()
	h.out.Reset()
	h.err.Reset()
	return h.runTool(t, h.tool(), args...)
}

func (h *harness) runTool(t *testing.T, tool cli.Tool, args ...string) int {
	return cli.Run(t.Context(), tool, &cli.Env{
		In:       strings.NewReader(h.in),
		Out:      &h.out,
		Err:      &h.err,
		Terminal: h.terminal,
		// Set a narrow terminal, because the output must not depend on its width.
		Getenv: func(name string) string { return map[string]string{"COLUMNS": "1"}[name] },
		EnterNetNS: func(name string) error {
			t.Errorf("network namespace %q was entered", name)
			return nil
		},
	}, args)
}

// tool returns the command with the fakes.
func (h *harness) tool() cli.Tool {
	tool := Tool
	tool.New = func(env *cli.Env) *cobra.Command { return newRoot(env, h.sys) }
	return tool
}

// table returns the fake's table as lines of "smc_pnet show".
func (h *harness) table(t *testing.T) string {
	t.Helper()
	c, err := pnet.NewFromConn(h.kernel.Dial())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rows, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range rows {
		if err := writeRow(&b, e); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}
