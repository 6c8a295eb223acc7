// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const rfcSection = `(?:sections? |appendix )?(?:[1-7](?:\.\d+)*|[ABC](?:\.\d+)*)\b`

var (
	rfcCitation = regexp.MustCompile(`RFC 7609,? (` + rfcSection + `(?:(?:, | and )` + rfcSection + `)*)`)
	rfcNumber   = regexp.MustCompile(`\b(?:[1-7]|[ABC])(?:\.\d+)*\b`)
	// A citation may go on in the next line of a comment.
	commentBreak = regexp.MustCompile(`\s*\n\s*(?:\*|//|#|\.\\")?\s*`)
)

// rfcCitations returns the sections of RFC 7609 that a text cites.
func rfcCitations(text []byte) []string {
	var sections []string
	for _, m := range rfcCitation.FindAllSubmatch(commentBreak.ReplaceAll(text, []byte(" ")), -1) {
		sections = append(sections, rfcNumber.FindAllString(string(m[1]), -1)...)
	}
	return sections
}

// TestRFCCitations checks that the sections of RFC 7609 that code and documents cite exist.
func TestRFCCitations(t *testing.T) {
	data, err := os.ReadFile("docs/testdata/rfc7609-sections.txt")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Fields(string(data))
	cited := 0
	for _, file := range repoFiles(t) {
		if file == "tests/rfc_test.go" {
			continue
		}
		for _, section := range rfcCitations(read(t, file)) {
			cited++
			if !slices.Contains(sections, section) {
				t.Errorf("%s cites section %s of RFC 7609, which does not exist", file, section)
			}
		}
	}
	if cited < 20 {
		t.Errorf("only %d citations found: the search is wrong", cited)
	}
}

// TestFindRFCCitations checks that the search above finds citations as people write them.
func TestFindRFCCitations(t *testing.T) {
	for text, want := range map[string][]string{
		"(RFC 7609, 4.5.6), which":                         {"4.5.6"},
		"RFC 7609, 3.5.4, 3.5.5.1.3 and 3.5.5.1.4). The":   {"3.5.4", "3.5.5.1.3", "3.5.5.1.4"},
		" * LLC (RFC 7609,\n * 3.5.5.2.1). So":             {"3.5.5.2.1"},
		"// flags of RFC 7609 appendix A.4.\n":             {"A.4"},
		"RFC 7609, section 4.5 and 4.7. Nothing":           {"4.5", "4.7"},
		"RFC 7609, 3.1 and appendix A),":                   {"3.1", "A"},
		"RFC 7609, version 1, or RFC 7609, 52 bytes, IPv4": nil,
	} {
		if got := rfcCitations([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q: sections %q, want %q", text, got, want)
		}
	}
}
