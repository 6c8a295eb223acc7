// SPDX-License-Identifier: Apache-2.0

package statdoc

import (
	"testing"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcstats"
)

// TestBaselineIsShared checks that a command finds the baseline that another one has stored.
func TestBaselineIsShared(t *testing.T) {
	env := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	dir := t.TempDir()
	open := func() *smcstats.Store {
		s, err := OpenBaseline(func(name string) string { return env[name] })
		if err != nil {
			t.Fatal(err)
		}
		s.Dir, s.Legacy = dir, "" // not that of root
		return s
	}
	cur := &smcstats.Snapshot{Stats: netlinksmc.Stats{SMCR: netlinksmc.TechStats{TxCount: 7}, SMCD: netlinksmc.TechStats{RxCount: 9}}}
	if err := open().Reset(t.Context(), cur); err != nil {
		t.Fatal(err)
	}
	if r := open().Reduce(cur); r.Note != nil || r.Since.IsZero() || r.SMCR.TxCount != 0 || r.SMCD.RxCount != 0 {
		t.Errorf("since %v, note %v: %d, %d", r.Since, r.Note, r.SMCR.TxCount, r.SMCD.RxCount)
	}
}
