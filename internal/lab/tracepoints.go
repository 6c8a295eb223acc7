// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"regexp"
	"strings"
)

// Tracing is the directory of tracefs, and MountTracing a command that mounts it if it is not there.
const (
	Tracing      = "/sys/kernel/tracing/"
	MountTracing = "mountpoint -q " + Tracing + " || mount -t tracefs tracefs " + Tracing
)

var (
	formatName  = regexp.MustCompile(`^name: (\w+)`)
	formatField = regexp.MustCompile(`field:(.*?);\t`)
)

// Tracepoints returns the fields, with their types, of a host's tracepoints in a system such as "smc", by their names.
func (lt *Test) Tracepoints(host, system string) map[string]string {
	lt.t.Helper()
	out := lt.Must(host, MountTracing+"; cat "+Tracing+"events/"+system+"/*/format")
	fields := map[string]string{}
	var name string
	for line := range strings.Lines(out) {
		if m := formatName.FindStringSubmatch(line); m != nil {
			name = m[1]
			fields[name] = ""
		}
		m := formatField.FindStringSubmatch(line)
		if m == nil || strings.Contains(m[1], " common_") {
			continue
		}
		if fields[name] != "" {
			fields[name] += "; "
		}
		fields[name] += m[1]
	}
	return fields
}
