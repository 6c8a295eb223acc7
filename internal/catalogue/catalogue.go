// SPDX-License-Identifier: Apache-2.0

// Package catalogue has the messages about what every command can meet: there is no AF_SMC module, the module is too old, and
// permission is denied. It finds out the reason on this host, and the remedy that fits the host and its packages. smc_chk has its
// conditions about the module from here, and the other commands explain their errors by the same reasons.
package catalogue

import (
	"fmt"
	"slices"
	"strings"
)

// Reason is a reason why a kernel has no AF_SMC module.
type Reason struct {
	// ID is the name of the reason, as a condition of smc_chk.
	ID string
	// Text is the reason, and Remedy the action to take on any host. Each is one line without a full stop, and a format for the values
	// that find returns.
	Text, Remedy string
	// find returns the values for the formats, and whether the host has this reason.
	find func(h *Host) (values []any, found bool)
	// fit returns the remedy for a host; nil if Remedy fits every one.
	fit func(h *Host) string
}

// Find returns the values for Text, and whether this is a reason why the host has no module.
func (r *Reason) Find(h *Host) (values []any, found bool) {
	if h.Module.Loaded || h.Module.BuiltIn {
		return nil, false
	}
	return r.find(h)
}

// Fit returns the remedy for a host that has this reason.
func (r *Reason) Fit(h *Host) string {
	if r.fit == nil {
		return r.Remedy
	}
	return r.fit(h)
}

// Reasons returns all reasons, in the order in which an administrator has to remove them.
func Reasons() []Reason { return slices.Clone(reasons) }

var reasons = []Reason{
	{
		ID:     "module-missing",
		Text:   "kernel %[1]s has no AF_SMC module",
		Remedy: "install smckit's ('make modules_install' in its sources), or run a kernel that has one",
		find: func(h *Host) ([]any, bool) {
			return []any{h.Kernel.Release}, h.Module.File == "" && !h.Setup.Container
		},
		fit: func(h *Host) string { return h.build() + ", or run a kernel that has one" },
	},
	{
		ID:     "module-on-host",
		Text:   "this is a container, and its host has not loaded the AF_SMC module",
		Remedy: "run 'modprobe smc' as root on the host; 'smc_chk' there says why, if that fails",
		find:   func(h *Host) ([]any, bool) { return nil, h.Module.File == "" && h.Setup.Container },
	},
	{
		ID:     "module-blocked",
		Text:   "modprobe is configured not to load the module smc: %[1]s",
		Remedy: "remove that line, then 'modprobe smc'",
		find:   func(h *Host) ([]any, bool) { return []any{h.Module.Blocked}, h.Module.Blocked != "" },
	},
	{
		ID:     "module-other-kernel",
		Text:   "%[1]s was built for kernel %[2]s, and this kernel is %[3]s",
		Remedy: "build it again for the running kernel: 'make modules_install', or 'dkms autoinstall'",
		find: func(h *Host) ([]any, bool) {
			return []any{h.Module.File, h.builtFor(), h.Kernel.Release}, h.otherKernel()
		},
		fit: (*Host).buildAgain,
	},
	{
		ID:     "module-unsigned",
		Text:   "the kernel loads only signed modules, and %[1]s has no signature",
		Remedy: "sign the module with a key that is enrolled in the firmware (mokutil), or switch Secure Boot off",
		find:   func(h *Host) ([]any, bool) { return []any{h.Module.File}, h.unsigned() },
	},
	{
		ID:     "modules-disabled",
		Text:   "the kernel does not load modules any more (kernel.modules_disabled)",
		Remedy: "reboot, and load the module smc before that is set: put a line 'smc' into /etc/modules-load.d/smc.conf",
		find:   func(h *Host) ([]any, bool) { return nil, h.Kernel.ModulesDisabled },
	},
	{
		ID:     "module-not-loaded",
		Text:   "the module %[1]s is installed, and the kernel has not loaded it",
		Remedy: "run 'modprobe smc' as root; if that fails, 'dmesg' shows the reason",
		find: func(h *Host) ([]any, bool) {
			explained := h.Module.Blocked != "" || h.otherKernel() || h.unsigned() || h.Kernel.ModulesDisabled
			return []any{h.Module.File}, h.Module.File != "" && !explained
		},
	},
}

// Diagnosis is a reason with the values of a host.
type Diagnosis struct{ ID, Text, Remedy string }

// Diagnose returns the first reason why the host has no AF_SMC module, nil if it has one.
func (h *Host) Diagnose() *Diagnosis {
	for _, r := range reasons {
		if values, found := r.Find(h); found {
			return &Diagnosis{r.ID, Format(r.Text, values), r.Fit(h)}
		}
	}
	return nil
}

// Format formats a text. The text may leave values out, and refers to values by number.
func Format(text string, values []any) string {
	if len(values) == 0 {
		return text
	}
	// Refer to an empty last value, so that Sprintf does not complain about values that the text leaves out.
	return fmt.Sprintf(text+fmt.Sprintf("%%[%d]s", len(values)+1), append(slices.Clone(values), "")...)
}

// builtFor returns the kernel release that the module's file was built for, "" if it is unknown.
func (h *Host) builtFor() string {
	release, _, _ := strings.Cut(h.Module.FileVermagic, " ")
	return release
}

func (h *Host) otherKernel() bool { return h.builtFor() != "" && h.builtFor() != h.Kernel.Release }

// unsigned reports whether the kernel refuses the module's file because it has no signature. A file that could not be read may
// have one, so it is not reported.
func (h *Host) unsigned() bool {
	return h.Kernel.SignaturesForced && h.Module.FileVermagic != "" && !h.Module.FileSigned
}

// build returns how to get smckit's module for the running kernel.
func (h *Host) build() string {
	switch {
	case h.Setup.DKMS != "":
		return h.dkms("build smckit's")
	case h.Setup.Package:
		return "install smckit's (package smckit-dkms)"
	}
	return "install smckit's ('make modules_install' in its sources)"
}

// buildAgain returns how to build the installed module for the running kernel.
func (h *Host) buildAgain() string {
	if h.Setup.DKMS == "" {
		return "build it again for the running kernel: 'make modules_install' in smckit's sources"
	}
	return h.dkms("build it again for the running kernel")
}

// dkms returns how to build the module of the package smckit-dkms. intro says what for.
func (h *Host) dkms(intro string) string {
	install := "'dkms install smckit/" + h.Setup.DKMS + "'"
	switch {
	case h.Setup.Headers:
		return intro + ": " + install + " as root"
	case h.Setup.InstallHeaders != "":
		return intro + ": '" + h.Setup.InstallHeaders + "', then " + install + " as root"
	}
	return intro + ": install the headers of the running kernel, then " + install + " as root"
}
