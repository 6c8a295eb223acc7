// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"encoding/json"
	"strings"
)

// Counters are the numbers of AF_SMC connections by outcome since the module was loaded, as `smcd stats --json` and smcr
// print them.
type Counters struct {
	Connections struct {
		ClientV1 int `json:"client_v1"`
		ClientV2 int `json:"client_v2"`
		ServerV1 int `json:"server_v1"`
		ServerV2 int `json:"server_v2"`
	} `json:"connection_counts"` // that are SMC-D, or SMC-R
	Fallback struct{ Client, Server Fallbacks } `json:"fallback_counts"`
}

// FellBack returns the number of connections that fell back, as clients and as servers.
func (c Counters) FellBack() int { return c.Fallback.Client.Total + c.Fallback.Server.Total }

// Fallbacks are the fallbacks of one side.
type Fallbacks struct {
	Total   int `json:"total"`
	Reasons []struct {
		Name  string `json:"name"`
		Count int    `json:"connections"`
	} `json:"reasons"`
}

// Of returns how often connections fell back for a reason.
func (f Fallbacks) Of(reason string) int {
	for _, r := range f.Reasons {
		if r.Name == reason {
			return r.Count
		}
	}
	return 0
}

// Counters reads the counters of SMC-D connections from a host that has our commands.
func (lt *Test) Counters(host string) Counters {
	lt.t.Helper()
	return lt.counters(host, "smcd")
}

// CountersIn does the same for SMC-D connections of a network namespace, or of the host's own if the name is empty.
func (lt *Test) CountersIn(host, namespace string) Counters {
	lt.t.Helper()
	return lt.counters(host, strings.Join(InNamespace(namespace, "smcd"), " "))
}

// CountersR does the same for SMC-R connections.
func (lt *Test) CountersR(host string) Counters {
	lt.t.Helper()
	return lt.counters(host, "smcr")
}

// CountersRIn does the same for SMC-R connections of a network namespace, or of the host's own if the name is empty.
func (lt *Test) CountersRIn(host, namespace string) Counters {
	lt.t.Helper()
	return lt.counters(host, strings.Join(InNamespace(namespace, "smcr"), " "))
}

func (lt *Test) counters(host, command string) Counters {
	lt.t.Helper()
	out := lt.Must(host, command+" -a stats --json")
	c, err := parseCounters(out)
	if err != nil {
		lt.t.Fatalf("%v\n%s", err, out)
	}
	return c
}

func parseCounters(document string) (c Counters, err error) {
	err = json.Unmarshal([]byte(document), &c)
	return c, err
}
