// SPDX-License-Identifier: Apache-2.0

// Command smc_dbg collects the information that a bug report needs.
package main

import (
	"os"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcdbg"
)

func main() { os.Exit(cli.Main(smcdbg.Tool)) }
