// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command guest is what runs as process 1 in a lab guest: it mounts this machine's files, then runs the programs that
// the lab asks for. It is built statically and is all that the initramfs holds beside kernel modules.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	var err error
	switch {
	case os.Getpid() == 1:
		err = initialise()
		powerOff()
	case len(os.Args) == 2 && os.Args[1] == "agent":
		err = serve()
	default:
		err = fmt.Errorf("only the lab starts this")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

// initialise does what an init does: it sets the system up, starts the agent, and reaps what is orphaned until the
// agent ends.
func initialise() error {
	if err := mountAll(); err != nil {
		fmt.Fprintln(os.Stderr, "guest: cannot set the guest up:", err)
		return err
	}
	// A process of its own, because collecting orphans here would take the agent's children away from it.
	agent := exec.Command("/proc/self/exe", "agent")
	agent.Stdout, agent.Stderr = os.Stdout, os.Stderr
	agent.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root", "TERM=linux", "LANG=C.UTF-8", "USER=root", "LOGNAME=root",
	}
	if err := agent.Start(); err != nil {
		return err
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		if pid == agent.Process.Pid {
			return nil
		}
	}
}

func powerOff() {
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	// Not reached unless the machine has no such switch; process 1 must not return.
	time.Sleep(time.Hour)
}
