// SPDX-License-Identifier: Apache-2.0

// Command smc_conf keeps the configuration of AF_SMC in files and applies it to the kernel.
package main

import (
	"os"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcconf"
)

func main() { os.Exit(cli.Main(smcconf.Tool)) }
