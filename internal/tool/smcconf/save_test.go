// SPDX-License-Identifier: Apache-2.0

package smcconf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/conf"
	"github.com/smckit/smckit/internal/golden"
	"github.com/smckit/smckit/internal/pnettest"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// read returns the files of the directory, one after the other.
func (h *harness) read() []string {
	h.t.Helper()
	texts, err := conf.Read(h.dir)
	if err != nil {
		h.t.Fatal(err)
	}
	return []string{texts[conf.PNETFile], texts[conf.EIDFile], texts[conf.SettingsFile]}
}

func TestSave(t *testing.T) {
	h := newHarness(t)
	h.files("# fabric A\nadd NET1 eth eth0 # uplink\nadd OLD eth eth1\nadd NET1 ib rxe9 # comes later\nadd NET3 ib mlx5_0 1\n",
		"# ours\nA\nOLD\n", "# tuned\nrmem = 131072 # large\nsmcr_immediate = off\n")
	h.table.Rows = []pnettest.Row{pnettest.Eth("NET1", "eth0"), pnettest.IB("NET2", "mlx5_0", 2)}
	h.client.ueids = []string{"A", "B"}
	h.client.limit = true
	if err := os.Remove(filepath.Join(h.sys.sysctls, "smcr_immediate")); err != nil {
		t.Fatal(err)
	}
	before := h.read()
	const three = "DIR/pnet.conf\nwrote DIR/eid.conf\nwrote DIR/smc.conf\n"
	h.expect(0, strings.ReplaceAll("wrote "+three, "wrote", "would write"), "", "save", "--check", "@")
	if diff := cmp.Diff(before, h.read()); diff != "" {
		t.Errorf("--check has written: %s", diff)
	}
	h.expect(0, "wrote "+three, "", "save", "@")
	want := []string{
		"# fabric A\nadd NET1 eth eth0 # uplink\nadd NET1 ib rxe9 # comes later\nadd NET2 ib mlx5_0 2\n",
		"# ours\nA\nB\n", "# tuned\nrmem = 65536 # large\nsmcr_immediate = off\nhandshake_limit = on\n",
	}
	if diff := cmp.Diff(want, h.read()); diff != "" {
		t.Error(diff)
	}
	h.expect(0, "", "", "save", "@")
	// Applying the saved files changes nothing.
	h.run("apply", "@")
	if h.out.Len() > 0 {
		t.Errorf("apply after save: %s", &h.out)
	}
}

// TestSaveFresh saves into a directory that does not exist, and checks that the files contain exactly the values that differ
// from the default.
func TestSaveFresh(t *testing.T) {
	h := newHarness(t)
	h.dir = filepath.Join(h.dir, "smc")
	h.expect(0, "", "", "save", "@")
	if _, err := os.Stat(h.dir); err == nil {
		t.Error("a directory for nothing")
	}
	h.client.ueids = []string{"A"}
	h.client.seid = &netlinksmc.SEID{EID: "SYSTEM"}
	h.expect(0, "wrote DIR/eid.conf\n", "", "save", "@")
	if diff := cmp.Diff([]string{"", "A\nseid disable\n", ""}, h.read()); diff != "" {
		t.Error(diff)
	}
	// The file has a line about the system EID, so saving updates it.
	h.client.seid.Enabled = true
	h.expect(0, "wrote DIR/eid.conf\n", "", "save", "@")
	if diff := cmp.Diff([]string{"", "A\nseid enable\n", ""}, h.read()); diff != "" {
		t.Error(diff)
	}
	h.client.noUEIDs = true
	h.expect(0, "", "", "save", "@")
}

// TestSaveRefused has values that a file cannot express, and a directory that is not writable.
func TestSaveRefused(t *testing.T) {
	h := newHarness(t)
	h.table.Rows = []pnettest.Row{pnettest.Eth("N\xd6T", "eth0")}
	h.run("save", "@")
	if got := h.err.String(); !strings.Contains(got, "the PNET table cannot be written to a file: PNET ID") {
		t.Error(got)
	}
	h.table.Rows = nil
	h.client.ueids = []string{"N\xd6T"}
	h.run("save", "@")
	if got := h.err.String(); !strings.Contains(got, "nothing was written, since it could not be read again: ") {
		t.Error(got)
	}
	h.client.ueids = []string{"A"}
	h.table.Rows = []pnettest.Row{pnettest.Eth("NET1", "eth0")}
	h.dir = filepath.Join(h.dir, "nosuch", "smc")
	h.expect(1, "", "smc_conf: cannot write DIR/pnet.conf: mkdir DIR: no such file or directory\n", "save", "@")
}

// TestHelp compares the help of every command with a golden file.
func TestHelp(t *testing.T) {
	for _, name := range []string{"", "apply", "check", "save"} {
		h := newHarness(t)
		h.run(append(strings.Fields(name), "--help")...)
		golden.Check(t, "testdata/"+strings.TrimSuffix("help-"+name, "-")+".txt", h.out.String())
	}
}
