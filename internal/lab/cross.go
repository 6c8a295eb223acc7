// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// CrossArch is an architecture that modules are compiled for, and not run on: the one that has ISM devices.
const CrossArch = "s390x"

// crossTriplet is the prefix of the compiler's packages.
const crossTriplet = "s390x-linux-gnu"

// crossFlags make Kbuild use the cross compiler. Debian's kernels lack the driver of ISM. The modules are compiled against
// its interface all the same, so modpost must go on where a function of the driver is missing.
var crossFlags = []string{
	"ARCH=s390", "CROSS_COMPILE=" + crossTriplet + "-", "KBUILD_MODPOST_WARN=1",
	// The headers test these options to choose a compiler.
	"DEB_HOST_ARCH=" + CrossArch, "DEB_HOST_GNU_TYPE=" + crossTriplet,
}

// ismDriver describes how modules use a kernel's ISM driver.
type ismDriver struct {
	config   string // the option passed to Kbuild
	register string // the function that we call first
}

// cross reports whether modules for this kernel need a cross compiler. The cache has only headers of such a kernel.
func (k *Kernel) cross() bool { return strings.HasSuffix(k.Release, "-"+CrossArch) }

// moduleFlags are the arguments of make for modules of this kernel.
func (k *Kernel) moduleFlags() []string {
	flags := slices.Clone(moduleFlags)
	if !k.cross() {
		return flags
	}
	flags = append(flags, crossFlags...)
	if s, _ := findSeries(k.Series); s.ism.config != "" {
		flags = append(flags, s.ism.config)
	}
	return flags
}

// CrossModules compiles the modules of kernel/ for CrossArch as BuildModules does for amd64, including the client of the ISM
// driver. Nothing runs them.
func CrossModules(ctx context.Context, series string, progress func(string)) (string, error) {
	k, r, err := provisionCross(ctx, series, progress)
	if err != nil {
		return "", err
	}
	return buildFor(ctx, k, r, putCross, progress)
}

// provisionCross returns a build root for the modules, and the kernel of its headers. A root in the cache is kept, even if the
// cache or the archive has other kernels.
func provisionCross(ctx context.Context, series string, progress func(string)) (*Kernel, *buildRoot, error) {
	known, ok := findSeries(series)
	if !ok {
		return nil, nil, fmt.Errorf("no %s headers for kernel series %q", CrossArch, series)
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(cache, "buildroot", series+"-"+CrossArch)
	have := func() (*Kernel, error) { return openCross(series, dir) }
	k, err := obtainBy(ctx, dir, have, false, progress, func() error {
		a, err := newArchive(filepath.Join(cache, "apt", "build-"+known.suite+"-"+CrossArch), known.suite, CrossArch)
		if err != nil {
			return err
		}
		progress("reading the package lists of Debian " + known.suite + " for " + CrossArch)
		if err := a.update(ctx); err != nil {
			return err
		}
		return makeCross(ctx, a, series, dir, progress)
	})
	if err != nil {
		return nil, nil, &UnavailableError{fmt.Errorf("build root for kernel %s on %s: %w", series, CrossArch, err)}
	}
	return k, openRoot(k, dir), nil
}

// UnavailableError means that the archive lacks something that compiling for CrossArch needs: in sid its packages may be
// days behind those of amd64.
type UnavailableError struct{ err error }

func (e *UnavailableError) Error() string { return fmt.Sprint(e.err) }
func (e *UnavailableError) Unwrap() error { return e.err }

// openCross returns the kernel of the build root below dir, which the root's name contains.
func openCross(series, dir string) (*Kernel, error) {
	roots, err := filepath.Glob(filepath.Join(dir, "*-"+CrossArch+"_*_"+recipe(modulePackages)))
	if err != nil {
		return nil, err
	}
	if len(roots) == 0 {
		return nil, os.ErrNotExist
	}
	part := strings.Split(filepath.Base(roots[0]), "_")
	return &Kernel{Series: series, Release: part[0], Package: part[1]}, nil
}

// crossSource provides packages of both architectures. Except in tests, it is apt.
type crossSource interface {
	packageSource
	// show looks up a package. Packages of other architectures than amd64 are given as name:architecture.
	show(ctx context.Context, name string) (*debian, error)
}

// makeCross makes a build root below dir with the headers of the suite's current kernel for CrossArch, and with tools
// that run here.
func makeCross(ctx context.Context, src crossSource, series, dir string, progress func(string)) error {
	k, wanted, err := findHeaders(func(name string) (*debian, error) { return src.show(ctx, name) })
	if err != nil {
		return err
	}
	k.Series = series
	packages, err := src.closure(ctx, nil, append(slices.Clone(modulePackages), wanted...)...)
	if err != nil {
		return err
	}
	// Leave out the dependencies: most of them are programs for that architecture.
	packages = append(packages, "linux-headers-"+k.Release+":"+CrossArch+"="+k.Package)
	r := openRoot(k, dir)
	if err := fillRoot(ctx, src, k, packages, r.dir, progress); err != nil {
		return err
	}
	return pruneRoots(dir, filepath.Base(r.dir))
}

// compiler matches the name of a compiler in the dependencies of a package.
var compiler = regexp.MustCompile(`\bgcc-\d+`)

// findHeaders follows the metapackage for the headers of the newest kernel for CrossArch. It returns the kernel and the
// packages that its headers need here.
func findHeaders(show func(name string) (*debian, error)) (k *Kernel, wanted []string, err error) {
	const prefix = "linux-headers-"
	meta, err := show(prefix + CrossArch + ":" + CrossArch)
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(meta.depends, func(d string) bool { return strings.HasPrefix(d, prefix) })
	if i < 0 {
		return nil, nil, fmt.Errorf("package %s names no headers", meta.name)
	}
	headers, err := show(meta.depends[i] + ":" + CrossArch)
	if err != nil {
		return nil, nil, err
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
			wanted = append(wanted, gcc+"-"+crossTriplet)
		}
	}
	if !found {
		return nil, nil, fmt.Errorf("package %s names no compiler", headers.name)
	}
	return &Kernel{Release: strings.TrimPrefix(headers.name, prefix), Package: headers.version}, wanted, nil
}

// putCross copies the modules built in work to dir. It does not prepare them for guests, because no guest loads them.
func putCross(_ context.Context, k *Kernel, _ *buildRoot, work, dir, stamp string) error {
	s, _ := findSeries(k.Series)
	if err := checkCross(filepath.Join(work, "smc.ko"), s.ism.register); err != nil {
		return err
	}
	return errors.Join(copyModules(work, dir), replace(filepath.Join(dir, stampFile), []byte(stamp)))
}

// checkCross fails unless a module is for CrossArch and calls the function register. The purpose of the build is to compile
// that call, and a mistake in Kbuild would silently leave it out.
func checkCross(module, register string) error {
	f, err := elf.Open(module)
	if err != nil {
		return err
	}
	defer f.Close()
	if f.Machine != elf.EM_S390 {
		return fmt.Errorf("%s is for %v", filepath.Base(module), f.Machine)
	}
	if register == "" {
		return nil
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
