// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/smckit/smckit/internal/remedy"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// netnsDir is where iproute2 keeps the handles of named network namespaces.
const netnsDir = "/run/netns"

// netnsEnv marks the process that EnterNetNS has started, so that it does not enter again.
const netnsEnv = "_SMCKIT_NETNS"

// AddNetNSFlag gives the tree below root the option -N/--netns NAME, which runs the command in that namespace. It
// installs root's PersistentPreRunE.
func AddNetNSFlag(root *cobra.Command, env *Env) {
	root.PersistentPreRunE = addNetNS(root, root.PersistentFlags(), env)
}

// AddOwnNetNSFlag is AddNetNSFlag for cmd alone: commands below it have an option of their own, or none. It installs cmd's PreRunE.
func AddOwnNetNSFlag(cmd *cobra.Command, env *Env) {
	cmd.PreRunE = addNetNS(cmd, cmd.Flags(), env)
}

// addNetNS adds the option to flags, which are of cmd, and returns the function that enters the namespace.
func addNetNS(cmd *cobra.Command, flags *pflag.FlagSet, env *Env) func(*cobra.Command, []string) error {
	name := flags.StringP("netns", "N", "", "work in the network namespace `NAME` (as 'ip -n NAME')")
	_ = cmd.RegisterFlagCompletionFunc("netns", completeNetNS)
	flag := flags.Lookup("netns")
	return func(*cobra.Command, []string) error {
		if !flag.Changed || *name != "" && env.Getenv(netnsEnv) == *name {
			return nil
		}
		return env.EnterNetNS(*name)
	}
}

func completeNetNS(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	entries, err := os.ReadDir(netnsDir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// InterfaceName returns the name of an interface in the network namespace of the process, "" if there is none with this index.
func InterfaceName(index uint32) string {
	i, err := net.InterfaceByIndex(int(index))
	if err != nil {
		return ""
	}
	return i.Name
}

// EnterNetNS executes the running command again, with the same arguments, inside the named network namespace and a mount
// namespace whose /sys shows it. A namespace belongs to a thread, and a Go program has many threads. Executing again is the
// only way to move the whole process, with its netlink sockets and its sysfs. EnterNetNS returns only on failure.
func EnterNetNS(name string) error {
	// Refuse an empty name: it comes from a script's unset variable and must not mean the current namespace.
	if strings.ContainsRune(name, '/') || name == "" || name == "." || name == ".." {
		return Usagef("network namespace %q: give a name as 'ip netns list' shows it, not a path", name)
	}
	f, err := os.Open(filepath.Join(netnsDir, name))
	if errors.Is(err, os.ErrNotExist) {
		return remedy.Errorf("see 'ip netns list'", "network namespace %q does not exist", name)
	}
	if err != nil {
		return fmt.Errorf("network namespace %q: %w", name, err)
	}
	defer f.Close()

	// Keep the thread locked: after setns, it must not run anything except exec.
	runtime.LockOSThread()
	if err := setNetNS(int(f.Fd())); err != nil {
		if errors.Is(err, unix.EPERM) {
			return remedy.Errorf("run as root", "network namespace %q: entering it is not permitted", name)
		}
		return fmt.Errorf("network namespace %q: %w", name, err)
	}
	env := append(os.Environ(), netnsEnv+"="+name)
	return fmt.Errorf("network namespace %q: cannot start again: %w", name, unix.Exec("/proc/self/exe", os.Args, env))
}

// setNetNS moves the calling thread into the namespace behind fd and gives it a /sys of that namespace, with the control groups of
// version 2 if they are there now.
func setNetNS(fd int) error {
	const cgroups = "/sys/fs/cgroup"
	_, noCgroups := os.Stat(filepath.Join(cgroups, "cgroup.controllers"))
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	// Do not propagate our mounts to the rest of the system, but receive its mounts.
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Unmount("/sys", unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmounting /sys: %w", err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("mounting /sys: %w", err)
	}
	if noCgroups != nil {
		return nil
	}
	if err := unix.Mount("cgroup2", cgroups, "cgroup2", 0, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", cgroups, err)
	}
	return nil
}
