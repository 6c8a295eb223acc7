// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// bind makes a directory of this machine visible in a build root.
type bind struct {
	dir    string // outside
	inside string // where, an absolute path
}

// enter mounts the parts of a running system that a build needs, then runs a command in the root $1. The mounts belong to a
// namespace that ends with its first process, however that ends, so nothing has to be undone.
const enter = `set -e
root=$1
shift
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do
	mount --bind "$1" "$root$2"
	shift 2
done
shift
exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin HOME=/tmp LC_ALL=C DEB_BUILD_ARCH=amd64 DEB_HOST_ARCH=amd64 "$@"`

// chroot runs a command in a build root and returns its output and errors, even if it failed. Its processes have a namespace
// of their own and do not outlive this one.
func (r *buildRoot) chroot(ctx context.Context, binds []bind, argv ...string) (string, error) {
	args := []string{"unshare", "--mount", "--pid", "--fork", "--kill-child"}
	if os.Geteuid() != 0 {
		args = append(args, "--map-root-user")
	}
	args = append(args, "sh", "-c", enter, "enter", r.dir)
	for _, b := range binds {
		if err := os.MkdirAll(filepath.Join(r.dir, b.inside), 0o755); err != nil {
			return "", err
		}
		args = append(args, b.dir, b.inside)
	}
	var said strings.Builder
	err := execute(ctx, &said, &said, slices.Concat(args, []string{"--"}, argv)...)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && unprivileged.MatchString(said.String()):
		return "", fmt.Errorf("a build root is entered with a mount namespace, for which one must be root here (sudo): %s",
			strings.TrimSpace(said.String()))
	case err != nil:
		return said.String(), fmt.Errorf("%s: %w", argv[0], err)
	}
	return said.String(), nil
}

// unprivileged matches the messages of the programs that enter runs if they lack privileges.
var unprivileged = regexp.MustCompile(`(?m)^(unshare|mount|chroot): .*([Pp]ermission denied|not permitted)`)
