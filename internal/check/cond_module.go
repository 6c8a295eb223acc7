// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"os"
	"strings"
)

// moduleConditions are about the module and its interfaces for programs and administrators.
var moduleConditions = []Condition{
	{
		ID: "module-missing", Severity: Error,
		Text:   "kernel %[1]s has no AF_SMC module",
		Remedy: "install smckit's ('make modules_install' in its sources), or run a kernel that has one",
		Find: func(s *Snapshot) []Values {
			return met1(s.absent() && s.Module.File == "" && !s.Module.BuiltIn, s.Kernel.Release)
		},
	},
	{
		ID: "module-blocked", Severity: Error,
		Text:   "modprobe is configured not to load the module smc: %[1]s",
		Remedy: "remove that line, then 'modprobe smc'",
		Find: func(s *Snapshot) []Values {
			return met1(s.absent() && s.Module.Blocked != "", s.Module.Blocked)
		},
	},
	{
		ID: "module-other-kernel", Severity: Error,
		Text:   "%[1]s was built for kernel %[2]s, and this kernel is %[3]s",
		Remedy: "build it again for the running kernel: 'make modules_install', or 'dkms autoinstall'",
		Find: func(s *Snapshot) []Values {
			return met1(s.absent() && s.otherKernel(), s.Module.File, s.builtFor(), s.Kernel.Release)
		},
	},
	{
		ID: "module-unsigned", Severity: Error,
		Text:   "the kernel loads only signed modules, and %[1]s has no signature",
		Remedy: "sign the module with a key that is enrolled in the firmware (mokutil), or switch Secure Boot off",
		Find: func(s *Snapshot) []Values {
			return met1(s.absent() && s.unsigned(), s.Module.File)
		},
	},
	{
		ID: "modules-disabled", Severity: Error,
		Text:   "the kernel does not load modules any more (kernel.modules_disabled)",
		Remedy: "reboot, and load the module smc before that is set: put a line 'smc' into /etc/modules-load.d/smc.conf",
		Find:   func(s *Snapshot) []Values { return met(s.absent() && s.Kernel.ModulesDisabled) },
	},
	{
		ID: "module-not-loaded", Severity: Error,
		Text:   "the module %[1]s is installed, and the kernel has not loaded it",
		Remedy: "run 'modprobe smc' as root; if that fails, 'dmesg' shows the reason",
		Find: func(s *Snapshot) []Values {
			explained := s.Module.Blocked != "" || s.otherKernel() || s.unsigned() || s.Kernel.ModulesDisabled
			return met1(s.absent() && s.Module.File != "" && !explained, s.Module.File)
		},
	},
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
}

// absent reports whether AF_SMC does not exist, as opposed to being forbidden for this program.
func (s *Snapshot) absent() bool {
	return !s.Sockets.Available() && !refused(s.Sockets.IPv4) && !s.Module.Loaded && !s.Module.BuiltIn
}

func refused(err error) bool { return errors.Is(err, os.ErrPermission) }

// builtFor returns the kernel release that the module's file was built for, "" if it is unknown.
func (s *Snapshot) builtFor() string {
	release, _, _ := strings.Cut(s.Module.FileVermagic, " ")
	return release
}

func (s *Snapshot) otherKernel() bool { return s.builtFor() != "" && s.builtFor() != s.Kernel.Release }

// unsigned reports whether the kernel refuses the module's file because it has no signature. A file that could not be read may
// have one, so it is not reported.
func (s *Snapshot) unsigned() bool {
	return s.Kernel.SignaturesForced && s.Module.FileVermagic != "" && !s.Module.FileSigned
}
