#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages that the lab needs and that this machine lacks. Says what it does; does nothing, and
# needs no privilege, where nothing is missing.
set -eu

# The emulator, what unpacks kernels, and what the guests run: they see this machine's programs.
packages="qemu-system-x86 kmod xz-utils zstd iproute2 ca-certificates debian-archive-keyring"

missing=
for p in $packages; do
	case $(dpkg-query -W -f '${Status}' "$p" 2>/dev/null) in
	"install ok installed") ;;
	*) missing="$missing $p" ;;
	esac
done
[ -n "$missing" ] || exit 0

sudo=
if [ "$(id -u)" != 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "deps: missing packages:$missing" >&2
		echo "deps: run 'apt-get install$missing' as root, then try again" >&2
		exit 1
	fi
	sudo=sudo
fi
echo "deps: installing$missing"
$sudo apt-get -q update >/dev/null
# Word splitting is wanted: one argument a package.
# shellcheck disable=SC2086
$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install $missing >/dev/null
