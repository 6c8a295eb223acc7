// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smckit

import (
	"fmt"
	"io"
	"strings"

	"github.com/smckit/smckit/internal/check"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// Lines of a subject. The rest is behind the command that lists them all.
const (
	maxTransports = 3
	maxReasons    = 2
)

// page is the text under construction. Each subject has a word in the first column, and one or more lines.
type page struct {
	strings.Builder
	env *cli.Env
}

func (p *page) line(subject, format string, args ...any) {
	text := fmt.Sprintf("%-10s %s", subject, cli.OneLine(fmt.Sprintf(format, args...)))
	p.WriteString(strings.TrimRight(text, " ") + "\n")
}

// write prints the status in about ten lines.
func (s *status) write(env *cli.Env) error {
	p := page{env: env}
	p.line("Module", "%s, kernel %s", s.host.ModuleWords(), s.host.Kernel.Release)
	s.writeTransports(&p)
	p.line("Devices", "%s", s.devices())
	if n := s.sockets; n != nil {
		p.line("Sockets", "%d listening; connections: %d SMC-R, %d SMC-D, %d TCP", n.listening,
			n.modes[netlinksmc.ModeSMCR], n.modes[netlinksmc.ModeSMCD], n.modes[netlinksmc.ModeTCP])
	}
	if s.stats.Snapshot != nil {
		s.writeFallbacks(&p)
	}
	for _, u := range s.unknown {
		p.line("Unknown", "%s", env.Hint(u))
	}
	s.writeNext(&p)
	_, err := io.WriteString(env.Out, p.String())
	return err
}

func (s *status) writeTransports(p *page) {
	choices := s.host.Choices()
	if !s.able() || len(choices) == 0 {
		p.line("SMC", "not possible")
		return
	}
	for i, c := range choices {
		switch {
		case i == 0:
			p.line("SMC", "%s", c)
		case i == maxTransports && len(choices) > maxTransports+1:
			p.line("", "and %d more: 'smckit check' lists them", len(choices)-i)
			return
		default:
			p.line("", "%s", c)
		}
	}
}

// devices lists the ports of RDMA devices and the ISM devices in one line.
func (s *status) devices() string {
	var list []string
	for _, d := range s.deviceList() {
		text := d.Device
		if d.Port > 0 {
			text += fmt.Sprintf(" port %d %s", d.Port, d.State)
		}
		if d.NetDev != "" {
			text += " (" + d.NetDev + ")"
		}
		if d.PNETID != "" {
			text += " " + d.PNETID
		}
		if d.Origin == jsondoc.OriginTable {
			text += "*" // as in smc_rnics
		}
		list = append(list, text)
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

func (s *status) writeFallbacks(p *page) {
	since := "module load"
	if !s.stats.Since.IsZero() {
		since = s.stats.Since.Local().Format("2006-01-02 15:04:05")
	}
	p.line("Fallbacks", "%d connections were TCP since %s, %d were SMC", s.stats.Fallbacks(), since, s.connections())
	for i, r := range s.reasons() {
		if i == maxReasons {
			break
		}
		p.line("", "%d: %s", r.Count, check.Words(r.Reason))
		if remedy := r.Reason.Remedy(); remedy != "" {
			p.line("", "  %s", p.env.Hint(remedy))
		}
	}
}

// writeNext prints the most severe finding as the next step. The fallbacks have been printed already.
func (s *status) writeNext(p *page) {
	var findings []check.Finding
	for _, f := range s.findings {
		if f.Severity != check.Info {
			findings = append(findings, f)
		}
	}
	if len(findings) == 0 {
		p.line("Next", "nothing to do: 'smckit run PROGRAM' runs a program over SMC, 'smckit sockets -a' lists sockets")
		return
	}
	p.line("Next", "%s: %s", findings[0].Severity, p.env.Hint(findings[0].Text))
	p.line("", "  %s", p.env.Hint(findings[0].Remedy))
	if n := len(findings) - 1; n > 0 {
		p.line("", "%d more: 'smckit check' lists them", n)
	}
}
