// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package tool lists all commands of the suite, for code that handles each of them, such as the manuals.
package tool

import (
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smckit"
	"github.com/smckit/smckit/internal/tool/smclab"
)

// All returns the commands in the order of their names. Each has a directory in cmd/.
func All() []cli.Tool {
	all := append(smckit.Tools(), smckit.Tool, smclab.Tool)
	slices.SortFunc(all, func(a, b cli.Tool) int { return strings.Compare(a.Name, b.Name) })
	return all
}
