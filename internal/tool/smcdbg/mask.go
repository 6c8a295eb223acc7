// SPDX-License-Identifier: Apache-2.0

package smcdbg

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// minName is the length of the shortest name that is masked: a shorter one tells nobody anything, and is in many words.
const minName = 3

// masker replaces what is nobody's business by words, the same by the same, so that what belongs together can still be
// seen.
type masker struct {
	// all masks IP addresses and names, too.
	all   bool
	names []string

	macs, addrs []string
}

// address finds what may be a MAC address, a GUID, a GID or an IP address. Whether it is one is decided afterwards.
var address = regexp.MustCompile(
	`[0-9A-Fa-f]*:[0-9A-Fa-f:]*:\d+\.\d+\.\d+\.\d+|[0-9A-Fa-f]*:[0-9A-Fa-f:]*:[0-9A-Fa-f]*|\d+\.\d+\.\d+\.\d+`)

var (
	// mac is one of 6 bytes or more: Ethernet's, InfiniBand's, and GUIDs byte by byte.
	mac = regexp.MustCompile(`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5,}$`)
	// guid is that of a node as sysfs has it.
	guid = regexp.MustCompile(`^[0-9A-Fa-f]{4}(:[0-9A-Fa-f]{4}){3}$`)
)

// mask returns text without what is to be left out.
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

// run replaces the address in s, which may have a colon behind it, and the end of a word and a colon before it.
func (m *masker) run(s string) string {
	// A colon that ends a clause is not part of the address, but two may be.
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

// isAddress says whether s is one, be it one that may be shown.
func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil || mac.MatchString(s) || guid.MatchString(s)
}

// word returns what stands for an address, or what is none as it is.
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
	case madeOfMAC(addr):
		return number(&m.macs, "MAC", addr.String())
	case m.all:
		return number(&m.addrs, "IP", addr.String())
	}
	return s
}

// madeOfMAC says whether the lower half of an address is made of a MAC address.
func madeOfMAC(a netip.Addr) bool {
	b := a.As16()
	return !a.Is4() && b[11] == 0xff && b[12] == 0xfe
}

// number returns the word for s.
func number(known *[]string, word, s string) string {
	i := slices.Index(*known, s)
	if i < 0 {
		i = len(*known)
		*known = append(*known, s)
	}
	return fmt.Sprintf("%s-%d", word, i+1)
}
