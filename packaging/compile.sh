#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the program smckit and the library of smc_run for an architecture, as Go names it, into a directory. Where no compiler
# for another architecture is installed, the lab downloads one, which runs on amd64.
set -eu

arch=$1
bin=$2

case $arch in
arm64) compiler=aarch64-linux-gnu-gcc ;;
s390x) compiler=s390x-linux-gnu-gcc ;;
*) compiler= ;;
esac
if [ "$compiler" ] && [ "$(go env GOHOSTARCH)" = amd64 ] && [ ! "${CC:-}" ] && ! command -v "$compiler" >/dev/null; then
	GOARCH='' go run ./cmd/smclab library --arch "$arch" "$bin" || {
		echo "packages: no compiler for $arch: install one that has the name $compiler, or set CC" >&2
		exit 1
	}
fi
"${MAKE:-make}" -s build COMMANDS=smckit GOARCH="$arch" BIN="$bin"
