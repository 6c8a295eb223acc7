// SPDX-License-Identifier: Apache-2.0

package smcchk

import (
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/check"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
)

// document is the answer as JSON.
type document struct {
	Schema int        `json:"schema"`
	Able   bool       `json:"able"`
	Kernel string     `json:"kernel_release" schema1:"kernel"`
	Module moduleJSON `json:"module"`
	// that the configuration allows: for connections to the peer with `-C`, or else for all
	Transports []transportJSON `json:"transports"`
	// `-C`
	Path *pathJSON `json:"path,omitzero"`
	// `-C`, if a connection was tried
	Live *liveJSON `json:"live,omitzero"`
	// the most severe ones first
	Findings []Finding `json:"findings"`
	Unknown  []string  `json:"unknown_facts" schema1:"unknown"`
}

type moduleJSON struct {
	Available bool `json:"available"`
	Loaded    bool `json:"loaded"`
	BuiltIn   bool `json:"built_in"`
	Smckit    bool `json:"smckit"`
	// if known
	Version string `json:"module_version,omitzero" schema1:"version"`
	// if known
	File string `json:"module_file,omitzero" schema1:"file"`
}

type transportJSON struct {
	Transport string `json:"transport" schema1:",hyphen"`
	Version   int    `json:"smc_version" schema1:"version"`
	// or the PCI address of an ISM device
	Device string `json:"device"`
	// of SMC-R
	Port uint8 `json:"port,omitzero"`
	// if there is one
	NetDev string `json:"netdev,omitzero"`
	// if there is one
	PNETID string `json:"pnet_id,omitzero"`
	Local  bool   `json:"within_host" schema1:"local"`
}

type pathJSON struct {
	Host      string `json:"peer_name" schema1:"host"`
	Address   string `json:"address,omitzero"`
	Local     bool   `json:"within_host" schema1:"local"`
	Interface string `json:"netdev,omitzero" schema1:"interface"`
	Source    string `json:"source_address,omitzero" schema1:"source"`
	// if there is one
	Gateway string `json:"gateway,omitzero"`
	MTU     int    `json:"mtu,omitzero"`
	// if there is one
	Neighbour string `json:"neighbour,omitzero"`
}

type liveJSON struct {
	Target string `json:"target"`
	// if it failed
	Failure string `json:"failure,omitzero"`
	// the same
	Error string `json:"error,omitzero"`
	usedTransportJSON
	// if the server is `smc_chk --server`
	Peer *peerJSON `json:"peer_end,omitzero" schema1:"peer"`
	// if measured
	Latency float64 `json:"latency_us,omitzero"`
	// in each direction, if measured
	Throughput float64 `json:"bytes_per_second,omitzero" schema1:"throughput"`
}

type peerJSON struct {
	AFSMC bool `json:"af_smc"`
	usedTransportJSON
}

type usedTransportJSON struct {
	// if known
	Transport string `json:"transport,omitzero" schema1:"mode,hyphen"`
	// if SMC
	SMCVersion int `json:"smc_version,omitzero" schema1:",dotted"`
	// if known
	SMCRelease *int `json:"smc_release,omitzero" schema1:"-"`
	// of a TCP connection on an AF_SMC socket
	Fallback *jsondoc.Fallback `json:"fallback,omitzero"`
	// if it is not known
	Unknown string `json:"transport_unknown,omitzero" schema1:"unknown"`
}

// Finding is a condition that is met.
type Finding struct {
	ID       string `json:"condition" schema1:"id"`
	Severity string `json:"severity"`
	Text     string `json:"text"`
	Remedy   string `json:"remedy"`
}

