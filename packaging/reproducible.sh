#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes a release twice of the last commit, in directories of different names and without what the Go compiler has kept, and
# compares the checksums of all that comes of it.
set -eu

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
unset SOURCE_DATE_EPOCH
for dir in one another/place; do
	git clone -q --no-local . "$work/$dir"
done
for dir in one another/place; do
	(
		cd "$work/$dir"
		# Each compiles all of it, in a place of its own.
		GOCACHE=$work/$dir.cache TZ=UTC${#dir} ${MAKE:-make} -s release >/dev/null
	)
done
if ! diff "$work/one/dist/SHA256SUMS" "$work/another/place/dist/SHA256SUMS"; then
	echo "reproducible: two builds differ" >&2
	exit 1
fi
echo "reproducible: two builds are the same: $(wc -l <"$work/one/dist/SHA256SUMS") files"
