// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// archive reads packages of one Debian suite with a private apt: its own sources and its own state below root, so that
// this machine's package system is neither consulted nor changed.
type archive struct {
	root  string
	suite string
}

// keyrings are where Debian's signing keys may be.
var keyrings = []string{
	"/usr/share/keyrings/debian-archive-keyring.gpg",
	"/usr/share/keyrings/debian-archive-keyring.pgp",
}

func newArchive(root, suite string) (*archive, error) {
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
	return &archive{root: root, suite: suite}, nil
}

// mirror returns the address of the Debian archive that this machine installs from.
func mirror(ctx context.Context) (string, error) {
	out, err := output(ctx, "apt-get", "indextargets", "--format", "$(CREATED_BY)|$(REPO_URI)|$(COMPONENT)|$(RELEASE)")
	if err != nil {
		return "", fmt.Errorf("asking apt for this machine's mirror: %w", err)
	}
	return chooseMirror(out)
}

// chooseMirror picks, from the lines of `apt-get indextargets`, the archive that has all suites: not the security
// archive, nor one of a third party.
func chooseMirror(targets string) (string, error) {
	for line := range strings.Lines(targets) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 4 || f[0] != "Packages" || f[2] != "main" {
			continue
		}
		u, err := url.Parse(f[1])
		if err != nil {
			continue
		}
		if strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/debian") {
			return strings.TrimSuffix(f[1], "/"), nil
		}
	}
	return "", errors.New("apt has no source whose address ends in /debian: add one to /etc/apt/sources.list.d and run 'apt-get update'")
}

// apt returns the command line of an apt tool that works on the private root.
func (a *archive) apt(args ...string) []string {
	return append([]string{
		args[0], "-q",
		"-o", "Dir=" + a.root,
		"-o", "Dir::State::status=" + filepath.Join(a.root, "var/lib/dpkg/status"),
		"-o", "Acquire::Languages=none",
		// Files here belong to whoever runs the lab; apt's own user could not write them.
		"-o", "APT::Sandbox::User=",
		"-o", "Acquire::Retries=3",
	}, args[1:]...)
}

func (a *archive) update(ctx context.Context) error {
	uri, err := mirror(ctx)
	if err != nil {
		return err
	}
	keyring := ""
	for _, k := range keyrings {
		if _, err := os.Stat(k); err == nil {
			keyring = k
			break
		}
	}
	if keyring == "" {
		return errors.New("Debian's signing keys are missing: install the package debian-archive-keyring")
	}
	sources := fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nArchitectures: amd64\nSigned-By: %s\n", uri, a.suite, keyring)
	if err := os.WriteFile(filepath.Join(a.root, "etc/apt/sources.list.d/lab.sources"), []byte(sources), 0o644); err != nil {
		return err
	}
	return run(ctx, a.apt("apt-get", "update")...)
}

// resolve follows the dependencies of the suite's kernel package. Some suites put a kernel into one package, others
// into several whose names all carry the release.
func (a *archive) resolve(ctx context.Context, progress func(string)) (string, []string, error) {
	progress("reading the package list of Debian " + a.suite)
	if err := a.update(ctx); err != nil {
		return "", nil, err
	}
	out, err := output(ctx, a.apt("apt-cache", "depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts",
		"--no-breaks", "--no-replaces", "--no-enhances", "linux-image-amd64")...)
	if err != nil {
		return "", nil, err
	}
	return kernelPackages(out)
}

// kernelPackages reads the release and the packages of a kernel out of `apt-cache depends --recurse`.
func kernelPackages(depends string) (release string, packages []string, err error) {
	const image = "linux-image-"
	var names []string
	for line := range strings.Lines(depends) {
		if name := strings.TrimRight(line, "\n"); strings.HasPrefix(name, "linux-") {
			names = append(names, name)
			if v, ok := strings.CutPrefix(name, image); ok && v != "" && v[0] >= '0' && v[0] <= '9' {
				release = v
			}
		}
	}
	if release == "" {
		return "", nil, errors.New("the suite has no package linux-image-amd64")
	}
	for _, name := range names {
		if strings.HasSuffix(name, "-"+release) {
			packages = append(packages, name)
		}
	}
	return release, packages, nil
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
	progress(fmt.Sprintf("downloading %s (%.0f MB)", pkg, float64(item.size)/1e6))
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

// run runs a program and makes what it printed part of the error if it fails.
func run(ctx context.Context, argv ...string) error {
	_, err := output(ctx, argv...)
	return err
}

// output runs a program and returns its standard output.
func output(ctx context.Context, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	if path, err := exec.LookPath(argv[0]); err == nil {
		cmd.Path, cmd.Err = path, nil
	} else if _, serr := os.Stat("/usr/sbin/" + argv[0]); serr == nil {
		cmd.Path, cmd.Err = "/usr/sbin/"+argv[0], nil
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("%s: %w: %s", argv[0], err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
