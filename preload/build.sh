#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds libsmc-preload.so.1 into a directory, and the 32-bit one into lib32 below it where the compiler can. Does nothing
# where they are newer than the sources. A machine without a C compiler gets a word instead of a library: smc_run works
# without.
set -eu

out=$1
src=$(dirname "$0")
name=libsmc-preload.so.1
cc=${CC:-cc}

if ! command -v "${cc%% *}" >/dev/null; then
	echo "preload: no C compiler, so no $name: smc_run --method preload will not work" >&2
	exit 0
fi

# One file for all C libraries: it is linked to none, and starts without what a compiler adds to a program of one.
build() {
	dir=$1
	shift
	if [ -e "$dir/$name" ] && [ -z "$(find "$src" -newer "$dir/$name" -name '*.[ch]' -path "$src/*.[ch]")" ]; then
		return
	fi
	mkdir -p "$dir"
	# Flags are words. A program may be running with the old library: it is replaced, not written to.
	# shellcheck disable=SC2086
	$cc "$@" ${CFLAGS:--O2} -std=gnu11 -Wall -Wextra -ffreestanding -fPIC -fvisibility=hidden -fno-stack-protector \
		-fno-asynchronous-unwind-tables -nostdlib -shared -s -Wl,-soname,$name -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack \
		-Wl,--hash-style=both -o "$dir/$name.$$" "$src"/*.c
	mv "$dir/$name.$$" "$dir/$name"
}

build "$out"

# The kernel's headers are enough, and Debian keeps them where a compiler for 32 bits does not look.
[ "$(uname -m)" = x86_64 ] || exit 0
headers=/usr/include/$($cc -print-multiarch)
if echo '#include <asm/unistd.h>' | $cc -m32 -isystem "$headers" -nostdlib -shared -x c -o /dev/null - 2>/dev/null; then
	build "$out/lib32" -m32 -isystem "$headers"
fi
