// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOpenInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules")
	if err := os.WriteFile(file, []byte("of the file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for arg, want := range map[string]struct{ content, name string }{
		"-":  {"of standard input", "standard input"},
		file: {"of the file", file},
	} {
		env := &Env{In: strings.NewReader("of standard input")}
		in, err := env.OpenInput(arg)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(in)
		if err != nil || string(got) != want.content || InputName(arg) != want.name {
			t.Errorf("%q: %q (%v), called %q; want %q, called %q", arg, got, err, InputName(arg), want.content, want.name)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := (&Env{}).OpenInput(file + ".missing"); !os.IsNotExist(err) {
		t.Errorf("a file that does not exist: %v", err)
	}
}
