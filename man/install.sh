#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs the manual pages and completions of a build directory below a prefix, or removes them. smclab belongs to the
# sources, so neither it nor its manual is installed.
set -eu

remove=
if [ "$1" = --remove ]; then
	remove=1
	shift
fi
build=$1
share=$2/share

# put FILE DIRECTORY
put() {
	case ${1##*/} in
	smclab* | _smclab) return ;;
	esac
	if [ -n "$remove" ]; then
		rm -f "$2/${1##*/}"
		return
	fi
	install -d "$2"
	install -m 644 "$1" "$2/"
}

for f in "$build"/man/man?/*; do
	section=${f%/*}
	put "$f" "$share/man/${section##*/}"
done
for f in "$build"/completions/bash/*; do
	put "$f" "$share/bash-completion/completions"
done
for f in "$build"/completions/zsh/*; do
	put "$f" "$share/zsh/site-functions"
done
for f in "$build"/completions/fish/*; do
	put "$f" "$share/fish/vendor_completions.d"
done
