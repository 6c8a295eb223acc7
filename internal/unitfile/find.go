// SPDX-License-Identifier: Apache-2.0

package unitfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/remedy"
)

const suffix = ".service"

// dirs are the directories of units of the system, in the order of precedence: systemd.unit(5).
var dirs = []string{
	"/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient", "/run/systemd/generator.early",
	"/etc/systemd/system", "/etc/systemd/system.attached", "/run/systemd/system", "/run/systemd/system.attached",
	"/run/systemd/generator", "/usr/local/lib/systemd/system", "/lib/systemd/system", "/usr/lib/systemd/system",
	"/run/systemd/generator.late",
}

// ErrNotFound means that there is no such service.
var ErrNotFound = errors.New("there is no such service")

// File is a file of a unit.
type File struct{ Path, Text string }

// Unit is a service.
type Unit struct {
	// Name is the name of the service itself, also if it was found by an alias.
	Name string
	// Fragment is the unit file, DropIns are the files that change it, in the order in which systemd reads them.
	Fragment File
	DropIns  []File
	// Socket reports whether a socket unit has the same name.
	Socket bool
}

// Search finds units.
type Search struct {
	// Root is the directory that has the system: "" except in tests.
	Root string
}

// DropIn returns the path of the drop-in that smc_run writes for the service name. Its name makes it the last of the drop-ins:
// 'systemctl edit' writes override.conf.
func (s Search) DropIn(name string) string {
	return filepath.Join(s.Root, "/etc/systemd/system", name+".d", dropInName)
}

const dropInName = "zz-smc.conf"

// ServiceName completes the name of a service, and refuses names of other units.
func ServiceName(name string) (string, error) {
	switch {
	case name == "" || strings.ContainsAny(name, "/ \t\n") || strings.HasPrefix(name, "."):
		return "", fmt.Errorf("%q is not the name of a service, such as redis-server or postgresql@15-main", name)
	case strings.HasSuffix(name, suffix):
		return name, nil
	}
	for _, other := range []string{"socket", "timer", "target", "path", "mount", "automount", "swap", "slice", "scope", "device"} {
		if strings.HasSuffix(name, "."+other) {
			return "", remedy.Errorf("name its service", "%q is a %s unit, which runs no program", name, other)
		}
	}
	return name + suffix, nil
}

// Load reads a service with the files that change it, except the drop-in that smc_run writes.
func (s Search) Load(name string) (*Unit, error) {
	real, path, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	u := &Unit{Name: real}
	if u.Fragment, err = readFile(path); err != nil {
		return nil, err
	}
	if strings.TrimSpace(u.Fragment.Text) == "" {
		return nil, masked(name)
	}
	u.Socket = s.hasSocket(real)
	u.DropIns, err = s.dropIns(real, name)
	return u, err
}

func (s Search) hasSocket(name string) bool {
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(s.Root, dir, strings.TrimSuffix(name, suffix)+".socket")); err == nil {
			return true
		}
	}
	return false
}

func masked(name string) error {
	return remedy.Errorf(fmt.Sprintf("run 'systemctl unmask %s' first", name), "%s is masked", name)
}

// mostAliases is how many aliases may lead to a service. It ends loops.
const mostAliases = 8

// resolve returns the name of the service itself and the path of its file.
func (s Search) resolve(name string) (real, path string, err error) {
	for range mostAliases {
		target := ""
		if path, target, err = s.file(name); err != nil {
			return "", "", err
		}
		if target == "" || target == name {
			return name, path, nil
		}
		name = target
	}
	return "", "", remedy.Errorf(fmt.Sprintf("'ls -l %s' shows where they lead", path), "%s: too many symbolic links", name)
}

