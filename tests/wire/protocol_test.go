// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// captured returns the messages of stock hosts as hexadecimal digits.
func captured(t *testing.T) map[string]bool {
	t.Helper()
	names, err := filepath.Glob("testdata/*.hex")
	if err != nil || len(names) == 0 {
		t.Fatalf("no captures (%v)", err)
	}
	messages := make(map[string]bool)
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if fields := strings.Fields(line); len(fields) == 3 {
				messages[fields[2]] = true
			}
		}
	}
	return messages
}

// joinHex returns the digits of a block of docs/protocol.md, whose lines are bytes, then "#", their offset, and their
// meaning.
func joinHex(t *testing.T, block string) string {
	t.Helper()
	var digits strings.Builder
	for line := range strings.Lines(block) {
		octets, comment, _ := strings.Cut(line, "#")
		if fields := strings.Fields(comment); len(fields) == 0 || fields[0] != strconv.Itoa(digits.Len()/2) {
			t.Errorf("%q is at offset %d", strings.TrimSpace(line), digits.Len()/2)
		}
		octets = strings.Join(strings.Fields(octets), "")
		if _, err := hex.DecodeString(octets); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		digits.WriteString(octets)
	}
	return digits.String()
}

// TestProtocolExamples checks that each message in docs/protocol.md is one that a stock host has sent or, if the paragraph before it
// says so, one that the module's encoders write, byte by byte and at the offsets that the page gives. TestCodecs decodes the same
// messages.
func TestProtocolExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	stock, ours := captured(t), make(map[string]bool)
	for mode, least := range map[string]int{"encode": 20, "encode-llc": 20, "encode-imm": 3} {
		for _, s := range encoded(t, mode, least) {
			ours[hex.EncodeToString(s.message)] = true
		}
	}
	const remark = "as this module encodes it"
	blocks := regexp.MustCompile("(?s)([^\n]*)\n*```hex\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 18 {
		t.Fatalf("the page has %d messages", len(blocks))
	}
	for _, block := range blocks {
		from, missing := stock, "no capture"
		if strings.Contains(strings.ToLower(block[1]), remark) {
			from, missing = ours, "no encoder"
		}
		if !from[joinHex(t, block[2])] {
			t.Errorf("%s has this message:\n%s", missing, block[2])
		}
	}
}
