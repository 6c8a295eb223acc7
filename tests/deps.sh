#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages that the lab needs and that this machine lacks. Says what it does; does nothing, and
# needs no privilege, where nothing is missing.
set -eu

# The emulator, programs that unpack kernels, programs that the guests run (they see this machine's
# files), and their compiler.
packages="qemu-system-x86 kmod xz-utils zstd iproute2 ca-certificates debian-archive-keyring gcc libc6-dev"
# Programs with which 'make lint' reads manual pages, and the shells that have completions.
packages="$packages mandoc bash-completion zsh fish"
# Programs that tests/programs and tests/run run over AF_SMC sockets.
packages="$packages redis-server redis-tools nginx apache2-utils wrk iperf3 openssl curl postgresql python3 bsdextrautils nodejs"
# Containers for them, and the network tests of Python. Those of Go come with Go.
packages="$packages podman crun netavark aardvark-dns libpython3.11-testsuite"
# And programs that have no C library to preload before, or another one.
packages="$packages busybox-static musl-tools"
# A compiler and a C library for 32-bit programs, where Debian has them for this architecture.
[ "$(dpkg --print-architecture)" != amd64 ] || packages="$packages gcc-multilib"
# Rules with which tests/check blocks SMC.
packages="$packages nftables iptables"
# systemd-analyze checks our units.
packages="$packages systemd"
# tests/docs has libvirt read the XML of docs/ism.md.
packages="$packages libvirt-clients libvirt-daemon-driver-qemu"
# tests/conn checks the model of a connection with spin; tshark reads the messages that hosts send.
packages="$packages spin tshark"
# Programs with which tests/packages inspects packages, installs them, and makes disks of the
# result.
packages="$packages lintian rpm shellcheck debootstrap e2fsprogs"
# Programs with which tests/ansible configures guests, and checks the collection.
packages="$packages ansible-core ansible-lint yamllint python3-pytest python3-voluptuous python3-pycodestyle openssh-client openssh-server"

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
# The servers are for the guests: on this machine none may start, now or at the next boot.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	trap '$sudo rm -f $policy' EXIT
	printf '#!/bin/sh\nexit 101\n' | $sudo tee $policy >/dev/null
	$sudo chmod 755 $policy
fi
echo "deps: installing$missing"
$sudo apt-get -q update >/dev/null
# Word splitting is wanted: one argument a package.
# shellcheck disable=SC2086
$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install $missing >/dev/null
for service in redis-server nginx postgresql ssh; do
	case "$missing " in
	# A container has no systemctl, and starts nothing.
	*" $service "* | *" open$service-server "*) $sudo systemctl -q disable $service || true ;;
	esac
done
case "$missing " in
*" podman "*) $sudo systemctl -q disable podman.socket podman.service podman-restart.service podman-auto-update.timer || true ;;
esac
