// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"os"
	"strings"

	"github.com/smckit/smckit/internal/catalogue"
)

// moduleConditions are about the module and its interfaces for programs and administrators. Package catalogue has the reasons why there
// is none, with which the other commands explain their errors.
var moduleConditions = append(absentConditions(), []Condition{
	{
		ID: "module-stale", Severity: Warning,
		Text:   "the loaded module differs from the installed one, %[1]s",
		Remedy: "reboot, or, when no program uses SMC, 'rmmod smc_diag smc' and 'modprobe smc'",
		Find: func(s *Snapshot) []Values {
			m := &s.Module
			return met1(m.Loaded && m.SrcVersion != "" && m.FileSrcVersion != "" && m.SrcVersion != m.FileSrcVersion, m.File)
		},
	},
	{
		ID: "module-forced", Severity: Warning,
		Text:   "the module was forced into a kernel that it was not built for",
		Remedy: "build it for the running kernel, and load it without force",
		Find:   func(s *Snapshot) []Values { return met(strings.Contains(s.Module.Taint, "F")) },
	},
	{
		ID: "socket-refused", Severity: Error,
		Text:   "this program may not create AF_SMC sockets: %[1]v",
		Remedy: "let the container's seccomp profile, or the security module, allow socket family 43",
		Find: func(s *Snapshot) []Values {
			return met1(refused(s.Sockets.IPv4), s.Sockets.IPv4)
		},
	},
	{
		ID: "socket-failed", Severity: Error,
		Text:   "AF_SMC sockets cannot be created: %[1]v",
		Remedy: "look at 'dmesg'; load the module again",
		Find: func(s *Snapshot) []Values {
			err := s.Sockets.IPv4
			return met1(err != nil && !refused(err) && (s.Module.Loaded || s.Module.BuiltIn), err)
		},
	},
	{
		ID: "socket-ipv6", Severity: Warning,
		Text:   "AF_SMC sockets for IPv6 cannot be created: %[1]v",
		Remedy: "switch IPv6 on in the kernel (no ipv6.disable=1 on its command line), or use IPv4 only",
		Find: func(s *Snapshot) []Values {
			return met1(s.Sockets.Available() && s.Sockets.IPv6 != nil, s.Sockets.IPv6)
		},
	},
	{
		ID: "ipproto-absent", Severity: Info,
		Text:   "socket(AF_INET, SOCK_STREAM, IPPROTO_SMC) does not work: %[1]v",
		Remedy: "use AF_SMC sockets; IPPROTO_SMC requires Linux 6.11 or smckit's module",
		Find: func(s *Snapshot) []Values {
			return met1(s.Sockets.Available() && s.Sockets.IPProto != nil, s.Sockets.IPProto)
		},
	},
	{
		ID: "netlink-absent", Severity: Warning,
		Text:   "the module does not answer by netlink: %[1]v",
		Remedy: "use Linux 5.11 or newer, or smckit's module: without netlink, smc_chk can check only a part",
		Find: func(s *Snapshot) []Values {
			return met1(s.Sockets.Available() && s.Control.Netlink != nil, s.Control.Netlink)
		},
	},
	{
		ID: "pnet-absent", Severity: Warning,
		Text:   "the PNET table cannot be read: %[1]v",
		Remedy: "load the module that has it: 'modprobe smc_diag' before Linux 5.11, else 'modprobe smc'",
		Find: func(s *Snapshot) []Values {
			return met1(s.Sockets.Available() && s.Control.PNET != nil, s.Control.PNET)
		},
	},
	{
		ID: "diag-absent", Severity: Warning,
		Text:   "AF_SMC sockets cannot be listed, so that smcss does not work: %[1]v",
		Remedy: "load the module smc_diag: 'modprobe smc_diag'",
		Find: func(s *Snapshot) []Values {
			return met1(s.Sockets.Available() && s.Control.Diag != nil, s.Control.Diag)
		},
	},
	{
		ID: "smcr-off", Severity: Warning,
		Text:   "SMC-R is switched off in the module (smcr=0)",
		Remedy: "remove 'options smc smcr=0' from /etc/modprobe.d and smc.smcr=0 from the kernel's command line, and load the module again",
		Find:   func(s *Snapshot) []Values { return met(!enabled(s.Module.SMCR)) },
	},
	{
		ID: "smcd-off", Severity: Warning,
		Text:   "SMC-D is switched off in the module (smcd=0)",
		Remedy: "remove 'options smc smcd=0' from /etc/modprobe.d and smc.smcd=0 from the kernel's command line, and load the module again",
		Find:   func(s *Snapshot) []Values { return met(!enabled(s.Module.SMCD)) },
	},
	{
		ID: "version-1-only", Severity: Warning,
		Text:   "the module supports only version %[1]d of SMC: peers must be in the same IP subnet",
		Remedy: "use Linux 5.10 or newer, or smckit's module",
		Find: func(s *Snapshot) []Values {
			if s.Control.Info == nil {
				return nil
			}
			return met1(s.Control.Info.Version < 2, s.Control.Info.Version)
		},
	},
}...)

// absent reports whether AF_SMC does not exist, as opposed to being forbidden for this program.
func (s *Snapshot) absent() bool {
	return !s.Sockets.Available() && !refused(s.Sockets.IPv4) && !s.Module.Loaded && !s.Module.BuiltIn
}

func refused(err error) bool { return errors.Is(err, os.ErrPermission) }

// absentConditions are the reasons why a kernel has no AF_SMC module.
func absentConditions() []Condition {
	var out []Condition
	for _, r := range catalogue.Reasons() {
		out = append(out, Condition{
			ID: r.ID, Severity: Error, Text: r.Text, Remedy: r.Remedy,
			Fit: func(s *Snapshot) string { return r.Fit(s.catalogueHost()) },
			Find: func(s *Snapshot) []Values {
				values, found := r.Find(s.catalogueHost())
				return met1(found && s.absent(), values...)
			},
		})
	}
	return out
}

// catalogueHost returns the facts for package catalogue.
func (s *Snapshot) catalogueHost() *catalogue.Host {
	return &catalogue.Host{Kernel: s.Kernel, Module: s.Module, Setup: s.Setup}
}
