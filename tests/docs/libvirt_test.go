// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/need"
)

// domain is a guest of libvirt with a device.
const domain = `<domain type='qemu'>
  <name>guest</name>
  <memory unit='MiB'>256</memory>
  <os><type arch='x86_64' machine='q35'>hvm</type></os>
  <devices>
    <emulator>%s</emulator>
%s  </devices>
</domain>
`

// TestFabricDevice compares the devices that docs/ism.md has for QEMU and for libvirt with the one of the lab's guests.
func TestFabricDevice(t *testing.T) {
	const path = "/run/smc/ism/blue.sock"
	text := read(t, "docs/ism.md")
	want := strings.Join(lab.IvshmemDevice("ism0", path), " ")
	if !strings.Contains(text, "\n```\n"+want+"\n```\n") {
		t.Errorf("docs/ism.md does not have the lab's arguments of QEMU: %s", want)
	}
	need.Programs(t, "virsh", "virt-qemu-run", "qemu-system-x86_64")
	device := regexp.MustCompile("(?ms)^```xml\n(<shmem .*?)^```").FindStringSubmatch(text)
	if device == nil {
		t.Fatal("docs/ism.md has no XML")
	}
	v := newLibvirt(t)
	if out, err := v.virsh("test:///default", "define", "--validate", v.write(device[1])); err != nil {
		t.Errorf("libvirt's schema refuses the XML: %v: %s", err, out)
	}
	misspelt := v.write(strings.ReplaceAll(device[1], "<server ", "<socket "))
	if out, err := v.virsh("test:///default", "define", "--validate", misspelt); err == nil {
		t.Errorf("libvirt's schema takes wrong XML: %s", out)
	}
	out, err := v.virsh("qemu:///embed?root="+filepath.Join(v.dir, "root"), "domxml-to-native", "qemu-argv", v.write(device[1]))
	if err != nil {
		t.Fatalf("libvirt cannot start QEMU with the XML: %v: %s", err, out)
	}
	sameDevice(t, strings.Fields(out), path)
}

// sameDevice checks that arguments of QEMU that libvirt has made have the lab's device.
func sameDevice(t *testing.T, args []string, path string) {
	t.Helper()
	var device struct {
		Driver, Chardev string
		Vectors         int
	}
	for _, arg := range args {
		arg, isJSON := strings.CutPrefix(strings.TrimSuffix(arg, "'"), "'")
		if !isJSON || !strings.Contains(arg, "ivshmem") {
			continue
		}
		if err := json.Unmarshal([]byte(arg), &device); err != nil {
			t.Fatalf("%s: %v", arg, err)
		}
	}
	got := []string{fmt.Sprintf("%s,chardev=%s,vectors=%d", device.Driver, device.Chardev, device.Vectors)}
	for _, arg := range args {
		if strings.Contains(arg, path) {
			got = append(got, arg)
		}
	}
	want := lab.IvshmemDevice(device.Chardev, path)
	if !slices.Equal(got, []string{want[3], want[1]}) {
		t.Errorf("libvirt has %q, the lab %q", got, want)
	}
}

// libvirt runs libvirt's own copy of its drivers, in a directory.
type libvirt struct {
	t   *testing.T
	dir string
	// user is that of virsh. As root, libvirt would need a user that its service has.
	user *syscall.Credential
}

func newLibvirt(t *testing.T) *libvirt {
	t.Helper()
	dir, err := os.MkdirTemp("", "libvirt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	v := &libvirt{t: t, dir: dir}
	if os.Getuid() == 0 {
		const nobody = 65534
		v.user = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// write writes a domain with a device to a file, and returns its path.
func (v *libvirt) write(device string) string {
	v.t.Helper()
	emulator, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		v.t.Fatal(err)
	}
	f, err := os.CreateTemp(v.dir, "domain")
	if err == nil {
		_, err = fmt.Fprintf(f, domain, emulator, device)
		err = errors.Join(err, f.Chmod(0o644), f.Close())
	}
	if err != nil {
		v.t.Fatal(err)
	}
	return f.Name()
}

// virsh runs a command of virsh.
func (v *libvirt) virsh(uri string, args ...string) (string, error) {
	v.t.Helper()
	cmd := exec.CommandContext(v.t.Context(), "virsh", append([]string{"-c", uri}, args...)...)
	cmd.Dir = v.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + v.dir, "XDG_RUNTIME_DIR=" + v.dir, "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: v.user}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
