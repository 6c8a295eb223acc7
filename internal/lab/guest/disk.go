// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// serveAs is the argument by which a guest's own process 1 starts the agent.
const serveAs = "serve"

// Paths of the agent and its unit in a guest that boots from a disk. They are in memory, so that the disk contains no files of
// the lab.
const (
	agentFile = "/run/smckit-lab/agent"
	unitFile  = "/run/systemd/system/smckit-lab.service"
	wanted    = "/run/systemd/system/sysinit.target.wants"
)

// The agent runs from the start of the boot to the end of the shutdown, so that it can report errors in between.
const unit = `[Unit]
Description=Agent of the lab
DefaultDependencies=no
Conflicts=shutdown.target
Before=shutdown.target

[Service]
ExecStart=` + agentFile + ` ` + serveAs + `
TimeoutStopSec=5
`

// bootDisk makes a disk the root of this guest, installs the agent as a service of its process 1, and executes that process 1.
func bootDisk(disk string) error {
	const root = "/newroot"
	if err := awaitFile(disk); err != nil {
		return err
	}
	for _, m := range []mount{
		{disk, root, "ext4", 0, ""},
		{"tmpfs", root + "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
	} {
		if err := m.do(); err != nil {
			return err
		}
	}
	agent, err := os.ReadFile("/init")
	if err != nil {
		return err
	}
	for _, f := range []struct {
		path string
		data []byte
		mode os.FileMode
	}{{agentFile, agent, 0o755}, {unitFile, []byte(unit), 0o644}} {
		if err := os.MkdirAll(filepath.Dir(root+f.path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(root+f.path, f.data, f.mode); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(root+wanted, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(unitFile, filepath.Join(root+wanted, filepath.Base(unitFile))); err != nil {
		return err
	}
	if err := switchRoot(root); err != nil {
		return err
	}
	return fmt.Errorf("/sbin/init: %w", unix.Exec("/sbin/init", []string{"/sbin/init"}, []string{"TERM=linux"}))
}

// awaitFile waits for a device, which appears when its driver has found it.
func awaitFile(path string) error {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) || time.Now().After(deadline) {
			return err
		}
	}
}
