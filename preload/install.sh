#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs the libraries that build.sh built: into one directory and, the 32-bit one, into another. Users of smc-tools put the
# name without a version into LD_PRELOAD.
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
