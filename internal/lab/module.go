// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// moduleFiles are the modules that a build produces. The last one is for tests.
var moduleFiles = []string{"smc.ko", "smc_diag.ko", "smc_null.ko"}

// fakeFile is another one for tests, for kernels that have the interface of a driver which it needs.
const fakeFile = "smc_fake_ism.ko"

// builtIn returns the modules that a build has left in a directory.
func builtIn(work string) []string {
	if _, err := os.Stat(filepath.Join(work, fakeFile)); err != nil {
		return moduleFiles
	}
	return append(slices.Clone(moduleFiles), fakeFile)
}

// moduleFlags are stricter than those of a build by DKMS: no warnings, and a transport for tests.
var moduleFlags = []string{"W=1", "SMC_WERROR=y", "SMC_NULL=m"}

// stampFile, beside built modules, names the sources that they were built from. It is written last and removed first.
const stampFile = "stamp"

// sparseFlags suppress the findings about each put_unaligned_be16 of a constant.
const sparseFlags = "-Wno-cast-truncate"

// BuildError is a failed build, with the findings of the compiler or a checker.
type BuildError struct {
	Output string // lines
	err    error
}

func (e *BuildError) Error() string { return e.err.Error() }

func (e *BuildError) Unwrap() error { return e.err }

// sources are the files of kernel/ by their names below it.
type sources map[string][]byte

// product matches the files that Kbuild creates among the sources when they are built in place, and files that it does not use.
var product = regexp.MustCompile(`(^|/)\.|\.(o|ko|a|mod|mod\.c|cmd|md)$|(^|/)(Module\.symvers|modules\.order)$`)

// readSources reads the sources below dir.
func readSources(dir string) (sources, error) {
	src := sources{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || d.IsDir() || !d.Type().IsRegular() || product.MatchString(name) {
			return err
		}
		src[name], err = os.ReadFile(path)
		return err
	})
	return src, err
}

