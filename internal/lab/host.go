// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/smckit/smckit/internal/lab/proto"
)

// Host is a guest of the lab.
type Host struct {
	// Name is the host's name, "a" for the first.
	Name string
	// the kernel that the host runs
	Kernel *Kernel

	*parts
	lab     *Lab
	index   int
	disk    *os.File // its own, if it has one
	machine *machine
	conn    *proto.Conn
	hello   chan proto.Hello // one for each boot of the guest's kernel
	monitor *monitor         // of the emulator, if the host gets a device later
}

// errEmulatorFault means that the emulator has ended itself because of an error of its own.
var errEmulatorFault = errors.New("the emulator has failed")

// boot starts the guest and waits until its agent answers and, with a disk, until all services have started.
//
// QEMU 10.0, with two processors, may abort in iotlb_to_section() while a kernel configures PCI devices: this was seen once in thousands
// of boots. Nothing of ours has run in the guest by then, so it is started once more.
func (h *Host) boot(ctx context.Context) error {
	err := h.bootOnce(ctx)
	if !errors.Is(err, errEmulatorFault) {
		return err
	}
	h.lab.options.Progress(fmt.Sprintf("starting guest %s once more: %v", h.Name, err))
	if err := h.unplug(); err != nil {
		return err
	}
	return h.bootOnce(ctx)
}

// unplug makes the host ready for another emulator when the last one has ended.
func (h *Host) unplug() error {
	h.conn.Close()
	for _, w := range h.lab.Wires {
		if err := w.unplug(h.index); err != nil {
			return err
		}
	}
	return nil
}

func (h *Host) bootOnce(ctx context.Context) error {
	modules := bootModules
	if disk := h.lab.options.Disk; disk != nil {
		modules = diskModules
		if h.disk == nil {
			var err error
			if h.disk, err = disk.copy(ctx); err != nil {
				return err
			}
		}
	}
	initrd, err := initramfs(ctx, h.Kernel, modules, h.agent)
	if err != nil {
		return err
	}
	if err := h.start(ctx, initrd); err != nil || h.disk == nil {
		return err
	}
	return h.ready(ctx)
}

// start starts the guest's machine and waits until its agent answers.
func (h *Host) start(ctx context.Context, initrd *os.File) error {
	port, err := h.launch(initrd)
	if err != nil {
		return err
	}
	hello := make(chan proto.Hello, 1)
	h.hello = hello
	h.conn = proto.Client(port, func(p proto.Hello) { hello <- p })
	return h.greet(ctx)
}

// launch starts the emulator, and returns the lab's end of its control port.
func (h *Host) launch(initrd *os.File) (net.Conn, error) {
	s := &machineSpec{cpus: h.lab.options.cpus}
	defer s.close()
	port, err := h.describe(s, h.lab.options, initrd)
	if err != nil {
		return nil, err
	}
	if h.machine, err = startMachine(h.qemu, s); err != nil {
		return nil, errors.Join(err, port.Close())
	}
	return port, nil
}

