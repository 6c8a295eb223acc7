// SPDX-License-Identifier: Apache-2.0

// Command smcss lists AF_SMC sockets.
package main

import (
	"os"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcss"
)

func main() { os.Exit(cli.Main(smcss.Tool)) }
