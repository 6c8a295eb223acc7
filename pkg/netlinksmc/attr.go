// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The layout of a netlink attribute: a length that includes this header, a type whose two high bits are flags, the
// value, and padding up to a multiple of four bytes.
const (
	attrHeaderLen = 4
	attrTypeMask  = 0x3fff
)

// errAttrLength means that the length of an attribute is greater than the rest of the message.
var errAttrLength = errors.New("attribute with a length beyond the end of the message")

// nextAttr splits the first attribute off b. The netlink library's decoder is not used because it copies each value,
// treats an attribute of length zero as an empty one, and names attributes by number only in its errors.
func nextAttr(b []byte) (typ uint16, value, rest []byte, err error) {
	if len(b) < attrHeaderLen {
		return 0, nil, nil, errAttrLength
	}
	n := int(binary.NativeEndian.Uint16(b))
	if n < attrHeaderLen || n > len(b) {
		return 0, nil, nil, errAttrLength
	}
	typ = binary.NativeEndian.Uint16(b[2:]) & attrTypeMask
	// The padding of the last attribute may be missing.
	return typ, b[attrHeaderLen:n], b[min((n+3)&^3, len(b)):], nil
}

// field describes one attribute of a nest: its name in the kernel's header without the common prefix, where its value is
// stored, and whether the nest is invalid without it.
type field struct {
	name     string
	set      func(value []byte) error
	required bool
}

// fields maps attribute types to fields. Attributes that are not in it are ignored: a newer kernel may send them.
type fields map[uint16]field

// required marks a field without which the object has no identity.
func required(f field) field {
	f.required = true
	return f
}

// parse walks over the attributes in b and sets the fields. If an attribute occurs twice, the last one counts.
func (fs fields) parse(b []byte) error {
	seen := make(map[uint16]bool, len(fs))
	for len(b) > 0 {
		typ, value, rest, err := nextAttr(b)
		if err != nil {
			return err
		}
		b = rest
		f, ok := fs[typ]
		if !ok {
			continue
		}
		if err := f.set(value); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		seen[typ] = true
	}
	for _, typ := range slices.Sorted(maps.Keys(fs)) {
		if f := fs[typ]; f.required && !seen[typ] {
			return fmt.Errorf("%s is missing", f.name)
		}
	}
	return nil
}

// errLength returns the error for a value of the wrong length.
func errLength(got int, want string) error {
	return fmt.Errorf("value of %d bytes, want %s", got, want)
}

func getU8(b []byte) (uint8, error) {
	if len(b) != 1 {
		return 0, errLength(len(b), "1")
	}
	return b[0], nil
}

func getBool(b []byte) (bool, error) {
	v, err := getU8(b)
	return v != 0, err
}

func getU16(b []byte) (uint16, error) {
	if len(b) != 2 {
		return 0, errLength(len(b), "2")
	}
	return binary.NativeEndian.Uint16(b), nil
}

func getU32(b []byte) (uint32, error) {
	if len(b) != 4 {
		return 0, errLength(len(b), "4")
	}
	return binary.NativeEndian.Uint32(b), nil
}

func getU64(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, errLength(len(b), "8")
	}
	return binary.NativeEndian.Uint64(b), nil
}

// getUint reads the kernel's "uint", which is sent in four bytes as long as it fits.
func getUint(b []byte) (uint64, error) {
	switch len(b) {
	case 4:
		return uint64(binary.NativeEndian.Uint32(b)), nil
	case 8:
		return binary.NativeEndian.Uint64(b), nil
	default:
		return 0, errLength(len(b), "4 or 8")
	}
}

// getUID reads a link user ID: four bytes that are a number in network byte order.
func getUID(b []byte) (uint32, error) {
	if len(b) != 4 {
		return 0, errLength(len(b), "4")
	}
	return binary.BigEndian.Uint32(b), nil
}

// getCHID reads the CHID of a link group, which is documented to have two bytes and is sent in four.
func getCHID(b []byte) (uint16, error) {
	switch len(b) {
	case 2:
		return binary.NativeEndian.Uint16(b), nil
	case 4:
		v := binary.NativeEndian.Uint32(b)
		if v > 0xffff {
			return 0, fmt.Errorf("value %#x exceeds 16 bits", v)
		}
		return uint16(v), nil
	default:
		return 0, errLength(len(b), "2 or 4")
	}
}

// getString reads a string with or without a terminating NUL. Bytes after a NUL are not part of it.
func getString(b []byte) (string, error) {
	return cString(b), nil
}

// getName reads a string that the kernel keeps in a field of fixed length, padded with blanks on the right.
func getName(b []byte) (string, error) {
	return strings.TrimRight(cString(b), " "), nil
}

// getPNETID reads a PNET ID, which may have blanks on either side.
func getPNETID(b []byte) (string, error) {
	return strings.Trim(cString(b), " "), nil
}

func cString(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

// to returns a field that stores the value that get reads in *dst.
func to[T any](name string, get func([]byte) (T, error), dst *T) field {
	return field{name: name, set: func(b []byte) error {
		v, err := get(b)
		if err != nil {
			return err
		}
		*dst = v
		return nil
	}}
}

// enum is to for an enumeration that is kept in its own type.
func enum[E ~uint8 | ~uint32, T uint8 | uint32](name string, get func([]byte) (T, error), dst *E) field {
	return field{name: name, set: func(b []byte) error {
		v, err := get(b)
		if err != nil {
			return err
		}
		*dst = E(v)
		return nil
	}}
}

// optEnum is enum for a value that older kernels do not send.
func optEnum[E ~uint8 | ~uint32, T uint8 | uint32](name string, get func([]byte) (T, error), dst *Optional[E]) field {
	return field{name: name, set: func(b []byte) error {
		v, err := get(b)
		if err != nil {
			return err
		}
		*dst = Some(E(v))
		return nil
	}}
}

// opt is to for a value that older kernels do not send.
func opt[T any](name string, get func([]byte) (T, error), dst *Optional[T]) field {
	return field{name: name, set: func(b []byte) error {
		v, err := get(b)
		if err != nil {
			return err
		}
		*dst = Some(v)
		return nil
	}}
}

// nest returns a field that holds attributes.
func nest(name string, parse func(b []byte) error) field {
	return field{name: name, set: parse}
}
