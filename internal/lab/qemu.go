// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// portName is the name of the serial port between the lab and the agent.
const portName = "smckit"

// machineSpec collects the parts of a machine. A device consists of arguments of QEMU, arguments of the kernel, and the
// descriptors that QEMU gets.
type machineSpec struct {
	qemu   []string
	kernel []string
	files  []*os.File
	bus    string       // the end of the names of virtio devices
	cpus   *unix.CPUSet // this machine's, as in Options
}

// fd passes f to the emulator and returns its number there.
func (s *machineSpec) fd(f *os.File) string {
	s.files = append(s.files, f)
	// os/exec numbers the files in order, after the standard ones.
	return strconv.Itoa(2 + len(s.files))
}

// close closes our copies of the descriptors.
func (s *machineSpec) close() {
	for _, f := range s.files {
		f.Close()
	}
}

// machine is an emulator process. It uses only descriptors and existing files of this machine, so that nothing is left behind
// if both it and this process are killed.
type machine struct {
	process *os.Process
	console tail          // the output of the guest's kernel
	stderr  tail          // the output of the emulator
	done    chan struct{} // closed when the process has ended
	err     error         // why, valid after done
}

// tail is a Writer that keeps only the end of the output, so that endless output of a guest does not fill the memory.
type tail struct {
	mu   sync.Mutex
	data []byte
}

