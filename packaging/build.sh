#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the packages of a version, .deb and .rpm, in a directory, from what 'make install' and 'make dkms-install' install, for each
# of the architectures that Go names so. Each format has a tree of its own, because libraries have other places; each package
# contains a part of that tree.
set -eu
# Programs that run here are for this machine.
unset GOARCH
# The modes of the files go into the packages.
umask 022

version=$1
dist=$2
shift 2
work=$PWD/build/packages
make=${MAKE:-make}

rm -rf "$work"
# If a program does not compile, the packages that were built before stay.
for arch; do
	packaging/compile.sh "$arch" "$work/bin/$arch"
done
mkdir -p "$work/scripts" "$dist"
rm -f "$dist"/*.deb "$dist"/*.rpm
for script in packaging/scripts/*; do
	sed "s/@VERSION@/$version/" "$script" >"$work/scripts/${script##*/}"
done
(cd tools && go build -trimpath -buildvcs=false -o "$work/pack" ./pack)

# library WHERE DIR: the tree of a library's package.
library() {
	install -d "$2"
	mv "$1"/libsmc-preload.so* "$2/"
	case $2 in # Debian's libraries are not executable.
	"$work"/deb/*) chmod 644 "$2"/*.so.1 ;;
	esac
}

# host_files TREE DIR: what hosts of guests need is a package of its own.
host_files() {
	(cd "$1" && find . \( -name 'smc_ismd*' -o -name _smc_ismd -o -name 'smc-ismd*' -o -name ism.conf \) ! -type d) | while read -r file; do
		install -d "$2/${file%/*}"
		mv "$1/$file" "$2/$file"
	done
}

# documents TREE PACKAGE FORMAT: the documents of each package.
documents() {
	doc=$1/usr/share/doc/$2
	install -d "$doc"
	if [ "$2" = smckit ]; then
		install -d "$doc/docs"
		install -m 644 README.md "$doc/README.md"
		install -m 644 docs/* "$doc/docs/"
	fi
	case $3 in
	deb)
		gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
		install -m 644 packaging/copyright "$doc/copyright"
		if [ -e "packaging/lintian-overrides/$2" ]; then
			install -D -m 644 "packaging/lintian-overrides/$2" "$1/usr/share/lintian/overrides/$2"
		fi
		;;
	rpm)
		install -m 644 README.md "$doc/README.md"
		install -d "$1/usr/share/licenses/$2"
		case $2 in
		*-dkms) install -m 644 LICENSES/GPL-2.0-only.txt "$1/usr/share/licenses/$2/" ;;
		*) install -m 644 LICENSES/Apache-2.0.txt "$1/usr/share/licenses/$2/" ;;
		esac
		;;
	esac
}

# pack FORMAT PACKAGE ARCHITECTURE builds one package.
pack() {
	documents "$work/$1/$2.$3" "$2" "$1"
	"$work/pack" -config "packaging/nfpm/$2.yaml" -stage "$work/$1/$2.$3" -format "$1" -arch "$3" -version "$version" -target "$dist"
}

# commands FORMAT ARCHITECTURE builds the packages of the commands and of the library.
commands() {
	format=$1 arch=$2
	root=$work/$format
	tree=$root/smckit.$arch
	case $format-$arch in
	deb-amd64) lib=/usr/lib/x86_64-linux-gnu lib32=/usr/lib/i386-linux-gnu ;;
	deb-arm64) lib=/usr/lib/aarch64-linux-gnu lib32=/usr/lib32 ;;
	deb-s390x) lib=/usr/lib/s390x-linux-gnu lib32=/usr/lib32 ;;
	deb-*) lib=/usr/lib/$(${CC:-cc} -print-multiarch) lib32=/usr/lib32 ;;
	rpm-*) lib=/usr/lib64 lib32=/usr/lib ;;
	esac
	# 'make packages' and compile.sh have built what this installs.
	$make -s -o build -o man -o completions install GOARCH="$arch" BIN="$work/bin/$arch" \
		DESTDIR="$tree" PREFIX=/usr LIBDIR="$lib" LIB32DIR="$lib32"
	if [ -e "$tree$lib/libsmc-preload.so.1" ]; then
		library "$tree$lib" "$root/libsmc-preload.$arch$lib"
		pack "$format" libsmc-preload "$arch"
	else
		echo "packages: no C compiler, so no $format package libsmc-preload for $arch" >&2
	fi
	if [ -e "$tree$lib32/libsmc-preload.so.1" ]; then
		library "$tree$lib32" "$root/libsmc-preload.386$lib32"
		pack "$format" libsmc-preload 386
	fi
	if [ -d "$tree/usr/share/man" ]; then
		find "$tree/usr/share/man" -type f -exec gzip -9n '{}' +
	fi
	if [ "$format" = deb ] && [ -d "$tree/usr/share/zsh/site-functions" ]; then
		mv "$tree/usr/share/zsh/site-functions" "$tree/usr/share/zsh/vendor-completions"
	fi
	host_files "$tree" "$root/smckit-ism.$arch"
	find "$tree/usr/lib" -type d -empty -delete
	pack "$format" smckit "$arch"
	pack "$format" smckit-ism "$arch"
}

for arch; do
	commands deb "$arch"
	commands rpm "$arch"
done
for format in deb rpm; do
	$make -s dkms-install DESTDIR="$work/$format/smckit-dkms.all" DKMS_VERSION="$version"
	pack $format smckit-dkms all
done
