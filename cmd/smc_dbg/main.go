// SPDX-License-Identifier: Apache-2.0

// Smc_dbg collects what a report of a bug needs.
package main

import (
	"os"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcdbg"
)

func main() { os.Exit(cli.Main(smcdbg.Tool)) }