// file finds the file of a service or of its template. alias is the name of the service that it links to, if it is a symbolic link.
func (s Search) file(name string) (path, alias string, err error) {
	candidates := []string{name}
	if t := template(name); t != "" {
		candidates = append(candidates, t)
	}
	for _, file := range candidates {
		for _, dir := range dirs {
			path = filepath.Join(s.Root, dir, file)
			st, err := os.Lstat(path)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				continue
			}
			if err != nil {
				return "", "", err
			}
			if st.Mode()&fs.ModeSymlink == 0 {
				return path, "", nil
			}
			target, err := os.Readlink(path)
			if err != nil {
				return "", "", err
			}
			if target == os.DevNull {
				return "", "", masked(name)
			}
			return path, instantiate(filepath.Base(target), name), nil
		}
	}
	return "", "", fmt.Errorf("%s: %w%s", name, ErrNotFound, s.didYouMean(name))
}

// instance splits the name of an instance of a template. before ends with the @.
func instance(name string) (before, inst string, ok bool) {
	before, inst, ok = strings.Cut(strings.TrimSuffix(name, suffix), "@")
	return before + "@", inst, ok
}

// template returns the template of an instance, "" for other services.
func template(name string) string {
	if before, inst, ok := instance(name); ok && inst != "" {
		return before + suffix
	}
	return ""
}

// instantiate returns the instance of a template that name is an alias of.
func instantiate(target, name string) string {
	before, inst, ok := instance(target)
	_, own, _ := instance(name)
	if ok && inst == "" && own != "" {
		return before + own + suffix
	}
	return target
}

// dropIns returns the drop-ins of a service and its alias, in the order in which systemd reads them.
func (s Search) dropIns(names ...string) ([]File, error) {
	var from []string
	for _, name := range slices.Compact(names) {
		for _, dir := range dirs {
			for _, n := range dropInDirs(name) {
				from = append(from, filepath.Join(s.Root, dir, n+".d"))
			}
		}
	}
	for _, dir := range dirs {
		from = append(from, filepath.Join(s.Root, dir, "service.d"))
	}
	var paths, seen []string
	for _, dir := range from {
		files, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.conf"))
		if err != nil {
			return nil, err
		}
		for _, path := range files {
			// A file takes the place of those of the same name in later directories.
			if base := filepath.Base(path); !slices.Contains(seen, base) {
				seen = append(seen, base)
				paths = append(paths, path)
			}
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(filepath.Base(a), filepath.Base(b)) })
	var list []File
	for _, path := range paths {
		f, err := readFile(path)
		if err != nil {
			return nil, err
		}
		if filepath.Base(path) != dropInName || !Ours(f.Text) {
			list = append(list, f)
		}
	}
	return list, nil
}

// escapeGlob makes a path a pattern that matches only itself: names of instances may have backslashes.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// dropInDirs lists the names whose directories have drop-ins of a service: its own, those of its dashed prefixes, and the template's.
func dropInDirs(name string) []string {
	list := []string{name}
	for at := strings.TrimSuffix(name, suffix); ; {
		dash := strings.LastIndexByte(strings.TrimSuffix(at, "-"), '-')
		if dash < 0 {
			break
		}
		at = at[:dash+1]
		list = append(list, at+suffix)
	}
	if t := template(name); t != "" {
		list = append(list, t)
	}
	return list
}

func readFile(path string) (File, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return File{}, fmt.Errorf("%s: a symbolic link to a file that does not exist", path)
	}
	return File{Path: path, Text: string(text)}, err
}

// didYouMean names services that the user may have meant.
func (s Search) didYouMean(name string) string {
	short := strings.TrimSuffix(name, suffix)
	names := s.Names()
	similar := cli.Similar(short, 2, names)
	like := slices.DeleteFunc(names, func(other string) bool {
		return !strings.Contains(other, short) && !slices.Contains(similar, other)
	})
	if len(like) == 0 {
		return ": 'systemctl list-unit-files --type=service' lists them"
	}
	return "; did you mean " + strings.Join(like[:min(3, len(like))], ", ") + "?"
}

// Names lists the services that have files, and templates, without their suffix.
func (s Search) Names() []string {
	var names []string
	for _, dir := range dirs {
		entries, err := os.ReadDir(filepath.Join(s.Root, dir))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), suffix); ok {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
