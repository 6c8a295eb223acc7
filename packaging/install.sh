#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs units, udev rules, and the commented configuration files, which never overwrite existing ones. With the last
# argument 'remove' it removes all except the configuration.
set -eu

destdir=$1
prefix=$2
verb=${3:-install}
here=$(dirname "$0")

# place FILE DIR installs or removes one file. Units and rules contain the path of the commands.
place() {
	target=$2/$(basename "$1")
	[ -e "$1" ] || return 0
	if [ "$verb" = remove ]; then
		rm -f "$target"
		return
	fi
	install -d "$2"
	install -m 644 "$1" "$target"
	case $1 in
	*.service | *.rules) sed -i "s|/usr/bin/smc|$prefix/bin/smc|g" "$target" ;;
	esac
}

# each PATTERN DIR installs or removes every file that matches.
each() {
	for file in $1; do
		place "$file" "$2"
	done
}

lib=$destdir$prefix/lib
each "$here/systemd/*" "$lib/systemd/system"
each "$here/udev/*" "$lib/udev/rules.d"
for kind in modules-load modprobe sysctl; do
	each "$here/$kind.d/*" "$lib/$kind.d"
done

[ "$verb" = install ] || exit 0
for file in "$here"/etc/smc/*; do
	if [ -e "$file" ] && [ ! -e "$destdir/etc/smc/$(basename "$file")" ]; then
		place "$file" "$destdir/etc/smc"
	fi
done
