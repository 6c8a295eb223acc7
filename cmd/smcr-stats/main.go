// SPDX-License-Identifier: Apache-2.0

// Command smcr-stats shows the statistics of SMC-R and SMC-D.
package main

import (
	"os"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcrstats"
)

func main() { os.Exit(cli.Main(smcrstats.Tool)) }
