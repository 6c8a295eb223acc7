// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"os"
	"slices"
	"strings"
)

// kernelSeries is a series of kernels that the lab boots, and builds our module for.
type kernelSeries struct {
	name  string // the first two numbers of the release
	suite string // the Debian suite whose current kernel is of this series
	stock bool   // Debian ships AF_SMC with it
	// ism is its driver of ISM on s390x, if modules other than the stock one can use it.
	ism ismDriver
}

// kernels are the series of the lab, oldest first. The next kernel needs a line here; CONTRIBUTING.md has the
// rest. A suite has one kernel: when sid moves to the next series, change the line of the last one.
var kernels = []kernelSeries{
	{name: "6.1", suite: "bookworm", stock: true},
	{name: "6.12", suite: "trixie", stock: true, ism: ismDriver{"CONFIG_ISM=m", "ism_register_client"}},
	{name: "7.2", suite: "sid", ism: ismDriver{"CONFIG_DIBS=m", "dibs_register_client"}},
}

// DebugSeries is the newest kernel with the kernel's own checkers in it, built here from the distribution's source.
var DebugSeries = Newest() + "-debug"

// findSeries returns the entry of a series; ok is false for the debug kernel and for series that the lab does not have.
func findSeries(name string) (s kernelSeries, ok bool) {
	i := slices.IndexFunc(kernels, func(s kernelSeries) bool { return s.name == name })
	if i < 0 {
		return kernelSeries{}, false
	}
	return kernels[i], true
}

// names lists the series that have a property, oldest first.
func names(has func(kernelSeries) bool) []string {
	var list []string
	for _, s := range kernels {
		if has(s) {
			list = append(list, s.name)
		}
	}
	return list
}

// Series lists the kernel series that distributions ship and the lab can provision, oldest first.
func Series() []string { return names(func(kernelSeries) bool { return true }) }

// Newest is the last of Series().
func Newest() string { return kernels[len(kernels)-1].name }

// StockSeries lists those of Series() that Debian ships AF_SMC with, oldest first.
func StockSeries() []string { return names(func(s kernelSeries) bool { return s.stock }) }

// DefaultSeries is the series that the lab boots if none is named: the newest that has AF_SMC without our module.
func DefaultSeries() string {
	stock := StockSeries()
	return stock[len(stock)-1]
}

// Suites lists the Debian suites that have the kernels of Series(), oldest first.
func Suites() []string {
	var list []string
	for _, s := range kernels {
		list = append(list, s.suite)
	}
	return list
}

// AllSeries lists all that can be provisioned: also the debug kernel, which takes a long time to build.
func AllSeries() []string { return append(Series(), DebugSeries) }

// TestSeries lists the kernel series that tests are to run on: those in $SMCKIT_KERNELS, with commas between them, or
// else Series().
func TestSeries() []string {
	if chosen := os.Getenv("SMCKIT_KERNELS"); chosen != "" {
		return strings.Split(chosen, ",")
	}
	return Series()
}