// names returns the names of the files, sorted.
func (s sources) names() []string {
	names := make([]string, 0, len(s))
	for name := range s {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// stamp identifies these sources, built for k.
func (s sources) stamp(k *Kernel, flags []string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%q\x00", rootName(k), flags)
	for _, name := range s.names() {
		fmt.Fprintf(h, "%s\x00%d\x00%s", name, len(s[name]), s[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// moduleDir returns the directory of our modules for k, and the directory of their sources.
func moduleDir(k *Kernel) (built, source string, err error) {
	root, err := repository()
	return filepath.Join(root, "build/kernel", k.Release), filepath.Join(root, "kernel"), err
}

// checkOurs fails if there are no modules built for k from the current sources.
func (k *Kernel) checkOurs() error {
	dir, source, err := moduleDir(k)
	if err != nil {
		return err
	}
	return k.checkBuilt(dir, source)
}

// checkBuilt fails unless the modules in dir were built for k from the sources in source.
func (k *Kernel) checkBuilt(dir, source string) error {
	have, err := os.ReadFile(filepath.Join(dir, stampFile))
	if err != nil {
		return fmt.Errorf("no AF_SMC module built here for kernel %s: run '%s'", k.Release, k.makeModules())
	}
	src, err := readSources(source)
	if err != nil {
		return err
	}
	if string(have) != src.stamp(k, k.moduleFlags()) {
		return fmt.Errorf("the AF_SMC module built for kernel %s is not of these sources: run '%s'", k.Release, k.makeModules())
	}
	return nil
}

// makeModules is the command line that builds the modules for k.
func (k *Kernel) makeModules() string { return "make modules" + k.arch().suffix() }

// BuildModules builds the modules of kernel/ for the kernel of a series, with warnings as errors, unless that has been
// done with these sources. They are then in the returned directory, build/kernel/<release> of the repository.
func BuildModules(ctx context.Context, series string, progress func(string)) (string, error) {
	k, r, err := provisionBuild(ctx, series, progress)
	if err != nil {
		return "", err
	}
	return moduleBuild{flags: k.moduleFlags(), put: publish}.build(ctx, k, r, progress)
}

// moduleBuild is a way to build the modules for a kernel.
type moduleBuild struct {
	variant string   // the end of the names of its directories
	flags   []string // the arguments of make
	put     putter   // brings the modules to where they belong
}

// build builds the modules for k, unless that has been done with these sources.
func (b moduleBuild) build(ctx context.Context, k *Kernel, r *buildRoot, progress func(string)) (string, error) {
	dir, source, err := moduleDir(k)
	if err != nil {
		return "", err
	}
	cache, err := openModuleCache()
	if err != nil {
		return "", err
	}
	dir += b.variant
	name := k.Release + b.variant
	err = inWorkDir(ctx, k, b.variant, source, progress, func(work string, src sources) error {
		stamp := src.stamp(k, b.flags)
		if have, err := os.ReadFile(filepath.Join(dir, stampFile)); err == nil && string(have) == stamp {
			progress(name + ": the modules are up to date")
			return nil
		}
		if taken, err := cache.take(stamp, dir); err != nil {
			return err
		} else if taken {
			progress(name + ": the modules were built for another checkout")
			return nil
		}
		progress(name + ": building the modules")
		if err := r.makeModules(ctx, work, b.flags); err != nil {
			return err
		}
		if err := b.put(ctx, k, r, work, dir, stamp); err != nil {
			return err
		}
		return cache.keep(stamp, dir)
	})
	if err != nil {
		return "", fmt.Errorf("modules for kernel %s: %w", k.Release, err)
	}
	return dir, nil
}

// CheckModules runs sparse on the modules' sources for the kernel of a series.
func CheckModules(ctx context.Context, series string, progress func(string)) error {
	k, r, err := provisionBuild(ctx, series, progress)
	if err != nil {
		return err
	}
	return checkSources(ctx, k, r, progress)
}

// checkSources runs sparse on the modules' sources for k.
func checkSources(ctx context.Context, k *Kernel, r *buildRoot, progress func(string)) error {
	_, source, err := moduleDir(k)
	if err != nil {
		return err
	}
	return inWorkDir(ctx, k, "", source, progress, func(work string, _ sources) error {
		progress(k.Release + ": checking the modules' sources with sparse")
		// Newer kernels test the checker by a script that Debian's headers lack, and build without it then. The second variable is
		// what their Makefile would set in consequence.
		out, err := r.make(ctx, work, append(k.moduleFlags(), "C=2", "KBUILD_CHECKSRC=2", "CHECK=sparse", "CF="+sparseFlags)...)
		switch {
		case err != nil && out == "":
			return err
		case err != nil || findings(out):
			return &BuildError{Output: complaints(out), err: fmt.Errorf("kernel %s: sparse complains", k.Release)}
		case !checked.MatchString(out):
			return &BuildError{Output: complaints(out), err: fmt.Errorf("kernel %s: sparse has not run", k.Release)}
		}
		return nil
	})
}

// inWorkDir calls use with a copy of the sources that only builds of this checkout, this kernel and this variant use, one at a time. It
// keeps the results of earlier builds if they come from the same files and the same headers.
func inWorkDir(
	ctx context.Context, k *Kernel, variant, source string, progress func(string), use func(work string, src sources) error,
) error {
	cache, err := CacheDir()
	if err != nil {
		return err
	}
	work := filepath.Join(cache, "build", fmt.Sprintf("%x", sha256.Sum256([]byte(source)))[:12], "kernel-"+k.Release+variant)
	if err := os.MkdirAll(filepath.Dir(work), 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, work+".lock", progress)
	if err != nil {
		return err
	}
	defer unlock()
	src, err := readSources(source)
	if err != nil {
		return fmt.Errorf("reading the modules' sources: %w", err)
	}
	if err := src.copyTo(work, rootName(k)); err != nil {
		return err
	}
	return use(work, src)
}

// copyTo copies these files to dir, which may contain products of builds. Unchanged files keep their time, so that make does
// not build them again. If dir contains other files, or products of another root, copyTo empties it first.
func (s sources) copyTo(dir, root string) error {
	layout := []byte(root + "\n" + strings.Join(s.names(), "\n"))
	note := filepath.Join(dir, ".layout")
	if have, err := os.ReadFile(note); err != nil || !bytes.Equal(have, layout) {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	for name, data := range s {
		path := filepath.Join(dir, name)
		if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
			return err
		}
	}
	return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(note, layout, 0o644))
}

// make runs make on the sources in work.
func (r *buildRoot) make(ctx context.Context, work string, args ...string) (string, error) {
	argv := []string{"make", "-j", fmt.Sprint(runtime.NumCPU()), "-C", r.headers, "M=/build"}
	return r.chroot(ctx, append(slices.Clone(r.binds), bind{work, "/build"}), append(argv, args...)...)
}

// makeModules builds the modules in work, and fails if any tool prints a warning.
func (r *buildRoot) makeModules(ctx context.Context, work string, flags []string) error {
	out, err := r.make(ctx, work, append(slices.Clone(flags), "modules")...)
	switch {
	case err != nil && out == "":
		return err
	case err != nil:
		return &BuildError{Output: complaints(out), err: err}
	}
	if findings(out) {
		// A second run would not print the findings of files that are already built.
		return errors.Join(&BuildError{Output: complaints(out), err: errors.New("there are warnings")}, os.RemoveAll(work))
	}
	for _, m := range moduleFiles {
		if _, err := os.Stat(filepath.Join(work, m)); err != nil {
			return fmt.Errorf("the build has left no %s", m)
		}
	}
	return nil
}

var (
	// finding matches the errors and warnings of compilers, sparse, objtool, modpost and linkers.
	finding = regexp.MustCompile(`(?i)\b(warning|error): |undefined!`)
	// foreign matches findings of sparse in the kernel's own headers, and an assertion in a function that sparse cannot
	// read; and the missing driver of ISM, which modpost reports as a warning when it is set to continue.
	foreign = regexp.MustCompile(`^(/usr/src/|/tree/|\./|(\.\./)*(include|arch)/)\S*: (warning|error): |` +
		`: error: undefined identifier '_Static_assert'$|` +
		`^WARNING: modpost: "(dibs|ism)_\w+" \[\S*\bsmc\.ko\] undefined!$`)
	// checked matches the line that Kbuild prints for each file that sparse reads.
	checked = regexp.MustCompile(`(?m)^  CHECK `)
	// step matches the line that Kbuild prints for each file.
	step = regexp.MustCompile(`^  [A-Z]|^make(\[\d+\])?: (Entering|Leaving) `)
)

// findings reports whether the output of a build reports an error in our files.
func findings(out string) bool {
	return slices.ContainsFunc(strings.Split(complaints(out), "\n"), finding.MatchString)
}

// complaints returns the output of a build without the steps and without findings in files that are not ours.
func complaints(out string) string {
	var kept []string
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if !step.MatchString(line) && !foreign.MatchString(line) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// putter copies the modules built in work to dir, and then the stamp.
type putter func(ctx context.Context, k *Kernel, r *buildRoot, work, dir, stamp string) error

// publish copies the modules built in work into dir, with debug information for readers of backtraces; and, without it, into
// tree, which overrides the kernel's module directory.
func publish(ctx context.Context, k *Kernel, r *buildRoot, work, dir, stamp string) error {
	updates := "base/lib/modules/" + k.Release + "/updates"
	base := filepath.Join(work, ".publish")
	if err := errors.Join(os.RemoveAll(base), os.MkdirAll(filepath.Join(base, updates), 0o755)); err != nil {
		return err
	}
	for _, m := range builtIn(work) {
		to := filepath.Join("/build/.publish", updates, m)
		out, err := r.chroot(ctx, []bind{{work, "/build"}}, k.arch().triplet+"-strip", "--strip-debug", "-o", to, "/build/"+m)
		if err != nil {
			return fmt.Errorf("%w: %s", err, strings.TrimSpace(out))
		}
	}
	if err := index(ctx, k, filepath.Join(base, "base")); err != nil {
		return err
	}
	if err := copyModules(work, dir); err != nil {
		return err
	}
	tree := filepath.Join(dir, "tree")
	if err := errors.Join(os.RemoveAll(tree), os.CopyFS(tree, os.DirFS(filepath.Dir(filepath.Join(base, updates))))); err != nil {
		return err
	}
	return errors.Join(replace(filepath.Join(dir, stampFile), []byte(stamp)), os.RemoveAll(base))
}

// copyModules puts the modules built in work into dir, which has no stamp from then on.
func copyModules(work, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, stampFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, m := range builtIn(work) {
		data, err := os.ReadFile(filepath.Join(work, m))
		if err != nil {
			return err
		}
		if err := replace(filepath.Join(dir, m), data); err != nil {
			return err
		}
	}
	return nil
}

// index makes the files that modprobe reads for the modules of k and those in the updates directory below base.
func index(ctx context.Context, k *Kernel, base string) error {
	tree := filepath.Join(base, "lib/modules", k.Release)
	for _, name := range []string{"modules.order", "modules.builtin", "modules.builtin.modinfo"} {
		data, err := os.ReadFile(filepath.Join(k.Modules, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := errors.Join(err, os.WriteFile(filepath.Join(tree, name), data, 0o644)); err != nil {
			return err
		}
	}
	kernel := filepath.Join(tree, "kernel")
	if err := os.Symlink(filepath.Join(k.Modules, "kernel"), kernel); err != nil {
		return err
	}
	if err := run(ctx, "depmod", "-b", base, k.Release); err != nil {
		return err
	}
	return os.Remove(kernel)
}

// replace writes a file that others read at any time.
func replace(file string, data []byte) error {
	if err := os.WriteFile(file+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
