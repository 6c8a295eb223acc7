// SPDX-License-Identifier: Apache-2.0

// Command smcd shows and controls SMC-D.
package main

import (
	"os"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcrd"
)

func main() { os.Exit(cli.Main(smcrd.ToolD)) }
