// SPDX-License-Identifier: Apache-2.0

// Command smc_chk reports whether this host, and the path to a peer, can use SMC, and why not.
package main

import (
	"os"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcchk"
)

func main() { os.Exit(cli.Main(smcchk.Tool)) }
