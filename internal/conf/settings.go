// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/smcerr"
)

// Setting is a tunable of the module whose value is a number.
type Setting struct {
	// Name is the name of the file below /proc/sys/net/smc, except for HandshakeLimit.
	Name string
	// Min and Max are the limits of the value. Default is the initial value.
	Min, Max, Default uint64
	// Zero means that 0 is allowed although it is below Min.
	Zero bool
	// Ours means that only smckit's module has the setting.
	Ours bool
	// Stock means that only the kernel's own module has the setting.
	Stock bool
	// Words are names for the values, from 0 on. It is empty if the values are plain numbers.
	Words []string
}

// HandshakeLimit is the setting that is changed by netlink, because more kernels have it there than have net.smc.limit_smc_hs.
const HandshakeLimit = "handshake_limit"

// Find returns the setting of that name.
func Find(name string) (Setting, bool) {
	i := slices.IndexFunc(Settings, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return Setting{}, false
	}
	return Settings[i], true
}

// Default returns the default of the setting with that name, which must exist.
func Default(name string) int {
	s, ok := Find(name)
	if !ok {
		panic("conf: no setting " + name)
	}
	return int(s.Default)
}

// Format returns a value in the format of the file.
func (s Setting) Format(value uint64) string {
	if value < uint64(len(s.Words)) {
		return s.Words[value]
	}
	return strconv.FormatUint(value, 10)
}

// Parse parses a value: a number within the limits, or a word.
func (s Setting) Parse(text string) (uint64, error) {
	if i := slices.Index(s.Words, text); i >= 0 {
		return uint64(i), nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err == nil && (s.Min <= n && n <= s.Max || n == 0 && s.Zero):
		return n, nil
	case len(s.Words) > 0:
		return 0, fmt.Errorf("%s = %s: the value is one of %s", s.Name, smcerr.Quote(text), strings.Join(s.Words, ", "))
	}
	zero := ""
	if s.Zero {
		zero = ", or 0"
	}
	return 0, fmt.Errorf("%s = %s: the value is a number from %d to %d%s", s.Name, smcerr.Quote(text), s.Min, s.Max, zero)
}

// Assignment is a line of the file of settings.
type Assignment struct {
	Setting Setting
	Value   uint64
}

// String returns the line.
func (a Assignment) String() string { return a.Setting.Name + " = " + a.Setting.Format(a.Value) }

// ParseSettings parses the text of a file of settings: 'NAME = VALUE' in each line. name is the name of the file. The error is
// an *Error.
func ParseSettings(text, name string) ([]Assignment, error) {
	var all []Assignment
	err := parseLines(text, name, func(line string) error {
		a, err := parseAssignment(line)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(o Assignment) bool { return o.Setting.Name == a.Setting.Name }) {
			return remedy.Errorf("remove one of the lines", "%s is a duplicate", a.Setting.Name)
		}
		all = append(all, a)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func parseAssignment(line string) (Assignment, error) {
	name, value, ok := strings.Cut(line, "=")
	name, value = strings.Trim(name, " \t"), strings.Trim(value, " \t")
	if !ok || name == "" {
		return Assignment{}, fmt.Errorf("%s: a line is 'NAME = VALUE'", smcerr.Quote(line))
	}
	s, ok := Find(name)
	if !ok {
		return Assignment{}, unknown(name)
	}
	n, err := s.Parse(value)
	return Assignment{s, n}, err
}

// unknown returns the error for a name that is not the name of a setting.
func unknown(name string) error {
	if short, ok := strings.CutPrefix(name, "net.smc."); ok {
		return remedy.Errorf(fmt.Sprintf("write names without 'net.smc.' (%s)", smcerr.Quote(short)), "unknown setting %s", smcerr.Quote(name))
	}
	if name == "limit_smc_hs" {
		return remedy.Errorf(fmt.Sprintf("its name in this file is %s", HandshakeLimit), "unknown setting %s", smcerr.Quote(name))
	}
	var names []string
	for _, s := range Settings {
		names = append(names, s.Name)
	}
	return remedy.Errorf("it is one of "+strings.Join(names, ", "), "unknown setting %s", smcerr.Quote(name))
}
