// SPDX-License-Identifier: Apache-2.0

package seccomp

import "errors"

// Exec starts the supervisor (an argv, normally this binary with a hidden argument that has it call Supervise with file 3),
// installs the filter and executes the program, as the process that this one is. It returns only if it fails.
func Exec(p Program, calls Calls, supervisor []string) error { return errors.ErrUnsupported }
