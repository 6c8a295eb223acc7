#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs the libraries that build.sh has left in a directory: into one directory and, of 32 bits, another. The name
# without a version is the one that smc-tools has people put into LD_PRELOAD.
set -eu

from=$1
lib=$2
lib32=$3
name=libsmc-preload.so

put() {
	[ -e "$1/$name.1" ] || return 0
	install -d "$2"
	install -m 755 "$1/$name.1" "$2/"
	ln -sf $name.1 "$2/$name"
}

put "$from" "$lib"
put "$from/lib32" "$lib32"
