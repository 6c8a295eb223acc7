// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRewrite(t *testing.T) {
	for _, tc := range []struct {
		tech tech
		args string
		want string
	}{
		{techR, "", ""},
		{techR, "s", "stats --"},
		{techD, "s", "stats --"},
		{techD, "se", "seid --"},
		{techR, "d", "device --"},
		{techR, "l", "linkgroup --"},
		{techR, "li", "linkgroup --"},
		{techR, "lin", "linkgroup --"},
		{techR, "link", "link --"},
		{techD, "link", "linkgroup --"},
		{techD, "l", "linkgroup --"},
		{techD, "lo", "loopback --"},
		{techR, "linkg", "linkgroup --"},
		{techR, "i", "info --"},
		{techR, "u", "ueid --"},
		{techR, "h", "help --"},
		{techR, "ha", "handshake-limit --"},
		{techR, "help l", "help -- linkgroup"},
		{techR, "completion bash --no-descriptions", "completion bash --no-descriptions"},
		{techR, "-a stats", "stats --absolute --"},
		{techR, "- stats", "stats --absolute --"},
		{techR, "-abs stats", "stats --absolute --"},
		{techR, "--absolute stats", "stats --absolute --"},
		{techR, "-d stats", "stats --details --"},
		{techR, "-det stats", "stats --details --"},
		{techR, "-dd stats", "stats --details=2 --"},
		{techR, "--dd stats", "stats --details=2 --"},
		{techR, "-ddet stats", "stats --details=2 --"},
		{techR, "-ad stats", "stats --absolute --details=1 --"},
		{techR, "-da stats", "stats --absolute --details=1 --"},
		{techR, "-dda stats", "stats --absolute --details=2 --"},
		{techR, "-a -d stats", "stats --absolute --details --"},
		{techR, "stats -d reset", "stats --details -- reset"},
		{techR, "-- stats", "stats --"},
		{techR, "linkgroup -- -1", "linkgroup -- -1"},
		{techR, "-v foo", "--version"},
		{techR, "-vers", "--version"},
		{techR, "stats -v", "--version"},
		{techR, "-h foo", "--help"},
		{techR, "stats -h", "stats --help --"},
		{techR, "-j stats", "stats -j --"},
		{techR, "-js stats", "stats --json --"},
		{techR, "stats --json", "stats --json --"},
		{techR, "-N blue stats", "stats --netns=blue --"},
		{techR, "-Nblue stats", "stats --netns=blue --"},
		{techR, "--netns blue stats", "stats --netns=blue --"},
		{techR, "--netns=blue stats", "stats --netns=blue --"},
		{techR, "--watch 2 stats", "stats --watch=2 --"},
		{techR, "-x stats", "stats -x --"},
	} {
		t.Run(tc.tech.name()+" "+tc.args, func(t *testing.T) {
			got, err := grammar(tc.tech).rewrite(strings.Fields(tc.args))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAbbreviationOrder checks that each abbreviation of an object of smc-tools still means that object.
func TestAbbreviationOrder(t *testing.T) {
	for _, tc := range []tech{techR, techD} {
		old := []string{"device", "linkgroup", "info", "stats", "ueid", "seid", "help"}
		if tc == techR {
			old = slices.DeleteFunc(old, func(s string) bool { return s == "seid" })
		}
		for _, object := range old {
			for n := 1; n <= len(object); n++ {
				want, _ := abbreviated(object[:n], old...)
				got, err := grammar(tc).object(object[:n])
				if object[:n] == "link" && tc == techR {
					want = "link" // ours; see the compatibility notes
				}
				if err != nil || got != want {
					t.Errorf("%s %s means %s (%v), in smc-tools %s", tc.name(), object[:n], got, err, want)
				}
			}
		}
	}
}

// FuzzRewrite checks that no command line loses words or causes a panic.
func FuzzRewrite(f *testing.F) {
	for _, seed := range []string{"-ad stats", "-N x l -- -1", "--", "-", "-N", "help", "--watch=1 s", "-d=3 i"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, " ")
		got, err := grammar(techD).rewrite(slices.Clone(args))
		if err != nil || len(got) == 0 || args[0] == "completion" {
			return
		}
		if i := slices.Index(got, "--"); i >= 0 {
			for _, operand := range got[i+1:] {
				if _, known := abbreviated(operand, grammar(techD).objects()...); !known && !slices.Contains(args, operand) {
					t.Errorf("%q became %q: where does %q come from?", args, got, operand)
				}
			}
		}
		(&bench{fake: populated(), rounds: 1}).run(techD, args...)
	})
}

func TestAbbreviate(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0", 7: "7", 999: "999",
		1000: "1.000K", 1234: "1.234K", 5076: "5.076K", 9999: "9.999K", 12345: "12.35K", 99999: "100.0K",
		123456: "123.5K", 999900: "999.9K", 999999: " 1000K",
		1000000: "1.000M", 5017741: "5.018M", 9999600: "10.00M", 200705600: "200.7M", 999999999: " 1000M",
		1194173445: "1.194G", 123456789012: "123.5G",
		1234567890123: "1.235T", 123456789012345: "123.5T", 999999999999999: " 1000T",
		1234567890123456: "1.235P", 123456789012345678: "123.5P", 1234567890123456789: " 1235P",
		18446744073709551615: "18447P",
	} {
		if got := abbreviate(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestComplete(t *testing.T) {
	for _, tc := range []struct {
		tech tech
		args []string
		want string
	}{
		{techR, []string{"linkgroup", ""}, "show all help delete link-show ibdev netdev 00000100 00000200"},
		{techR, []string{"linkgroup", "show", "ibdev", ""}, "mlx5_1 rocep0s31f6 rxe0"},
		{techR, []string{"link", "netdev", ""}, "eth2 eth0"},
		{techD, []string{"linkgroup", ""}, "show all help delete 00000100 00000201"},
		{techD, []string{"linkgroup", "delete", ""}, "00000100 00000201"},
		{techR, []string{"linkgroup", "delete", ""}, "00000100 00000200"},
		{techR, []string{"linkgroup", "delete", "00000100", ""}, ""},
		{techR, []string{"link", ""}, "show all help delete ibdev netdev 00000100 00000200"},
		{techR, []string{"link", "delete", ""}, "00000100 00000200"},
		{techR, []string{"link", "delete", "00000100", ""}, "01 02"},
		{techR, []string{"link", "delete", "netdev", ""}, ""},
		{techR, []string{"link", "delete", "00000100", "01", ""}, ""},
		{techR, []string{"device", ""}, "show all ibdev netdev help"},
		{techR, []string{"device", "ibdev", ""}, "mlx5_1 rxe_wlp0s20f3"},
		{techR, []string{"device", "all", "netdev", ""}, "eth2 eth0"},
		{techR, []string{"ueid", ""}, "show add del flush help"},
		{techR, []string{"ueid", "del", ""}, "MYCLUSTER A.B-C"},
		{techR, []string{"ueid", "add", ""}, ""},
		{techR, []string{"stats", ""}, "show reset json help"},
		{techD, []string{"seid", ""}, "show enable disable help"},
		{techD, []string{"s"}, "seid stats"},
	} {
		got := (&bench{fake: populated()}).run(tc.tech, append([]string{"__completeNoDesc"}, tc.args...)...)
		lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
		if offered := strings.Join(lines[:len(lines)-1], " "); offered != tc.want {
			t.Errorf("%s %q offers %q, want %q", tc.tech.name(), tc.args, offered, tc.want)
		}
	}
	// Without SMC, there are no completions and no message.
	got := (&bench{open: errTest}).run(techR, "__completeNoDesc", "ueid", "del", "")
	if strings.Contains(got.stdout+got.stderr, errTest.Error()) {
		t.Errorf("%+v", got)
	}
}
