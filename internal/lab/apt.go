// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// archive reads packages of one Debian suite with a private apt: its own sources, configuration and state below root, so that
// this machine's package system is neither consulted nor changed. It uses only the network settings of this machine's
// configuration: others could run commands, or accept unsigned packages.
type archive struct {
	root    string
	suite   string
	native  string // the architecture of packages whose names have none
	foreign string // another architecture, or empty
}

// keyrings are the possible locations of Debian's signing keys.
var keyrings = []string{
	"/usr/share/keyrings/debian-archive-keyring.gpg",
	"/usr/share/keyrings/debian-archive-keyring.pgp",
}

func newArchive(root, suite, native, foreign string) (*archive, error) {
	for _, dir := range []string{
		"etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/apt/sources.list.d", "etc/apt/trusted.gpg.d",
		"var/lib/apt/lists/partial", "var/lib/dpkg", "var/cache/apt/archives/partial",
	} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		return nil, err
	}
	a := &archive{root: root, suite: suite, native: native, foreign: foreign}
	// Without apt there are no proxies to read, and the next step will report that apt is missing.
	host, _ := output(context.Background(), "apt-config", "dump", "--format", "%F \"%v\";%n")
	return a, os.WriteFile(a.config(), []byte(privateConfig(root, host)), 0o644)
}

// config is the file that apt reads before all others. It contains their locations.
func (a *archive) config() string { return filepath.Join(a.root, "apt.conf") }

// network returns the network settings of this machine's apt.
var network = regexp.MustCompile(`(?im)^Acquire::[\w:.-]*(Proxy|CaInfo|CaPath)[\w:.-]* ".+";$`)

// privateConfig returns a configuration that contains only the network settings of the host's configuration, which is in the
// format of apt-config dump.
func privateConfig(root, host string) string {
	return strings.Join(append([]string{fmt.Sprintf("Dir %q;", root)}, network.FindAllString(host, -1)...), "\n") + "\n"
}

// mirrors returns the URLs of Debian archives: those in $SMCKIT_MIRROR, or those of this machine's apt.
func mirrors(ctx context.Context) ([]string, error) {
	if m := os.Getenv("SMCKIT_MIRROR"); m != "" {
		return []string{m}, nil
	}
	// Do not read package lists, because a fresh container has none.
	out, err := output(ctx, "apt-get", "update", "--print-uris")
	if err != nil {
		return nil, fmt.Errorf("asking apt for this machine's mirror: %w", err)
	}
	found := parseMirrors(out)
	if len(found) == 0 {
		return nil, errors.New("apt has no Debian archive among its sources: set SMCKIT_MIRROR to the address of one")
	}
	return found, nil
}

// parseMirrors picks, from the lines of `apt-get update --print-uris`, the archives that hold whole suites: not their
// updates, nor security fixes. One of a third party may be among them; it has neither the suites nor the signatures.
func parseMirrors(uris string) []string {
	var found []string
	for line := range strings.Lines(uris) {
		quoted, _, _ := strings.Cut(line, " ")
		base, rest, ok := strings.Cut(strings.Trim(quoted, "'"), "/dists/")
		suite, _, _ := strings.Cut(rest, "/")
		if ok && !strings.Contains(suite, "-") && !slices.Contains(found, base) {
			found = append(found, base)
		}
	}
	return found
}

// apt returns the command line of an apt tool that works on the private root.
func (a *archive) apt(args ...string) []string {
	argv := []string{
		"env", "APT_CONFIG=" + a.config(), args[0], "-q",
		"-o", "Dir=" + a.root,
		"-o", "Dir::State::status=" + filepath.Join(a.root, "var/lib/dpkg/status"),
		"-o", "APT::Architecture=" + a.native, "-o", "APT::Architectures::=" + a.native,
		"-o", "Acquire::Languages=none",
		"-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
		// Files here belong to the user who runs the lab; apt's own user could not write them.
		"-o", "APT::Sandbox::User=",
		"-o", "Acquire::Retries=3",
		// Accept mirrors that lag behind, such as snapshots, and a clock that is wrong. The signature is checked nevertheless.
		"-o", "Acquire::Check-Valid-Until=false", "-o", "Acquire::Check-Date=false",
	}
	if a.foreign != "" {
		argv = append(argv, "-o", "APT::Architectures::="+a.foreign)
	}
	return append(argv, args[1:]...)
}

// sources lists the archives that apt searches for the packages of the suite.
func (a *archive) sources(uri, keyring string) string {
	return fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nArchitectures: %s\nSigned-By: %s\n",
		uri, a.suite, strings.TrimSpace(a.native+" "+a.foreign), keyring)
}

