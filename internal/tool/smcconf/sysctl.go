// SPDX-License-Identifier: Apache-2.0

package smcconf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/catalogue"
	"github.com/smckit/smckit/internal/conf"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcerr"
)

// errNoSetting means that the module has no such setting.
var errNoSetting = errors.New("the SMC module of this kernel has no such setting")

// readSetting returns the current value. The error may be errNoSetting.
func (c *command) readSetting(ctx context.Context, k client, s conf.Setting) (uint64, error) {
	if s.Name == conf.HandshakeLimit {
		on, err := k.HandshakeLimitation(ctx)
		if errors.Is(err, netlinksmc.ErrNotSupported) {
			return 0, errNoSetting
		}
		if on {
			return 1, err
		}
		return 0, err
	}
	b, err := os.ReadFile(filepath.Join(c.sys.sysctls, s.Name))
	if err != nil {
		return 0, sysctlError("reading", s, err)
	}
	text := strings.TrimSpace(string(b))
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, remedy.Errorf("use the version of this command that belongs to the module", "reading net.smc.%s: %q is an unknown value", s.Name, text)
	}
	return value, nil
}

// writeSetting sets a value.
func (c *command) writeSetting(ctx context.Context, k client, s conf.Setting, value uint64) error {
	if s.Name == conf.HandshakeLimit {
		return k.SetHandshakeLimitation(ctx, value != 0)
	}
	f, err := os.OpenFile(filepath.Join(c.sys.sysctls, s.Name), os.O_WRONLY|os.O_TRUNC, 0)
	if err == nil {
		_, err = f.WriteString(strconv.FormatUint(value, 10) + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return sysctlError(fmt.Sprintf("setting %s:", conf.Assignment{Setting: s, Value: value}), s, err)
	}
	return nil
}

// sysctlError returns an error with a message of one line.
func sysctlError(op string, s conf.Setting, err error) error {
	// Users do not need the path in /proc.
	if perr, ok := errors.AsType[*fs.PathError](err); ok {
		err = perr.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNoSetting
	case errors.Is(err, fs.ErrPermission):
		return &smcerr.Error{Op: op + " net.smc." + s.Name, Kind: smcerr.ErrPermission, Remedy: catalogue.NeedNetNSAdmin, Err: err}
	}
	return fmt.Errorf("%s net.smc.%s: %w", op, s.Name, err)
}
