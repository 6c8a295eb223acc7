// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cavaliergopher/cpio"
	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/need"
)

// fakeSource is an archive with one kernel, packed as in sid: an image, modules, and an empty package.
type fakeSource struct {
	t       *testing.T
	release string
	version string
	fetched []string
	before  func(pkg string) error // called before each fetch
}

func (f *fakeSource) resolve(context.Context, string, func(string)) (*kernelPackages, error) {
	return &kernelPackages{release: f.release, version: f.version, packages: []string{"empty", "binary", "modules"}}, nil
}

const elfImage = "\x7fELF the kernel itself"

// fetch builds the package, unless an earlier attempt has left it.
func (f *fakeSource) fetch(ctx context.Context, pkg, dir string, _ func(string)) (string, error) {
	if f.before != nil {
		if err := f.before(pkg); err != nil {
			return "", err
		}
	}
	deb := filepath.Join(dir, pkg+".deb")
	if _, err := os.Stat(deb); err == nil {
		return deb, nil
	}
	f.fetched = append(f.fetched, pkg)
	files := map[string]string{"DEBIAN/control": "Package: " + pkg + "\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n"}
	switch pkg {
	case "binary":
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		_, _ = w.Write([]byte(elfImage))
		_ = w.Close()
		files["boot/vmlinuz-"+f.release] = "setup code \x1f\x8b\x08 not it " + z.String() + "trailer"
		files["boot/config-"+f.release] = "CONFIG_X=y\n"
	case "modules":
		tree := "usr/lib/modules/" + f.release
		files[tree+"/modules.builtin"] = "kernel/drivers/virtio/virtio_pci.ko\n"
		files[tree+"/modules.order"] = ""
		files[tree+"/kernel/net/smc/smc.ko.xz"] = xz(f.t, "smc module")
		files[tree+"/kernel/drivers/gpu/nouveau.ko.xz"] = xz(f.t, "rarely used")
	}
	root := f.t.TempDir()
	for name, data := range files {
		name = filepath.Join(root, name)
		_ = os.MkdirAll(filepath.Dir(name), 0o755)
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			return "", err
		}
	}
	return deb, run(ctx, "dpkg-deb", "--build", "-Znone", root, deb)
}

