// SPDX-License-Identifier: Apache-2.0

package check

import (
	"regexp"
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/catalogue"
)

// Severity is the severity of a condition.
type Severity string

// The severities.
const (
	// Error means that the connections that the user asked about cannot use SMC.
	Error Severity = "error"
	// Warning means that something else does not work, or works badly, and may concern the user.
	Warning Severity = "warning"
	// Info is information without a fault.
	Info Severity = "info"
)

// Condition describes a fault that a host, or a path, can have.
type Condition struct {
	// ID is the name of the condition in scripts and in docs/smc_chk.md.
	ID       string
	Severity Severity
	// Text describes the fault, and Remedy the action to take. Each is one line without a full stop, and a format for the values
	// that Find returns.
	Text, Remedy string
	// Fit returns the remedy that fits a host; nil if Remedy fits every one.
	Fit func(s *Snapshot) string
	// Sysctls are the settings outside of net.smc that Find reads with Snapshot.Setting. Settings of net.smc are always read.
	Sysctls []string
	// Find returns one set of values for each object that meets the condition.
	Find func(s *Snapshot) []Values
}

// Values are the arguments of the formats of a condition.
type Values []any

// met returns the result of Find for a condition without values.
func met(b bool) []Values {
	if b {
		return []Values{nil}
	}
	return nil
}

// met1 returns the result of Find for a condition that can be met only once.
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

// Conditions returns all conditions by subject. The subjects are in the order in which an administrator would check them.
func Conditions() []Condition {
	return slices.Concat(
		moduleConditions, deviceConditions, fabricConditions, linkConditions, identityConditions, ruleConditions, pathConditions,
		liveConditions,
	)
}

// Findings returns the conditions that a snapshot meets, the most severe ones first.
func (s *Snapshot) Findings() []Finding {
	var out []Finding
	for _, severity := range []Severity{Error, Warning, Info} {
		for _, c := range Conditions() {
			if c.Severity != severity {
				continue
			}
			for _, v := range c.Find(s) {
				out = append(out, c.finding(s, v))
			}
		}
	}
	return out
}

func (c *Condition) finding(s *Snapshot, v Values) Finding {
	f := Finding{ID: c.ID, Severity: c.Severity, Text: catalogue.Format(c.Text, v)}
	if c.Fit != nil {
		f.Remedy = c.Fit(s)
	} else {
		f.Remedy = catalogue.Format(c.Remedy, v)
	}
	return f
}

// Able reports whether SMC is possible: no finding is an Error.
func Able(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Error })
}

// Live reports whether the finding is about the test connection.
func (f Finding) Live() bool { return strings.HasPrefix(f.ID, "live-") }

var placeholder = regexp.MustCompile(`%\[\d\][a-z]`)

// Plain returns a text of a condition with dots instead of its values.
func Plain(text string) string { return placeholder.ReplaceAllString(text, "…") }
