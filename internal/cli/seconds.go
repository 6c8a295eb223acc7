// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// Limits of the time between two rounds. With less, a command would load the system that it watches.
const (
	minRound = 100 * time.Millisecond
	maxRound = 24 * time.Hour
)

// secondsValue is the time between two rounds as the argument of an option, in seconds.
type secondsValue struct{ every *time.Duration }

// AddSecondsFlag declares the option name for the time between two rounds of a command that goes on until it is interrupted.
func AddSecondsFlag(fs *pflag.FlagSet, every *time.Duration, name, usage string) {
	fs.Var(secondsValue{every}, name, usage)
}

func (v secondsValue) Type() string { return "seconds" }

func (v secondsValue) String() string {
	if v.every == nil || *v.every == 0 {
		return ""
	}
	return strconv.FormatFloat(v.every.Seconds(), 'f', -1, 64)
}

func (v secondsValue) Set(s string) error {
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil || !(seconds >= minRound.Seconds() && seconds <= maxRound.Seconds()) {
		return errors.New("give the seconds between two rounds, 0.1 to 86400")
	}
	*v.every = time.Duration(seconds * float64(time.Second))
	return nil
}
