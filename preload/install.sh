#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs the libraries that build.sh has left in a directory below a prefix: into lib and, of 32 bits, lib32. The name
# without a version is the one that smc-tools has people put into LD_PRELOAD.
set -eu

from=$1
prefix=$2
name=libsmc-preload.so

for dir in lib lib32; do
	file=$from/$name.1
	[ $dir = lib ] || file=$from/$dir/$name.1
	[ -e "$file" ] || continue
	install -d "$prefix/$dir"
	install -m 755 "$file" "$prefix/$dir/"
	ln -sf $name.1 "$prefix/$dir/$name"
done
