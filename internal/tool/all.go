// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package tool lists all commands of the suite, for code that handles each of them, such as the manuals.
package tool

import (
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcchk"
	"github.com/smckit/smckit/internal/tool/smcconf"
	"github.com/smckit/smckit/internal/tool/smcdbg"
	"github.com/smckit/smckit/internal/tool/smcismd"
	"github.com/smckit/smckit/internal/tool/smclab"
	"github.com/smckit/smckit/internal/tool/smcpnet"
	"github.com/smckit/smckit/internal/tool/smcpolicy"
	"github.com/smckit/smckit/internal/tool/smcrd"
	"github.com/smckit/smckit/internal/tool/smcrnics"
	"github.com/smckit/smckit/internal/tool/smcrstats"
	"github.com/smckit/smckit/internal/tool/smcrun"
	"github.com/smckit/smckit/internal/tool/smcss"
)

// All returns the commands in the order of their names. Each has a directory in cmd/.
func All() []cli.Tool {
	return []cli.Tool{
		smcchk.Tool,
		smcconf.Tool,
		smcdbg.Tool,
		smcismd.Tool,
		smcpnet.Tool,
		smcpolicy.Tool,
		smcrnics.Tool,
		smcrun.Tool,
		smcrd.ToolD,
		smclab.Tool,
		smcrd.ToolR,
		smcrstats.Tool,
		smcss.Tool,
	}
}
