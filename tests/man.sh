#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Looks for mistakes in manual pages, with mandoc and, where it is installed, groff.
set -eu

if ! command -v mandoc >/dev/null && ! "$(dirname "$0")/deps.sh"; then
	echo "man: no mandoc: the manual pages are not checked" >&2
	exit 0
fi
found=$(mandoc -Tlint -Wwarning "$@" || true)
if command -v groff >/dev/null; then
	found=$found$(for page; do groff -K utf8 -t -man -Tutf8 -ww -z -rLL=80n "$page" 2>&1; done)
fi
[ -z "$found" ] || {
	echo "$found" >&2
	exit 1
}
