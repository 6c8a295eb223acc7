// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"cmp"
	"fmt"
	"slices"
)

// reasonInfo describes one Reason.
type reasonInfo struct {
	code               Reason
	name, text, remedy string
}

// String returns the code as smcss shows it, such as "0x03010000".
func (r Reason) String() string { return fmt.Sprintf("%#08x", uint32(r)) }

// MarshalText returns String.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Name returns the short name of the reason, such as "PEER_NO_SMC", or the empty string for a code that is not known.
// Where `smcr -d stats` of smc-tools labels a code, the name is that label.
func (r Reason) Name() string { return r.info().name }

// Text returns the meaning of the reason, one phrase without a full stop, or the empty string for a code that is not known.
func (r Reason) Text() string { return r.info().text }

// Remedy returns the action to take for the reason, one phrase without a full stop, or the empty string for a code that is
// not known.
func (r Reason) Remedy() string { return r.info().remedy }

// Known reports whether the code is one of Reasons.
func (r Reason) Known() bool { return r.info().name != "" }

// Reasons returns all codes that Linux uses, in ascending order.
func Reasons() []Reason {
	all := make([]Reason, len(reasons))
	for i := range reasons {
		all[i] = reasons[i].code
	}
	return all
}

func (r Reason) info() reasonInfo {
	i, ok := slices.BinarySearchFunc(reasons, r, func(e reasonInfo, r Reason) int {
		return cmp.Compare(e.code, r)
	})
	if !ok {
		return reasonInfo{}
	}
	return reasons[i]
}
