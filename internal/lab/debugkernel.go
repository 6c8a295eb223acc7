// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// debugConfig lists the options that differ from x86_64_defconfig.
//
//go:embed debug.config
var debugConfig string

// Debug reports whether the kernel has checkers. Such a kernel needs more memory and more time.
func (k *Kernel) Debug() bool { return k.Series == DebugSeries }

// adapter is the model of a guest's network adapters. Soft-RoCE frees packets for a queue pair that has failed with interrupts off.
// Where the packets come from a page pool, as those of virtio_net do in Linux 7, the kernel reports that, and may hang: then a debug
// kernel could not show how links fail.
func (k *Kernel) adapter() string {
	if k.Debug() {
		return "e1000"
	}
	return "virtio-net-" + k.arch().bus
}

// debugKey distinguishes debug kernels that were built in different ways.
func debugKey() string { return fmt.Sprintf("%.4x", sha256.Sum256([]byte(debugConfig))) }

// debugTree is the directory below dir that keeps the build of a debug kernel: modules are built against it.
func debugTree(dir, version string) string { return filepath.Join(dir, "tree_"+version) }

// openDebug returns the debug kernel below dir if it is of this configuration.
func openDebug(dir string) (*Kernel, error) {
	k, err := openKernel(DebugSeries, dir)
	if err == nil && !strings.HasSuffix(k.Package, "+"+debugKey()) {
		return nil, fmt.Errorf("%s is configured otherwise", k.Release)
	}
	return k, err
}

// obtainDebug opens the debug kernel below dir. It builds it first if there is none or if update is set.
func obtainDebug(ctx context.Context, dir string, update bool, progress func(string)) (*Kernel, error) {
	have := func() (*Kernel, error) { return openDebug(dir) }
	return obtainBy(ctx, dir, have, update, progress, func() error { return provisionDebug(ctx, dir, progress) })
}

// provisionBuild returns the kernel of a series and the build root for its modules.
func provisionBuild(ctx context.Context, series string, progress func(string)) (*Kernel, *buildRoot, error) {
	if series != DebugSeries {
		return provisionRoot(ctx, series, progress)
	}
	k, err := Provision(ctx, series, false, progress)
	if err != nil {
		return nil, nil, err
	}
	_, base, err := provisionRoot(ctx, Newest(), progress)
	if err != nil {
		return nil, nil, err
	}
	dir := filepath.Dir(filepath.Dir(k.Image))
	return k, base.withTree(debugTree(dir, k.Package)), nil
}

// withTree is a root in which modules are built against the given kernel tree.
func (r *buildRoot) withTree(tree string) *buildRoot {
	return &buildRoot{dir: r.dir, headers: "/tree", binds: []bind{{tree, "/tree"}}}
}

// provisionDebug builds the debug kernel from the source package that belongs to the distribution's kernel, and makes it the
// current one below dir. It does not repeat the parts that an interrupted run has built.
func provisionDebug(ctx context.Context, dir string, progress func(string)) error {
	base, root, err := provisionRoot(ctx, Newest(), progress)
	if err != nil {
		return err
	}
	cache, err := CacheDir()
	if err != nil {
		return err
	}
	newest, _ := findSeries(Newest())
	src, err := newArchive(filepath.Join(cache, "apt", "build-"+newest.suite), newest.suite, NativeArch, "")
	if err != nil {
		return err
	}
	progress("reading the package lists of Debian " + newest.suite)
	if err := src.update(ctx); err != nil {
		return err
	}
	pkg := "linux-source-" + regexp.MustCompile(`^\d+\.\d+`).FindString(base.Release)
	out, err := output(ctx, src.apt("apt-cache", "show", "--no-all-versions", pkg)...)
	if err != nil {
		return err
	}
	version := parsePackage(out).version + "+" + debugKey()
	name := DebugSeries + "_" + version
	if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
		progress("the debug kernel is of the newest source")
		return pointTo(dir, name)
	}
	tree := debugTree(dir, version)
	if err := unpackSource(ctx, src, pkg, tree, progress); err != nil {
		return err
	}
	release, err := root.withTree(tree).buildKernel(ctx, progress)
	if err != nil {
		return err
	}
	// Do not boot the ELF entry: it runs before KASAN has set up its shadow memory, and contains calls that KASAN checks.
	kp := &kernelPackages{release: release, version: version, compressed: true}
	if err := installDebug(ctx, root.withTree(tree), kp, filepath.Join(dir, name)); err != nil {
		return err
	}
	return errors.Join(pointTo(dir, name), prune(dir, name), pruneTrees(dir, filepath.Base(tree)))
}

// builtFile marks a tree whose kernel is built and whose files that only the build needed are deleted.
const builtFile = ".built"

