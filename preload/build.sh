#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds libsmc-preload.so.1 into a directory, and on x86-64 the 32-bit one into lib32 below it if the compiler can. Does nothing
# if they are newer than the sources. Without a C compiler it prints a message and builds no library; smc_run works without.
#
# A second argument names another architecture than that of this machine, as Go does. The compiler then has the name that
# Debian and Fedora give it, or that of $CC.
set -eu

out=$1
src=$(dirname "$0")
name=libsmc-preload.so.1

machine=${2:-}
case $machine in
386) machine=i686 ;;
amd64) machine=x86_64 ;;
arm64) machine=aarch64 ;;
ppc64le) machine=powerpc64le ;;
esac
if [ -n "$machine" ]; then
	cc=${CC:-$machine-linux-gnu-gcc}
else
	cc=${CC:-cc}
fi

# fresh DIR: the library there is newer than the sources.
fresh() {
	[ -e "$1/$name" ] && [ -z "$(find "$src" -newer "$1/$name" -path "$src/*.[ch]" -o -newer "$1/$name" -path "$src/build.sh")" ]
}

if ! command -v "${cc%% *}" >/dev/null; then
	fresh "$out" || echo "preload: no C compiler (${cc%% *}), so no $name: smc_run --method preload will not work" >&2
	exit 0
fi
target=$($cc -dumpmachine)
case $target in
"$machine"*) ;;
*)
	echo "preload: CC=$cc compiles for $target, not for $2: unset CC, or name a compiler for $2" >&2
	exit 1
	;;
esac

# GCC for arm64 has atomic operations call functions of its own library, and these need one of a C library.
case $target in
aarch64*) inline=-mno-outline-atomics ;;
*) inline= ;;
esac

# One file works with all C libraries: it is linked to none, and has no start files of a compiler. All that it uses of a C library is
# weak, so the linker refuses whatever else is undefined.
build() {
	dir=$1
	shift
	if fresh "$dir"; then
		return
	fi
	mkdir -p "$dir"
	# CFLAGS are split into words. A running program may use the old library, so replace the file instead of writing to it.
	# shellcheck disable=SC2086
	$cc "$@" $inline ${CFLAGS:--O2} -std=gnu11 -Wall -Wextra -ffreestanding -fPIC -fvisibility=hidden -fno-stack-protector \
		-fno-asynchronous-unwind-tables -nostdlib -shared -s -Wl,-soname,$name -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack \
		-Wl,-z,defs -Wl,--hash-style=both -o "$dir/$name.$$" "$src"/*.c
	mv "$dir/$name.$$" "$dir/$name"
}

build "$out"

# The kernel's headers are enough, but Debian keeps them where a 32-bit compiler does not look.
case $target in
x86_64*) ;;
*) exit 0 ;;
esac
headers=/usr/include/$($cc -print-multiarch)
if echo '#include <asm/unistd.h>' | $cc -m32 -isystem "$headers" -nostdlib -shared -x c -o /dev/null - 2>/dev/null; then
	build "$out/lib32" -m32 -isystem "$headers"
fi
