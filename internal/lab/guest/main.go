// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command guest runs as process 1 in a lab guest: it mounts this machine's files, then runs the programs that the lab asks for.
// Where a guest boots from a disk, that system's process 1 starts it as a service. It is a static program, and the initramfs
// contains only it and kernel modules.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/smckit/smckit/internal/lab/proto"
	"golang.org/x/sys/unix"
)

func main() {
	if os.Getpid() != 1 {
		if len(os.Args) != 2 || os.Args[1] != serveAs {
			fmt.Fprintln(os.Stderr, "guest: only the lab starts this")
			os.Exit(2)
		}
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, "guest:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(); err != nil {
		// This goes to the console. The lab prints the end of the console when a guest ends unexpectedly.
		fmt.Fprintln(os.Stderr, "guest:", err)
	}
	powerOff()
}

func run() error {
	args, err := prepare()
	if err != nil {
		return err
	}
	if disk := args["smckit.root"]; disk != "" {
		return bootDisk(disk)
	}
	if err := mountAll(args); err != nil {
		return err
	}
	return serve()
}

// serve runs the programs that the lab asks for.
func serve() error {
	if err := setEnvironment(); err != nil {
		return err
	}
	port, err := openPort()
	if err != nil {
		return err
	}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return err
	}
	a := newAgent()
	go a.reap()
	return proto.Serve(port, proto.Hello{Kernel: unix.ByteSliceToString(uts.Release[:])}, a.serve)
}

// setEnvironment sets the environment that programs inherit. The kernel passes its arguments to process 1 as environment
// variables; this removes them.
func setEnvironment() error {
	os.Clearenv()
	for _, kv := range []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root", "TERM=linux", "LANG=C.UTF-8", "USER=root", "LOGNAME=root",
	} {
		name, value, _ := strings.Cut(kv, "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	// Tests open tens of thousands of sockets. Because this sets the limit explicitly, the Go runtime does not lower it again
	// for children.
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20})
}

// portName is the name of the serial port on which the lab listens.
const portName = "smckit"

// openPort opens the port by its name in sysfs: no udev here makes links. Its driver takes time to find it, and sysfs has no
// event for that.
func openPort() (*os.File, error) {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err == nil && strings.TrimSpace(string(data)) == portName {
				return os.OpenFile(filepath.Join("/dev", filepath.Base(filepath.Dir(name))), os.O_RDWR, 0)
			}
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("no serial port %q among %d", portName, len(names))
		}
	}
}

func powerOff() {
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	// Not reached unless the machine has no such switch; process 1 must not return.
	select {}
}
