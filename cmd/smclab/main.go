// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command smclab boots guests with real kernels, joined to an SMC network, for experiments.
package main

import (
	"os"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smclab"
)

func main() { os.Exit(cli.Main(smclab.Tool)) }
