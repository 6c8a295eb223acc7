// SPDX-License-Identifier: Apache-2.0

// Package unitfile reads services of systemd from their files, and writes the drop-in that runs one with smc_run.
//
// It reads files, not the manager, so it works in images and containers too, and for templates. It parses them itself:
// github.com/coreos/go-systemd/unit refuses lines of more than 2048 bytes, and takes comments between continued lines for values.
package unitfile
