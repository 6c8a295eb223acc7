// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit statuses, the same for every command.
const (
	ExitOK      = 0 // done, also if there was nothing to show
	ExitFailure = 1 // the command is valid but failed
	ExitUsage   = 2 // the command line is wrong
)

// UsageError is a mistake in the command line, found before the command has accessed the system.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a UsageError with a formatted text.
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// StatusError ends a command with Status and prints nothing: the command has already printed its messages.
type StatusError struct{ Status int }

func (e *StatusError) Error() string { return fmt.Sprintf("exit status %d", e.Status) }

// exitStatus returns the exit status for an error.
func exitStatus(err error) int {
	var usage *UsageError
	var status *StatusError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &status):
		return status.Status
	case errors.As(err, &usage):
		return ExitUsage
	default:
		return ExitFailure
	}
}

// flagError returns an error of pflag as a usage error.
func flagError(_ *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		err = unknownFlag(unknown)
	} else if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		err = badValue(bad)
	}
	return &UsageError{Err: err}
}

// unknownFlag returns the error of an option that does not exist. pflag takes the first byte of a letter beyond ASCII for a letter of its
// own, and prints one that the user has not typed.
func unknownFlag(err *pflag.NotExistError) error {
	// The option, and those of one letter behind it. Run escapes bytes that are no letter.
	letters := err.GetSpecifiedShortnames()
	if letters == "" || letters[0] < utf8.RuneSelf {
		return err
	}
	_, size := utf8.DecodeRuneInString(letters)
	return fmt.Errorf("unknown shorthand flag: '%s' in -%s", letters[:size], letters)
}

// badValue returns the error of an option's value. pflag prints those of package strconv as they are.
func badValue(err *pflag.InvalidValueError) error {
	cause, ok := errors.AsType[*strconv.NumError](err)
	if !ok {
		return err
	}
	advice := "give a number"
	switch kind := err.GetFlag().Value.Type(); {
	case kind == "bool":
		advice = "give the option without a value"
	case errors.Is(cause, strconv.ErrRange):
		advice = "give a number that is closer to 0"
	}
	return errors.New(strings.TrimSuffix(err.Error(), cause.Error()) + advice)
}
