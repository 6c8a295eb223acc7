// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/conf"
	"github.com/smckit/smckit/internal/lab"
)

var update = flag.Bool("update", false, "write what the stock module answers to testdata")

// answersFile has the output of nlprobe on the stock module of Linux 6.12.
const answersFile = "testdata/answers-6.12.txt"

// probes ask as root, as root of another network namespace, and as root of another user namespace.
var probes = []string{"nlprobe", "unshare --net nlprobe", "unshare --map-root-user --net nlprobe"}

// partial is the half of a refused addition that the stock module keeps: the interface beside a bad port. Ours adds all or
// nothing.
const partial = "\t1 080001004e4554000700020065350000080003006e2f610005000400ff000000\n"

// ownDevice is additional output with our module: on every host, it has the loopback device of SMC-D, which supports version 2.
// Debian's kernels have none.
var ownDevice = strings.NewReplacer(
	"list: ok\nlist: ok\nlist: ok\nlist: ok\nlist: ok\n",
	"list: ok\nlist: ok\nlist: ok\nlist: ok\n"+
		"\t5 5c000580"+ // a message of command 5, SMC_GEN_DEV_SMCD
		"0800010000000000"+"0500020000000000"+ // no link group uses it, so it may go
		"0800030000000000"+"06000400ffff0000"+"0600050000000000"+"0600060000000000"+ // FID, CHID, vendor, device
		"110007006c6f6f706261636b2d69736d00000000"+ // in the place of a PCI address: "loopback-ism"
		"140008800500010000000000"+"0500020000000000\n"+ // a port without PNET ID
		"list: ok\n",
	"\t1 4c000180050001000200000005000200010000000500030000000000", // version 2.1, no ISM device of version 2
	"\t1 4c000180050001000200000005000200010000000500030001000000", // version 2.1, one
)

