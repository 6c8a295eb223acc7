// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"
)

// ModuleWords says which AF_SMC module the host has.
func (s *Snapshot) ModuleWords() string {
	switch m := &s.Module; {
	case m.Ours:
		return strings.TrimSpace("smckit's AF_SMC module " + m.Version)
	case m.Loaded && !m.BuiltIn, s.Sockets.Available() && !m.BuiltIn:
		return "the kernel's own AF_SMC module"
	case m.BuiltIn:
		return "AF_SMC built in"
	}
	return "no AF_SMC"
}

// String describes a choice as "SMC-R version 2 over port 1 of mlx5_0, by eth0 (PNET ID NET1)".
func (c Choice) String() string {
	text := fmt.Sprintf("%s version %d over %s", c.Transport, c.Version, c.Device)
	if c.Port > 0 {
		text = fmt.Sprintf("%s version %d over port %d of %s", c.Transport, c.Version, c.Port, c.Device)
	}
	if c.Local() {
		return text + ", within this host"
	}
	text += ", by " + c.NetDev
	if c.PNETID != "" {
		text += " (PNET ID " + c.PNETID + ")"
	}
	return text
}
