// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import "context"

// parts are what guests of one architecture consist of, besides their kernels.
type parts struct {
	qemu     *qemu
	agent    []byte   // the program that is process 1
	userland string   // the directory with programs of the architecture, if that is not this machine's
	programs []string // directories in front of PATH
}

// parts finds the parts of guests of an architecture, and brings what the cache lacks.
func (o *Options) parts(ctx context.Context, a *architecture) (*parts, error) {
	p := &parts{programs: o.Programs}
	var err error
	if p.agent, err = agentProgram(ctx, a); err != nil {
		return nil, err
	}
	if p.qemu, err = findEmulator(ctx, a, o.Progress); err != nil || a.native() {
		return p, err
	}
	if p.programs != nil {
		dir, err := foreignCommands(ctx, a)
		if err != nil {
			return nil, err
		}
		p.programs = []string{dir}
	}
	p.userland, err = userland(ctx, a, o.Progress)
	return p, err
}

// kernel returns the kernel of a host.
func (o *Options) kernel(ctx context.Context, host int) (*Kernel, error) {
	if o.Disk != nil {
		return o.Disk.kernel, nil
	}
	if a, err := findArch(o.Archs[host]); err != nil || !a.native() {
		return ProvisionArch(ctx, o.Archs[host], o.Kernels[host], false, o.Progress)
	}
	return Provision(ctx, o.Kernels[host], false, o.Progress)
}

// prepare makes the hosts, which are not booted yet.
func (l *Lab) prepare(ctx context.Context) error {
	found := map[string]*parts{}
	for i := range l.options.Hosts {
		k, err := l.options.kernel(ctx, i)
		if err != nil {
			return err
		}
		a := k.arch()
		if found[a.debian] == nil {
			if found[a.debian], err = l.options.parts(ctx, a); err != nil {
				return err
			}
		}
		l.Hosts = append(l.Hosts, &Host{Name: string(rune('a' + i)), Kernel: k, parts: found[a.debian], lab: l, index: i})
	}
	return nil
}
