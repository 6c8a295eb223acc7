// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"errors"
	"testing"

	"github.com/smckit/smckit/internal/jsondoc"
)

// TestParseCounters checks that the names of fields are those of smcd's output.
func TestParseCounters(t *testing.T) {
	const document = `{"schema":2,"transport":"smcd","total_connections":9,
		"connection_counts":{"total":10,"client_v1":1,"client_v2":2,"server_v1":3,"server_v2":4},
		"fallback_counts":{"client":{"total":2,"reasons":[]},"server":{"total":3,"reasons":[{"code":"0x03010000","name":"PEER_NO_SMC","connections":3}]}}}`
	c, err := parseCounters(document)
	if err := errors.Join(err, jsondoc.Check([]byte(document))); err != nil {
		t.Fatal(err)
	}
	n := c.Connections
	if n.ClientV1 != 1 || n.ClientV2 != 2 || n.ServerV1 != 3 || n.ServerV2 != 4 {
		t.Errorf("connections: %+v", n)
	}
	if f := c.Fallback; f.Client.Total != 2 || f.Server.Total != 3 || f.Server.Of("PEER_NO_SMC") != 3 || f.Client.Of("PEER_NO_SMC") != 0 {
		t.Errorf("fallbacks: %+v", f)
	}
	if _, err := parseCounters("{"); err == nil {
		t.Error("half a document was taken for a whole one")
	}
}
