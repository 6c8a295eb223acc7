// SPDX-License-Identifier: Apache-2.0

package unitfile

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/remedy"
)

// Runner is how a service is run.
type Runner struct {
	// Command is smc_run and its options.
	Command []string
	// Supervised reports whether smc_run will start a supervisor for a program. The path is "" if the service's settings determine it.
	Supervised func(path string) bool
	// Library is the directory of the preload library, "" if there is none.
	Library string
	// SignalsLost reports that smc_run does not keep ignored signals ignored.
	SignalsLost bool
}

// calls are the system calls of the supervisor and of its start that services often forbid.
const calls = "seccomp pidfd_getfd process_vm_readv"

// marker begins each drop-in that this package makes.
const marker = "# Written by smc_run --unit "

// Ours reports whether a drop-in was made by this package.
func Ours(text string) bool { return strings.HasPrefix(text, marker) }

// DropIn returns the text of the drop-in by which a service runs under r, and notes on what will not be as the user may expect.
func (u *Unit) DropIn(r Runner) (text string, notes []string, err error) {
	list, err := u.commands()
	if err != nil {
		return "", nil, err
	}
	if err := u.reachable(r); err != nil {
		return "", nil, err
	}
	lines := []string{marker + u.Name + ", which removes it with --undo.", "[Service]", "ExecStart="}
	supervised := false
	for _, c := range list {
		supervised = supervised || r.Supervised(c.path())
		lines = append(lines, "ExecStart="+c.wrap(escaped(c.prefix, r.Command)))
	}
	families, note := u.families()
	lines = append(lines, families...)
	if supervised && u.last("SystemCallFilter") != "" {
		lines = append(lines, "SystemCallFilter="+calls)
	}
	if u.last("NoExecPaths") != "" {
		lines = append(lines, "ExecPaths="+strings.Join(slices.DeleteFunc([]string{r.Command[0], r.Library}, empty), " "))
	}
	return strings.Join(lines, "\n") + "\n", append(note, u.notes(r, supervised)...), nil
}

func empty(s string) bool { return s == "" }

// escaped returns the command so that systemd expands nothing in it.
func escaped(prefix string, command []string) []string {
	r := strings.NewReplacer("%", "%%", "$", "$$")
	if strings.Contains(prefix, ":") {
		r = strings.NewReplacer("%", "%%")
	}
	out := []string{strings.ReplaceAll(command[0], "%", "%%")}
	for _, word := range command[1:] {
		out = append(out, r.Replace(word))
	}
	return out
}

// values returns the values of an option of the section [Service], without those that an empty one has reset.
func (u *Unit) values(name string) []string {
	var list []string
	for _, f := range append([]File{u.Fragment}, u.DropIns...) {
		for _, o := range parse(f.Text) {
			switch {
			case o.section != "Service" || o.name != name:
			case o.value == "":
				list = nil
			default:
				list = append(list, o.value)
			}
		}
	}
	return list
}

// last returns the value of an option, or the last of its values.
func (u *Unit) last(name string) string {
	if v := u.values(name); len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// on reports whether a boolean option is set, or by default.
func (u *Unit) on(name string, byDefault bool) bool {
	v := strings.ToLower(u.last(name))
	if v == "" {
		return byDefault
	}
	return !slices.Contains([]string{"no", "n", "false", "f", "off", "0"}, v)
}

// commands returns the commands that start the service.
func (u *Unit) commands() ([]command, error) {
	var list []command
	for _, value := range u.values("ExecStart") {
		more, err := commands(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", u.Name, err)
		}
		list = append(list, more...)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: it has no ExecStart=, so there is no program to run over SMC", u.Name)
	}
	for _, c := range list {
		if base := filepath.Base(c.path()); base == "smc_run" || base == "smckit" {
			return nil, remedy.Errorf(fmt.Sprintf("'systemctl cat %s' shows which; remove its ExecStart= lines first", u.Name), "%s runs smc_run already, by a file that is not from --unit", u.Name)
		}
	}
	for _, f := range u.DropIns {
		if filepath.Base(f.Path) > dropInName && slices.ContainsFunc(parse(f.Text), func(o option) bool { return o.section == "Service" && o.name == "ExecStart" }) {
			return nil, remedy.Errorf("give it a name that sorts before", "%s: it would override the drop-in %s", f.Path, dropInName)
		}
	}
	return list, nil
}

// reachable checks that the service will find smc_run in its file system.
func (u *Unit) reachable(r Runner) error {
	const install = "install it below /usr (make install, or the package smckit), and run --unit again"
	path := r.Command[0]
	within := func(dirs ...string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(path, dir+"/") })
	}
	for _, name := range []string{"RootDirectory", "RootImage"} {
		if u.last(name) != "" {
			return remedy.Errorf("write the drop-in by hand", "%s has a root directory of its own (%s=), in which %s is missing", u.Name, name, path)
		}
	}
	home := strings.ToLower(u.last("ProtectHome"))
	if home != "" && home != "read-only" && u.on("ProtectHome", false) && within("/home", "/root", "/run/user") {
		return remedy.Errorf(install, "%s does not see %s (ProtectHome=)", u.Name, path)
	}
	if u.on("PrivateTmp", false) && within("/tmp", "/var/tmp") {
		return remedy.Errorf(install, "%s does not see %s (PrivateTmp=)", u.Name, path)
	}
	return nil
}

// families returns the line that allows AF_SMC to a service that is restricted to other families.
func (u *Unit) families() (lines, notes []string) {
	const name = "RestrictAddressFamilies"
	var set []string
	restricted, allow, begun := false, false, false
	for _, value := range u.values(name) {
		if value == "none" {
			set, restricted, allow, begun = nil, true, true, false
			continue
		}
		list, inverted := strings.CutPrefix(value, "~")
		if !begun {
			restricted, allow, begun = true, !inverted, true
		}
		for _, family := range words(list) {
			set = slices.DeleteFunc(set, func(f string) bool { return f == family })
			if allow != inverted {
				set = append(set, family)
			}
		}
	}
	has := func(family string) bool { return slices.Contains(set, family) }
	switch {
	case !restricted, allow == has("AF_SMC"):
		return nil, nil
	case allow && !has("AF_INET") && !has("AF_INET6"):
		return nil, []string{name + "= allows neither AF_INET nor AF_INET6, so this service has no TCP sockets"}
	}
	return []string{name + "=AF_SMC"}, nil
}

// notes returns what will not be as the user may expect.
func (u *Unit) notes(r Runner, supervised bool) []string {
	var notes []string
	add := func(is bool, format string, args ...any) {
		if is {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	add(u.Socket, "sockets that systemd passes to the service, by a socket unit, stay TCP")
	add(supervised && u.last("Type") == "forking" && u.last("PIDFile") == "",
		"systemd cannot distinguish the main process from the supervisor (Type=forking without PIDFile=): set PIDFile=, or use Type=simple with a program that does not fork")
	add(r.SignalsLost && u.on("IgnoreSIGPIPE", true),
		"SIGPIPE will not be ignored, because this smc_run was not built by make for x86-64: programs that do not handle it end when a peer closes")
	add(u.last("AppArmorProfile") != "", "the AppArmor profile %s must allow 'network smc,' and reading of the preload library", u.last("AppArmorProfile"))
	for _, name := range []string{"IPAddressDeny", "IPAddressAllow"} {
		add(u.last(name) != "", "%s= applies to the handshake only: data that SMC carries is not IP", name)
	}
	return notes
}
