// SPDX-License-Identifier: Apache-2.0

package pnet

import "strings"

// HardwareIDLen is the number of bytes that a utility string has for each port of a device.
const HardwareIDLen = 16

// DecodeUtilString returns the PNET IDs that the firmware of IBM Z has set for the ports of a device, one string per
// port, "" for a port without one. b is the content of util_string in sysfs of a PCI function or a channel path: 16 bytes
// of EBCDIC (IBM-1047) per port, padded with blanks or zeros. As in the kernel, an ID that starts with a blank or a
// zero byte is not set. Bytes beyond the last full 16 belong to no port and are ignored.
//
// The IDs are not checked further: firmware allows characters (@, #, $) that the table of the kernel does not.
func DecodeUtilString(b []byte) []string {
	ids := make([]string, 0, len(b)/HardwareIDLen)
	for ; len(b) >= HardwareIDLen; b = b[HardwareIDLen:] {
		ids = append(ids, decodeHardwareID(b[:HardwareIDLen]))
	}
	return ids
}

func decodeHardwareID(b []byte) string {
	if b[0] == 0 || b[0] == ebcdicBlank {
		return ""
	}
	var s strings.Builder
	for _, c := range b {
		s.WriteRune(rune(ibm1047[c]))
	}
	return strings.TrimRight(s.String(), " \x00")
}

// ebcdicBlank is a blank in EBCDIC.
const ebcdicBlank = 0x40

// ibm1047 holds, for each byte of the EBCDIC code page IBM-1047, the Unicode code point, all of which are below 256.
// Source: the output of iconv of the GNU C library for the 256 bytes.
const ibm1047 = "" +
	"\x00\x01\x02\x03\x9c\x09\x86\x7f\x97\x8d\x8e\x0b\x0c\x0d\x0e\x0f" +
	"\x10\x11\x12\x13\x9d\x85\x08\x87\x18\x19\x92\x8f\x1c\x1d\x1e\x1f" +
	"\x80\x81\x82\x83\x84\x0a\x17\x1b\x88\x89\x8a\x8b\x8c\x05\x06\x07" +
	"\x90\x91\x16\x93\x94\x95\x96\x04\x98\x99\x9a\x9b\x14\x15\x9e\x1a" +
	"\x20\xa0\xe2\xe4\xe0\xe1\xe3\xe5\xe7\xf1\xa2\x2e\x3c\x28\x2b\x7c" +
	"\x26\xe9\xea\xeb\xe8\xed\xee\xef\xec\xdf\x21\x24\x2a\x29\x3b\x5e" +
	"\x2d\x2f\xc2\xc4\xc0\xc1\xc3\xc5\xc7\xd1\xa6\x2c\x25\x5f\x3e\x3f" +
	"\xf8\xc9\xca\xcb\xc8\xcd\xce\xcf\xcc\x60\x3a\x23\x40\x27\x3d\x22" +
	"\xd8\x61\x62\x63\x64\x65\x66\x67\x68\x69\xab\xbb\xf0\xfd\xfe\xb1" +
	"\xb0\x6a\x6b\x6c\x6d\x6e\x6f\x70\x71\x72\xaa\xba\xe6\xb8\xc6\xa4" +
	"\xb5\x7e\x73\x74\x75\x76\x77\x78\x79\x7a\xa1\xbf\xd0\x5b\xde\xae" +
	"\xac\xa3\xa5\xb7\xa9\xa7\xb6\xbc\xbd\xbe\xdd\xa8\xaf\x5d\xb4\xd7" +
	"\x7b\x41\x42\x43\x44\x45\x46\x47\x48\x49\xad\xf4\xf6\xf2\xf3\xf5" +
	"\x7d\x4a\x4b\x4c\x4d\x4e\x4f\x50\x51\x52\xb9\xfb\xfc\xf9\xfa\xff" +
	"\x5c\xf7\x53\x54\x55\x56\x57\x58\x59\x5a\xb2\xd4\xd6\xd2\xd3\xd5" +
	"\x30\x31\x32\x33\x34\x35\x36\x37\x38\x39\xb3\xdb\xdc\xd9\xda\x9f"
