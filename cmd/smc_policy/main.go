// SPDX-License-Identifier: Apache-2.0

// Command smc_policy says which sockets use SMC.
package main

import (
	"os"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcpolicy"
)

func main() { os.Exit(cli.Main(smcpolicy.Tool)) }
