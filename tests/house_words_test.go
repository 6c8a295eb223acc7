// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// wordsFile lists the refused words itself.
const wordsFile = "tests/house_words_test.go"

// kernelWordsFile does so for those of the module.
const kernelWordsFile = "tests/house_test.go"

// userWords are words in Go and C outside of the module for which the field, or plain English, has another one.
var userWords = map[string]string{
	"anew": "again", "arrival": "completion, origin", "barred": "roceBlocked", "compose": "build", "crowd": "many, concurrent", "crowded": "among many",
	"deviations": "diffFromStock", "door": "mutex", "doze": "wait", "evict": "terminate", "gate": "mutex, barrier", "hear": "receive, notice",
	"heard": "received, noticed", "hears": "receives, notices", "honest": "well-behaved", "horizon": "sendable end", "hush": "stall",
	"lest": "so that not", "likewise": "too", "moods": "load", "mortal": "withUserTimeout", "murder": "killing", "mutants": "mutations",
	"patience": "timeout", "pester": "interrupt", "pot": "placeholder socket", "scene": "session, states, setup", "spell": "encode",
	"spill": "version 2 receive buffer", "spoil": "corrupt", "storm": "heavyLoss", "told": "reported, informed", "undisturbed": "with blocked signals",
	"unforgetting": "withoutDeleteRkey", "uproot": "detach", "weather": "impairments", "whoever": "the name of it",
}

// phrases are those for which plain English has others.
var phrases = map[string]string{
	"but for": "except", "can be had": "is available", "cannot be had": "is not available",
	"came and went": "changed", "came or went": "changed", "carried the connection": "was the transport", "carries the connection": "is the transport",
	"for want of": "because there is no", "makes no sense": "is invalid", "nobody's": "no one's",
	"says whether": "reports whether", "so many": "the number", "somebody else's": "another user's", "tells whether": "reports whether",
	"to be had": "available", "what there is": "the name of it",
}

var (
	identifier = regexp.MustCompile(`[A-Za-z]\w*`)
	hump       = regexp.MustCompile(`[A-Z]*[a-z]+|[A-Z]+`)
	riddle     = regexp.MustCompile(`^\s*(//|/\*\*?) (What|Who|Whoever) `)
	// Comments of YAML, Python, the shell and the manual. Elsewhere than in documents, # also begins the comments of examples in help.
	scriptRiddle = regexp.MustCompile(`^\s*(#|\.\\") (What|Who|Whoever) `)
)

// identifierWords splits an identifier, in snake_case or camelCase, into its words in lower case. An acronym is a word: of RMBPot, the
// words are rmb and pot.
func identifierWords(id string) (words []string) {
	for _, h := range hump.FindAllString(id, -1) {
		first := strings.IndexFunc(h, unicode.IsLower)
		if first > 1 {
			words = append(words, strings.ToLower(h[:first-1]))
			h = h[first-1:]
		}
		words = append(words, strings.ToLower(h))
	}
	return words
}

// findWords returns the words of a text that a list has, each with the better one, also those that are part of an identifier.
func findWords(text []byte, better map[string]string) (found []string) {
	for _, id := range identifier.FindAll(text, -1) {
		if b, ok := better[string(id)]; ok {
			found = append(found, fmt.Sprintf("%q: say %s", id, b))
			continue
		}
		for _, w := range identifierWords(string(id)) {
			if b, ok := better[w]; ok {
				found = append(found, fmt.Sprintf("%q in %q: say %s", w, id, b))
			}
		}
	}
	return found
}

// findPhrases does the same for phrases.
func findPhrases(text []byte, better map[string]string) (found []string) {
	for phrase, b := range better {
		if bytes.Contains(text, []byte(phrase)) && regexp.MustCompile(`\b`+regexp.QuoteMeta(phrase)+`\b`).Match(text) {
			found = append(found, fmt.Sprintf("%q: say %s", phrase, b))
		}
	}
	slices.Sort(found)
	return found
}

