// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package tool knows all commands of the suite. Those who are about each of them, such as the manuals, ask here.
package tool

import (
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcchk"
	"github.com/smckit/smckit/internal/tool/smcconf"
	"github.com/smckit/smckit/internal/tool/smcdbg"
	"github.com/smckit/smckit/internal/tool/smclab"
	"github.com/smckit/smckit/internal/tool/smcpnet"
	"github.com/smckit/smckit/internal/tool/smcrd"
	"github.com/smckit/smckit/internal/tool/smcrnics"
	"github.com/smckit/smckit/internal/tool/smcrstats"
	"github.com/smckit/smckit/internal/tool/smcrun"
	"github.com/smckit/smckit/internal/tool/smcss"
)

// All returns the commands in the order of their names. There is a directory of cmd/ for each.
func All() []cli.Tool {
	return []cli.Tool{
		smcchk.Tool,
		smcconf.Tool,
		smcdbg.Tool,
		smcpnet.Tool,
		smcrnics.Tool,
		smcrun.Tool,
		smcrd.ToolD,
		smclab.Tool,
		smcrd.ToolR,
		smcrstats.Tool,
		smcss.Tool,
	}
}
