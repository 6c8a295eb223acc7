// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smclab

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/lab"
)

// TestBuildAll checks that buildAll continues with the other kernels when the build for one fails.
func TestBuildAll(t *testing.T) {
	broken := errors.New("does not compile")
	for _, c := range []struct {
		name  string
		errs  map[string]error
		built []string // the kernels for which a build was tried
		want  error
	}{
		{"all", nil, []string{"6.12", "7.2"}, nil},
		{"one is not in the archive", map[string]error{"6.12": &lab.UnavailableError{}}, []string{"6.12", "7.2"}, nil},
		{"none is", map[string]error{"6.12": &lab.UnavailableError{}, "7.2": &lab.UnavailableError{}}, []string{"6.12", "7.2"}, &lab.UnavailableError{}},
		{"one does not compile", map[string]error{"6.12": broken}, []string{"6.12"}, broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said strings.Builder
			var built []string
			err := buildAll(t.Context(), &cli.Env{Out: io.Discard, Err: &said}, []string{"6.12", "7.2"},
				func(_ context.Context, series string, _ func(string)) (string, error) {
					built = append(built, series)
					return "", c.errs[series]
				})
			unavailable := new(*lab.UnavailableError)
			if !errors.Is(err, c.want) && !(errors.As(c.want, unavailable) && errors.As(err, unavailable)) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if !slices.Equal(built, c.built) {
				t.Errorf("tried %v, want %v", built, c.built)
			}
			if left := strings.Count(said.String(), "left out"); left != 0 != (len(c.errs) > 0 && c.want != broken) {
				t.Errorf("said %q", said.String())
			}
		})
	}
}