// greet waits until the agent answers.
func (h *Host) greet(ctx context.Context) error {
	limit := Scale(20 * time.Second)
	if h.Kernel.Debug() {
		limit *= 6
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var why error
	select {
	case p := <-h.hello:
		if p.Kernel != h.Kernel.Release {
			return fmt.Errorf("guest %s runs kernel %s, not %s", h.Name, p.Kernel, h.Kernel.Release)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-h.machine.done:
		why = errors.New("the emulator has ended")
	case <-h.conn.Done():
		// The channel ends with the emulator, too, and may do so first.
		select {
		case <-h.machine.done:
			why = errors.New("the emulator has ended")
		case <-timer.C:
			why = fmt.Errorf("the agent is gone: %w", h.conn.Err())
		}
	case <-timer.C:
		why = fmt.Errorf("no sign of life for %s", limit)
	}
	h.machine.kill() // to collect the rest of its output
	if strings.Contains(h.machine.stderr.String(), "Assertion `") {
		why = errEmulatorFault
	}
	return fmt.Errorf("guest %s did not start: %w%s", h.Name, why, h.lastWords())
}

// Console returns the end of the output of the guest's kernel on its console, also once the guest is off.
func (h *Host) Console() string { return h.machine.console.String() }

// lastWords returns the output that explains the end of a guest, for an error message: the emulator's, and the console's
// from the first report of the kernel on, or else its end.
func (h *Host) lastWords() string {
	const most = 15
	said := strings.Split(strings.TrimSpace(h.machine.stderr.String()), "\n")
	said = said[max(0, len(said)-most):]
	lines := strings.Split(strings.TrimSpace(h.machine.console.String()), "\n")
	begin := max(0, len(lines)-most)
	if found := Reports(strings.Join(lines, "\n")); found != nil {
		begin = slices.IndexFunc(lines, func(l string) bool { return strings.TrimRight(l, "\r") == found[0] })
	}
	said = append(said, lines[max(0, begin):min(len(lines), begin+most)]...)
	return "\n" + strings.TrimSpace(strings.ReplaceAll(strings.Join(said, "\n"), "\r", ""))
}

// lost explains an error on the control channel. If the guest has died, it adds the cause.
func (h *Host) lost(err error) error {
	if h.conn.Err() == nil {
		return err
	}
	if h.lab.closed.Load() {
		return fmt.Errorf("guest %s: the lab is closed", h.Name)
	}
	// The channel and the emulator end together, but not at the same instant.
	select {
	case <-h.machine.done:
		return fmt.Errorf("guest %s has died%s", h.Name, h.lastWords())
	case <-time.After(Scale(time.Second)):
		return fmt.Errorf("guest %s: its agent is gone: %w", h.Name, err)
	}
}

// Cmd is a program to run in a guest.
type Cmd struct {
	// Argv is the program, looked up in the guest's PATH, and its arguments.
	Argv []string
	// Env holds KEY=value, added to the guest's environment.
	Env []string
	// Dir is the working directory; / if empty.
	Dir    string
	Stdin  io.Reader // nil: nothing to read
	Stdout io.Writer // nil: collected in Result
	Stderr io.Writer // nil: collected in Result
	// TTY runs the program on a terminal; all its output is then on Stdout.
	TTY *proto.Size
}

// Result is the exit status of a program, and its output unless that was sent elsewhere.
type Result struct {
	Code   int // exit status; 128 plus its number for a signal, as a shell has it
	Stdout string
	Stderr string
}

// Start starts a program. Its output is complete when Wait returns.
func (h *Host) Start(cmd Cmd) (*Process, error) {
	env := append([]string{"PATH=" + h.path()}, cmd.Env...)
	return h.open(proto.Request{Op: proto.OpExec, Argv: cmd.Argv, Env: env, Dir: cmd.Dir, TTY: cmd.TTY}, cmd)
}

// path is the PATH of programs in the guest.
func (h *Host) path() string {
	const standard = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	return strings.Join(append(slices.Clone(h.programs), standard), ":")
}

// Run runs a program to its end. A program that fails is not an error: see Result.Code.
func (h *Host) Run(ctx context.Context, cmd Cmd) (Result, error) {
	p, err := h.Start(cmd)
	if err != nil {
		return Result{}, err
	}
	return p.Wait(ctx)
}

// Shell runs a shell script that must succeed, and returns its standard output.
func (h *Host) Shell(ctx context.Context, script string) (string, error) {
	r, err := h.Run(ctx, Cmd{Argv: []string{"/bin/sh", "-euc", script}})
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("guest %s: exit status %d of: %s\n%s%s", h.Name, r.Code, script, r.Stdout, r.Stderr)
	}
	return r.Stdout, err
}

// WaitFor runs a shell script repeatedly until it succeeds. Use it to wait for an event that cannot be waited for in another
// way. After a time that is long even under emulation, it gives up and returns the last failure.
func (h *Host) WaitFor(ctx context.Context, script string) error {
	ctx, cancel := context.WithTimeout(ctx, Scale(10*time.Second))
	defer cancel()
	var last error
	for {
		_, err := h.Shell(ctx, script)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-h.conn.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ReadFile returns a file of the guest. If there is none, errors.Is(err, fs.ErrNotExist) is true.
func (h *Host) ReadFile(ctx context.Context, path string) ([]byte, error) {
	var data bytes.Buffer
	err := h.do(ctx, proto.Request{Op: proto.OpRead, Path: path}, Cmd{Argv: []string{"reading " + path}, Stdout: &data})
	return data.Bytes(), err
}

// WriteFile writes a file of the guest, in place, with mode perm if it is new.
func (h *Host) WriteFile(ctx context.Context, path string, data []byte, perm fs.FileMode) error {
	r := proto.Request{Op: proto.OpWrite, Path: path, Mode: uint32(perm.Perm())}
	return h.do(ctx, r, Cmd{Argv: []string{"writing " + path}, Stdin: bytes.NewReader(data)})
}

// Dmesg returns the kernel's log since boot, in the form of dmesg(1).
func (h *Host) Dmesg(ctx context.Context) (string, error) {
	var records bytes.Buffer
	err := h.do(ctx, proto.Request{Op: proto.OpLog}, Cmd{Argv: []string{"reading the kernel log"}, Stdout: &records})
	if err != nil {
		return "", err
	}
	return formatLog(records.String())
}

// do runs a request that does not start a program.
func (h *Host) do(ctx context.Context, r proto.Request, c Cmd) error {
	p, err := h.open(r, c)
	if err != nil {
		return err
	}
	_, err = p.Wait(ctx)
	return err
}

// stop ends the guest.
func (h *Host) stop() {
	if h.machine != nil {
		h.machine.kill()
	}
	if h.conn != nil {
		h.conn.Close()
	}
	h.monitor.close()
	if h.disk != nil {
		h.disk.Close()
	}
}

var errNoAnswer = errors.New("the guest does not react")
