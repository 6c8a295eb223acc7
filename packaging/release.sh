#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Completes a release in the directory with the packages: adds the sources, the commands without a package and the bill of
# materials for each architecture, and checksums. The options of tar and gzip leave out everything that depends on time and place.
set -eu
# Programs that run here are for this machine.
unset GOARCH
umask 022

version=$1
dist=$(cd "$2" && pwd)
shift 2
work=$PWD/build/packages
name=smckit-$version

rm -f "$dist"/smckit-*.tar.gz "$dist"/*.json "$dist/SHA256SUMS"
if [ -n "$(git status --porcelain)" ]; then
	echo "release: the sources are those of the last commit: there are changes that are not committed" >&2
fi
git -c tar.umask=0022 archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$dist/$name.tar.gz"

rm -rf "$work/static"
(cd tools && go build -trimpath -buildvcs=false -o "$work/sbom" ./sbom)
for arch; do
	# The commands with all that belongs to them; users can unpack this archive below any prefix.
	tree=$work/static/$name-linux-$arch
	packaging/compile.sh "$arch" "$work/bin/$arch"
	${MAKE:-make} -s -o build install GOARCH="$arch" BIN="$work/bin/$arch" DESTDIR="$tree" PREFIX=
	install -m 644 README.md LICENSES/Apache-2.0.txt "$tree/"
	# Only packages have units, rules and configuration, because these contain paths.
	rm -rf "${tree:?}/etc" "$tree/lib/systemd" "$tree/lib/udev" "$tree/lib/modules-load.d" "$tree/lib/modprobe.d" "$tree/lib/sysctl.d"
	tar -C "$work/static" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
		--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime -cf - "$name-linux-$arch" |
		gzip -9n >"$dist/$name-linux-$arch.tar.gz"

	set --
	for file in "$tree"/bin/* "$tree"/lib/libsmc-preload.so.1 "$tree"/lib32/libsmc-preload.so.1; do
		[ ! -e "$file" ] || [ -h "$file" ] || set -- "$@" "$file"
	done
	"$work/sbom" -version "$version" -output "$dist/$name-linux-$arch.cdx.json" "$@"
done

cd "$dist"
files=$(find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%f\n' | LC_ALL=C sort)
# No name contains a blank.
# shellcheck disable=SC2086
sha256sum $files >SHA256SUMS
ls -l
