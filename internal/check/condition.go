// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Severity says how bad a condition is.
type Severity string

// The severities.
const (
	// Error means that what was asked for does not work.
	Error Severity = "error"
	// Warning means that something does not, or not well, which may be what matters.
	Warning Severity = "warning"
	// Info is worth knowing.
	Info Severity = "info"
)

// Condition is something that can be wrong with a host, or a path.
type Condition struct {
	// ID names it, in scripts and in docs/smc_chk.md.
	ID       string
	Severity Severity
	// Says and Remedy are one line each, without a full stop. They are formats, for the values that Find returns.
	Says, Remedy string
	// Sysctls are the settings outside of net.smc that Find asks for with Snapshot.Setting. Those of net.smc are always there.
	Sysctls []string
	// Find returns the values for each time that the condition is met: none if it is not.
	Find func(s *Snapshot) []Values
}

// Values fill the texts of a condition.
type Values []any

// met is what a condition without values finds.
func met(b bool) []Values {
	if b {
		return []Values{nil}
	}
	return nil
}

// met1 is what a condition with values finds that can be met once.
func met1(b bool, values ...any) []Values {
	if b {
		return []Values{values}
	}
	return nil
}

// Finding is a condition that is met.
type Finding struct {
	ID           string
	Severity     Severity
	Text, Remedy string
}

// Conditions returns all conditions, each subject in the order in which one would look.
func Conditions() []Condition {
	return slices.Concat(moduleConditions, deviceConditions, identityConditions, ruleConditions, pathConditions, liveConditions)
}

// Findings returns the conditions that a snapshot meets, the worst first.
func (s *Snapshot) Findings() []Finding {
	var out []Finding
	for _, severity := range []Severity{Error, Warning, Info} {
		for _, c := range Conditions() {
			if c.Severity != severity {
				continue
			}
			for _, v := range c.Find(s) {
				out = append(out, c.finding(v))
			}
		}
	}
	return out
}

func (c *Condition) finding(v Values) Finding {
	return Finding{ID: c.ID, Severity: c.Severity, Text: format(c.Says, v), Remedy: format(c.Remedy, v)}
}

// format fills a text. A text need not use all values, but each that it uses has a number.
func format(text string, v Values) string {
	if len(v) == 0 {
		return text
	}
	// Of no width and no letters: it takes up the values that the text does not.
	return fmt.Sprintf(text+fmt.Sprintf("%%[%d]s", len(v)+1), append(slices.Clone(v), "")...)
}

// Able says whether the answer is yes: no finding is an error.
func Able(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Error })
}

// Live says whether the finding is about a connection that was tried.
func (f Finding) Live() bool { return strings.HasPrefix(f.ID, "live-") }

var placeholder = regexp.MustCompile(`%\[\d\][a-z]`)

// Plain is a text of a condition, with dots in place of its values.
func Plain(text string) string { return placeholder.ReplaceAllString(text, "…") }