// findRiddle finds a comment that begins with "What", "Who" or "Whoever" as a noun, instead of the name of a thing.
func findRiddle(text []byte) []string {
	if riddle.Match(text) {
		return []string{"the comment begins with a bare what or who: name the thing"}
	}
	return nil
}

// findScriptRiddle does the same for documents and what is beside them.
func findScriptRiddle(text []byte) []string {
	if scriptRiddle.Match(text) {
		return findRiddle([]byte("// What is"))
	}
	return findRiddle(text)
}

// refuse fails the test for each line that a search finds in the files below some folders.
func refuse(t *testing.T, folders []string, find func(line []byte) []string) {
	t.Helper()
	for _, file := range repoFiles(t) {
		if file == wordsFile || file == kernelWordsFile || !slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(file, f) }) {
			continue
		}
		for i, line := range bytes.Split(read(t, file), []byte("\n")) {
			for _, problem := range find(line) {
				t.Errorf("%s:%d: %s", file, i+1, problem)
			}
		}
	}
}

// refuseWords refuses words in the files below a folder for which the field has another one.
func refuseWords(t *testing.T, folder string, better map[string]string) {
	t.Helper()
	for w := range better {
		if len(findWords([]byte("// the "+w+", which"), better)) != 1 {
			t.Errorf("the search does not find %q", w)
		}
	}
	refuse(t, []string{folder}, func(line []byte) []string { return findWords(line, better) })
}

// TestUserWords refuses words in commands, packages and tests.
func TestUserWords(t *testing.T) {
	for _, folder := range []string{"cmd/", "internal/", "pkg/", "tests/"} {
		refuseWords(t, folder, userWords)
	}
}

// documents are the files beside sources: of these, the rules about phrases and comments hold, too.
var documents = []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "ansible/", "docs/", "kernel/README.md", "man/", "specs/"}

// TestPhrases refuses phrases there, in the packages for other programs, and in documents.
func TestPhrases(t *testing.T) {
	refuse(t, append([]string{"cmd/", "internal/", "pkg/", "preload/", "tests/"}, documents...), func(line []byte) []string { return findPhrases(line, phrases) })
}

// TestComments checks that comments there begin with the name of a thing.
func TestComments(t *testing.T) {
	refuse(t, []string{"cmd/", "internal/", "kernel/", "preload/", "tests/"}, findRiddle)
	refuse(t, documents, findScriptRiddle)
}

// TestWordRules checks that the rules about phrases and comments detect violations, and that all rules accept plain words. The rule
// about words checks that itself.
func TestWordRules(t *testing.T) {
	for p := range phrases {
		if found := findPhrases([]byte("// a thing "+p+" it"), phrases); len(found) == 0 {
			t.Errorf("%q is not found", p)
		}
	}
	for text, want := range map[string]int{
		"\t// What is read here goes on.": 1, "/* Who polls is woken. */": 1, "// Whoever waits": 1, "/** What */": 1,
		"\t// The reader that polls is woken.": 0, "x := 1 // What": 0, "// Whole pages": 0,
	} {
		if found := findRiddle([]byte(text)); len(found) != want {
			t.Errorf("%q: %q", text, found)
		}
	}
	for text, want := range map[string]int{"  # What runs": 1, `.\" Who reads it`: 1, "// What": 0, "// What is": 1, "## What was tried": 0} {
		if found := findScriptRiddle([]byte(text)); len(found) != want {
			t.Errorf("%q: %q", text, found)
		}
	}
	for text, want := range map[string]int{
		"readTold(x)": 1, "x.told_all": 1, "MAX_PATIENCE": 1, "RMBPot": 1, "told2": 1, "untold": 0, "hearty": 0, "Anew": 1, "x1Anew": 1, "SPOTLight": 0,
	} {
		if found := findWords([]byte(text), userWords); len(found) != want {
			t.Errorf("%q: %q", text, found)
		}
	}
	plain := []byte("// A reader that polls notices the end. It has not received so much of the buffer.")
	if found := append(findWords(plain, userWords), findPhrases(plain, phrases)...); len(found) > 0 {
		t.Errorf("plain words are refused: %q", found)
	}
}
