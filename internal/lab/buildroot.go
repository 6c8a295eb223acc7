// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// buildRoot is a directory tree with the headers of one of the lab's kernels and the compiler that kernel was built
// with. Packages are unpacked there, not installed: none of their scripts runs, and no privilege is needed.
type buildRoot struct {
	dir     string
	headers string // the directory to build modules against, inside
	binds   []bind // other packages that the kernel needs there
}

// modulePackages are needed to build modules, besides headers and a compiler.
var modulePackages = []string{
	// Every system has these packages, and scripts rely on them.
	"base-files", "bash", "coreutils", "dash", "diffutils", "findutils", "grep", "gzip", "mawk", "sed", "tar", "xz-utils",
	"kmod", "make", "perl",
}

// buildPackages are needed for a build besides the headers, which depend on the compiler.
var buildPackages = append(slices.Clone(modulePackages),
	// Checking modules.
	"sparse",
	// Building a kernel.
	"bc", "bison", "flex", "gcc", "libc6-dev", "libelf-dev", "libssl-dev",
)

// packageSource provides the packages of a build root. Except in tests, it is apt.
type packageSource interface {
	// closure names the packages that are needed to install wanted, as name=version, where installed are there already.
	closure(ctx context.Context, installed []debian, wanted ...string) ([]string, error)
	// fetchAll downloads packages into dir, continuing an earlier attempt, and returns their paths.
	fetchAll(ctx context.Context, packages []string, dir string, progress func(string)) ([]string, error)
}

// errNoHeaders means that an archive no longer has the headers of a kernel in the cache.
var errNoHeaders = errors.New("the archive has no headers for this kernel any more")

// provisionRoot returns the kernel of a series together with a build root for it, both from the cache if they are there.
// If the archive has moved to a newer kernel, and has only the headers of that, that kernel replaces the one cached.
func provisionRoot(ctx context.Context, series string, progress func(string)) (*Kernel, *buildRoot, error) {
	known, ok := findSeries(series)
	if !ok {
		return nil, nil, fmt.Errorf("no build root for kernel series %q", series)
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, nil, err
	}
	open := func() (packageSource, error) {
		a, err := newArchive(filepath.Join(cache, "apt", "build-"+known.suite), known.suite, NativeArch, "")
		if err != nil {
			return nil, err
		}
		progress("reading the package lists of Debian " + known.suite)
		return a, a.update(ctx)
	}
	for _, update := range []bool{false, true} {
		k, err := Provision(ctx, series, update, progress)
		if err != nil {
			return nil, nil, err
		}
		r, err := obtainRoot(ctx, k, filepath.Join(cache, "buildroot", series), open, progress)
		if err == nil {
			return k, r, nil
		}
		if update || !errors.Is(err, errNoHeaders) {
			return nil, nil, fmt.Errorf("build root for kernel %s: %w", k.Release, err)
		}
	}
	panic("not reached")
}

// rootName names the build root for k. The name changes if k or the list of packages changes.
func rootName(k *Kernel) string {
	packages := buildPackages
	if a := k.arch(); !a.native() {
		packages = crossPackages(a)
	}
	return fmt.Sprintf("%s_%s_%s", k.Release, strings.ReplaceAll(k.Package, "/", "_"), recipe(packages))
}

// recipe returns the end of the name of a build root made from these packages.
func recipe(packages []string) string {
	return fmt.Sprintf("%.4x", sha256.Sum256([]byte(strings.Join(packages, " "))))
}

// openRoot returns the build root for k below dir, which need not exist yet.
func openRoot(k *Kernel, dir string) *buildRoot {
	return &buildRoot{dir: filepath.Join(dir, rootName(k)), headers: "/usr/src/linux-headers-" + k.Release}
}

// obtainRoot opens the build root for k below dir, and makes it first if there is none. It waits while another process makes
// it. A directory with a root's name is complete.
func obtainRoot(
	ctx context.Context, k *Kernel, dir string, open func() (packageSource, error), progress func(string),
) (*buildRoot, error) {
	return obtainRootBy(ctx, k, dir, progress, func(final string) error {
		src, err := open()
		if err != nil {
			return err
		}
		return makeRoot(ctx, src, k, final, progress)
	})
}

// obtainRootBy opens the build root for k below dir. If there is none, it calls bring to make it in the directory final.
func obtainRootBy(
	ctx context.Context, k *Kernel, dir string, progress func(string), bring func(final string) error,
) (*buildRoot, error) {
	r := openRoot(k, dir)
	have := func() (*buildRoot, error) {
		_, err := os.Stat(r.dir)
		return r, err
	}
	return obtainBy(ctx, dir, have, false, progress, func() error {
		if err := bring(r.dir); err != nil {
			return err
		}
		return pruneRoots(dir, filepath.Base(r.dir))
	})
}

// makeRoot makes the build root for k in the directory final.
func makeRoot(ctx context.Context, src packageSource, k *Kernel, final string, progress func(string)) error {
	// The headers depend on their kernel package, which is not needed because the build root is not booted.
	image := debian{name: "linux-image-" + k.Release, version: k.Package}
	wanted := append(slices.Clone(buildPackages), "linux-headers-"+k.Release+"="+k.Package)
	packages, err := src.closure(ctx, []debian{image}, wanted...)
	if err != nil {
		return err
	}
	return fillBuildRoot(ctx, src, k, packages, final, progress)
}

