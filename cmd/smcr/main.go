// SPDX-License-Identifier: Apache-2.0

// Command smcr shows and controls SMC-R.
package main

import (
	"os"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcrd"
)

func main() { os.Exit(cli.Main(smcrd.ToolR)) }
