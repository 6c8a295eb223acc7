// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"encoding/binary"
	"strings"
)

// encodeEID returns the attribute for eid, which has passed CheckEID. The kernel accepts only 32 characters, padded with
// blanks.
func encodeEID(eid string) []byte {
	return appendString(nil, AttrEIDTableEntry, eid+strings.Repeat(" ", eidLen-len(eid)))
}

// appendHeader appends the header of an attribute with n bytes, which follow it.
func appendHeader(b []byte, typ uint16, n int) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(attrHeaderLen+n))
	return binary.NativeEndian.AppendUint16(b, typ)
}

// appendString appends an attribute that holds a string with a terminating NUL to b.
func appendString(b []byte, typ uint16, s string) []byte {
	n := attrHeaderLen + len(s) + 1
	b = append(appendHeader(b, typ, len(s)+1), s...)
	return append(b, make([]byte, 1+(4-n%4)%4)...)
}

// appendU32 appends an attribute that holds a number of 32 bits to b.
func appendU32(b []byte, typ uint16, v uint32) []byte {
	return binary.NativeEndian.AppendUint32(appendHeader(b, typ, 4), v)
}

// appendU8 appends an attribute that holds a number of 8 bits to b.
func appendU8(b []byte, typ uint16, v uint8) []byte {
	return append(appendHeader(b, typ, 1), v, 0, 0, 0)
}
