#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzz target in Go for the given time each: fuzz.sh 60s
#
# The go command writes an input that fails to testdata/fuzz/TARGET/. To keep it, move it to f.Add of the target, or to its
# testdata/fuzz/TARGET.txt where there is one. The fuzzers in C are run by make -C tests/wire fuzz.
set -eu
time=${1:?usage: fuzz.sh TIME, for example 60s}

for pkg in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
		echo "fuzz: $pkg $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 2s "$pkg"
	done
done
