// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"slices"
	"strings"

	"github.com/smckit/smckit/pkg/policy"
)

// ParseRules parses the text of a file of rules. name is that of the file. The error is an *Error or a *policy.SyntaxError.
func ParseRules(text, name string) ([]policy.Rule, error) {
	if len(text) > maxSize {
		return nil, tooLarge(name)
	}
	return policy.ParseFile(text, name, policy.SystemNames{})
}

// MergeRules changes the text of a file of rules so that it contains these, in their order. A rule that stays keeps its line, with the
// comments directly above it. Other comments stay at the beginning.
func MergeRules(text string, rules []policy.Rule) string {
	old, err := policy.ParseFile(text, "", policy.SystemNames{})
	if err == nil && slices.EqualFunc(old, rules, policy.Rule.Equal) {
		return text
	}
	head, blocks := splitRules(text)
	var b strings.Builder
	b.WriteString(head)
	for _, r := range rules {
		line := r.Text(policy.SystemNames{})
		if block, ok := blocks[line]; ok {
			b.WriteString(block)
		} else {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// splitRules splits a text into the lines of each rule, by the rule as it is written, and the other lines.
func splitRules(text string) (head string, blocks map[string]string) {
	blocks = map[string]string{}
	var above string
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			line += "\n"
		}
		rules, err := policy.ParseFile(line, "", policy.SystemNames{})
		switch {
		case err == nil && len(rules) == 1:
			blocks[rules[0].Text(policy.SystemNames{})] = above + line
			above = ""
		case strings.TrimSpace(line) == "":
			head += above + line
			above = ""
		default:
			above += line
		}
	}
	return head + above, blocks
}
