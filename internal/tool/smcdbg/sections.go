// SPDX-License-Identifier: Apache-2.0

package smcdbg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcchk"
	"github.com/smckit/smckit/internal/tool/smcpnet"
	"github.com/smckit/smckit/internal/tool/smcrd"
	"github.com/smckit/smckit/internal/tool/smcrnics"
	"github.com/smckit/smckit/internal/tool/smcss"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

func systemDeps() deps {
	h := host{root: "/"}
	return deps{
		sections: []section{
			{"version.txt", h.version},
			{"check.txt", run(smcchk.Tool, "--debug")},
			{"check.json", run(smcchk.Tool, "--json")},
			{"module.txt", h.modules},
			{"modprobe.txt", h.modprobe},
			{"config.txt", h.config},
			{"dmesg.txt", kernelLog},
			{"devices.txt", run(smcrnics.Tool, "--all", "--IB-dev")},
			{"devices.json", run(smcrnics.Tool, "--all", "--json")},
			{"smcss_all.txt", run(smcss.Tool, "--all", "--debug", "--wide")},
			{"smcss_smcd.txt", run(smcss.Tool, "--smcd", "--wide")},
			{"smcss_smcr.txt", run(smcss.Tool, "--smcr", "--wide")},
			{"smcss_tcp.txt", run(smcss.Tool, "--mode", "tcp", "--explain", "--wide")},
			{"smcss_summary.txt", run(smcss.Tool, "--summary")},
			{"pnet_table.txt", run(smcpnet.Tool, "show")},
			{"smcr_links.txt", run(smcrd.ToolR, "-d", "linkgroup", "link-show")},
			{"smcr_devices.txt", run(smcrd.ToolR, "-d", "device")},
			{"smcd_lgs.txt", run(smcrd.ToolD, "-d", "linkgroup", "show")},
			{"smcd_devices.txt", run(smcrd.ToolD, "-d", "device")},
			{"smcd_info.txt", run(smcrd.ToolD, "info")},
			{"smcd_stats.txt", run(smcrd.ToolD, "-a", "-d", "stats")},
			{"smcr_stats.txt", run(smcrd.ToolR, "-a", "-d", "stats")},
			{"ueid.txt", run(smcrd.ToolR, "ueid")},
			{"limit.txt", run(smcrd.ToolR, "handshake-limit")},
			{"sysctl.txt", h.sysctls},
			{"interfaces.txt", interfaces},
			{"routes.txt", routes},
			{"proc.txt", h.proc},
		},
		names:   hostNames,
		create:  createFile,
		now:     time.Now,
		read:    readByProcess,
		timeout: 20 * time.Second,
		// More sections than processors would share the time of each.
		atOnce: min(8, runtime.NumCPU()),
		turn:   5 * time.Second,
	}
}

// run runs one of our commands. A nonzero exit status is no error here: the report contains it, and standard error.
func run(t cli.Tool, args ...string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		var out, errs bytes.Buffer
		env := &cli.Env{
			In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: os.Getenv,
			EnterNetNS: func(string) error { return errors.New("already in the network namespace") },
		}
		status := cli.Run(ctx, t, env, args)
		if status != cli.ExitOK && out.Len() == 0 {
			// Our commands print one line on errors, which begins with their name.
			return "", errors.New(strings.TrimSpace(errs.String()))
		}
		if slices.Contains(args, "--json") {
			return out.String(), nil
		}
		return fmt.Sprintf("# %s %s: exit status %d\n%s%s", t.Name, strings.Join(args, " "), status, &out, &errs), nil
	}
}

// hostNames returns the name of this host and the names that peers sent in their handshakes.
func hostNames(ctx context.Context) []string {
	var names []string
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	c, err := netlinksmc.NewContext(ctx)
	if err != nil {
		return names
	}
	defer c.Close()
	if groups, err := c.LinkGroupsR(ctx); err == nil {
		for _, g := range groups {
			if g.V2 != nil {
				names = append(names, g.V2.PeerHost)
			}
		}
	}
	if groups, err := c.LinkGroupsD(ctx); err == nil {
		for _, g := range groups {
			if g.V2 != nil {
				names = append(names, g.V2.PeerHost)
			}
		}
	}
	return names
}
