// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package smckit is the command smckit: it shows what this host does with SMC, and has the other commands of the suite as its own.
package smckit

import (
	"path/filepath"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcchk"
	"github.com/smckit/smckit/internal/tool/smcconf"
	"github.com/smckit/smckit/internal/tool/smcdbg"
	"github.com/smckit/smckit/internal/tool/smcismd"
	"github.com/smckit/smckit/internal/tool/smcmonitor"
	"github.com/smckit/smckit/internal/tool/smcpnet"
	"github.com/smckit/smckit/internal/tool/smcpolicy"
	"github.com/smckit/smckit/internal/tool/smcrd"
	"github.com/smckit/smckit/internal/tool/smcrnics"
	"github.com/smckit/smckit/internal/tool/smcrstats"
	"github.com/smckit/smckit/internal/tool/smcrun"
	"github.com/smckit/smckit/internal/tool/smcss"
)

const name = "smckit"

// commands are the commands of smckit.
var commands = []cli.Sub{
	{Name: "check", Short: "Check whether this host, and the path to a peer, can use SMC, and why not", Tool: smcchk.Tool},
	{Name: "config", Short: "Keep the configuration of AF_SMC in files, and apply them", Tool: smcconf.Tool},
	{Name: "devices", Short: "List RDMA and ISM devices with their PNET IDs, and switch them on and off", Tool: smcrnics.Tool},
	{Name: "eid", Short: "List and change the user EIDs of this host", Tool: smcrd.ToolEID, Lines: map[string]string{"smcd ueid": ""}},
	{Name: "fabrics", Short: "List the fabrics that this host serves to its guests, and their members", Tool: smcismd.ToolFabrics},
	{
		Name: "groups", Short: "List link groups, and end them", Tool: smcrd.ToolGroups,
		Lines: map[string]string{
			"linkgroup": "", "smcr linkgroup": "-R", "smcd linkgroup": "-D", "smcr -d linkgroup": "-Rd", "smcd -d linkgroup": "-Dd",
		},
	},
	{
		Name: "links", Short: "List the links of SMC-R link groups, and delete them", Tool: smcrd.ToolLinks,
		Lines: map[string]string{"smcr linkgroup link-show": "", "smcr -d link": "-d"},
	},
	{Name: "monitor", Short: "Print link groups, links, devices and ports that come and go, and fallbacks", Tool: smcmonitor.Tool},
	{Name: "pnet", Short: "Show and change the PNET table", Tool: smcpnet.Tool},
	{Name: "policy", Short: "Say which sockets of this host use SMC", Tool: smcpolicy.Tool},
	{Name: "report", Short: "Collect what a bug report needs", Tool: smcdbg.Tool},
	{Name: "run", Short: "Run a program with AF_SMC sockets in place of TCP sockets", Tool: smcrun.Tool},
	{Name: "sockets", Short: "List AF_SMC sockets, and why some are TCP", Tool: smcss.Tool},
	{
		Name: "stats", Short: "Show and reset the statistics of SMC-R and SMC-D", Tool: smcrstats.Tool,
		Lines: map[string]string{"smcr -d stats": "-d"},
	},
}

// Tools returns the commands that smckit is if it is called by their names.
func Tools() []cli.Tool {
	return []cli.Tool{
		smcchk.Tool, smcconf.Tool, smcdbg.Tool, smcismd.Tool, smcpnet.Tool, smcpolicy.Tool, smcrnics.Tool, smcrun.Tool,
		smcrd.ToolD, smcrd.ToolR, smcrstats.Tool, smcss.Tool,
	}
}

// Called returns the command for the arguments of a process, which begin with the name by which it was called: the one of that name,
// smckit for other names.
func Called(args []string) cli.Tool {
	if len(args) > 0 {
		called := filepath.Base(args[0])
		for _, t := range Tools() {
			if t.Name == called {
				return t
			}
		}
	}
	return Tool
}
