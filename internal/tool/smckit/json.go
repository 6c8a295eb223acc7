// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smckit

import (
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/tool/smcchk"
	"github.com/smckit/smckit/internal/tool/statdoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// statusJSON is the status as JSON.
type statusJSON struct {
	Schema int `json:"schema"`
	// whether this host can use SMC: exit status 0
	Able    bool         `json:"able"`
	Kernel  string       `json:"kernel_release"`
	Module  moduleJSON   `json:"module"`
	Choices []string     `json:"configured_transports"`
	Devices []deviceJSON `json:"devices"`
	// the next three, if known
	SocketCount    *int            `json:"socket_count,omitzero"`
	ListeningCount *int            `json:"listening_count,omitzero"`
	Transports     []transportJSON `json:"transports,omitzero"`
	// if known
	Fallbacks *fallbacksJSON `json:"fallback_counts,omitzero"`
	// what `smc_chk` finds, the most severe ones first
	Findings []smcchk.Finding `json:"findings"`
	Unknown  []string         `json:"unknown_facts"`
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
	Origin string `json:"pnet_id_origin,omitzero"`
}

type transportJSON struct {
	Transport string `json:"transport"`
	// that have a connection
	Sockets int `json:"socket_count"`
}

type fallbacksJSON struct {
	// when the baseline was taken (RFC 3339); left out when figures count from module load
	Since time.Time `json:"since,omitzero"`
	// connections that fell back to TCP
	Total       uint64 `json:"total"`
	Connections uint64 `json:"connections_smc"`
	// of both roles, the most frequent ones first
	Reasons []statdoc.Reason `json:"reasons"`
}

func (s *status) document(env *cli.Env) statusJSON {
	m := &s.host.Module
	doc := statusJSON{
		Schema: jsondoc.Schema, Able: s.able(), Kernel: s.host.Kernel.Release,
		Module:  moduleJSON{Available: s.host.Sockets.Available(), Loaded: m.Loaded, Smckit: m.Ours, Version: m.Version},
		Choices: []string{}, Devices: s.deviceList(), Findings: smcchk.NewFindings(env, s.findings), Unknown: []string{},
	}
	for _, c := range s.host.Choices() {
		doc.Choices = append(doc.Choices, cli.Printable(c.String()))
	}
	if n := s.sockets; n != nil {
		doc.SocketCount, doc.ListeningCount = &n.total, &n.listening
		for _, m := range []netlinksmc.Mode{netlinksmc.ModeSMCR, netlinksmc.ModeSMCD, netlinksmc.ModeTCP} {
			doc.Transports = append(doc.Transports, transportJSON{jsondoc.Transport(m.String()), n.modes[m]})
		}
	}
	if s.stats.Snapshot != nil {
		doc.Fallbacks = &fallbacksJSON{
			Since: s.stats.Since, Total: s.stats.Fallbacks(), Connections: s.connections(), Reasons: statdoc.NewReasons(s.reasons(), env.Reason),
		}
	}
	for _, u := range s.unknown {
		doc.Unknown = append(doc.Unknown, cli.OneLine(env.Hint(u)))
	}
	return doc
}

// deviceList lists the ports of RDMA devices that SMC can use, and the SMC-D devices.
func (s *status) deviceList() []deviceJSON {
	list := []deviceJSON{}
	for _, p := range s.host.Ports {
		d := deviceJSON{Device: cli.Printable(p.Device), Port: p.Number, State: p.State, NetDev: cli.Printable(p.NetDev)}
		if p.PNETID.ID != "" {
			d.PNETID, d.Origin = cli.Printable(p.PNETID.ID), jsondoc.Origin(p.PNETID.Source)
		}
		list = append(list, d)
	}
	for _, d := range s.host.ISM {
		list = append(list, deviceJSON{Device: cli.Printable(d.PCIID)})
	}
	return list
}
