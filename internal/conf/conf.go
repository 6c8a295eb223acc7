// SPDX-License-Identifier: Apache-2.0

// Package conf reads and writes the files that keep the configuration of AF_SMC over a reboot: the PNET table, the enterprise
// IDs, the settings and the rules of the policy. It does not access the kernel.
package conf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/smckit/smckit/pkg/policy"
)

// Dir is the directory of the files.
const Dir = "/etc/smc"

// Names of the files in a directory. A missing file counts as empty.
const (
	PNETFile     = "pnet.conf"
	EIDFile      = "eid.conf"
	SettingsFile = "smc.conf"
	PolicyFile   = "policy.conf"
)

// Files are the names of all files.
var Files = []string{PNETFile, EIDFile, SettingsFile, PolicyFile}

// maxSize exists only to reject files of another kind.
const maxSize = pnet.MaxFileSize

// Config is the parsed content of the files of a directory.
type Config struct {
	// Table is the PNET table; nil if the file has no entry, or is missing.
	Table pnet.Table
	EIDs  EIDs
	// Settings are in the order of the file.
	Settings []Assignment
	// Rules are those of the policy, in their order; nil if the file has none, or is missing.
	Rules []policy.Rule
}

// Error is a mistake in a file.
type Error struct {
	File string
	// Line counts from 1.
	Line int
	// Err describes the mistake and the remedy.
	Err error
}

// Error returns file:line: and the text.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns the mistake.
func (e *Error) Unwrap() error { return e.Err }

// Load reads and parses the files of a directory. It returns the first mistake as an *Error, a *pnet.ParseError or a
// *policy.SyntaxError, which contain the file and the line, and other errors if it cannot read a file. With an error it returns no configuration.
func Load(dir string) (Config, error) {
	var c Config
	texts, err := Read(dir)
	if err != nil {
		return c, err
	}
	return texts.Parse(dir)
}

// Texts are the contents of the files of a directory, by their names, without missing files.
type Texts map[string]string

// Read reads the files of a directory, which must exist.
func Read(dir string) (Texts, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, remedy.Errorf("'smc_conf save' writes one", "cannot read the configuration: %w;", err)
	case err != nil:
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	case !info.IsDir():
		return nil, remedy.Errorf(fmt.Sprintf("give the one that has %s", PNETFile), "cannot read the configuration: %s is not a directory;", dir)
	}
	texts := Texts{}
	for _, name := range Files {
		text, err := readFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the configuration: %w", err)
		}
		texts[name] = text
	}
	return texts, nil
}

// readFile reads at most maxSize+1 bytes of a file, so that parseLines notices files that are too large.
func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	return string(b), err
}

// Parse parses all files, which are in dir.
func (t Texts) Parse(dir string) (Config, error) {
	table, err := pnet.Parse(strings.NewReader(t[PNETFile]), filepath.Join(dir, PNETFile))
	if err != nil {
		return Config{}, err
	}
	eids, err := ParseEIDs(t[EIDFile], filepath.Join(dir, EIDFile))
	if err != nil {
		return Config{}, err
	}
	settings, err := ParseSettings(t[SettingsFile], filepath.Join(dir, SettingsFile))
	if err != nil {
		return Config{}, err
	}
	rules, err := ParseRules(t[PolicyFile], filepath.Join(dir, PolicyFile))
	if err != nil {
		return Config{}, err
	}
	return Config{Table: table, EIDs: eids, Settings: settings, Rules: rules}, nil
}

// parseLines calls f with each line that has content besides blanks and a comment. It removes the comment. name is the name of
// the file. A '#' begins a comment only at the start of a word.
func parseLines(text, name string, f func(line string) error) error {
	if len(text) > maxSize {
		return tooLarge(name)
	}
	n := 0
	for raw := range strings.Lines(text) {
		n++
		line, comment := split(raw)
		if i := strings.IndexFunc(line+comment, isControl); i >= 0 {
			return &Error{name, n, fmt.Errorf("control character %q: this is not a text file", (line + comment)[i])}
		}
		line = strings.Trim(line, " \t")
		if line == "" {
			continue
		}
		if err := f(line); err != nil {
			return &Error{name, n, err}
		}
	}
	return nil
}

func tooLarge(name string) error {
	return &Error{name, 1, fmt.Errorf("the file is larger than %d bytes: it is not a configuration file", maxSize)}
}

// bom is the byte order mark that some editors write at the start of a text.
const bom = "\ufeff"

// split splits a line, with or without its line end, into the content, and the blanks and the comment after it.
func split(line string) (content, comment string) {
	line = strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), bom)
	end := len(line)
	for i := range len(line) {
		if line[i] == '#' && (i == 0 || isBlank(line[i-1])) {
			end = i
			break
		}
	}
	for end > 0 && isBlank(line[end-1]) {
		end--
	}
	return line[:end], line[end:]
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// fields returns the words of a line. It splits at the blanks of isBlank only; strings.Fields would split at others, too.
func fields(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
