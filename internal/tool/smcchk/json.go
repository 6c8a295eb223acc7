// SPDX-License-Identifier: Apache-2.0

package smcchk

import (
	"github.com/smckit/smckit/internal/check"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// schema is the number of the JSON documents here.
const schema = 1

// document is the answer as JSON.
type document struct {
	Schema int `json:"schema"`
	// whether SMC is possible, or was used: exit status 0
	Able bool `json:"able"`
	// release of the kernel
	Kernel string     `json:"kernel"`
	Module moduleJSON `json:"module"`
	// transports that the configuration allows: for connections to the peer with `-C`, or else for all
	Transports []transportJSON `json:"transports"`
	// `-C`
	Path *pathJSON `json:"path,omitzero"`
	// `-C`, if a connection was tried
	Live *liveJSON `json:"live,omitzero"`
	// the most severe ones first
	Findings []findingJSON `json:"findings"`
	// facts that could not be read
	Unknown []string `json:"unknown"`
}

type moduleJSON struct {
	// whether AF_SMC sockets can be created
	Available bool `json:"available"`
	Loaded    bool `json:"loaded"`
	// whether it is built into the kernel
	BuiltIn bool `json:"built_in"`
	// whether it is smckit's
	Smckit bool `json:"smckit"`
	// if known
	Version string `json:"version,omitzero"`
	// the installed file, if known
	File string `json:"file,omitzero"`
}

type transportJSON struct {
	// `SMC-R` or `SMC-D`
	Transport string `json:"transport"`
	// 1 or 2
	Version int    `json:"version"`
	Device  string `json:"device"`
	// of SMC-R
	Port uint8 `json:"port,omitzero"`
	// if there is one
	NetDev string `json:"netdev,omitzero"`
	// if there is one
	PNETID string `json:"pnet_id,omitzero"`
	// within this host only
	Local bool `json:"local"`
}

type pathJSON struct {
	Host      string `json:"host"`
	Address   string `json:"address,omitzero"`
	Local     bool   `json:"local"`
	Interface string `json:"interface,omitzero"`
	Source    string `json:"source,omitzero"`
	// if there is one
	Gateway string `json:"gateway,omitzero"`
	MTU     int    `json:"mtu,omitzero"`
	// if there is one
	Neighbour string `json:"neighbour,omitzero"`
}

type liveJSON struct {
	Target string `json:"target"`
	// `socket`, `refused`, `unreachable`, `timeout`, `handshake`, `stranger`, `silent`, `broken` or `corrupt`
	Failure string `json:"failure,omitzero"`
	// if it failed
	Error string `json:"error,omitzero"`
	usedTransportJSON
	// the server's end of the connection, if the server is `smc_chk --server`
	Peer *peerJSON `json:"peer,omitzero"`
	// round trip in microseconds, if measured
	Latency float64 `json:"latency_us,omitzero"`
	// bytes per second in each direction, if measured
	Throughput float64 `json:"throughput,omitzero"`
}

type peerJSON struct {
	AFSMC bool `json:"af_smc"`
	usedTransportJSON
}

type usedTransportJSON struct {
	// `SMC-R`, `SMC-D` or `TCP`, if known
	Mode string `json:"mode,omitzero"`
	// if SMC
	Version string `json:"smc_version,omitzero"`
	// if TCP on an AF_SMC socket
	Fallback *fallbackJSON `json:"fallback,omitzero"`
	// why the mode is not known
	Unknown string `json:"unknown,omitzero"`
}

type fallbackJSON struct {
	Local reasonJSON  `json:"local"`
	Peer  *reasonJSON `json:"peer,omitzero"`
}

type reasonJSON struct {
	Code   netlinksmc.Reason `json:"code"`
	Name   string            `json:"name,omitzero"`
	Text   string            `json:"text,omitzero"`
	Remedy string            `json:"remedy,omitzero"`
}

type findingJSON struct {
	// those of [smc_chk.md](smc_chk.md#what-is-checked)
	ID string `json:"id"`
	// `error`, `warning` or `info`
	Severity string `json:"severity"`
	Text     string `json:"text"`
	Remedy   string `json:"remedy"`
}

func newDocument(s *check.Snapshot, findings []check.Finding) document {
	m := &s.Module
	doc := document{
		Schema: schema, Able: check.Able(findings), Kernel: s.Kernel.Release,
		Module: moduleJSON{
			Available: s.Sockets.Available(), Loaded: m.Loaded, BuiltIn: m.BuiltIn, Smckit: m.Ours, Version: m.Version, File: m.File,
		},
		Transports: []transportJSON{}, Findings: []findingJSON{}, Unknown: []string{},
		Path: newPath(s.Path), Live: newLive(s.Live),
	}
	for _, c := range s.Choices() {
		doc.Transports = append(doc.Transports, transportJSON{
			Transport: c.Transport, Version: c.Version, Device: cli.Printable(c.Device), Port: c.Port, NetDev: cli.Printable(c.NetDev),
			PNETID: cli.Printable(c.PNETID), Local: c.Local(),
		})
	}
	for _, f := range findings {
		doc.Findings = append(doc.Findings, findingJSON{f.ID, string(f.Severity), cli.OneLine(f.Text), cli.OneLine(f.Remedy)})
	}
	for _, u := range s.Unknown {
		doc.Unknown = append(doc.Unknown, cli.OneLine(u))
	}
	return doc
}

func newPath(p *check.Path) *pathJSON {
	if p == nil {
		return nil
	}
	out := &pathJSON{
		Host: cli.Printable(p.Host), Local: p.Local, Interface: cli.Printable(p.Interface), MTU: p.MTU, Neighbour: p.Neighbour,
	}
	if p.Peer.IsValid() {
		out.Address = p.Peer.String()
	}
	if p.Source.IsValid() {
		out.Source = p.Source.String()
	}
	if p.Gateway.IsValid() {
		out.Gateway = p.Gateway.String()
	}
	return out
}

func newLive(l *check.Live) *liveJSON {
	if l == nil {
		return nil
	}
	out := &liveJSON{
		Target: l.Target.String(), Failure: string(l.Failure), usedTransportJSON: newUsedTransport(l.Transport, l.TransportErr),
		Latency: float64(l.Latency.Nanoseconds()) / 1000, Throughput: l.Throughput,
	}
	if l.Err != nil {
		out.Error = cli.OneLine(l.Err.Error())
	}
	if l.Peer != nil {
		out.Peer = &peerJSON{AFSMC: l.Peer.AFSMC, usedTransportJSON: newUsedTransport(l.Peer.Transport, nil)}
	}
	return out
}

func newUsedTransport(c check.Transport, err error) usedTransportJSON {
	out := usedTransportJSON{Mode: c.Mode, Version: c.Version}
	if err != nil {
		out.Unknown = cli.OneLine(err.Error())
	}
	if f := c.Fallback; f != nil {
		out.Fallback = &fallbackJSON{Local: newReason(f.Reason)}
		if f.PeerDiagnosis != 0 {
			peer := newReason(f.PeerDiagnosis)
			out.Fallback.Peer = &peer
		}
	}
	return out
}

func newReason(r netlinksmc.Reason) reasonJSON {
	return reasonJSON{Code: r, Name: r.Name(), Text: r.Text(), Remedy: r.Remedy()}
}

// pnetDocument is the PNET ID of an interface.
type pnetDocument struct {
	Schema    int       `json:"schema"`
	Interface string    `json:"interface"`
	PNETID    *pnetIDOf `json:"pnet_id"`
}

type pnetIDOf struct {
	ID     string `json:"id"`
	Source string `json:"source"`
}

func newPNETDocument(i *check.Interface) pnetDocument {
	doc := pnetDocument{Schema: schema, Interface: cli.Printable(i.Name)}
	if i.PNETID.Source != ism.SourceNone {
		doc.PNETID = &pnetIDOf{cli.Printable(i.PNETID.ID), i.PNETID.Source.String()}
	}
	return doc
}

// conditionsDocument lists the conditions.
type conditionsDocument struct {
	Schema     int           `json:"schema"`
	Conditions []findingJSON `json:"conditions"`
}

func newConditions() conditionsDocument {
	doc := conditionsDocument{Schema: schema, Conditions: []findingJSON{}}
	for _, c := range check.Conditions() {
		doc.Conditions = append(doc.Conditions, findingJSON{c.ID, string(c.Severity), check.Plain(c.Text), check.Plain(c.Remedy)})
	}
	return doc
}
