// SPDX-License-Identifier: Apache-2.0

// Command smc_rnics lists the RoCE and ISM devices of this host and switches PCI functions on and off.
package main

import (
	"os"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcrnics"
)

func main() { os.Exit(cli.Main(smcrnics.Tool)) }
