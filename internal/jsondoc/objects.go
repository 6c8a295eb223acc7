// SPDX-License-Identifier: Apache-2.0

package jsondoc

import (
	"strings"

	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// Words of several documents.
const (
	RoleClient = "client"
	RoleServer = "server"
	// OriginTable and OriginFirmware say where a PNET ID comes from.
	OriginTable    = "table"
	OriginFirmware = "firmware"
)

// Transport returns the word for a transport that other text calls SMCR or SMC-R.
func Transport(name string) string { return strings.ToLower(strings.ReplaceAll(name, "-", "")) }

// Role returns the word for the role of this host in a link group.
func Role(r netlinksmc.Role) string {
	if r == netlinksmc.RoleClient {
		return RoleClient
	}
	return RoleServer
}

// Origin returns the word for the source of a PNET ID, "" if there is none.
func Origin(s ism.Source) string {
	switch s {
	case ism.SourceTable:
		return OriginTable
	case ism.SourceHardware:
		return OriginFirmware
	}
	return ""
}

// Reason is a fallback or decline code.
type Reason struct {
	Code string `json:"code"`
	// left out for a code that no Linux has
	Name   string `json:"name,omitzero"`
	Text   string `json:"text,omitzero"`
	Remedy string `json:"remedy,omitzero"`
}

// NewReason returns r with its text and remedy.
func NewReason(r netlinksmc.Reason) Reason {
	return Reason{Code: r.String(), Name: r.Name(), Text: r.Text(), Remedy: r.Remedy()}
}

// Fallback has the reasons why a connection uses TCP.
type Fallback struct {
	Reason Reason `json:"reason" schema1:"local"`
	// if the peer has given a reason
	PeerReason *Reason `json:"peer_reason,omitzero" schema1:"peer"`
}

// NewFallback returns f with reasons that newReason makes.
func NewFallback(f netlinksmc.Fallback, newReason func(netlinksmc.Reason) Reason) Fallback {
	out := Fallback{Reason: newReason(f.Reason)}
	if f.PeerDiagnosis != 0 {
		peer := newReason(f.PeerDiagnosis)
		out.PeerReason = &peer
	}
	return out
}
