// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// version returns the numbers of a series.
func version(t *testing.T, series string) []int {
	t.Helper()
	var numbers []int
	for part := range strings.SplitSeq(series, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// TestSeriesList checks the order of the list of kernels, and that no suite is to have two kernels.
func TestSeriesList(t *testing.T) {
	for i, s := range kernels[1:] {
		if last := kernels[i].name; slices.Compare(version(t, last), version(t, s.name)) >= 0 {
			t.Errorf("series %s comes after %s", s.name, last)
		}
	}
	for i, suite := range Suites() {
		if slices.Index(Suites(), suite) != i {
			t.Errorf("two series are of %s, which has one kernel", suite)
		}
	}
	if Newest() != Series()[len(kernels)-1] || !slices.Contains(StockSeries(), DefaultSeries()) {
		t.Errorf("newest %s, default %s", Newest(), DefaultSeries())
	}
}

// TestSeriesDKMS checks that DKMS builds the module for the kernels of the lab.
func TestSeriesDKMS(t *testing.T) {
	conf, err := os.ReadFile("../../kernel/dkms.conf")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^BUILD_EXCLUSIVE_KERNEL="(.*)"$`).FindSubmatch(conf)
	if m == nil {
		t.Fatal("kernel/dkms.conf names no kernels")
	}
	for _, series := range Series() {
		if !regexp.MustCompile(string(m[1])).MatchString(series + ".1-amd64") {
			t.Errorf("BUILD_EXCLUSIVE_KERNEL in kernel/dkms.conf leaves out series %s", series)
		}
	}
}
