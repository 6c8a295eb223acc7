// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/need"
)

func TestParseMirrors(t *testing.T) {
	for _, tc := range []struct {
		name, uris string
		want       []string
	}{
		{"Debian", `'http://mirror.example/debian/dists/bookworm/InRelease' mirror.example_debian_dists_bookworm_InRelease 0 
'http://mirror.example/debian/dists/bookworm-updates/InRelease' mirror.example_debian_dists_bookworm-updates_InRelease 0 
'http://mirror.example/debian-security/dists/bookworm-security/InRelease' mirror.example_security_InRelease 0 
`, []string{"http://mirror.example/debian"}},
		{"any path, each once", `'https://x.example/cache/deb/dists/sid/InRelease' f 0 
'https://x.example/cache/deb/dists/trixie/InRelease' f 0 
'file:/srv/mirror/dists/stable/InRelease' f 0 
`, []string{"https://x.example/cache/deb", "file:/srv/mirror"}},
		{"third party comes along", `'https://vendor.example/node/dists/nodistro/InRelease' f 0 
'http://mirror.example/debian/dists/stable/InRelease' f 0 
`, []string{"https://vendor.example/node", "http://mirror.example/debian"}},
		{"flat archive", "'http://x.example/flat/./InRelease' f 0 \n", nil},
		{"nothing", "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, parseMirrors(tc.uris)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestForeign checks that apt is configured for another architecture only where one is wanted.
func TestForeign(t *testing.T) {
	for foreign, list := range map[string]string{"": "amd64", "s390x": "amd64 s390x"} {
		a := &archive{root: "/r", suite: "trixie", native: NativeArch, foreign: foreign}
		want := "Types: deb\nURIs: http://mirror.example/debian\nSuites: trixie\nComponents: main\nArchitectures: " + list + "\nSigned-By: /key\n"
		if diff := cmp.Diff(want, a.sources("http://mirror.example/debian", "/key")); diff != "" {
			t.Error(diff)
		}
		argv := strings.Join(a.apt("apt-get", "update"), " ")
		if strings.Contains(argv, "APT::Architectures::=s390x") != (foreign != "") || !strings.HasSuffix(argv, " update") {
			t.Errorf("%q: %s", foreign, argv)
		}
	}
}

// TestPrivateConfiguration runs apt with the configuration of a private root, which takes only proxies from this machine.
func TestPrivateConfiguration(t *testing.T) {
	const host = `APT::Get::AllowUnauthenticated "true";
APT::Update::Pre-Invoke:: "touch /tmp/owned";
Acquire::AllowInsecureRepositories "true";
Acquire::http::Proxy "http://proxy.example:3128";
Acquire::https::proxy::deb.example "DIRECT";
Acquire::http::Proxy-Auto-Detect "/usr/bin/find-proxy";
Acquire::ftp::Proxy "";
Acquire::https::CaInfo "/etc/ssl/ours.pem";
Dir::Etc::Proxy "x";
`
	const want = `Dir "/r";
Acquire::http::Proxy "http://proxy.example:3128";
Acquire::https::proxy::deb.example "DIRECT";
Acquire::http::Proxy-Auto-Detect "/usr/bin/find-proxy";
Acquire::https::CaInfo "/etc/ssl/ours.pem";
`
	if diff := cmp.Diff(want, privateConfig("/r", host)); diff != "" {
		t.Error(diff)
	}
	need.Programs(t, "apt-config")
	if files, _ := filepath.Glob("/etc/apt/apt.conf.d/*"); len(files) == 0 {
		t.Skip("this machine has no configuration of apt that could be seen")
	}
	a, err := newArchive(t.TempDir(), "trixie", NativeArch, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := output(t.Context(), a.apt("apt-config", "dump")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range regexp.MustCompile(`(?m)^.*(Invoke|Pre-Install|NeverAutoRemove).*$`).FindAllString(got, -1) {
		t.Errorf("of this machine: %s", line)
	}
}

// TestDebootstrapChecksSignatures checks that debootstrap verifies signatures, because tests run its systems as root.
func TestDebootstrapChecksSignatures(t *testing.T) {
	if argv := debootstrap([]string{"python3", "kmod"}); !slices.Contains(argv, "--force-check-gpg") || !slices.Contains(argv, "--include=python3,kmod") {
		t.Errorf("%q", argv)
	}
}

// suite is a short package list with one paragraph per package.
func suite(paragraphs ...string) func(string) (*debian, error) {
	return func(name string) (*debian, error) {
		for _, p := range paragraphs {
			if strings.HasPrefix(p, "Package: "+name+"\n") {
				return parsePackage(p), nil
			}
		}
		return nil, fmt.Errorf("no package %s", name)
	}
}

func TestFindKernel(t *testing.T) {
	for _, tc := range []struct {
		name       string
		paragraphs []string
		want       *kernelPackages
	}{
		{
			"one package",
			[]string{
				"Package: linux-image-amd64\nSource: linux\nVersion: 6.1.176-1\nDepends: linux-image-6.1.0-50-amd64 (= 6.1.176-1)\n",
				"Package: linux-image-6.1.0-50-amd64\nVersion: 6.1.176-1\nDepends: kmod, linux-base (>= 4.3~), initramfs-tools (>= 0.120+deb8u2) | linux-initramfs-tool\n",
			},
			&kernelPackages{release: "6.1.0-50-amd64", version: "6.1.176-1", packages: []string{"linux-image-6.1.0-50-amd64"}},
		},
		{
			"split into several",
			[]string{
				"Package: linux-image-amd64\nVersion: 7.2.13-1\nDepends: linux-base-amd64 (= 7.2.13-1), linux-image-7.2.13+deb14-amd64 (= 7.2.13-1)\n",
				"Package: linux-image-7.2.13+deb14-amd64\nVersion: 7.2.13-1\nDepends: dracut | linux-initramfs-tool, linux-base-7.2.13+deb14-amd64 (= 7.2.13-1), linux-binary-7.2.13+deb14-amd64 (= 7.2.13-1), linux-modules-7.2.13+deb14-amd64 (= 7.2.13-1)\n",
				"Package: linux-binary-7.2.13+deb14-amd64\nVersion: 7.2.13-1\nDepends: linux-base-7.2.13+deb14-amd64 (= 7.2.13-1)\n",
				"Package: linux-modules-7.2.13+deb14-amd64\nVersion: 7.2.13-1\nPre-Depends: kmod\nDepends: linux-base-7.2.13+deb14-amd64 (= 7.2.13-1)\n",
				"Package: linux-base-7.2.13+deb14-amd64\nVersion: 7.2.13-1\n",
			},
			&kernelPackages{release: "7.2.13+deb14-amd64", version: "7.2.13-1", packages: []string{
				"linux-image-7.2.13+deb14-amd64", "linux-base-7.2.13+deb14-amd64", "linux-binary-7.2.13+deb14-amd64", "linux-modules-7.2.13+deb14-amd64",
			}},
		},
		{"no kernel named", []string{"Package: linux-image-amd64\nVersion: 1\nDepends: libc6\n"}, nil},
		{"no metapackage", nil, nil},
		{"kernel not there", []string{"Package: linux-image-amd64\nVersion: 1\nDepends: linux-image-1-amd64\n"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := findKernel(NativeArch, suite(tc.paragraphs...))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(kernelPackages{})); diff != "" {
				t.Error(diff)
			}
			if (err == nil) != (tc.want != nil) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestParseURI(t *testing.T) {
	digest := strings.Repeat("0123456789abcdef", 4)
	got, err := parseURI("'http://mirror.example/pool/l/linux%2bdeb14.deb' linux+deb14.deb 107898972 SHA256:" + digest + "\n")
	if err != nil {
		t.Fatal(err)
	}
	want := &download{uri: "http://mirror.example/pool/l/linux%2bdeb14.deb", file: "linux+deb14.deb", size: 107898972, sha256: digest}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(download{})); diff != "" {
		t.Error(diff)
	}
	// A name must not lead out of the directory that the file is for.
	got, err = parseURI("'u' ../../etc/passwd 1 SHA256:" + digest)
	if err != nil || got.file != "passwd" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{
		"", "'u' f 12", "'u' f many SHA256:" + digest, "'u' f 12 MD5Sum:" + digest[:32], "'u' f 12 SHA256:" + digest[:60],
	} {
		if d, err := parseURI(bad); err == nil {
			t.Errorf("%q: %+v, want an error", bad, d)
		}
	}
}
