// SPDX-License-Identifier: Apache-2.0

// Command smc_run runs a program with AF_SMC sockets instead of TCP sockets.
package main

import (
	"os"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcrun"
)

func main() { os.Exit(cli.Main(smcrun.Tool)) }