func xz(t *testing.T, s string) string {
	cmd := exec.Command("xz", "-c")
	cmd.Stdin = strings.NewReader(s)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// provisioner prepares calls of obtain, with a cache that is empty at first.
func provisioner(t *testing.T) (dir string, src *fakeSource, get func(ctx context.Context, update bool) (*Kernel, error)) {
	t.Helper()
	need.Programs(t, "dpkg-deb", "xz")
	if _, err := output(t.Context(), "depmod", "--version"); err != nil {
		t.Skip("needs depmod, of the package kmod")
	}
	dir = filepath.Join(t.TempDir(), "6.12")
	src = &fakeSource{t: t, release: "6.12.1-amd64", version: "6.12.1-1"}
	return dir, src, func(ctx context.Context, update bool) (*Kernel, error) {
		return obtain(ctx, NativeArch, "6.12", dir, func() (source, error) { return src, nil }, update, func(s string) { t.Log(s) })
	}
}

func TestProvision(t *testing.T) {
	dir, src, get := provisioner(t)
	k, err := get(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(dir, "6.12.1-amd64_6.12.1-1")
	want := &Kernel{
		Arch: NativeArch, Series: "6.12", Release: "6.12.1-amd64", Package: "6.12.1-1",
		Image: filepath.Join(base, "image"), Modules: filepath.Join(base, "modules"),
	}
	if diff := cmp.Diff(want, k); diff != "" {
		t.Error(diff)
	}
	for file, content := range map[string]string{
		k.Image:                                             elfImage,
		filepath.Join(base, "config"):                       "CONFIG_X=y\n",
		k.Modules + "/kernel/net/smc/smc.ko":                "smc module",
		k.Modules + "/kernel/drivers/gpu/nouveau.ko.xz":     xz(t, "rarely used"),
		filepath.Join(filepath.Dir(dir), "6.12", "current"): "",
	} {
		got, err := os.ReadFile(file)
		if content != "" && (err != nil || string(got) != content) {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	for option, want := range map[string]string{"CONFIG_X": "y", "CONFIG_Y": ""} {
		if got, err := k.Config(option); got != want || err != nil {
			t.Errorf("%s is %q, %v", option, got, err)
		}
	}
	if !k.HasModule("smc") || k.HasModule("nothing") {
		t.Error("HasModule is wrong")
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"6.12.1-amd64_6.12.1-1", "current", "lock"}, names); diff != "" {
		t.Errorf("left in the cache: %s", diff)
	}

	// The second call does not access the archive, so it works off line.
	src.before = func(string) error { return errors.New("no network") }
	src.fetched = nil
	again, err := get(t.Context(), false)
	if diff := cmp.Diff(k, again); err != nil || diff != "" {
		t.Errorf("second time: %v %s", err, diff)
	}
	// An update downloads nothing if the archive has no newer kernel.
	if again, err = get(t.Context(), true); err != nil || cmp.Diff(k, again) != "" {
		t.Errorf("update to the same: %v %v", again, err)
	}
	if src.fetched != nil {
		t.Errorf("fetched again: %q", src.fetched)
	}
}

// TestProvisionInterrupted stops provisioning at every point where it leaves something behind.
func TestProvisionInterrupted(t *testing.T) {
	dir, src, get := provisioner(t)
	interrupted := errors.New("interrupted")
	for i, stop := range []string{"empty", "binary", "modules"} {
		src.before = func(pkg string) error {
			if pkg == stop {
				return interrupted
			}
			return nil
		}
		if _, err := get(t.Context(), false); !errors.Is(err, interrupted) {
			t.Fatalf("stopped at %s: %v", stop, err)
		}
		if _, err := openKernel("6.12", dir); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("stopped at %s, and there is a kernel: %v", stop, err)
		}
		if len(src.fetched) != i {
			t.Errorf("stopped at %s: fetched %q", stop, src.fetched)
		}
	}
	// Unpacked in full, with strangers among the files, but not named yet.
	stale := filepath.Join(dir, "unpack/usr/lib/modules/6.12.1-amd64/kernel/stale.ko")
	if err := errors.Join(os.MkdirAll(filepath.Dir(stale), 0o755), os.WriteFile(stale, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	src.before = nil
	k, err := get(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"empty", "binary", "modules"}, src.fetched); diff != "" {
		t.Errorf("not every package was fetched exactly once: %s", diff)
	}
	if _, err := os.Stat(filepath.Join(k.Modules, "kernel/stale.ko")); !errors.Is(err, os.ErrNotExist) {
		t.Error("what an interrupted run had unpacked got into the kernel")
	}
	// Named, but not current yet: the work is not done again.
	if err := os.Remove(filepath.Join(dir, "current")); err != nil {
		t.Fatal(err)
	}
	src.fetched = nil
	if _, err := get(t.Context(), false); err != nil || src.fetched != nil {
		t.Errorf("%v, fetched %q", err, src.fetched)
	}
}

func TestProvisionTwoAtOnce(t *testing.T) {
	dir, src, get := provisioner(t)
	entered, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	src.before = func(string) error {
		once.Do(func() { close(entered); <-proceed })
		return nil
	}
	results := make(chan error, 2)
	go func() { _, err := get(t.Context(), false); results <- err }()
	<-entered
	waiting := make(chan string, 10)
	go func() {
		_, err := obtain(t.Context(), NativeArch, "6.12", dir, func() (source, error) { return nil, errors.New("worked twice") }, false,
			func(s string) { waiting <- s })
		results <- err
	}()
	// The third call is cancelled while it waits.
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := obtain(ctx, NativeArch, "6.12", dir, nil, false, func(string) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while waiting: %v", err)
	}
	if s := <-waiting; !strings.Contains(s, "waiting for another process") {
		t.Errorf("says %q", s)
	}
	close(proceed)
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

func TestProvisionUpdate(t *testing.T) {
	dir, src, get := provisioner(t)
	first, err := get(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	inUse, err := first.use()
	if err != nil {
		t.Fatal(err)
	}
	// Debian rebuilds a kernel without changing its release.
	src.version = "6.12.1-2"
	if k, err := get(t.Context(), false); err != nil || k.Package != first.Package {
		t.Errorf("without being asked to update: %+v, %v", k, err)
	}
	second, err := get(t.Context(), true)
	if err != nil || second.Package != "6.12.1-2" {
		t.Fatalf("%+v, %v", second, err)
	}
	if _, err := os.Stat(first.Image); err != nil {
		t.Errorf("a kernel that a guest runs is gone: %v", err)
	}
	inUse.Close()
	src.version = "6.12.1-3"
	third, err := get(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []*Kernel{first, second} {
		if _, err := os.Stat(k.Image); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s stays: %v", k.Package, err)
		}
		if f, err := k.use(); err == nil {
			f.Close()
			t.Errorf("%s can still be used", k.Package)
		}
	}
	if got, err := openKernel("6.12", dir); err != nil || got.Package != third.Package {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestProvisionUnknown(t *testing.T) {
	t.Setenv("SMCKIT_CACHE", t.TempDir())
	_, err := Provision(t.Context(), "5.4", false, nil)
	if err == nil || !strings.Contains(err.Error(), strings.Join(Series(), ", ")) {
		t.Errorf("error %v, want one that lists the kernels", err)
	}
}

func TestExtractImageAsIs(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "vmlinuz"), filepath.Join(dir, "image")
	const unknown = "MZ \x1f\x8b\x08 compressed in a way that nobody knows yet"
	if err := os.WriteFile(from, []byte(unknown), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := extractImage(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || string(got) != unknown {
		t.Errorf("%q, %v", got, err)
	}
}

const modulesDep = `kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko kernel/fs/netfs/netfs.ko.xz
kernel/net/9p/9pnet_virtio.ko: kernel/net/9p/9pnet.ko kernel/fs/netfs/netfs.ko.xz
kernel/net/9p/9pnet.ko: kernel/fs/netfs/netfs.ko.xz
kernel/fs/netfs/netfs.ko.xz:
kernel/drivers/net/net-failover.ko:
`

// fakeKernel returns a kernel that only has modules.
func fakeKernel(t *testing.T) *Kernel {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"modules.dep": modulesDep}
	for line := range strings.Lines(modulesDep) {
		file, _, _ := strings.Cut(line, ":")
		files[file] = "module " + moduleName(file)
		if strings.HasSuffix(file, ".xz") {
			files[file] = xz(t, files[file])
		}
	}
	for name, data := range files {
		name = filepath.Join(dir, name)
		_ = os.MkdirAll(filepath.Dir(name), 0o755)
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &Kernel{Release: "6.0-test", Modules: dir}
}

func TestLoadOrder(t *testing.T) {
	deps, err := fakeKernel(t).dependencies()
	if err != nil {
		t.Fatal(err)
	}
	got := loadOrder(deps, []string{"9p", "built_in", "9pnet_virtio", "net_failover"})
	want := []string{
		"kernel/fs/netfs/netfs.ko.xz", "kernel/net/9p/9pnet.ko", "kernel/fs/9p/9p.ko.xz", "kernel/net/9p/9pnet_virtio.ko",
		"kernel/drivers/net/net-failover.ko",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestInitramfs(t *testing.T) {
	file, err := initramfs(t.Context(), fakeKernel(t), bootModules, []byte("the agent"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// Open it by its descriptor, like the emulator.
	data, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	got := readCpio(t, data)
	for name, want := range map[string]string{
		"init": "the agent", "modules/9p.ko": "module 9p", "modules/9pnet.ko": "module 9pnet", "modules/netfs.ko": "module netfs",
		"modules/order": "netfs.ko\n9pnet.ko\n9pnet_virtio.ko\n9p.ko\n", "proc": "", "sys": "", "dev": "",
	} {
		if data, ok := got[name]; !ok || data != want {
			t.Errorf("%s: %q, %t, want %q", name, data, ok, want)
		}
	}
}

func readCpio(t *testing.T, data []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	r := cpio.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(content)
		if h.Name == "init" && h.Mode.Perm()&0o111 == 0 {
			t.Error("init cannot be run")
		}
	}
}

func TestOptions(t *testing.T) {
	o := Options{Kernels: []string{"6.1", "6.12"}}
	if err := o.complete(); err != nil || o.Hosts != 2 || o.Wires != 1 || !slices.Equal(o.Kernels, []string{"6.1", "6.12"}) {
		t.Errorf("%+v, %v", o, err)
	}
	o = Options{Kernel: "6.1", Hosts: 3}
	if err := o.complete(); err != nil || !slices.Equal(o.Kernels, []string{"6.1", "6.1", "6.1"}) {
		t.Errorf("%+v, %v", o, err)
	}
	comma := filepath.Join(t.TempDir(), "a,b")
	if err := os.Mkdir(comma, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []Options{{Hosts: 27}, {Shares: []string{comma}}, {Shares: []string{"/nonexistent"}}, {Disk: &Disk{}, Shares: []string{"/"}}} {
		if err := bad.complete(); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}
