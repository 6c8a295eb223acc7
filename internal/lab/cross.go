// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ismArch is the architecture that has ISM devices.
const ismArch = "s390x"

// ismDriver describes how modules use a kernel's ISM driver.
type ismDriver struct {
	config   string // the option passed to Kbuild
	register string // the function that we call first
}

// crossFlags make Kbuild use the cross compiler of an architecture.
func crossFlags(a *architecture) []string {
	return []string{
		"ARCH=" + a.kbuild, "CROSS_COMPILE=" + a.triplet + "-",
		// The headers test these options to choose a compiler.
		"DEB_HOST_ARCH=" + a.debian, "DEB_HOST_GNU_TYPE=" + a.triplet,
	}
}

// moduleFlags are the arguments of make for modules of this kernel.
func (k *Kernel) moduleFlags() []string {
	flags := slices.Clone(moduleFlags)
	if a := k.arch(); !a.native() {
		flags = append(flags, crossFlags(a)...)
	}
	return flags
}

// ismOf returns the driver of ISM that modules for k can use, and whether k has it.
func ismOf(k *Kernel) (driver ismDriver, has bool, err error) {
	s, _ := findSeries(k.Series)
	if k.arch().name != ismArch || s.ism.config == "" {
		return ismDriver{}, false, nil
	}
	option, _, _ := strings.Cut(s.ism.config, "=")
	value, err := k.Config(option)
	return s.ism, value != "", err
}

// CrossModules compiles the modules of kernel/ for the kernel of another architecture as BuildModules does for NativeArch. If the
// architecture has ISM devices and the kernel lacks their driver, it also compiles the client of the driver, into a directory
// beside the modules: no kernel loads these.
func CrossModules(ctx context.Context, arch, series string, progress func(string)) (string, error) {
	k, r, err := provisionCross(ctx, arch, series, progress)
	if err != nil {
		return "", err
	}
	ism, has, err := ismOf(k)
	if err != nil {
		return "", err
	}
	if ism.config != "" && !has {
		without := moduleBuild{
			variant: "-ism", put: putISM(ism.register),
			// modpost must go on where a function of the driver is missing.
			flags: append(k.moduleFlags(), ism.config, "KBUILD_MODPOST_WARN=1"),
		}
		if _, err := without.build(ctx, k, r, progress); err != nil {
			return "", err
		}
	}
	loaded := moduleBuild{flags: k.moduleFlags(), put: publish}
	if has {
		loaded.put = func(ctx context.Context, k *Kernel, r *buildRoot, work, dir, stamp string) error {
			return errors.Join(checkISM(filepath.Join(work, "smc.ko"), ism.register), publish(ctx, k, r, work, dir, stamp))
		}
	}
	return loaded.build(ctx, k, r, progress)
}

// CheckCrossModules does what CheckModules does for another architecture.
func CheckCrossModules(ctx context.Context, arch, series string, progress func(string)) error {
	k, r, err := provisionCross(ctx, arch, series, progress)
	if err != nil {
		return err
	}
	return checkSources(ctx, k, r, progress)
}

// CrossMake runs make on the Makefile in a directory of this repository, with the compiler for an architecture that builds modules
// for a kernel series. OUT is a directory for the results.
func CrossMake(ctx context.Context, arch, series, dir, out string, args []string, progress func(string)) error {
	k, r, err := provisionCross(ctx, arch, series, progress)
	if err != nil {
		return err
	}
	compilers, err := filepath.Glob(filepath.Join(r.dir, "usr/bin", k.arch().triplet+"-gcc-[0-9]*"))
	if err != nil || len(compilers) == 0 {
		return fmt.Errorf("no compiler for %s in the build root of kernel %s: %w", arch, k.Release, err)
	}
	command := []string{"make", "-s", "-C", filepath.Join("/source", dir), "OUT=/out", "CC=" + filepath.Base(compilers[0])}
	return r.compile(ctx, out, append(command, args...)...)
}

// compile runs a command in a build root. This repository is at /source, and the directory out at /out.
func (r *buildRoot) compile(ctx context.Context, out string, command ...string) error {
	root, err := repository()
	if err != nil {
		return err
	}
	said, err := r.chroot(ctx, []bind{{root, "/source"}, {out, "/out"}}, command...)
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(said))
	}
	return nil
}

