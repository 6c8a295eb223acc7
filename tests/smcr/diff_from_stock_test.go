// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"testing"
)

// Recorded messages between two hosts with the stock module, of Linux 6.12 and of Linux 7.2, which offer SMC-D, too.
const (
	stockCapture  = "../wire/testdata/smcr-v2-linux-6.12.hex"
	stockCaptureD = "../wire/testdata/smcr-v2-linux-7.2-two-links-setup.hex"
)

func offer(s speaker) string { return option(s.offers) }

// The upper half of the last byte of agreement is the number of receives, 2^5.
func agreement(s speaker) string {
	if s.agrees {
		return "\x02SK\x51"
	}
	return option(false)
}

func size(s speaker) string {
	if s.offers {
		return "\x43"
	}
	return "\x23"
}

func option(said bool) string {
	if said {
		return "\x02SK\x01"
	}
	return "\x00\x00\x00\x00"
}

var (
	syn      = []string{"SYN", "SYN, ACK"}
	proposal = []string{"Proposal"}
	answer   = []string{"Accept", "Confirm"}
	control  = []string{"CDC Message"}
)

// llc returns the names of an LLC message of a version and of its response.
func llc(name, version string) []string { return []string{name + version, name + version + "(Resp)"} }

const version2 = " (v2)"

// ofAnyVersion are the differences in what the messages of both versions have at the same places. Names of LLC messages end with version.
func ofAnyVersion(version string) []difference {
	confirmLink, addLink, confirmRkey := llc("Confirm Link", version), llc("Add Link", version), llc("Confirm Rkey", version)
	return []difference{
		{syn, 8, 12, "the time", nil},
		{syn[1:], 12, 16, "the peer's time", nil},

		{answer, 8, 10, "a host's number", nil},
		{answer, 10, 16, "the other part of its name", mac},
		{answer, 16, 32, "address", gid},
		{answer, 32, 38, "address", mac},
		{answer, 38, 41, "number of the queue pair", nil},
		{answer, 41, 45, "key of the RMB", nil},
		{answer, 46, 50, "token of the connection", nil},
		{answer, 52, 60, "address of the RMB", nil},
		{answer, 61, 64, "number of the first packet", nil},

		{confirmLink, 4, 10, "address", mac},
		{confirmLink, 10, 26, "address", gid},
		{confirmLink, 26, 29, "number of the queue pair", nil},
		{confirmLink, 30, 34, "name of the link", nil},
		{addLink[:1], 4, 10, "address", mac},
		{addLink[:1], 12, 28, "address", gid},
		{addLink[1:], 4, 10, "the address that the offer has", nil},
		{addLink[1:], 12, 28, "the address that the offer has", nil},
		{addLink, 28, 31, "number of the queue pair", nil},
		{addLink, 33, 36, "number of the first packet", nil},
		{confirmRkey, 5, 9, "key of the RMB", nil},
		{confirmRkey, 9, 17, "address of the RMB", nil},

		{control, 4, 8, "token of the peer's connection", nil},
	}
}

// differences are all that are allowed.
var differences = append(ofAnyVersion(version2), []difference{
	{proposal, 8, 10, "a host's number; stock names no host that offers version 2 alone", nil},
	{proposal, 10, 16, "the other part of its name, as above", mac},
	{proposal, 32, 38, "the address of the port, as above, though servers may send to it", mac},
	{proposal, 52, 56, "our own option", offer},
	{proposal, 88, 104, "address", gid},
	{proposal, 120, 152, "the lab's EID", eid},
	{proposal, 200, 208, "GID of the loopback ISM", nil},
	{proposal, 210, 218, "GID of the loopback ISM", nil},

	{answer, 50, 51, "size of the RMB, four times that of stock, and the MTU", size},
	{answer, 64, 96, "the lab's EID", eid},
	{answer, 108, 140, "name of the host", host},
	{answer, 144, 148, "our own option", agreement},
	{answer[1:], 160, 176, "address", gid},

	{llc("Add Link", version2)[:1], 46, 62, "address", gid},
	{llc("Add Link", version2)[:1], 72, 76, "key of the RMB", nil},
	{llc("Add Link", version2)[:1], 76, 80, "key of the RMB on the new link", nil},
	{llc("Add Link", version2)[:1], 80, 88, "address of the RMB", nil},
}...)

// likeStock compares the messages of first contacts with those of the stock module.
func (l *life) likeStock(t *testing.T) {
	want := recorded(t, stockCapture)
	if l.smcd {
		want["Proposal"] = recorded(t, stockCaptureD)["Proposal"]
	}
	l.like(t, want, differences)
}
