// SPDX-License-Identifier: Apache-2.0

// Package attrtest has what tests need to give and to expect the same netlink messages on machines of either byte order. It shares no
// code with the packages under test.
package attrtest

import (
	"encoding/binary"
	"testing"
)

// Attr is an attribute as the kernel of this machine writes it, with its padding.
func Attr(typ uint16, value string) string {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, value...)
	return string(append(b, make([]byte, -len(b)&3)...))
}

// NeedLittleEndian skips a test of messages that a little-endian kernel has sent.
func NeedLittleEndian(t testing.TB) {
	t.Helper()
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("has messages of a little-endian kernel, which this machine reads otherwise")
	}
}
