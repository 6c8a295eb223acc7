// SPDX-License-Identifier: Apache-2.0

package ism_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/smckit/smckit/internal/sysfstest"
	"github.com/smckit/smckit/pkg/ism"
)

func TestSetPower(t *testing.T) {
	root := sysfstest.S390X(t)
	s := ism.Scanner{Root: root}
	state := func(slot string) string {
		b, err := os.ReadFile(filepath.Join(root, "bus/pci/slots", slot, "power"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b[0])
	}
	d := find(t, scan(t, s), "mlx5_0")
	steps := []struct {
		on, changed bool
		state       string
	}{
		{true, false, "1"},
		{false, true, "0"},
		{false, false, "0"}, // d still says that it is on
		{true, true, "1"},
	}
	for i, step := range steps {
		changed, err := s.SetPower(t.Context(), &d, step.on)
		if err != nil || changed != step.changed || state("000008ca") != step.state {
			t.Errorf("step %d: changed %v, error %v, power %s", i, changed, err, state("000008ca"))
		}
	}
	off := find(t, scan(t, s), "FID 50a")
	if changed, err := s.SetPower(t.Context(), &off, true); err != nil || !changed || state("0000050a") != "1" {
		t.Errorf("FID 50a: changed %v, error %v", changed, err)
	}
}

func TestSetPowerRefused(t *testing.T) {
	fail := func(err error) func(string, []byte) error { return func(string, []byte) error { return err } }
	tests := []struct {
		name   string
		device string
		write  func(string, []byte) error
		want   error
	}{
		{"not root", "mlx5_0", fail(&os.PathError{Op: "open", Path: "power", Err: syscall.EACCES}), os.ErrPermission},
		{"the kernel refuses", "mlx5_0", fail(syscall.EIO), syscall.EIO},
		{"nothing happens", "mlx5_0", fail(nil), ism.ErrUnchanged},
		{"no slot", "irdma0", fail(errors.New("written")), ism.ErrNotSupported},
		{"slot without switch", "bnxt_re0", fail(errors.New("written")), ism.ErrNotSupported},
		{"software", "rxe0", fail(errors.New("written")), ism.ErrNotSupported},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := ism.Scanner{Root: sysfstest.X86(t), Arch: "amd64", WriteFile: test.write}
			d := find(t, scan(t, s), test.device)
			if changed, err := s.SetPower(t.Context(), &d, false); changed || !errors.Is(err, test.want) {
				t.Errorf("changed %v, error %v; want %v", changed, err, test.want)
			}
		})
	}

	root := sysfstest.X86(t)
	s := ism.Scanner{Root: root, Arch: "amd64"}
	d := find(t, scan(t, s), "mlx5_0")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.SetPower(ctx, &d, false); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(root, "bus/pci/slots/1")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetPower(t.Context(), &d, false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("slot gone: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Join(root, "bus/pci/slots/1")); err == nil {
		t.Errorf("the slot has come back: %v", entries)
	}
}
