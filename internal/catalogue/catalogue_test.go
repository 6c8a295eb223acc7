// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/internal/rootdir"
	"github.com/smckit/smckit/internal/sysfstest"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/pkg/smcerr"
	"golang.org/x/sys/unix"
)

// Files that hosts have in common.
const (
	release    = "proc/sys/kernel/osrelease"
	osRelease  = "etc/os-release"
	dkms       = "usr/src/smckit-0.1.0/dkms.conf"
	headers    = "lib/modules/7.2/build/Makefile"
	packaged   = "usr/share/doc/smckit/copyright"
	modulesDep = "lib/modules/7.2/modules.dep"
	status     = "proc/self/status"
	uidMap     = "proc/self/uid_map"
)

// host reads the facts of a host with kernel 7.2 and other files.
func host(t *testing.T, files map[string]string) *Host {
	t.Helper()
	all := map[string]string{release: "7.2\n"}
	maps.Copy(all, files)
	return Read(rootdir.Dir(sysfstest.Files(t, all)))
}

// TestReadSetup reads where a host gets modules from.
func TestReadSetup(t *testing.T) {
	for _, tt := range []struct {
		files map[string]string
		want  Setup
	}{
		{map[string]string{}, Setup{}},
		{
			map[string]string{dkms: "", headers: "", packaged: "", osRelease: "NAME=x\nID=debian\n"},
			Setup{DKMS: "0.1.0", Package: true, Headers: true, InstallHeaders: "apt install linux-headers-7.2"},
		},
		{map[string]string{osRelease: "ID=rocky\nID_LIKE=\"rhel centos fedora\"\n"}, Setup{InstallHeaders: "dnf install kernel-devel-7.2"}},
		{
			map[string]string{release: "6.4.0-150600.23-default", osRelease: "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n"},
			Setup{InstallHeaders: "zypper install kernel-default-devel"},
		},
		{map[string]string{osRelease: "ID=alpine\n"}, Setup{}},
		{map[string]string{"run/.containerenv": ""}, Setup{Container: true}},
		{map[string]string{".dockerenv": ""}, Setup{Container: true}},
		{map[string]string{"run/systemd/container": "podman", modulesDep: ""}, Setup{}},
	} {
		if diff := cmp.Diff(tt.want, host(t, tt.files).Setup); diff != "" {
			t.Errorf("%q: %s", tt.files, diff)
		}
	}
}

// Status files of processes.
const (
	user     = "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n"
	root     = "Name:\tx\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n"
	weakRoot = "Name:\tx\nUid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\n"
	initial  = "         0          0 4294967295\n"
	rootless = "         0       1000          1\n"
)

// TestReadProcess reads what a process may do.
func TestReadProcess(t *testing.T) {
	for _, tt := range []struct {
		status, uidMap string
		want           Process
	}{
		{user, initial, Process{}},
		{root, initial, Process{Root: true, NetAdmin: true}},
		{weakRoot, initial, Process{Root: true}},
		{root, rootless, Process{Root: true, NetAdmin: true, UserNS: true}},
		{"", "", Process{}},
	} {
		if got := host(t, map[string]string{status: tt.status, uidMap: tt.uidMap}).Process; got != tt.want {
			t.Errorf("%q %q: %+v", tt.status, tt.uidMap, got)
		}
	}
}

// TestDiagnose has hosts without AF_SMC, and the message for each.
func TestDiagnose(t *testing.T) {
	const installed = "kernel/net/smc/smc.ko.xz:\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"nothing", nil, "kernel 7.2 has no AF_SMC module: install smckit's ('make modules_install' in its sources), or run a kernel that has one"},
		{"commands by package", map[string]string{packaged: ""}, "kernel 7.2 has no AF_SMC module: install smckit's (package smckit-dkms), or run a kernel that has one"},
		{"dkms", map[string]string{dkms: "", headers: ""}, "kernel 7.2 has no AF_SMC module: build smckit's: 'dkms install smckit/0.1.0' as root, or run a kernel that has one"},
		{
			"no headers",
			map[string]string{dkms: "", osRelease: "ID=debian"},
			"kernel 7.2 has no AF_SMC module: build smckit's: 'apt install linux-headers-7.2', then 'dkms install smckit/0.1.0' as root, or run a kernel that has one",
		},
		{
			"no headers, unknown distribution",
			map[string]string{dkms: ""},
			"kernel 7.2 has no AF_SMC module: build smckit's: install the headers of the running kernel, then 'dkms install smckit/0.1.0' as root, or run a kernel that has one",
		},
		{
			"container",
			map[string]string{".dockerenv": ""},
			"this is a container, and its host has not loaded the AF_SMC module: run 'modprobe smc' as root on the host; 'smc_chk' there says why, if that fails",
		},
		{
			"blocked",
			map[string]string{modulesDep: installed, "etc/modprobe.d/x.conf": "install smc /bin/false\n"},
			"modprobe is configured not to load the module smc: 'install smc /bin/false' in ROOT/etc/modprobe.d/x.conf: remove that line, then 'modprobe smc'",
		},
		{
			"disabled",
			map[string]string{modulesDep: installed, "proc/sys/kernel/modules_disabled": "1\n"},
			"the kernel does not load modules any more (kernel.modules_disabled): reboot, and load the module smc before that is set: " +
				"put a line 'smc' into /etc/modules-load.d/smc.conf",
		},
		{
			"not loaded",
			map[string]string{modulesDep: installed},
			"the module ROOT/lib/modules/7.2/kernel/net/smc/smc.ko.xz is installed, and the kernel has not loaded it: run 'modprobe smc' as root; " +
				"if that fails, 'dmesg' shows the reason",
		},
		{"loaded", map[string]string{"sys/module/smc/uevent": ""}, "run 'smc_chk' to see why"},
	} {
		all := map[string]string{release: "7.2\n"}
		maps.Copy(all, tt.files)
		root := sysfstest.Files(t, all)
		if got, want := absent(Read(rootdir.Dir(root))), strings.Replace(tt.want, "ROOT", root, 1); got != want {
			t.Errorf("%s: %s\nwant %s", tt.name, got, want)
		}
	}
}

