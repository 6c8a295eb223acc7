#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzz target of the module for the given time each: fuzz.sh 60s
set -eu
time=${1:?usage: fuzz.sh TIME, for example 60s}

for pkg in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
		echo "fuzz: $pkg $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 2s "$pkg"
	done
done