// TestControl compares the interfaces of our module with those of the stock module, and with their documentation.
func TestControl(t *testing.T) {
	lab.Need(t)
	type run struct {
		kernel string
		module lab.Module
	}
	var runs []run
	if slices.Contains(lab.TestSeries(), "6.12") {
		runs = append(runs, run{"6.12", lab.ModuleStock})
	}
	for _, kernel := range lab.EndSeries() {
		runs = append(runs, run{kernel, lab.ModuleOurs})
	}
	for _, c := range runs {
		t.Run(fmt.Sprintf("%s %s", c.kernel, c.module), func(t *testing.T) {
			if err := lab.CheckModule(t.Context(), c.kernel, c.module, nil); err != nil {
				t.Skip(err)
			}
			dir, err := lab.Commands(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			lt := lab.Start(t, lab.Options{Kernel: c.kernel, Programs: []string{dir}})
			if err := lt.LoadSMC(t.Context(), c.module); err != nil {
				t.Fatal(err)
			}
			ours := c.module == lab.ModuleOurs
			t.Run("answers", func(t *testing.T) { answers(t, lt, ours) })
			t.Run("settings", func(t *testing.T) { sysctls(t, lt, ours) })
			t.Run("tracepoints", func(t *testing.T) { tracepoints(t, lt, ours) })
			if ours {
				t.Run("pnet_conf", func(t *testing.T) { pnetConf(t, lt) })
				t.Run("proc settings", func(t *testing.T) { procSettings(t, lt) })
				t.Run("owners", func(t *testing.T) { owners(t, lt) })
				t.Run("smcd", func(t *testing.T) { smcdViews(t, lt) })
				t.Run("loopback", func(t *testing.T) { loopback(t, lt) })
				t.Run("delete group", func(t *testing.T) { deleteGroup(t, lt) })
				t.Run("unload", func(t *testing.T) { unload(t, lt) })
			}
		})
	}
}

func answers(t *testing.T, lt *lab.Test, ours bool) {
	var got strings.Builder
	for _, p := range probes {
		fmt.Fprintf(&got, "# %s\n%s", p, lt.Must("a", p))
	}
	if *update && !ours {
		if err := os.WriteFile(answersFile, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(answersFile)
	if err != nil {
		t.Fatal(err)
	}
	want, have := string(b), got.String()
	if ours {
		explained(t, have)
		want = withoutTexts(ownDevice.Replace(strings.Replace(want, partial, "", 1)))
		have = withoutTexts(have)
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(have, "\n")); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

var (
	texts = regexp.MustCompile(`(: errno \d+) \(.*\)`)
	// unexplained is a refusal without a text. Refusals of generic netlink itself, EPERM and EOPNOTSUPP, have none.
	unexplained = regexp.MustCompile(`(?m)^.*: errno (\d+)$`)
)

// withoutTexts removes the texts of refusals, most of which only our module gives.
func withoutTexts(s string) string { return texts.ReplaceAllString(s, "$1") }

// explained checks that each refusal has a reason.
func explained(t *testing.T, answers string) {
	t.Helper()
	for _, m := range unexplained.FindAllStringSubmatch(answers, -1) {
		if m[1] != "1" && m[1] != "95" {
			t.Errorf("no text: %s", m[0])
		}
	}
}

// write is a write to a file in one piece, and its result: nothing, or the text of an errno.
type write struct{ file, text, err string }

// do writes, and checks the result.
func (w write) do(t *testing.T, lt *lab.Test) {
	t.Helper()
	r := lt.Run("a", "/bin/sh", "-c", fmt.Sprintf("printf '%%b' '%s' | tee %s >/dev/null", w.text, w.file))
	if w.err == "" && r.Code != 0 || w.err != "" && !strings.HasSuffix(strings.TrimSpace(r.Stderr), w.err) {
		t.Errorf("%q to %s: status %d, %q; want %q", w.text, w.file, r.Code, r.Stderr, w.err)
	}
}

// writes are done by one shell, because each process that begins in the guest takes longer than all of them.
type writes struct {
	dir    string // of the files
	script strings.Builder
	want   []string
}

// put writes text to a file, or nothing if it is empty. bash would write several lines one by one. The answer is the error, if there
// is to be one, and what the file has then.
func (w *writes) put(file, text, answer string) {
	fmt.Fprintf(&w.script, "put %s '%s'\n", file, text)
	w.want = append(w.want, fmt.Sprintf("%s '%s': %s", file, text, answer))
}

// writeError is what bash says of a write that fails, before the error.
var writeError = regexp.MustCompile(`\S+: line \d+: printf: write error: (.*)\n`)

// do writes, and checks the answers.
func (w *writes) do(t *testing.T, lt *lab.Test) {
	t.Helper()
	const function = `put() {
	printf "%s '%s': " "$1" "$2"
	[ -z "$2" ] || printf '%s' "$2" 2>&1 >"$1"
	read -r content <"$1"
	echo "$content"
}
cd `
	r := lt.Run("a", "bash", "-c", function+w.dir+"\n"+w.script.String())
	got := strings.Split(strings.TrimSuffix(writeError.ReplaceAllString(r.Stdout, "$1, "), "\n"), "\n")
	for i := range max(len(got), len(w.want)) {
		if i >= len(got) || i >= len(w.want) || got[i] != w.want[i] {
			t.Fatalf("%s: %s\n%q\nwant\n%q", w.dir, r.Stderr, got[min(i, len(got)):], w.want[min(i, len(w.want)):])
		}
	}
}

const invalid = "Invalid argument"

// sysctlCase is a setting: its default, and values that it takes and refuses.
type sysctlCase struct {
	name, init string
	good, bad  []string
}

// stockSysctls are those of Linux 6.12.
var stockSysctls = []sysctlCase{
	{"autocorking_size", "65536", []string{"0", "4294967295"}, []string{"-1"}},
	{"limit_smc_hs", "0", []string{"1", "0"}, []string{"2", "-1"}},
	{"rmem", "65536", []string{"16384", "1073741823"}, []string{"1", "16383", "1073741824"}},
	{"smcr_buf_type", "0", []string{"1", "2"}, []string{"3"}},
	{"smcr_max_conns_per_lgr", "255", []string{"16", "255"}, []string{"15", "256"}},
	{"smcr_max_links_per_lgr", "2", []string{"1", "2"}, []string{"0", "3"}},
	{"wmem", "65536", []string{"16384", "1073741823"}, []string{"1", "16383", "1073741824"}},
}

// newSysctls are those of our module that Linux 6.12 does not have, as specs/sysctl.yaml describes them.
func newSysctls(known []sysctlCase) (cases []sysctlCase) {
	for _, s := range conf.Settings {
		isKnown := func(c sysctlCase) bool { return c.name == s.Name }
		if s.Stock || s.Name == conf.HandshakeLimit || slices.ContainsFunc(known, isKnown) {
			continue
		}
		c := sysctlCase{name: s.Name, init: fmt.Sprint(s.Default), bad: []string{fmt.Sprint(s.Max + 1), fmt.Sprint(int64(s.Min) - 1)}}
		for i := range s.Words {
			c.good = append(c.good, strconv.Itoa(i))
		}
		if s.Words == nil {
			c.good = []string{fmt.Sprint(s.Min), fmt.Sprint(s.Max)}
		}
		cases = append(cases, c)
	}
	return cases
}

// inJiffies is a setting in seconds that the kernel keeps in jiffies, which must fit into an int.
func inJiffies(t *testing.T, k *lab.Kernel, name, init string) sysctlCase {
	t.Helper()
	value, err := k.Config("CONFIG_HZ")
	if err != nil {
		t.Fatal(err)
	}
	hz, err := strconv.Atoi(value)
	if err != nil {
		t.Fatal(err)
	}
	most := math.MaxInt32 / hz
	return sysctlCase{name, init, []string{"0", strconv.Itoa(most)}, []string{strconv.Itoa(most + 1)}}
}

func sysctls(t *testing.T, lt *lab.Test, ours bool) {
	k := lt.Host("a").Kernel
	cases := append(slices.Clone(stockSysctls), inJiffies(t, k, "smcr_testlink_time", "30"))
	if ours {
		cases = append(cases, inJiffies(t, k, "lgr_idle_time", "600"))
		cases = append(cases, newSysctls(cases)...)
		for i, c := range cases {
			if c.name == "rmem" || c.name == "wmem" {
				// TCP's default.
				cases[i].good = append([]string{"0"}, c.good...)
			}
		}
	}
	names := strings.Fields(lt.Must("a", "ls /proc/sys/net/smc"))
	if len(names) != len(cases) {
		t.Errorf("settings are %q", names)
	}
	settings := writes{dir: "/proc/sys/net/smc/"}
	for _, c := range cases {
		settings.put(c.name, "", c.init)
		for _, v := range c.good {
			settings.put(c.name, v, v)
		}
		for _, v := range c.bad {
			settings.put(c.name, v, invalid+", "+c.good[len(c.good)-1])
		}
		settings.put(c.name, c.init, c.init)
	}
	settings.do(t, lt)
	inNamespace(t, lt, cases)
}

// ofHost are the settings of the initial namespace alone.
var ofHost = []string{"host_max_memory_kbytes", "policy_for_namespaces"}

// inNamespace checks the initial values of settings in a new namespace. Those of the host are not there.
func inNamespace(t *testing.T, lt *lab.Test, cases []sysctlCase) {
	t.Helper()
	var want []string
	for _, c := range cases {
		if !slices.Contains(ofHost, c.name) {
			want = append(want, c.name+":"+c.init)
		}
	}
	got := strings.Fields(lt.Must("a", "unshare --net grep -r . /proc/sys/net/smc"))
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], "/proc/sys/net/smc/")
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("settings in a new namespace are %q, want %q", got, want)
	}
}

// expect checks the content of a file.
func expect(t *testing.T, lt *lab.Test, file, want string) {
	t.Helper()
	if got := lt.Must("a", "cat "+file); strings.TrimSpace(got) != want {
		t.Errorf("%s: %q, want %q", file, got, want)
	}
}