// fillBuildRoot makes the build root for k from packages.
func fillBuildRoot(
	ctx context.Context, src packageSource, k *Kernel, packages []string, final string, progress func(string),
) error {
	hasHeaders := func(root string) error {
		if _, err := os.Stat(filepath.Join(root, "usr/src/linux-headers-"+k.Release, "Makefile")); err != nil {
			return fmt.Errorf("the packages hold no kernel headers: %w", err)
		}
		return nil
	}
	return fillRoot(ctx, src, packages, final, " for the build root of kernel "+k.Release, hasHeaders, progress)
}

// fillRoot makes the directory final from packages; purpose is for progress. It calls finish with the directory in which they are unpacked:
// that has another name, so that an interrupted run leaves nothing that looks like a root.
func fillRoot(
	ctx context.Context, src packageSource, packages []string, final, purpose string, finish func(root string) error, progress func(string),
) error {
	downloads := filepath.Join(filepath.Dir(final), "download")
	if err := os.MkdirAll(downloads, 0o755); err != nil {
		return err
	}
	debs, err := src.fetchAll(ctx, packages, downloads, progress)
	if err != nil {
		return err
	}
	unpacked := filepath.Join(filepath.Dir(final), "unpack")
	if err := os.RemoveAll(unpacked); err != nil {
		return err
	}
	progress(fmt.Sprintf("unpacking %d packages%s", len(debs), purpose))
	if err := unpackRoot(ctx, debs, unpacked); err != nil {
		return err
	}
	if err := finish(unpacked); err != nil {
		return err
	}
	unix.Sync()
	return errors.Join(os.Rename(unpacked, final), os.RemoveAll(downloads))
}

// unpackOver unpacks a package and leaves links to directories alone, which dpkg-deb -x would replace. A tar that gets only
// a part fails, so that it is last in the pipe hides nothing.
const unpackOver = `dpkg-deb --fsys-tarfile "$1" | tar -xpf - --keep-directory-symlink --warning=no-timestamp -C "$2"`

// unpackRoot unpacks packages into root and makes the few links that their scripts would.
func unpackRoot(ctx context.Context, debs []string, root string) error {
	for _, dir := range []string{"proc", "dev", "tmp", "usr"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	// /bin and its like are links into /usr. Packages that still have files there must find the links.
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.Mkdir(filepath.Join(root, "usr", dir), 0o755); err != nil {
			return err
		}
		if err := os.Symlink("usr/"+dir, filepath.Join(root, dir)); err != nil {
			return err
		}
	}
	for _, deb := range debs {
		if err := run(ctx, "sh", "-c", unpackOver, "sh", deb, root); err != nil {
			return err
		}
	}
	for link, target := range map[string]string{"usr/bin/awk": "mawk", "usr/bin/sh": "dash"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// pruneRoots removes the roots below dir other than the one named.
func pruneRoots(dir, current string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != current {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// closure asks apt which packages it would install for the wanted ones.
func (a *archive) closure(ctx context.Context, installed []debian, wanted ...string) ([]string, error) {
	var status strings.Builder
	for _, d := range installed {
		fmt.Fprintf(&status, "Package: %s\nStatus: install ok installed\nVersion: %s\nArchitecture: amd64\n"+
			"Maintainer: none\nDescription: none\n\n", d.name, d.version)
	}
	if err := os.WriteFile(filepath.Join(a.root, "var/lib/dpkg/status"), []byte(status.String()), 0o644); err != nil {
		return nil, err
	}
	// Disable apt's cache: it may belong to an earlier status file.
	args := []string{"apt-get", "-s", "--no-install-recommends", "-o", "Dir::Cache::pkgcache=", "install"}
	out, err := output(ctx, a.apt(append(args, wanted...)...)...)
	if err != nil {
		if strings.Contains(err.Error(), "linux-headers-") {
			return nil, fmt.Errorf("%w: %w", errNoHeaders, err)
		}
		return nil, err
	}
	return parseClosure(out), nil
}

// parseClosure picks the packages from the output of `apt-get -s install`: Inst NAME (VERSION ARCHIVE [ARCH]).
func parseClosure(out string) []string {
	var packages []string
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) > 2 && f[0] == "Inst" && strings.HasPrefix(f[2], "(") {
			packages = append(packages, f[1]+"="+f[2][1:])
		}
	}
	return packages
}

// fetchAll downloads packages, several at a time, and checks them against the digests of the signed package list.
func (a *archive) fetchAll(ctx context.Context, packages []string, dir string, progress func(string)) ([]string, error) {
	out, err := output(ctx, a.apt(append([]string{"apt-get", "download", "--print-uris"}, packages...)...)...)
	if err != nil {
		return nil, err
	}
	var files []string
	var items []*download
	size := int64(0)
	for line := range strings.Lines(out) {
		item, err := parseURI(line)
		if err != nil {
			return nil, err
		}
		item.file = filepath.Join(dir, item.file)
		if st, err := os.Stat(item.file); err != nil || st.Size() < item.size {
			size += item.size
		}
		files, items = append(files, item.file), append(items, item)
	}
	if len(items) != len(packages) {
		return nil, fmt.Errorf("apt gave the addresses of %d packages, not of %d", len(items), len(packages))
	}
	progress(fmt.Sprintf("downloading %d packages (%.0f MB)", len(items), float64(size)/1e6))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(4, runtime.NumCPU()))
	for _, item := range items {
		group.Go(func() error { return item.download(ctx) })
	}
	return files, group.Wait()
}
