// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/rootdir"
)

// Host has the facts about this host that decide which remedy helps.
type Host struct {
	Kernel  Kernel
	Module  Module
	Setup   Setup
	Process Process
}

// Kernel describes the running kernel and its restrictions on modules.
type Kernel struct {
	Release string
	// ModulesDisabled means that no module can be loaded until the next boot.
	ModulesDisabled bool
	// SignaturesForced means that only signed modules can be loaded.
	SignaturesForced bool
}

// Module describes the AF_SMC module that is loaded, and the one that is installed for this kernel.
type Module struct {
	// Loaded means that the module is loaded or built in, and BuiltIn that it is built in.
	Loaded, BuiltIn bool
	// Ours means that smckit's module is loaded.
	Ours                       bool
	Version, SrcVersion, Taint string
	// SMCR and SMCD are the parameters smcr and smcd of the loaded module, nil if it does not have them.
	SMCR, SMCD *bool
	// File is the installed module, empty if there is none. The other fields describe that file. They are empty if it could not
	// be read.
	File, FileVermagic, FileSrcVersion string
	FileSigned                         bool
	// Blocked is the line of modprobe's configuration that keeps the kernel from loading it, with its file.
	Blocked string
}

// Setup describes where this host gets modules from.
type Setup struct {
	// DKMS is the version of smckit's sources that the package smckit-dkms has installed, empty if it is not installed.
	DKMS string
	// Package means that the commands are those of the package smckit.
	Package bool
	// Headers means that the headers of the running kernel are installed, with which DKMS builds modules.
	Headers bool
	// InstallHeaders is the command that installs them, empty if the distribution is unknown.
	InstallHeaders string
	// Container means that the files are those of a container, which does not have the modules of the kernel.
	Container bool
}

// Process describes what this process may do.
type Process struct {
	// Root means that its user is 0, and NetAdmin that it has CAP_NET_ADMIN.
	Root, NetAdmin bool
	// UserNS means that it is in a user namespace other than the initial one.
	UserNS bool
}

// Read collects the facts from the files below root. It opens no socket and loads no module.
func Read(root rootdir.Dir) *Host {
	r := files{root}
	kernel := r.readKernel()
	return &Host{
		Kernel: kernel, Module: r.readModule(kernel.Release), Setup: r.readSetup(kernel.Release), Process: r.readProcess(),
	}
}

// files are the files of a host.
type files struct{ rootdir.Dir }

func (r files) readKernel() Kernel {
	k := Kernel{Release: r.Text("proc/sys/kernel/osrelease")}
	k.ModulesDisabled = r.Text("proc/sys/kernel/modules_disabled") == "1"
	// The word in brackets is the current mode.
	locked := r.Text("sys/kernel/security/lockdown")
	k.SignaturesForced = r.Text("sys/module/module/parameters/sig_enforce") == "Y" ||
		strings.Contains(locked, "[integrity]") || strings.Contains(locked, "[confidentiality]")
	return k
}

func (r files) readSetup(release string) Setup {
	s := Setup{InstallHeaders: r.installHeaders(release)}
	modules := filepath.Join("lib/modules", release)
	s.Package = r.Exists("usr/share/doc/smckit")
	s.Headers = release != "" && r.Exists(modules, "build")
	// These files are those of podman, Docker and systemd-nspawn.
	marked := r.Exists("run/.containerenv") || r.Exists(".dockerenv") || r.Exists("run/systemd/container")
	s.Container = marked && !r.Exists(modules)
	// If there are several versions, the last one by name is as good as any.
	found, _ := filepath.Glob(r.Path("usr/src/smckit-*/dkms.conf"))
	for _, file := range found {
		s.DKMS = strings.TrimPrefix(filepath.Base(filepath.Dir(file)), "smckit-")
	}
	return s
}

// installHeaders returns the command by which the distribution installs the headers of a kernel, "" for unknown distributions.
func (r files) installHeaders(release string) string {
	var ids []string
	for line := range strings.Lines(r.Text("etc/os-release")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key == "ID" || key == "ID_LIKE" {
			ids = append(ids, strings.Fields(strings.Trim(value, `"'`))...)
		}
	}
	for _, id := range ids {
		switch id {
		case "debian", "ubuntu":
			return "apt install linux-headers-" + release
		case "fedora", "rhel", "centos":
			return "dnf install kernel-devel-" + release
		case "suse", "opensuse":
			flavour := release[strings.LastIndex(release, "-")+1:]
			return "zypper install kernel-" + flavour + "-devel"
		}
	}
	return ""
}

// capNetAdmin is the number of CAP_NET_ADMIN.
const capNetAdmin = 12

func (r files) readProcess() Process {
	var p Process
	for line := range strings.Lines(r.Text("proc/self/status")) {
		f := strings.Fields(line)
		switch {
		case len(f) == 5 && f[0] == "Uid:":
			p.Root = f[2] == "0" // the effective one
		case len(f) == 2 && f[0] == "CapEff:":
			caps, _ := strconv.ParseUint(f[1], 16, 64)
			p.NetAdmin = caps&(1<<capNetAdmin) != 0
		}
	}
	// The initial user namespace maps all numbers to themselves.
	ids := strings.Fields(r.Text("proc/self/uid_map"))
	p.UserNS = len(ids) > 0 && strings.Join(ids, " ") != "0 0 4294967295"
	return p
}
