// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

// states are the socket states in the order of the help text.
var states = []netlinksmc.SocketState{
	netlinksmc.StateInit,
	netlinksmc.StateListen,
	netlinksmc.StateActive,
	netlinksmc.StatePeerCloseWait1,
	netlinksmc.StatePeerCloseWait2,
	netlinksmc.StateAppCloseWait1,
	netlinksmc.StateAppCloseWait2,
	netlinksmc.StateAppFinCloseWait,
	netlinksmc.StatePeerFinCloseWait,
	netlinksmc.StatePeerAbortWait,
	netlinksmc.StateProcessAbort,
	netlinksmc.StateClosed,
}

// modes are the modes in the order of the help text.
var modes = []netlinksmc.Mode{netlinksmc.ModeSMCR, netlinksmc.ModeSMCD, netlinksmc.ModeTCP}

// filter contains the values of the filter options. A socket must match every given option, and for each option at least one of
// its values.
type filter struct {
	states []netlinksmc.SocketState
	modes  []netlinksmc.Mode
	ports  []uint16
	local  []endpointMatch
	peer   []endpointMatch
	uids   []uint32
}

// match reports whether every option selects s.
func (f *filter) match(s *netlinksmc.Socket) bool {
	return (len(f.states) == 0 || slices.Contains(f.states, s.State)) &&
		(len(f.modes) == 0 || hasMode(s) && slices.Contains(f.modes, s.Mode)) &&
		(len(f.uids) == 0 || slices.Contains(f.uids, s.UID)) &&
		(len(f.ports) == 0 || slices.Contains(f.ports, s.Local.Port()) || slices.Contains(f.ports, s.Peer.Port())) &&
		matchAny(f.local, func(m endpointMatch) bool { return m.match(s.Local) }) &&
		matchAny(f.peer, func(m endpointMatch) bool { return m.match(s.Peer) })
}

func matchAny(list []endpointMatch, match func(endpointMatch) bool) bool {
	return len(list) == 0 || slices.ContainsFunc(list, match)
}

// hasMode reports whether s.Mode is meaningful. The kernel reports SMC-R for sockets that are not connected.
func hasMode(s *netlinksmc.Socket) bool {
	if s.Mode != netlinksmc.ModeSMCR {
		return true
	}
	switch s.State {
	case netlinksmc.StateInit, netlinksmc.StateListen, netlinksmc.StateClosed:
		return false
	default:
		return true
	}
}

// listValue is a pflag.Value for an option that takes values separated by commas, and may be given more than once.
type listValue[T any] struct {
	dst   *[]T
	parse func(string) (T, error)
	kind  string
	texts []string
}

func newList[T any](dst *[]T, kind string, parse func(string) (T, error)) *listValue[T] {
	return &listValue[T]{dst: dst, kind: kind, parse: parse}
}

func (l *listValue[T]) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		v, err := l.parse(strings.TrimSpace(part))
		if err != nil {
			return err
		}
		*l.dst = append(*l.dst, v)
	}
	l.texts = append(l.texts, text)
	return nil
}

func (l *listValue[T]) String() string { return strings.Join(l.texts, ",") }
func (l *listValue[T]) Type() string   { return l.kind }

func parseState(text string) (netlinksmc.SocketState, error) { return parseName("state", text, states) }

func parseMode(text string) (netlinksmc.Mode, error) { return parseName("mode", text, modes) }

// parseName finds the value whose name is text, in either case.
func parseName[T fmt.Stringer](what, text string, values []T) (T, error) {
	for _, v := range values {
		if strings.EqualFold(v.String(), text) {
			return v, nil
		}
	}
	var none T
	return none, fmt.Errorf("%q is not a %s: use %s", text, what, strings.Join(lowerNames(values), ", "))
}

// lowerNames lists the names of values as they are typed.
func lowerNames[T fmt.Stringer](values []T) []string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = strings.ToLower(v.String())
	}
	return names
}

// uidParser returns a parser for user IDs and names that finds names with lookup.
func uidParser(lookup func(name string) (uint32, error)) func(string) (uint32, error) {
	return func(text string) (uint32, error) {
		if n, err := strconv.ParseUint(text, 10, 32); err == nil {
			return uint32(n), nil
		}
		uid, err := lookup(text)
		if err != nil {
			return 0, fmt.Errorf("%q is neither a user ID nor the name of a user of this host", text)
		}
		return uid, nil
	}
}
