// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/fabric"
	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/need"
)

// domain is a guest of libvirt with devices.
const domain = `<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>guest</name>
  <memory unit='MiB'>256</memory>
  <os><type arch='x86_64' machine='q35'>hvm</type></os>
  <devices>
    <emulator>%s</emulator>
%s  </devices>
%s</domain>
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
	device := block(t, text, "xml", "<shmem ")
	v := newLibvirt(t)
	if out, err := v.virsh("test:///default", "define", "--validate", v.write(device)); err != nil {
		t.Errorf("libvirt's schema refuses the XML: %v: %s", err, out)
	}
	misspelt := v.write(strings.ReplaceAll(device, "<server ", "<socket "))
	if out, err := v.virsh("test:///default", "define", "--validate", misspelt); err == nil {
		t.Errorf("libvirt's schema takes wrong XML: %s", out)
	}
	out, err := v.virsh(v.qemu(), "domxml-to-native", "qemu-argv", v.write(device))
	if err != nil {
		t.Fatalf("libvirt cannot start QEMU with the XML: %v: %s", err, out)
	}
	sameDevice(t, strings.Fields(out), path)
	attachedDevice(t, v, text, device, path)
}

// TestHotPlugCommands compares the commands of QMP in docs/ism.md with those of the lab.
func TestHotPlugCommands(t *testing.T) {
	text := read(t, "docs/ism.md")
	port := strings.Join(lab.HotPlugPort("port0", 256<<20), " ")
	if !strings.Contains(text, "\n```\n"+port+"\n```\n") {
		t.Errorf("docs/ism.md does not have the lab's arguments of QEMU: %s", port)
	}
	for _, want := range [][]lab.MonitorCommand{
		lab.PlugCommands("fabric0", "ism0", "/run/smc/ism/blue.sock", "port0"),
		lab.UnplugCommands("fabric0", "ism0"),
	} {
		in := json.NewDecoder(strings.NewReader(block(t, text, "json", `{"execute": "`+want[0].Execute+`"`)))
		for _, w := range want {
			var got any
			if err := in.Decode(&got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(asJSON(t, w), got); diff != "" {
				t.Errorf("%s (-lab +docs/ism.md): %s", w.Execute, diff)
			}
		}
	}
}

// asJSON returns a value as a decoder of JSON returns it.
func asJSON(t *testing.T, v any) (decoded any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &decoded)
	}
	if err != nil {
		t.Fatal(err)
	}
	return decoded
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

// attachedDevice has libvirt give a guest that runs a device, for which the guest has the port of docs/ism.md, or none.
func attachedDevice(t *testing.T, v *libvirt, text, device, path string) {
	t.Helper()
	served := v.serve()
	attach := func(guest, device string) string {
		device = v.writeFile(strings.ReplaceAll(device, path, served))
		out, _ := v.virsh(v.qemu(), fmt.Sprintf("create %s; attach-device guest %s; destroy guest", guest, device))
		return out
	}
	guest := v.write(block(t, text, "xml", "<controller "), block(t, text, "xml", "<qemu:override>"))
	plugged := strings.Replace(device, "</shmem>", "  <address type='pci' bus='9' slot='0'/>\n</shmem>", 1)
	if !strings.Contains(text, "```xml\n"+plugged+"```") {
		t.Errorf("docs/ism.md does not have the device with its address:\n%s", plugged)
	}
	if out := attach(guest, plugged); !strings.Contains(out, "Device attached successfully") {
		t.Fatalf("libvirt cannot give a guest the device: %s", out)
	}
	select {
	case line := <-v.log:
		if !strings.Contains(line, " joined,") {
			t.Errorf("the guest is no member: %s", line)
		}
	case <-time.After(10 * time.Second):
		t.Error("the guest has not become a member")
	}
	const noPlace = "No more available PCI slots"
	if out := attach(v.write(""), device); !strings.Contains(out, noPlace) || !strings.Contains(text, noPlace) {
		t.Errorf("libvirt, or docs/ism.md, does not report that there is no place for the device: %s", out)
	}
}

// block returns the first block of a document in a language that begins with a text.
func block(t *testing.T, doc, language, begin string) string {
	t.Helper()
	_, rest, ok := strings.Cut(doc, "```"+language+"\n"+begin)
	if !ok {
		t.Fatalf("no block of %s begins with %q", language, begin)
	}
	text, _, _ := strings.Cut(rest, "```")
	return begin + text
}

// libvirt runs libvirt's own copy of its drivers, in a directory.
type libvirt struct {
	t   *testing.T
	dir string
	// user is that of virsh. As root, libvirt would need a user that its service has.
	user *syscall.Credential
	// log has what the fabric logs.
	log chan string
}

func newLibvirt(t *testing.T) *libvirt {
	t.Helper()
	dir, err := os.MkdirTemp("", "libvirt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	v := &libvirt{t: t, dir: dir, log: make(chan string, 16)}
	// By default a service of libvirt, which need not run here, writes the output of guests.
	conf := filepath.Join(dir, "root", "etc")
	if err := errors.Join(os.MkdirAll(conf, 0o755), os.WriteFile(filepath.Join(conf, "qemu.conf"), []byte("stdio_handler = \"file\"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		const nobody = 65534
		v.user = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := errors.Join(os.Chown(dir, nobody, nobody), os.Chown(filepath.Join(dir, "root"), nobody, nobody)); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// write writes a domain with devices, and more behind them, to a file, and returns its path.
func (v *libvirt) write(devices string, more ...string) string {
	v.t.Helper()
	emulator, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		v.t.Fatal(err)
	}
	return v.writeFile(fmt.Sprintf(domain, emulator, devices, strings.Join(more, "")))
}

func (v *libvirt) writeFile(text string) string {
	v.t.Helper()
	f, err := os.CreateTemp(v.dir, "xml")
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Chmod(0o644), f.Close())
	}
	if err != nil {
		v.t.Fatal(err)
	}
	return f.Name()
}

// qemu returns the address of libvirt's driver for QEMU.
func (v *libvirt) qemu() string { return "qemu:///embed?root=" + filepath.Join(v.dir, "root") }

// serve serves a fabric until the end of the test, and returns the path of its socket.
func (v *libvirt) serve() string {
	v.t.Helper()
	f, err := fabric.New(fabric.Config{Name: "blue", Size: 16 << 20, Log: func(line string) { v.log <- line }})
	if err != nil {
		v.t.Fatal(err)
	}
	path := filepath.Join(v.dir, "blue.sock")
	l, err := fabric.Listen(path, fabric.Permissions{Mode: 0o666, UID: -1, GID: -1})
	if err != nil {
		v.t.Fatal(errors.Join(err, f.Close()))
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- f.Serve(ctx, l) }()
	v.t.Cleanup(func() {
		stop()
		if err := errors.Join(<-served, f.Close()); err != nil {
			v.t.Error(err)
		}
	})
	return path
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
