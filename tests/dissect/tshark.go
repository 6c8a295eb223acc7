// SPDX-License-Identifier: Apache-2.0

package dissect

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/need"
)

// Dissected is Wireshark's reading of a packet.
type Dissected struct {
	Frame                     int // its number, from 1
	Protocol, Info, Malformed string
	Fields                    []string // those that were asked for
}

// Need skips a test where there is no tshark.
func Need(t testing.TB) {
	t.Helper()
	need.Programs(t, "tshark")
}

// Dissect returns tshark's reading of each packet that passes one of its filters (all, if that is empty), in their order.
func (c *Capture) Dissect(t testing.TB, filter string, fields ...string) []Dissected {
	t.Helper()
	file := filepath.Join(t.TempDir(), "smc.pcap")
	if err := os.WriteFile(file, c.Marshal(), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-n", "-r", file, "-Y", filter, "-T", "fields"}
	for _, field := range append([]string{"frame.number", "_ws.col.Protocol", "_ws.col.Info", "_ws.malformed"}, fields...) {
		args = append(args, "-e", field)
	}
	cmd := exec.Command("tshark", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, stderr.String())
	}
	var all []Dissected
	for line := range strings.Lines(string(out)) {
		got := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(got) != 4+len(fields) {
			t.Fatalf("tshark printed %q", got)
		}
		frame, err := strconv.Atoi(got[0])
		if err != nil {
			t.Fatalf("tshark printed %q", got)
		}
		all = append(all, Dissected{frame, got[1], strings.TrimSpace(got[2]), got[3], got[4:]})
	}
	return all
}