// TestDiagnoseFile has files of modules that the kernel refuses.
func TestDiagnoseFile(t *testing.T) {
	for _, tt := range []struct {
		host Host
		want Diagnosis
	}{
		{
			Host{Module: Module{FileVermagic: "6.1 SMP"}},
			Diagnosis{"module-other-kernel", "smc.ko was built for kernel 6.1, and this kernel is 7.2", "build it again for the running kernel: 'make modules_install' in smckit's sources"},
		},
		{
			Host{Module: Module{FileVermagic: "6.1 SMP"}, Setup: Setup{DKMS: "2", Headers: true}},
			Diagnosis{"module-other-kernel", "smc.ko was built for kernel 6.1, and this kernel is 7.2", "build it again for the running kernel: 'dkms install smckit/2' as root"},
		},
		{
			Host{Module: Module{FileVermagic: "7.2 SMP"}, Kernel: Kernel{SignaturesForced: true}},
			Diagnosis{"module-unsigned", "the kernel loads only signed modules, and smc.ko has no signature", "sign the module with a key that is enrolled in the firmware (mokutil), or switch Secure Boot off"},
		},
	} {
		tt.host.Kernel.Release, tt.host.Module.File = "7.2", "smc.ko"
		if diff := cmp.Diff(&tt.want, tt.host.Diagnose()); diff != "" {
			t.Error(diff)
		}
	}
}

// Errors as the packages return them.
var (
	noModule = &smcerr.Error{Op: "look up the netlink family SMC_GEN_NETLINK", Kind: smcerr.ErrNoModule, Remedy: "load it"}
	noPolicy = &smcerr.Error{Op: "look up the netlink family " + policy.Family, Kind: smcerr.ErrNoModule, Remedy: "load it"}
	noDiag   = &smcerr.Error{Op: "list sockets", Kind: smcerr.ErrNoModule, Remedy: "load it with 'modprobe smc_diag', or use a kernel that has it"}
	tooOld   = &smcerr.Error{Op: "x", Kind: smcerr.ErrNotSupported, Remedy: "X needs Linux 6.3 or newer"}
	noOwn    = &smcerr.Error{Op: "x", Kind: smcerr.ErrNotSupported, Remedy: NeedSmckit}
	noDevice = &smcerr.Error{Op: "x", Kind: smcerr.ErrNotSupported, Remedy: "use another device"}
	admin    = &smcerr.Error{Op: "x", Kind: smcerr.ErrPermission, Remedy: NeedAdmin, Err: unix.EPERM}
	netAdmin = &smcerr.Error{Op: "x", Kind: smcerr.ErrPermission, Remedy: NeedNetNSAdmin}
	other    = &smcerr.Error{Op: "x", Kind: smcerr.ErrPermission, Remedy: "ask its owner"}
)

