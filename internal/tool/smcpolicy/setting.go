// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// settingsDir has the settings of the network namespace of the thread that opens it.
const settingsDir = "/proc/sys/net/smc"

// Names of settings. Each network namespace has the first, only the initial one has the others.
const (
	namespaceCeiling    = "max_memory_kbytes"
	hostCeiling         = "host_max_memory_kbytes"
	policyForNamespaces = "policy_for_namespaces"
)

// setting is a setting net.smc.* that a command sets.
type setting struct {
	name string
	// op is what the command does, such as "set the ceiling", for errors.
	op string
	// hostOnly says that only the initial network namespace has it, for errors; empty if that is not so.
	hostOnly string
}

// readSetting returns the value of a setting as its file has it.
func (c *command) readSetting(s setting) (string, error) {
	data, err := os.ReadFile(filepath.Join(c.sys.settings, s.name))
	if err != nil {
		return "", c.settingError(s, err)
	}
	return strings.TrimSpace(string(data)), nil
}

// writeSetting sets a setting, and reports whether it had another value. With check it only reports that.
func (c *command) writeSetting(s setting, value string, check bool) (changed bool, err error) {
	now, err := c.readSetting(s)
	if err != nil || now == value {
		return false, err
	}
	if check {
		return true, nil
	}
	if err := os.WriteFile(filepath.Join(c.sys.settings, s.name), []byte(value+"\n"), 0); err != nil {
		return false, c.settingError(s, err)
	}
	return true, nil
}

// settingError returns an error of one line with the remedy, without the path in /proc.
func (c *command) settingError(s setting, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	op := s.op + ": net.smc." + s.name
	// All namespaces have the one, and only the initial one has the other.
	_, all := os.Stat(filepath.Join(c.sys.settings, namespaceCeiling))
	_, host := os.Stat(filepath.Join(c.sys.settings, hostCeiling))
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %w: run as root, or with CAP_NET_ADMIN in the user namespace that owns the network namespace", op, err)
	case errors.Is(err, fs.ErrNotExist) && all == nil && host != nil && s.hostOnly != "":
		return fmt.Errorf("%s: %s: run the command there", op, s.hostOnly)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no such setting: load smckit's module with 'modprobe smc', or update it", op)
	}
	return fmt.Errorf("%s: %w", op, err)
}
