// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/smckit/smckit/internal/catalogue"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/smcerr"
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

// errNoSetting means that the module that is loaded does not have a setting.
var errNoSetting = smcerr.With(errors.New("there is no such setting"), smcerr.ErrNotSupported)

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
	e := &smcerr.Error{Op: op, Err: err}
	switch {
	case s.name == namespaceCeiling && errors.Is(err, syscall.EPERM):
		// Without permission for the file, its open fails with EACCES.
		return remedy.Errorf("run the command on the host", "%s: in a user namespace, the ceiling can only be lowered", op)
	case errors.Is(err, fs.ErrPermission):
		e.Kind, e.Remedy = smcerr.ErrPermission, catalogue.NeedNetNSAdmin
	case errors.Is(err, fs.ErrNotExist) && all == nil && host != nil && s.hostOnly != "":
		return remedy.Errorf("run the command there", "%s: %s", op, s.hostOnly)
	case errors.Is(err, fs.ErrNotExist):
		e.Kind, e.Remedy = smcerr.ErrNoModule, catalogue.LoadModule
		if _, err := os.Stat(c.sys.settings); err == nil {
			e.Kind, e.Remedy = errNoSetting, catalogue.NeedSmckit
		}
	}
	return e
}