// TestExplain has errors on several hosts.
func TestExplain(t *testing.T) {
	var (
		none      = &Host{Kernel: Kernel{Release: "7.2"}}
		installed = &Host{Module: Module{File: "smc.ko"}}
		stock     = &Host{Module: Module{Loaded: true, File: "/lib/modules/6.1/kernel/net/smc/smc.ko"}, Setup: Setup{Package: true}}
		updates   = &Host{Module: Module{Loaded: true, File: "/lib/modules/6.1/updates/dkms/smc.ko"}}
		ours      = &Host{Module: Module{Loaded: true, Ours: true}}
		may       = func(p Process) *Host { return &Host{Module: Module{Loaded: true}, Process: p} }
	)
	const missing = "kernel 7.2 has no AF_SMC module: install smckit's ('make modules_install' in its sources), or run a kernel that has one"
	const reload = "unload the kernel's own with 'modprobe -r smc_diag smc', and run 'modprobe smc'"
	for _, tt := range []struct {
		err  *smcerr.Error
		host *Host
		want string // "" for the error as it was
	}{
		{noModule, none, "look up the netlink family SMC_GEN_NETLINK: SMC module not available: " + missing},
		{noPolicy, none, "look up the netlink family smckit: SMC module not available: " + missing},
		{noDiag, none, "list sockets: SMC module not available: " + missing},
		{noDiag, installed, "list sockets: SMC module not available: the module smc.ko is installed, and the kernel has not loaded it: " +
			"run 'modprobe smc_diag' as root; if that fails, 'dmesg' shows the reason"},
		{noDiag, stock, ""},
		{noModule, stock, "look up the netlink family SMC_GEN_NETLINK: SMC module not available: the loaded module is too old: " +
			"use Linux 5.11 or newer, or smckit's module: install smckit's (package smckit-dkms), " + reload},
		{noPolicy, stock, "look up the netlink family smckit: SMC module not available: the loaded module is the kernel's own: " +
			"install smckit's (package smckit-dkms), " + reload},
		{noPolicy, updates, "look up the netlink family smckit: SMC module not available: the loaded module is the kernel's own: " + reload},
		{noPolicy, ours, ""},
		{tooOld, stock, "x: not supported: X needs Linux 6.3 or newer, or smckit's module: install smckit's (package smckit-dkms), " + reload},
		{tooOld, ours, "x: not supported: update smckit's module, which is older than this command"},
		{noOwn, updates, "x: not supported: " + reload},
		{noOwn, ours, "x: not supported: update smckit's module, which is older than this command"},
		{noDevice, stock, ""},
		{admin, may(Process{}), ""},
		{admin, may(Process{Root: true}), "x: permission denied: root lacks CAP_NET_ADMIN here: start the container with --cap-add NET_ADMIN, " +
			"or the service with CapabilityBoundingSet=CAP_NET_ADMIN"},
		{admin, may(Process{Root: true, NetAdmin: true, UserNS: true}), "x: permission denied: this is root of a user namespace only, as in a " +
			"rootless container: run it as root of the host"},
		{netAdmin, may(Process{Root: true, NetAdmin: true, UserNS: true}), "x: permission denied: this is root of another user namespace: " +
			"run it as root of the one that owns the network namespace"},
		{netAdmin, may(Process{Root: true, NetAdmin: true}), "x: permission denied: this process has CAP_NET_ADMIN, so a security module or a " +
			"seccomp profile denies it: the audit log or 'dmesg' shows which"},
		{other, may(Process{Root: true}), ""},
		{&smcerr.Error{Op: "x", Kind: smcerr.ErrMalformed}, none, ""},
	} {
		for _, prefix := range []string{"", "line 3: "} {
			var err error = tt.err
			if prefix != "" {
				err = fmt.Errorf(prefix+"%w", tt.err)
			}
			got := explain(err, tt.err, tt.host)
			want := prefix + tt.want
			if tt.want == "" {
				want = err.Error()
			}
			if got.Error() != want || !errors.Is(got, tt.err.Kind) || !errors.Is(got, err) {
				t.Errorf("%v\nis  %v\nnot %s", err, got, want)
			}
		}
	}
	for _, err := range []error{nil, errors.New("x"), &smcerr.Error{Op: "x", Err: unix.EIO}} {
		if got := Explain(err); got != err {
			t.Errorf("%v is %v", err, got)
		}
	}
}

// TestTexts compares the texts by which Explain recognises errors with those of the packages.
func TestTexts(t *testing.T) {
	if _, err := policy.NewFromConn(refusing(unix.EPERM)); !hasRemedy(err, "run as root, that is with CAP_NET_ADMIN"+owner) {
		t.Errorf("policy: %v", err)
	}
	if _, err := netlinksmc.NewFromConn(refusing(unix.EPERM)); !hasRemedy(err, NeedAdmin) {
		t.Errorf("netlinksmc: %v", err)
	}
	for _, open := range []func() error{
		func() error { _, err := netlinksmc.NewFromConn(refusing(unix.ENOENT)); return err },
		func() error { _, err := policy.NewFromConn(refusing(unix.ENOENT)); return err },
	} {
		err := open()
		e, _ := errors.AsType[*smcerr.Error](err)
		if got := explain(err, e, &Host{Module: Module{Loaded: true, File: "/updates/"}}); got == err {
			t.Errorf("%v stays as it is", err)
		}
	}
}

// refusing returns a connection to a kernel that answers every request with an errno.
func refusing(errno unix.Errno) *genetlink.Conn {
	return genltest.Dial(func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
		return nil, genltest.Error(int(errno))
	})
}

func hasRemedy(err error, remedy string) bool {
	e, ok := errors.AsType[*smcerr.Error](err)
	return ok && e.Remedy == remedy
}
