// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// fetcher downloads a package into dir, continuing an earlier attempt, and returns its path.
type fetcher func(ctx context.Context, pkg, dir string, progress func(string)) (string, error)

// extract makes the directory unpacked from packages, and empties it first.
func extract(ctx context.Context, fetch fetcher, packages []string, downloads, unpacked string, progress func(string)) error {
	if err := os.MkdirAll(downloads, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(unpacked); err != nil {
		return err
	}
	for _, pkg := range packages {
		deb, err := fetch(ctx, pkg, downloads, progress)
		if err != nil {
			return err
		}
		progress("unpacking " + filepath.Base(deb))
		if err := run(ctx, "dpkg-deb", "-x", deb, unpacked); err != nil {
			return err
		}
	}
	return nil
}

// arrange gives kernel packages unpacked in dir the layout that openKernel expects, whichever way the suite packs them:
// image, config, System.map, modules with the index that modprobe reads, and the description.
func arrange(ctx context.Context, dir string, kp *kernelPackages) error {
	boot := []string{"boot/%s-" + kp.release, "usr/lib/modules/" + kp.release + "/%s"}
	for _, name := range []string{"vmlinuz", "config", "System.map"} {
		if err := moveFirst(dir, name, boot); err != nil && name == "vmlinuz" {
			return err
		}
	}
	// depmod requires the path lib/modules above the modules.
	base := filepath.Join(dir, "base")
	tree := "base/lib/modules/" + kp.release
	if err := os.MkdirAll(filepath.Join(base, "lib/modules"), 0o755); err != nil {
		return err
	}
	from := []string{"usr/lib/modules/" + kp.release, "lib/modules/" + kp.release}
	if err := moveFirst(dir, tree, from); err != nil {
		return err
	}
	if err := decompressHot(ctx, filepath.Join(dir, tree)); err != nil {
		return err
	}
	if err := run(ctx, "depmod", "-b", base, kp.release); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, tree), filepath.Join(dir, "modules")); err != nil {
		return err
	}
	image := extractImage
	if kp.compressed {
		image = func(_ context.Context, vmlinuz, image string) error { return os.Rename(vmlinuz, image) }
	}
	if err := image(ctx, filepath.Join(dir, "vmlinuz"), filepath.Join(dir, "image")); err != nil {
		return err
	}
	for _, rest := range []string{"usr", "lib", "boot", "base"} {
		if err := os.RemoveAll(filepath.Join(dir, rest)); err != nil {
			return err
		}
	}
	data, err := json.Marshal(map[string]string{"Release": kp.release, "Package": kp.version})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, description), append(data, '\n'), 0o644)
}

// moveFirst moves the first of the files that exists to name, all below dir. A %s stands for name.
func moveFirst(dir, name string, files []string) error {
	for _, f := range files {
		f = strings.ReplaceAll(f, "%s", name)
		err := os.Rename(filepath.Join(dir, f), filepath.Join(dir, name))
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return fmt.Errorf("the packages hold no %s", strings.ReplaceAll(files[0], "%s", name))
}

// hot is the directory of the modules that the lab's guests load. Decompressing them once here costs a hundredth of what it
// would cost an emulated processor at every boot.
var hot = []string{
	"arch", "drivers/s390", "crypto", "drivers/char", "drivers/dibs", "drivers/infiniband", "drivers/net/dummy", "drivers/net/net_failover",
	"drivers/net/veth", "drivers/net/virtio_net", "drivers/virtio", "fs/9p", "fs/netfs", "fs/overlayfs", "lib", "net",
}

// decompressHot unpacks the hot modules of a tree.
func decompressHot(ctx context.Context, tree string) error {
	unpackers := map[string][]string{".xz": {"xz", "-d"}, ".zst": {"zstd", "-dq", "--rm"}}
	files := map[string][]string{}
	kernel := filepath.Join(tree, "kernel")
	err := filepath.WalkDir(kernel, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(kernel, path)
		ext := filepath.Ext(path)
		if unpackers[ext] != nil && slices.ContainsFunc(hot, func(h string) bool { return strings.HasPrefix(rel, h) }) {
			files[ext] = append(files[ext], path)
		}
		return err
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for ext, all := range files {
		for some := range slices.Chunk(all, 64) {
			group.Go(func() error { return run(ctx, slices.Concat(unpackers[ext], some)...) })
		}
	}
	return group.Wait()
}

// extractImage takes the ELF image out of a vmlinuz, which would take an emulated processor up to two seconds in a guest. A
// vmlinuz from which it cannot extract the image is booted itself.
func extractImage(ctx context.Context, vmlinuz, image string) error {
	data, err := os.ReadFile(vmlinuz)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		magic string
		tool  []string
	}{
		{"\x28\xb5\x2f\xfd", []string{"zstd", "-dcq"}},
		{"\xfd7zXZ\x00", []string{"xz", "-dc"}},
		{"\x1f\x8b\x08", []string{"gzip", "-dc"}},
	} {
		for begin := 0; ; begin++ {
			i := bytes.Index(data[begin:], []byte(c.magic))
			if i < 0 {
				break
			}
			begin += i
			cmd := exec.CommandContext(ctx, c.tool[0], c.tool[1:]...)
			cmd.Stdin = bytes.NewReader(data[begin:])
			// Ignore the exit status: the decompressor complains about the bytes after the compressed part, which do not
			// belong to it.
			elf, _ := cmd.Output()
			if bytes.HasPrefix(elf, []byte("\x7fELF")) {
				return errors.Join(os.WriteFile(image, elf, 0o644), os.Remove(vmlinuz))
			}
		}
	}
	return os.Rename(vmlinuz, image)
}
