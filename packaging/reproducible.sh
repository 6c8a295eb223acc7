#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the release of the last commit twice and compares all files. The second build has another path, another file system
# with another order of files, another day, time zone, locale, umask, home and user, and another number of parallel jobs. The
# two share only the downloaded Go modules.
set -eu

work=$(mktemp -d)
# A file system in memory lists the newest files first; others list files by the hash of their names.
case $(df --output=fstype,avail /dev/shm 2>/dev/null | tail -n 1) in
tmpfs\ *[0-9][0-9][0-9][0-9][0-9][0-9][0-9]) other=$(mktemp -d -p /dev/shm) ;;
*)
	echo "reproducible: /dev/shm has no GB of room: both builds are in one file system" >&2
	other=$work
	;;
esac
trap 'chmod -R u+w "$work" "$other"; rm -rf "$work" "$other"' EXIT

# A locale with an unusual sorting order and letters of its own.
locale=C.UTF-8
mkdir "$work/locale"
if localedef -i tr_TR -f UTF-8 "$work/locale/tr_TR.UTF-8" 2>/dev/null; then
	locale=tr_TR.UTF-8
fi
if go version >/dev/null 2>&1; then
	GOMODCACHE=$(go env GOMODCACHE) GOENV=$(go env GOENV)
	export GOMODCACHE GOENV
fi

# Both builds are of one commit, even if another commit follows in the meantime.
one=$work/one another=$other/another/place
git clone -q --no-local . "$one"
(umask 077 && git clone -q --no-local . "$another")

# release DIRECTORY HOME VARIABLE=VALUE... builds one release.
release() {
	cd "$1"
	home=$2
	shift 2
	mkdir -p "$home"
	env -u SOURCE_DATE_EPOCH -u XDG_CACHE_HOME -u LANG -u LANGUAGE GOCACHE="$home/cache" HOME="$home" "$@" \
		"${MAKE:-make}" -s release >/dev/null
}
# The two time zones never have the same date.
(umask 022 && release "$one" "$work/home" USER=one LOGNAME=one LC_ALL=C TZ=ONE-14)
(umask 077 && release "$another" "$work/other/home" USER=other LOGNAME=other LOCPATH="$work/locale" LC_ALL=$locale TZ=TWO+12 GOMAXPROCS=4)

files=$(find "$one/dist" -type f 2>/dev/null | wc -l)
if [ "$files" = 0 ]; then
	echo "reproducible: 'make release' has made nothing" >&2
	exit 1
fi
if ! diff -r "$one/dist" "$another/dist" >&2; then
	echo "reproducible: two builds differ" >&2
	exit 1
fi
echo "reproducible: two builds are the same: $files files"
