// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

const emulator = "qemu-system-x86_64"

// portName is the name of the serial port between the lab and the agent.
const portName = "smckit"

// device is something a guest has: what QEMU must be told of it, and what the kernel.
type device struct {
	qemu   []string
	kernel string
}

// machine is an emulator process.
type machine struct {
	process *os.Process
	done    chan struct{} // closed when the process has ended
	err     error         // why, valid after done
}

// accelerator is emulation unless SMCKIT_ACCEL asks for something else, kvm for example. A /dev/kvm that opens is no
// proof that it can run a distribution's kernel: nested ones often cannot, and then the guest just stands still.
func accelerator() string {
	if a := os.Getenv("SMCKIT_ACCEL"); a != "" {
		return a
	}
	return "tcg"
}

// devices lists all that a host has. The control socket and the console log are files in dir.
func (h *Host) devices(o Options, k *Kernel, initrd string) []device {
	accel := accelerator()
	cpu := "max"
	if accel == "kvm" {
		cpu = "host"
	}
	d := []device{
		{qemu: []string{"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "pc,accel=" + accel + ",usb=off,vmport=off,hpet=off", "-cpu", cpu}},
		{qemu: []string{"-m", strconv.Itoa(o.Memory), "-smp", strconv.Itoa(o.CPUs)}},
		{qemu: []string{"-kernel", k.Image, "-initrd", initrd}, kernel: kernelOptions},
		{qemu: []string{"-device", "virtio-rng-pci"}},
		{
			qemu:   []string{"-chardev", "file,id=console,path=" + h.console(), "-serial", "chardev:console"},
			kernel: "console=ttyS0",
		},
		{qemu: []string{
			"-chardev", "socket,id=agent,server=off,path=" + h.socket(),
			"-device", "virtio-serial-pci", "-device", "virtserialport,chardev=agent,name=" + portName,
		}},
		share("root", "/", true),
		share("modules", k.Modules, true),
		{kernel: "smckit.host=" + h.Name + " smckit.release=" + k.Release},
	}
	var shares []string
	for i, dir := range o.Shares {
		tag := "share" + strconv.Itoa(i)
		d = append(d, share(tag, dir, false))
		shares = append(shares, tag+":"+dir)
	}
	if shares != nil {
		d = append(d, device{kernel: "smckit.shares=" + strings.Join(shares, ",")})
	}
	for i, w := range h.lab.Wires {
		id := "wire" + strconv.Itoa(i)
		d = append(d, device{qemu: []string{
			"-netdev", "stream,id=" + id + ",server=off,addr.type=unix,addr.path=" + w.path(h.index),
			"-device", fmt.Sprintf("virtio-net-pci,netdev=%s,mac=52:54:00:00:%02x:%02x,romfile=", id, h.index+1, i),
		}})
	}
	if o.KernelArgs != "" {
		d = append(d, device{kernel: o.KernelArgs})
	}
	return d
}

// kernelOptions end a guest that has crashed at once, let warnings and worse through to the console, and skip what only
// costs time under emulation.
const kernelOptions = "panic=-1 oops=panic loglevel=5 no_timer_check tsc=reliable mitigations=off random.trust_cpu=on " +
	"cryptomgr.notests audit=0 selinux=0 apparmor=0 net.ifnames=0 rcupdate.rcu_expedited=1 printk.devkmsg=on"

// share is a directory that a guest can mount by its tag.
func share(tag, dir string, readOnly bool) device {
	fs := "local,id=" + tag + ",path=" + dir + ",security_model=none,multidevs=remap"
	if readOnly {
		fs += ",readonly=on"
	}
	return device{qemu: []string{"-fsdev", fs, "-device", "virtio-9p-pci,fsdev=" + tag + ",mount_tag=" + tag}}
}

// startMachine starts the emulator with the given devices; what it prints goes to log. The process ends with this one,
// however this one ends.
func startMachine(devices []device, log string) (*machine, error) {
	path, err := exec.LookPath(emulator)
	if err != nil {
		return nil, fmt.Errorf("%s is not installed: run 'apt-get install qemu-system-x86'", emulator)
	}
	var args, kernel []string
	for _, d := range devices {
		args = append(args, d.qemu...)
		if d.kernel != "" {
			kernel = append(kernel, d.kernel)
		}
	}
	args = append(args, "-append", strings.Join(kernel, " "))
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	// A process group of its own: ctrl-C on the terminal is for us, and we end the guest in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}

	m := &machine{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel sends the death signal when the *thread* that forked ends. This goroutine keeps its thread until the
		// emulator is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer out.Close()
		err := cmd.Start()
		m.process = cmd.Process
		started <- err
		if err == nil {
			m.err = cmd.Wait()
			close(m.done)
		}
	}()
	return m, <-started
}

// kill ends the emulator and waits until it is gone.
func (m *machine) kill() {
	_ = m.process.Kill()
	<-m.done
}

// agentBinary builds the program that runs in the guests, and returns where it is.
func agentBinary(ctx context.Context) (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(mkdir(filepath.Join(cache, "agent")), "build-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "guest")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", file, "./tests/lab/guest")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the guest's agent: %w: %s", err, strings.TrimSpace(string(out)))
	}
	final := filepath.Join(cache, "agent", "guest")
	return final, os.Rename(file, final)
}

// mkdir makes a directory if it can; whoever uses it next finds out if it could not.
func mkdir(dir string) string {
	_ = os.MkdirAll(dir, 0o755)
	return dir
}

// repository returns the root of the repository that this package was built from.
func repository() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	for _, dir := range []string{filepath.Dir(file), "."} {
		dir, err := filepath.Abs(dir)
		for ok && err == nil {
			if _, err := os.Stat(filepath.Join(dir, "tests/lab/guest/main.go")); err == nil {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
			dir = filepath.Dir(dir)
		}
	}
	return "", errors.New("the lab runs from a checkout of smckit only: change into one")
}
