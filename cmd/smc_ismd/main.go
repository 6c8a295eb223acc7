// SPDX-License-Identifier: Apache-2.0

// Command smc_ismd gives guests of this host shared memory for SMC-D.
package main

import (
	"os"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcismd"
)

func main() { os.Exit(cli.Main(smcismd.Tool)) }
