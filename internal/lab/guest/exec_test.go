// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironment(t *testing.T) {
	got := environment([]string{"PATH=/bin", "PATHS=1", "HOME=/"}, []string{"PATH=/a:/bin", "NEW=x=y", "NEW=z"})
	want := []string{"PATHS=1", "HOME=/", "PATH=/a:/bin", "NEW=z"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
