// SPDX-License-Identifier: Apache-2.0

package smcdbg

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// minName is the length of the shortest name that is masked. Shorter names identify no host, and occur in many words.
const minName = 3

// masker replaces addresses and names by words. The same address always gets the same word, so that the report still shows what
// belongs together.
type masker struct {
	// all masks IP addresses and names, too.
	all   bool
	names []string

	macs, addrs []string
}

// address matches text that may be a MAC address, a GUID, a GID or an IP address. mask checks each match afterwards.
var address = regexp.MustCompile(
	`[0-9A-Fa-f]*:[0-9A-Fa-f:]*:\d+\.\d+\.\d+\.\d+|[0-9A-Fa-f]*:[0-9A-Fa-f:]*:[0-9A-Fa-f]*|\d+\.\d+\.\d+\.\d+`)

var (
	// mac matches link-layer addresses of 6 bytes or more (Ethernet, InfiniBand), and GUIDs written as bytes.
	mac = regexp.MustCompile(`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5,}$`)
	// guid matches the GUID of a node in the format of sysfs.
	guid = regexp.MustCompile(`^[0-9A-Fa-f]{4}(:[0-9A-Fa-f]{4}){3}$`)
)

// mask replaces addresses and names in a text.
func (m *masker) mask(text string) string {
	text = address.ReplaceAllStringFunc(text, m.run)
	if !m.all {
		return text
	}
	for i, name := range m.names {
		if len(name) >= minName {
			text = regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).ReplaceAllString(text, fmt.Sprintf("HOST-%d", i+1))
		}
	}
	return text
}

// run replaces the address in s. A colon may follow the address, and the end of a word with a colon may precede it.
func (m *masker) run(s string) string {
	// One colon at the end is punctuation, but two may be part of the address.
	word := s
	if strings.HasSuffix(word, ":") && !strings.HasSuffix(word, "::") {
		word = word[:len(word)-1]
	}
	behind := s[len(word):]
	for begin := 0; begin < len(word); {
		if masked := m.word(word[begin:]); masked != word[begin:] {
			return word[:begin] + masked + behind
		}
		colon := strings.IndexByte(word[begin:], ':')
		if colon < 0 || isAddress(word[begin:]) {
			break
		}
		begin += colon + 1
	}
	return s
}

// isAddress reports whether s is an address, including those that are not masked.
func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil || mac.MatchString(s) || guid.MatchString(s)
}

// word returns the replacement of an address. It returns other text, and addresses that are not masked, unchanged.
func (m *masker) word(s string) string {
	if mac.MatchString(s) || guid.MatchString(s) {
		if strings.Trim(s, "0:") == "" {
			return s
		}
		return number(&m.macs, "MAC", strings.ToLower(s))
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return s
	}
	addr = addr.Unmap()
	switch {
	case addr.IsUnspecified(), addr.IsLoopback():
		return s
	case isEUI64(addr):
		return number(&m.macs, "MAC", addr.String())
	case m.all:
		return number(&m.addrs, "IP", addr.String())
	}
	return s
}

// isEUI64 reports whether the lower half of an address is derived from a MAC address.
func isEUI64(a netip.Addr) bool {
	b := a.As16()
	return !a.Is4() && b[11] == 0xff && b[12] == 0xfe
}

// number returns the replacement for s: the word and the position of s among the known addresses.
func number(known *[]string, word, s string) string {
	i := slices.Index(*known, s)
	if i < 0 {
		i = len(*known)
		*known = append(*known, s)
	}
	return fmt.Sprintf("%s-%d", word, i+1)
}
