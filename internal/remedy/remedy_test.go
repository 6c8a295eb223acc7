// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/pkg/smcerr"
)

// TestSplit has errors with remedies of both kinds, alone and wrapped.
func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		err                   error
		text, problem, remedy string
	}{
		{errors.New("failed"), "failed", "failed", ""},
		{Errorf("try x", "no %s", "y"), "no y: try x", "no y", "try x"},
		{Errorf("use --force", "no %s;", "y"), "no y; use --force", "no y", "use --force"},
		{Errorf("so use --force", "no y,"), "no y, so use --force", "no y", "so use --force"},
		{fmt.Errorf("line 3: %w (line 4)", Errorf("try x", "no y")), "line 3: no y: try x (line 4)", "line 3: no y (line 4)", "try x"},
		{&smcerr.Error{Op: "list", Err: os.ErrExist, Remedy: "wait"}, "list: file already exists: wait", "list: file already exists", "wait"},
		{&smcerr.Error{Op: "list", Err: os.ErrExist}, "list: file already exists", "list: file already exists", ""},
		{
			fmt.Errorf("rule 2: %w", &policy.SyntaxError{File: "f", Line: 1, Word: 2, Text: "no y", Remedy: "try x"}),
			"rule 2: f:1: word 2: no y: try x", "rule 2: f:1: word 2: no y", "try x",
		},
		{&policy.SyntaxError{Text: "no y"}, "no y", "no y", ""},
		{
			Errorf("outer", "a: %w", &smcerr.Error{Op: "b", Remedy: "inner"}),
			"a: b: failed: inner: outer", "a: b: failed: inner", "outer",
		},
	} {
		problem, remedy := Split(tt.err)
		if tt.err.Error() != tt.text || problem != tt.problem || remedy != tt.remedy {
			t.Errorf("%q is %q and %q, not %q: %q and %q", tt.err, problem, remedy, tt.text, tt.problem, tt.remedy)
		}
	}
	if err := Errorf("x", "%w", os.ErrExist); !errors.Is(err, os.ErrExist) {
		t.Errorf("%v hides its cause", err)
	}
}
