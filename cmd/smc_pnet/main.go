// SPDX-License-Identifier: Apache-2.0

// Command smc_pnet shows and changes the PNET table of AF_SMC.
package main

import (
	"os"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcpnet"
)

func main() { os.Exit(cli.Main(smcpnet.Tool)) }