// unpackSource makes tree from a source package, unless it is there and the build in it can go on.
func unpackSource(ctx context.Context, src source, pkg, tree string, progress func(string)) error {
	_, missing := os.Stat(tree)
	_, unbuilt := os.Stat(filepath.Join(tree, builtFile))
	if missing == nil && unbuilt != nil {
		return nil
	}
	unpacked, downloads := tree+".new", filepath.Join(filepath.Dir(tree), "download")
	for _, dir := range []string{tree, unpacked} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	for _, dir := range []string{downloads, unpacked} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	deb, err := src.fetch(ctx, pkg, downloads, progress)
	if err != nil {
		return err
	}
	progress("unpacking " + pkg)
	unpackedPackage := filepath.Join(downloads, "package")
	if err := run(ctx, "dpkg-deb", "-x", deb, unpackedPackage); err != nil {
		return err
	}
	archive := filepath.Join(unpackedPackage, "usr/src", pkg+".tar.xz")
	if err := run(ctx, "tar", "-xf", archive, "--strip-components=1", "-C", unpacked); err != nil {
		return err
	}
	return errors.Join(os.Rename(unpacked, tree), os.RemoveAll(downloads))
}

// configure is the script that configures the tree; it leaves the files of a build alone that are up to date.
const configure = `cd /tree
make -s x86_64_defconfig
scripts/kconfig/merge_config.sh -m .config debug.config
make -s olddefconfig`

// buildKernel builds the kernel and its modules in the tree, and returns its release.
func (r *buildRoot) buildKernel(ctx context.Context, progress func(string)) (string, error) {
	tree := r.binds[0].dir
	if err := os.WriteFile(filepath.Join(tree, "debug.config"), []byte(debugConfig), 0o644); err != nil {
		return "", err
	}
	if out, err := r.chroot(ctx, r.binds, "sh", "-ec", configure); err != nil {
		return "", fmt.Errorf("configuring: %w\n%s", err, complaints(out))
	}
	config, err := os.ReadFile(filepath.Join(tree, ".config"))
	if err != nil {
		return "", err
	}
	if lost := lostOptions(debugConfig, string(config)); lost != nil {
		return "", fmt.Errorf("this source cannot be configured with %s", strings.Join(lost, ", "))
	}
	progress("building the debug kernel: half an hour on two cores")
	jobs := fmt.Sprintf("-j%d", runtime.NumCPU())
	out, err := r.chroot(ctx, r.binds, "make", "-C", "/tree", jobs, "KBUILD_BUILD_USER=smckit", "KBUILD_BUILD_HOST=lab", "bzImage", "modules")
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, complaints(out))
	}
	release, err := os.ReadFile(filepath.Join(tree, "include/config/kernel.release"))
	return strings.TrimSpace(string(release)), err
}

// lostOptions lists the lines of a fragment that did not make it into a configuration: their dependencies were not met.
func lostOptions(fragment, config string) []string {
	set := map[string]string{}
	for line := range strings.Lines(config) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			set[name] = value
		}
	}
	var lost []string
	for line := range strings.Lines(fragment) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, "=")
		if unset, is := strings.CutSuffix(strings.TrimPrefix(line, "# "), " is not set"); is {
			name, value, ok = unset, "", true
		} else if strings.HasPrefix(line, "#") {
			continue
		}
		if ok && set[name] != value {
			lost = append(lost, line)
		}
	}
	return lost
}

// installDebug makes the directory final from the kernel built in the tree. It keeps only the files that building modules
// needs: headers, scripts, tools and the versions of symbols.
func installDebug(ctx context.Context, r *buildRoot, kp *kernelPackages, final string) error {
	unpacked := filepath.Join(filepath.Dir(final), "unpack")
	if err := errors.Join(os.RemoveAll(unpacked), os.MkdirAll(filepath.Join(unpacked, "boot"), 0o755)); err != nil {
		return err
	}
	const install = `cd /tree
make -s INSTALL_MOD_PATH=/build/usr DEPMOD=true modules_install
rm -f "/build/usr/lib/modules/$0/build" "/build/usr/lib/modules/$0/source"
cp arch/x86/boot/bzImage "/build/boot/vmlinuz-$0"
cp .config "/build/boot/config-$0"
cp System.map "/build/boot/System.map-$0"`
	binds := append([]bind{{unpacked, "/build"}}, r.binds...)
	if out, err := r.chroot(ctx, binds, "sh", "-ec", install, kp.release); err != nil {
		return fmt.Errorf("%w\n%s", err, complaints(out))
	}
	if err := arrange(ctx, unpacked, kp); err != nil {
		return err
	}
	const strip = `cd /tree
touch "$0"
rm -rf vmlinux* .tmp_vmlinux* arch/x86/boot Documentation drivers samples sound
find . \( -path ./scripts -o -path ./tools \) -prune -o \
	-type f \( -name '*.o' -o -name '*.a' -o -name '*.c' -o -name '.*.cmd' \) -exec rm -f {} +`
	if out, err := r.chroot(ctx, r.binds, "sh", "-ec", strip, builtFile); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return os.Rename(unpacked, final)
}

// pruneTrees removes the trees below dir other than the one named.
func pruneTrees(dir, current string) error {
	trees, err := filepath.Glob(filepath.Join(dir, "tree_*"))
	for _, tree := range trees {
		if filepath.Base(tree) != current {
			err = errors.Join(err, os.RemoveAll(tree))
		}
	}
	return err
}