const tailSize = 256 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if len(t.data) > 2*tailSize {
		t.data = append(t.data[:0], t.data[len(t.data)-tailSize:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data[max(0, len(t.data)-tailSize):])
}

// accelerator is emulation unless SMCKIT_ACCEL asks for something else, kvm for example. It does not test for /dev/kvm, because
// a nested /dev/kvm that can be opened often cannot run a distribution's kernel, and the guest then hangs.
func accelerator() string {
	if a := os.Getenv("SMCKIT_ACCEL"); a != "" {
		return a
	}
	return "tcg"
}

// processor returns the accelerator and the processor of a host's emulator.
func (h *Host) processor() (accel, cpu string) {
	a := h.Kernel.arch()
	accel, cpu = "tcg", a.cpu
	if a.native() {
		accel = accelerator()
	}
	if accel == "kvm" {
		cpu = "host"
	}
	return accel, cpu
}

// addBoard adds the board with its processors and memory, the kernel that it starts, and its console.
func (h *Host) addBoard(s *machineSpec, o Options, initrd *os.File) {
	a := h.Kernel.arch()
	accel, cpu := h.processor()
	s.qemu = append(s.qemu,
		"-nodefaults", "-no-user-config", "-display", "none",
		"-machine", a.board+",accel="+accel, "-cpu", cpu,
		"-m", strconv.Itoa(o.Memory), "-smp", strconv.Itoa(o.CPUs),
		"-kernel", h.Kernel.Image, "-initrd", "/proc/self/fd/"+s.fd(initrd),
		"-device", "virtio-rng-"+a.bus,
		"-chardev", "stdio,id=console,signal=off",
	)
	s.qemu = append(s.qemu, a.console...)
	if !o.Reboots {
		s.qemu = append(s.qemu, "-no-reboot")
	}
	if o.CountedTime {
		s.qemu = append(s.qemu, "-icount", "shift=1")
	} else if khz := tscKHz(); a.native() && accel == "tcg" && khz > 0 {
		s.kernel = append(s.kernel, fmt.Sprintf("tsc_early_khz=%d", khz))
	}
	s.kernel = append(s.kernel, a.options, kernelOptions, "console="+a.tty, "smckit.host="+h.Name, "smckit.release="+h.Kernel.Release,
		// Other programs of this machine, or writers to its disk, may hold the emulator up for longer than a kernel's default timeout for stalls.
		fmt.Sprintf("rcupdate.rcu_cpu_stall_timeout=%d", stallTimeout()), fmt.Sprintf("watchdog_thresh=%d", stallTimeout()/2))
	if a.asynchronous {
		s.kernel = append(s.kernel, "smckit.nics="+strconv.Itoa(len(h.lab.Wires)))
	}
}

// addAgent adds the control port, and returns the lab's end of it.
func (s *machineSpec) addAgent() (net.Conn, error) {
	here, there, err := socketpair()
	if err != nil {
		return nil, err
	}
	s.qemu = append(s.qemu,
		"-chardev", "socket,id=agent,fd="+s.fd(there),
		"-device", "virtio-serial-"+s.bus, "-device", "virtserialport,chardev=agent,name="+portName,
	)
	return here, nil
}

// addFiles adds what the host reads its files from: its disk, or directories of this machine.
func (h *Host) addFiles(s *machineSpec, o Options) error {
	if h.disk != nil {
		return h.attach(s)
	}
	h.shareFiles(s, o)
	return nil
}

// addWires adds the network adapters.
func (h *Host) addWires(s *machineSpec) {
	a := h.Kernel.arch()
	for i, w := range h.lab.Wires {
		if a.bigEndian {
			w.swapICRC(h.index)
		}
		id := "wire" + strconv.Itoa(i)
		s.qemu = append(s.qemu,
			"-netdev", "stream,id="+id+",server=off,addr.type=fd,addr.str="+s.fd(w.plug(h.index)),
			"-device", fmt.Sprintf("%s,netdev=%s,mac=52:54:00:00:%02x:%02x%s", h.Kernel.adapter(), id, h.index+1, i, a.noROM()),
		)
	}
}

// addDevices adds the devices beside the board, which get their places on the bus in this order.
func (h *Host) addDevices(s *machineSpec, o Options) error {
	if err := h.addFiles(s, o); err != nil {
		return err
	}
	h.addWires(s)
	if h.lab.fabric != nil {
		if err := h.addFabric(s, h.lab.fabric, o.Fabric); err != nil {
			return err
		}
	}
	// The emulator keeps it open, too, and may live a moment longer than this process.
	use, err := h.Kernel.use()
	if err != nil {
		return err
	}
	s.fd(use)
	if o.KernelArgs != "" {
		s.kernel = append(s.kernel, o.KernelArgs)
	}
	if n, most := len(strings.Join(s.kernel, " ")), h.Kernel.arch().cmdline; n > most {
		return fmt.Errorf("the kernel's command line has %d characters, more than %d: share fewer directories", n, most)
	}
	return nil
}

// describe adds the configuration and the devices of a host to s, and returns the lab's end of the control port.
func (h *Host) describe(s *machineSpec, o Options, initrd *os.File) (net.Conn, error) {
	s.bus = h.Kernel.arch().bus
	h.addBoard(s, o, initrd)
	port, err := s.addAgent()
	if err != nil {
		return nil, err
	}
	if err := h.addDevices(s, o); err != nil {
		return nil, errors.Join(err, port.Close())
	}
	return port, nil
}

// noROM is the property that keeps a network device from offering to boot from the network, where it could.
func (a *architecture) noROM() string {
	if a.bus == "pci" {
		return ",romfile="
	}
	return ""
}

// shareFiles makes this machine's files visible in the guest.
func (h *Host) shareFiles(s *machineSpec, o Options) {
	s.share("root", "/", true)
	s.share("modules", h.Kernel.Modules, true)
	if h.userland != "" {
		s.share("userland", h.userland, true)
		s.kernel = append(s.kernel, "smckit.userland=userland")
	}
	var shares []string
	for i, dir := range o.Shares {
		tag := "share" + strconv.Itoa(i)
		s.share(tag, dir, false)
		shares = append(shares, tag+":"+dir)
	}
	if shares != nil {
		s.kernel = append(s.kernel, "smckit.shares="+strings.Join(shares, ","))
	}
}

// share is a directory that a guest can mount by its tag.
func (s *machineSpec) share(tag, dir string, readOnly bool) {
	fs := "local,id=" + tag + ",path=" + dir + ",security_model=none,multidevs=remap"
	if readOnly {
		fs += ",readonly=on"
	}
	s.qemu = append(s.qemu, "-fsdev", fs, "-device", "virtio-9p-"+s.bus+",fsdev="+tag+",mount_tag="+tag)
}

// socketpair returns two connected ends: one for us, one for a process to inherit.
func socketpair() (here net.Conn, there *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	f := os.NewFile(uintptr(fds[0]), "socketpair")
	defer f.Close()
	there = os.NewFile(uintptr(fds[1]), "socketpair")
	if here, err = net.FileConn(f); err != nil {
		return nil, nil, errors.Join(err, there.Close())
	}
	return here, there, nil
}

// stallTimeout returns after how many seconds a kernel reports that a processor makes no progress: by default 20, at most 120.
func stallTimeout() int { return min(int(Scale(20*time.Second).Seconds()), 120) }

// kernelOptions end a guest at once if its kernel crashes, print warnings and worse to the console, and skip steps that only
// cost time under emulation.
const kernelOptions = "panic=-1 oops=panic loglevel=5 mitigations=off random.trust_cpu=on " +
	"cryptomgr.notests audit=0 selinux=0 apparmor=0 net.ifnames=0 log_buf_len=8M rcupdate.rcu_expedited=1 printk.devkmsg=on"

// startMachine starts the emulator. The process ends with this one, however this one ends.
func startMachine(q *qemu, s *machineSpec) (*machine, error) {
	m := &machine{done: make(chan struct{})}
	cmd := exec.Command(q.path, slices.Concat(q.args, s.qemu, []string{"-append", strings.Join(s.kernel, " ")})...)
	cmd.Stdout, cmd.Stderr = &m.console, &m.stderr
	cmd.ExtraFiles = s.files
	// Use a separate process group: ctrl-C on the terminal must only reach this process, which then ends the guest properly.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The kernel sends the death signal when the *thread* that forked ends. This goroutine keeps its thread until the
		// emulator has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := onCPUs(s.cpus, cmd.Start)
		m.process = cmd.Process
		started <- err
		if err == nil {
			m.err = cmd.Wait()
			close(m.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", q.path, err)
	}
	return m, nil
}

// kill ends the emulator and waits for its end.
func (m *machine) kill() {
	_ = m.process.Kill()
	<-m.done
}

// mkdir makes a directory if it can; the next user of it reports the error if it could not.
func mkdir(dir string) string {
	_ = os.MkdirAll(dir, 0o755)
	return dir
}