func newDocument(env *cli.Env, s *check.Snapshot, findings []check.Finding) document {
	m := &s.Module
	doc := document{
		Schema: jsondoc.Schema, Able: check.Able(findings), Kernel: s.Kernel.Release,
		Module: moduleJSON{
			Available: s.Sockets.Available(), Loaded: m.Loaded, BuiltIn: m.BuiltIn, Smckit: m.Ours, Version: m.Version, File: m.File,
		},
		Transports: []transportJSON{}, Findings: NewFindings(env, findings), Unknown: []string{},
		Path: newPath(s.Path), Live: newLive(env, s.Live),
	}
	for _, c := range s.Choices() {
		doc.Transports = append(doc.Transports, transportJSON{
			Transport: jsondoc.Transport(c.Transport), Version: c.Version, Device: cli.Printable(c.Device), Port: c.Port, NetDev: cli.Printable(c.NetDev),
			PNETID: cli.Printable(c.PNETID), Local: c.Local(),
		})
	}
	for _, u := range s.Unknown {
		doc.Unknown = append(doc.Unknown, cli.OneLine(env.Hint(u)))
	}
	return doc
}

// NewFindings returns findings as documents have them, never nil.
func NewFindings(env *cli.Env, findings []check.Finding) []Finding {
	list := []Finding{}
	for _, f := range findings {
		list = append(list, Finding{f.ID, string(f.Severity), cli.OneLine(env.Hint(f.Text)), cli.OneLine(env.Hint(f.Remedy))})
	}
	return list
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

func newLive(env *cli.Env, l *check.Live) *liveJSON {
	if l == nil {
		return nil
	}
	out := &liveJSON{
		Target: l.Target.String(), Failure: string(l.Failure), usedTransportJSON: newUsedTransport(env, l.Transport, l.TransportErr),
		Latency: float64(l.Latency.Nanoseconds()) / 1000, Throughput: l.Throughput,
	}
	if l.Err != nil {
		out.Error = cli.OneLine(l.Err.Error())
	}
	if l.Peer != nil {
		out.Peer = &peerJSON{AFSMC: l.Peer.AFSMC, usedTransportJSON: newUsedTransport(env, l.Peer.Transport, nil)}
	}
	return out
}

func newUsedTransport(env *cli.Env, c check.Transport, err error) usedTransportJSON {
	out := usedTransportJSON{Transport: jsondoc.Transport(c.Mode)}
	version, release, hasRelease := strings.Cut(c.Version, ".")
	out.SMCVersion, _ = strconv.Atoi(version)
	if n, err := strconv.Atoi(release); hasRelease && err == nil {
		out.SMCRelease = &n
	}
	if err != nil {
		out.Unknown = cli.OneLine(err.Error())
	}
	if f := c.Fallback; f != nil {
		fallback := jsondoc.NewFallback(*f, env.Reason)
		out.Fallback = &fallback
	}
	return out
}

// pnetDocument is the PNET ID of an interface.
type pnetDocument struct {
	Schema    int    `json:"schema"`
	Interface string `json:"netdev" schema1:"interface"`
	// if it has one
	PNETID string `json:"pnet_id,omitzero" schema1:",keep,pnet_object"`
	// the same
	Origin string `json:"pnet_id_origin,omitzero" schema1:"-"`
}

func newPNETDocument(i *check.Interface) pnetDocument {
	return pnetDocument{
		Schema: jsondoc.Schema, Interface: cli.Printable(i.Name),
		PNETID: cli.Printable(i.PNETID.ID), Origin: jsondoc.Origin(i.PNETID.Source),
	}
}

// conditionsDocument lists the conditions.
type conditionsDocument struct {
	Schema     int       `json:"schema"`
	Conditions []Finding `json:"conditions"`
}

func newConditions(env *cli.Env) conditionsDocument {
	doc := conditionsDocument{Schema: jsondoc.Schema, Conditions: []Finding{}}
	for _, c := range check.Conditions() {
		doc.Conditions = append(doc.Conditions, Finding{c.ID, string(c.Severity), env.Hint(check.Plain(c.Text)), env.Hint(check.Plain(c.Remedy))})
	}
	return doc
}