// provisionCross returns the kernel of a series for another architecture, together with a build root for it. If the archive has
// moved to a newer kernel, and has only the headers of that, that kernel replaces the one cached.
func provisionCross(ctx context.Context, arch, series string, progress func(string)) (*Kernel, *buildRoot, error) {
	known, ok := findSeries(series)
	if !ok {
		return nil, nil, fmt.Errorf("no headers for kernel series %q", series)
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, nil, err
	}
	for _, update := range []bool{false, true} {
		k, err := ProvisionArch(ctx, arch, series, update, progress)
		if err != nil {
			return nil, nil, err
		}
		a := k.arch()
		open := func() (crossSource, error) {
			src, err := newArchive(filepath.Join(cache, "apt", "build-"+known.suite+"-"+a.debian), known.suite, NativeArch, a.debian)
			if err != nil {
				return nil, err
			}
			progress("reading the package lists of Debian " + known.suite + " for " + NativeArch + " and " + a.debian)
			return src, src.update(ctx)
		}
		r, err := obtainCross(ctx, k, filepath.Join(cache, "buildroot", series+a.suffix()), open, progress)
		switch {
		case err == nil:
			return k, r, nil
		case update || !errors.Is(err, errNoHeaders):
			return nil, nil, &UnavailableError{fmt.Errorf("build root for kernel %s: %w", k.Release, err)}
		}
	}
	panic("not reached")
}

// UnavailableError means that the archive lacks something that compiling for another architecture needs, or its kernel: the packages may be
// days behind those of amd64, or behind their list.
type UnavailableError struct{ err error }

func (e *UnavailableError) Error() string { return fmt.Sprint(e.err) }
func (e *UnavailableError) Unwrap() error { return e.err }

// crossSource provides packages of both architectures. Except in tests, it is apt.
type crossSource interface {
	packageSource
	// show looks up a package. Packages of other architectures than amd64 are given as name:architecture.
	show(ctx context.Context, name string) (*debian, error)
}

// obtainCross opens the build root for k below dir, and makes it first if there is none.
func obtainCross(
	ctx context.Context, k *Kernel, dir string, open func() (crossSource, error), progress func(string),
) (*buildRoot, error) {
	return obtainRootBy(ctx, k, dir, progress, func(final string) error {
		src, err := open()
		if err != nil {
			return err
		}
		return makeCross(ctx, src, k, final, progress)
	})
}

// makeCross makes a build root with the headers of k, and with tools that run here, in the directory final.
func makeCross(ctx context.Context, src crossSource, k *Kernel, final string, progress func(string)) error {
	wanted, err := findHeaders(k, func(name string) (*debian, error) { return src.show(ctx, name) })
	if err != nil {
		return err
	}
	packages, err := src.closure(ctx, nil, append(crossPackages(k.arch()), wanted...)...)
	if err != nil {
		return err
	}
	// Leave out the dependencies: most of them are programs for that architecture.
	packages = append(packages, "linux-headers-"+k.Release+":"+k.arch().debian+"="+k.Package)
	return fillBuildRoot(ctx, src, k, packages, final, progress)
}

// crossPackages are needed to build modules and C programs for an architecture, besides headers and a compiler.
func crossPackages(a *architecture) []string {
	return append(slices.Clone(modulePackages), "sparse", "libc6-dev-"+a.debian+"-cross")
}

// compiler matches the name of a compiler in the dependencies of a package.
var compiler = regexp.MustCompile(`\bgcc-\d+`)

// findHeaders returns the packages that the headers of k need here.
func findHeaders(k *Kernel, show func(name string) (*debian, error)) (wanted []string, err error) {
	const prefix = "linux-headers-"
	headers, err := show(prefix + k.Release + ":" + k.arch().debian)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoHeaders, err)
	}
	if headers.version != k.Package {
		return nil, fmt.Errorf("%w: version %s, not %s", errNoHeaders, headers.version, k.Package)
	}
	found := false
	for _, dep := range headers.depends {
		gcc := compiler.FindString(dep)
		switch {
		case strings.HasPrefix(dep, prefix):
			wanted = append(wanted, dep+"="+headers.version)
		case strings.HasPrefix(dep, "linux-kbuild-"):
			wanted = append(wanted, dep)
		case gcc != "" && !found:
			found = true
			wanted = append(wanted, gcc+"-"+k.arch().triplet)
		}
	}
	if !found {
		return nil, fmt.Errorf("package %s%s names no compiler", prefix, k.Release)
	}
	return wanted, nil
}

// putISM returns a putter of modules that no kernel loads, and which must call the function register of a driver.
func putISM(register string) putter {
	return func(_ context.Context, _ *Kernel, _ *buildRoot, work, dir, stamp string) error {
		if err := checkISM(filepath.Join(work, "smc.ko"), register); err != nil {
			return err
		}
		return errors.Join(copyModules(work, dir), replace(filepath.Join(dir, stampFile), []byte(stamp)))
	}
}

// checkISM fails unless a module is for ismArch and calls the function register. A mistake in Kbuild would silently leave out the
// client of the driver.
func checkISM(module, register string) error {
	f, err := elf.Open(module)
	if err != nil {
		return err
	}
	defer f.Close()
	if f.Machine != elf.EM_S390 {
		return fmt.Errorf("%s is for %v", filepath.Base(module), f.Machine)
	}
	symbols, err := f.Symbols()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == register && s.Section == elf.SHN_UNDEF }) {
		return fmt.Errorf("%s does not call %s: the client of the ISM driver was not compiled", filepath.Base(module), register)
	}
	return nil
}
