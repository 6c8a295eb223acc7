// SPDX-License-Identifier: Apache-2.0

package pnet

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/genetlink"
	"github.com/smckit/smckit/pkg/internal/attrtest"
)

// TestRealTables decodes what real kernels have answered; the files say how they were made.
func TestRealTables(t *testing.T) {
	attrtest.NeedLittleEndian(t)
	for kernel, want := range map[string]Table{
		"6.12": {{ID: "LAB0", Eth: "eth0"}, {ID: "LAB0", IB: "rxe0", Port: 1}},
		"6.1":  {{ID: "LAB0", Eth: "eth0"}},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", "linux-"+kernel+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		var msgs []genetlink.Message
		for line := range strings.Lines(string(text)) {
			if payload, ok := strings.CutPrefix(strings.TrimSpace(line), "SMC_PNETID 1 "); ok {
				data, err := hex.DecodeString(payload)
				if err != nil {
					t.Fatal(err)
				}
				msgs = append(msgs, genetlink.Message{Data: data})
			}
		}
		got, err := parseTable(msgs)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", kernel, diff)
		}
	}
}
