// SPDX-License-Identifier: Apache-2.0

// Command smckit shows what this host does with SMC, and has all other commands of the suite: as its own commands, and under their
// names, by links to it.
package main

import (
	"os"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smckit"
)

func main() { os.Exit(cli.Main(smckit.Called(os.Args))) }
