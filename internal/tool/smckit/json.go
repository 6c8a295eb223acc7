// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smckit

import (
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/statdoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// statusJSON is the status as JSON.
type statusJSON struct {
	Schema int `json:"schema"`
	// whether this host can use SMC: exit status 0
	Able   bool       `json:"able"`
	Kernel string     `json:"kernel_release"`
	Module moduleJSON `json:"module"`
	// transports that the configuration allows, in words
	Transports []string     `json:"transports"`
	Devices    []deviceJSON `json:"devices"`
	// if known
	Sockets *socketsJSON `json:"sockets,omitzero"`
	// if known
	Fallbacks *fallbacksJSON `json:"fallbacks,omitzero"`
	// what `smc_chk` finds, the most severe ones first
	Findings []findingJSON `json:"findings"`
	// facts that could not be read
	Unknown []string `json:"unknown_facts"`
}

type moduleJSON struct {
	// whether AF_SMC sockets can be created
	Available bool `json:"available"`
	Loaded    bool `json:"loaded"`
	// whether it is smckit's
	Smckit bool `json:"smckit"`
	// if known
	Version string `json:"module_version,omitzero"`
}

type deviceJSON struct {
	// name of an RDMA device, PCI address or name of an ISM device
	Device string `json:"device"`
	// of an RDMA device
	Port uint8 `json:"port,omitzero"`
	// of an RDMA device
	State string `json:"state,omitzero"`
	// if there is one
	NetDev string `json:"netdev,omitzero"`
	// if there is one
	PNETID string `json:"pnet_id,omitzero"`
	// where it comes from, if there is one: `hardware` or `table`
	Origin string `json:"pnet_id_origin,omitzero"`
}

type socketsJSON struct {
	Total     int `json:"total"`
	Listening int `json:"listening"`
	// connections
	SMCR int `json:"smcr"`
	SMCD int `json:"smcd"`
	TCP  int `json:"tcp"`
}

type fallbacksJSON struct {
	// when the baseline was taken (RFC 3339); left out when figures count from module load
	Since time.Time `json:"since,omitzero"`
	// connections that fell back to TCP
	Total uint64 `json:"total"`
	// connections that did not
	Connections uint64 `json:"smc_connections"`
	// of both roles, the most frequent ones first
	Reasons []statdoc.Reason `json:"reasons"`
}

type findingJSON struct {
	// those of [smc_chk.md](smc_chk.md#what-is-checked)
	Condition string `json:"condition"`
	// `error`, `warning` or `info`
	Severity string `json:"severity"`
	Text     string `json:"text"`
	Remedy   string `json:"remedy"`
}

func (s *status) document() statusJSON {
	m := &s.host.Module
	doc := statusJSON{
		Schema: 1, Able: s.able(), Kernel: s.host.Kernel.Release,
		Module:     moduleJSON{Available: s.host.Sockets.Available(), Loaded: m.Loaded, Smckit: m.Ours, Version: m.Version},
		Transports: []string{}, Devices: s.deviceList(), Findings: []findingJSON{}, Unknown: []string{},
	}
	for _, c := range s.host.Choices() {
		doc.Transports = append(doc.Transports, cli.Printable(c.String()))
	}
	if n := s.sockets; n != nil {
		doc.Sockets = &socketsJSON{
			n.total, n.listening, n.modes[netlinksmc.ModeSMCR], n.modes[netlinksmc.ModeSMCD], n.modes[netlinksmc.ModeTCP],
		}
	}
	if s.stats.Snapshot != nil {
		doc.Fallbacks = &fallbacksJSON{
			Since: s.stats.Since, Total: s.stats.Fallbacks(), Connections: s.connections(), Reasons: statdoc.NewReasons(s.reasons()),
		}
	}
	for _, f := range s.findings {
		doc.Findings = append(doc.Findings, findingJSON{f.ID, string(f.Severity), cli.OneLine(f.Text), cli.OneLine(f.Remedy)})
	}
	for _, u := range s.unknown {
		doc.Unknown = append(doc.Unknown, cli.OneLine(u))
	}
	return doc
}

// deviceList lists the ports of RDMA devices that SMC can use, and the SMC-D devices.
func (s *status) deviceList() []deviceJSON {
	list := []deviceJSON{}
	for _, p := range s.host.Ports {
		d := deviceJSON{Device: cli.Printable(p.Device), Port: p.Number, State: p.State, NetDev: cli.Printable(p.NetDev)}
		if p.PNETID.ID != "" {
			d.PNETID, d.Origin = cli.Printable(p.PNETID.ID), p.PNETID.Source.String()
		}
		list = append(list, d)
	}
	for _, d := range s.host.ISM {
		list = append(list, deviceJSON{Device: cli.Printable(d.PCIID)})
	}
	return list
}