// update fetches the suite's package lists from the first mirror that has them.
func (a *archive) update(ctx context.Context) error {
	i := slices.IndexFunc(keyrings, func(k string) bool { _, err := os.Stat(k); return err == nil })
	if i < 0 {
		return errors.New("the signing keys of Debian are missing: run 'apt-get install debian-archive-keyring'")
	}
	found, err := mirrors(ctx)
	if err != nil {
		return err
	}
	for _, uri := range found {
		file := filepath.Join(a.root, "etc/apt/sources.list.d/lab.sources")
		if err := os.WriteFile(file, []byte(a.sources(uri, keyrings[i])), 0o644); err != nil {
			return err
		}
		if err = run(ctx, a.apt("apt-get", "update", "--error-on=any")...); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("no package lists of Debian %s: %w", a.suite, err)
}

// debian is the entry of a package in the package list.
type debian struct {
	name, version string
	depends       []string // names, of alternatives the first
}

// resolve finds the suite's current kernel.
func (a *archive) resolve(ctx context.Context, arch string, progress func(string)) (*kernelPackages, error) {
	known, err := findArch(arch)
	if err != nil {
		return nil, err
	}
	progress("reading the package lists of Debian " + a.suite + " for " + a.native)
	if err := a.update(ctx); err != nil {
		return nil, err
	}
	k, err := findKernel(arch, func(name string) (*debian, error) { return a.show(ctx, name) })
	if err == nil {
		k.compressed = known.compressed
	}
	return k, err
}

// show looks a package up in the package lists.
func (a *archive) show(ctx context.Context, name string) (*debian, error) {
	out, err := output(ctx, a.apt("apt-cache", "show", "--no-all-versions", name)...)
	if err != nil {
		return nil, fmt.Errorf("package %s of Debian %s: %w", name, a.suite, err)
	}
	return parsePackage(out), nil
}

// parsePackage reads a paragraph of a package list.
func parsePackage(paragraph string) *debian {
	d := new(debian)
	for line := range strings.Lines(paragraph) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Package":
			d.name = value
		case "Version":
			d.version = value
		case "Depends", "Pre-Depends":
			for dep := range strings.SplitSeq(value, ",") {
				if f := strings.Fields(dep); len(f) > 0 {
					d.depends = append(d.depends, f[0])
				}
			}
		}
	}
	return d
}

// kernelPackages are the packages that make up a kernel.
type kernelPackages struct {
	release  string // uname -r
	version  string // of the packages
	packages []string
	// compressed means that the guest boots the image as it is, not by its ELF entry.
	compressed bool
}

// findKernel follows the dependencies of an architecture's metapackage for the newest kernel. Some suites put a kernel into one
// package, others into several that an empty one depends on; the names of all carry the release.
func findKernel(arch string, show func(name string) (*debian, error)) (*kernelPackages, error) {
	const image = "linux-image-"
	meta, err := show(image + arch)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(meta.depends, func(d string) bool { return strings.HasPrefix(d, image) })
	if i < 0 {
		return nil, fmt.Errorf("package %s%s names no kernel", image, arch)
	}
	k := &kernelPackages{release: strings.TrimPrefix(meta.depends[i], image), packages: []string{meta.depends[i]}}
	for i := 0; i < len(k.packages); i++ {
		d, err := show(k.packages[i])
		if err != nil {
			return nil, err
		}
		if k.version == "" {
			k.version = d.version
		}
		for _, dep := range d.depends {
			if strings.HasPrefix(dep, "linux-") && strings.HasSuffix(dep, "-"+k.release) && !slices.Contains(k.packages, dep) {
				k.packages = append(k.packages, dep)
			}
		}
	}
	return k, nil
}

// fetch downloads a package and checks it against the digest that the signed package list gives.
func (a *archive) fetch(ctx context.Context, pkg, dir string, progress func(string)) (string, error) {
	out, err := output(ctx, a.apt("apt-get", "download", "--print-uris", pkg)...)
	if err != nil {
		return "", err
	}
	item, err := parseURI(out)
	if err != nil {
		return "", fmt.Errorf("package %s: %w", pkg, err)
	}
	item.file = filepath.Join(dir, item.file)
	switch st, err := os.Stat(item.file); {
	case err == nil && st.Size() < item.size:
		progress(fmt.Sprintf("downloading %s: going on at %.0f of %.0f MB", pkg, float64(st.Size())/1e6, float64(item.size)/1e6))
	case err != nil:
		progress(fmt.Sprintf("downloading %s (%.0f MB)", pkg, float64(item.size)/1e6))
	}
	return item.file, item.download(ctx)
}

// parseURI reads a line of `apt-get --print-uris`: 'URI' FILE SIZE SHA256:DIGEST.
func parseURI(out string) (*download, error) {
	f := strings.Fields(out)
	if len(f) < 4 {
		return nil, fmt.Errorf("apt gave no address: %q", out)
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("apt gave no size: %q", out)
	}
	digest, ok := strings.CutPrefix(f[3], "SHA256:")
	if !ok || len(digest) != 64 {
		return nil, fmt.Errorf("apt gave no SHA-256 digest: %q", f[3])
	}
	return &download{uri: strings.Trim(f[0], "'"), file: filepath.Base(f[1]), size: size, sha256: digest}, nil
}

// run runs a program. If the program fails, its output is part of the error.
func run(ctx context.Context, argv ...string) error {
	_, err := output(ctx, argv...)
	return err
}

// output runs a program and returns its standard output.
func output(ctx context.Context, argv ...string) (string, error) {
	var stdout, stderr strings.Builder
	err := execute(ctx, &stdout, &stderr, argv...)
	if err == nil {
		return stdout.String(), nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	said := strings.TrimSpace(stderr.String())
	if errors.Is(err, exec.ErrNotFound) {
		said = "install the package that has it"
	}
	return "", fmt.Errorf("%s: %w: %s", argv[0], err, said)
}

// execute runs a program in the C locale, and finds it in /usr/sbin if the user's PATH lacks that. The program ends with
// this process, however this process ends: apt would otherwise go on and hold its locks against the next attempt.
func execute(ctx context.Context, stdout, stderr io.Writer, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	if path, err := exec.LookPath(argv[0]); err == nil {
		cmd.Path, cmd.Err = path, nil
	} else if _, serr := os.Stat("/usr/sbin/" + argv[0]); serr == nil {
		cmd.Path, cmd.Err = "/usr/sbin/"+argv[0], nil
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	// The kernel sends the death signal when the thread ends, so keep the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}
