// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/tool/smcss"
)

// largeBuffers has a group's first connections, as many as the setting says, use four times the buffers. When such a
// connection closes, the next new one gets them. Adapters with limits may have smaller RMBs.
func largeBuffers(t *testing.T, lt *lab.Test, modules [2]lab.Module, limits string) {
	const usual, large = 65536, 4 * 65536
	if limits != "" {
		// Buffers of an existing group would be used again, whatever the size that its adapters had for them.
		endGroups(t, lt)
	}
	address, sink := serve(t, lt, "sink", 5009)
	defer lab.Kill(t, sink)
	most := func(n int) {
		for i, host := range []string{"a", "b"} {
			if modules[i] == lab.ModuleOurs {
				setOn(t, lt, host, fmt.Sprintf("smcr_large_conns_per_lgr=%d", n))
			}
		}
	}
	check := func(when string, want ...int) {
		t.Helper()
		rmbs := rmbSizes(limits, want)
		slices.Sort(want)
		slices.Sort(rmbs)
		for i, host := range []string{"a", "b"} {
			await(t, lt, host, address, len(want))
			if modules[i] != lab.ModuleOurs {
				continue
			}
			snd, rcv := bufferSizes(t, lt, host)
			if !slices.Equal(snd, want) || !slices.Equal(rcv, rmbs) {
				t.Errorf("%s: host %s sends from rings of %d and has RMBs of %d, want %d and %d", when, host, snd, rcv, want, rmbs)
			}
		}
	}
	most(2)
	defer lab.Kill(t, stream(t, lt, address))
	check("the first", large)
	second := stream(t, lt, address)
	check("the second", large, large)
	defer lab.Kill(t, stream(t, lt, address))
	check("the third", large, large, usual)
	lab.Kill(t, second)
	check("the second has gone", large, usual)
	defer lab.Kill(t, stream(t, lt, address))
	check("one in the place of the second", large, large, usual)
	most(0)
	defer lab.Kill(t, stream(t, lt, address))
	check("switched off", large, large, usual, usual)
}

// bufferSizes are the buffer sizes of a host's connections, in bytes and ascending.
func bufferSizes(t *testing.T, lt *lab.Test, host string) (snd, rcv []int) {
	t.Helper()
	return bufferSizesIn(t, lt, host, "")
}

// bufferSizesIn does the same for a network namespace, or for the host's own if the name is empty.
func bufferSizesIn(t *testing.T, lt *lab.Test, host, namespace string) (snd, rcv []int) {
	t.Helper()
	var answer smcss.Document
	lt.Document(host, strings.Join(lab.InNamespace(namespace, "smcss", "-d", "--state", "active", "--json"), " "), &answer)
	for _, s := range answer.Sockets {
		if s.Conn != nil {
			snd, rcv = append(snd, int(s.Conn.SndbufBytes)), append(rcv, int(s.Conn.RcvbufBytes))
		}
	}
	slices.Sort(snd)
	slices.Sort(rcv)
	return snd, rcv
}
