// SPDX-License-Identifier: Apache-2.0

// Package remedy keeps the remedy of an error apart from the problem, so that commands can print both in one line, and as two
// fields of JSON.
package remedy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/pkg/smcerr"
)

// Error is a problem with its remedy. Its text is one line: "problem: remedy". A problem that ends in ';' or ',' is followed by a
// blank in place of the colon.
type Error struct {
	Problem error
	Remedy  string
}

// Errorf returns an Error with a formatted problem.
func Errorf(remedy, format string, args ...any) error {
	return &Error{Problem: fmt.Errorf(format, args...), Remedy: remedy}
}

// Error returns problem and remedy.
func (e *Error) Error() string { return e.Problem.Error() + e.separator() + e.Remedy }

// Unwrap returns the problem.
func (e *Error) Unwrap() error { return e.Problem }

func (e *Error) separator() string {
	if text := e.Problem.Error(); strings.HasSuffix(text, ";") || strings.HasSuffix(text, ",") {
		return " "
	}
	return ": "
}

// Split returns the text of err without its remedy, and the remedy: that of the first Error, policy.SyntaxError or smcerr.Error that err
// wraps. The remedy is empty if there is none.
func Split(err error) (problem, remedy string) {
	problem = err.Error()
	separator := ": "
	if e, ok := errors.AsType[*Error](err); ok {
		remedy, separator = e.Remedy, e.separator()
	} else if e, ok := errors.AsType[*policy.SyntaxError](err); ok {
		remedy = e.Remedy
	} else if e, ok := errors.AsType[*smcerr.Error](err); ok {
		remedy = e.Remedy
	}
	if remedy == "" {
		return problem, ""
	}
	before, after, found := strings.Cut(problem, separator+remedy)
	if !found {
		return problem, remedy
	}
	return strings.TrimRight(before, ";,") + after, remedy
}
