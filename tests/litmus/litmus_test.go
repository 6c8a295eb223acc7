// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sources is the directory of the module.
const sources = "../../kernel"

// load reads the tests of the module.
func load(t *testing.T) (all []*test) {
	t.Helper()
	files, err := filepath.Glob("kernel/*.litmus")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lt, err := parse(string(source))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if lt.name != strings.TrimSuffix(filepath.Base(file), ".litmus") || !strings.Contains(lt.comment, "Result: Never") {
			t.Errorf("%s: the name is %s, or the result is not Never", file, lt.name)
		}
		all = append(all, lt)
	}
	return all
}

// TestBarriers checks that no outcome is possible, and that each is once any one of the barriers of its test is weakened.
func TestBarriers(t *testing.T) {
	for _, lt := range load(t) {
		t.Run(lt.name, func(t *testing.T) {
			possible, err := lt.possible()
			if err != nil || possible {
				t.Errorf("possible: %t, %v", possible, err)
			}
			weakened := lt.weakened()
			if len(weakened) == 0 {
				t.Error("no barriers")
			}
			for what, weak := range weakened {
				if possible, err := weak.possible(); err != nil || !possible {
					t.Errorf("%s: possible: %t, %v", what, possible, err)
				}
			}
		})
	}
}

// elsewhere are functions with barriers that no test is about, each with the reason.
var elsewhere = map[string]string{
	"transport/ism/fake.c copy_in_words":       "a module for tests; it stands in for the hardware's order",
	"conn/rx.c rx_look_at_unread":              "looks how much there is, and reads none of it",
	"control/memory.c smc_memory_net_pre_exit": "readers follow the pointer that it stores: an address dependency",
	"handshake/syntab.c smc_syntab_add":        "counts entries, in no order with anything else",
	"sock/connect.c connect_tcp":               "pairs with the barriers of TCP's wakeups",
	"sock/connect.c begin_connect":             "the sock's lock, which comes after it, orders all that counts",
	"sock/connect.c smc_connect_undo":          "the sock's lock, which comes after it, orders all that counts",
	"transport/ism/fabric_signal.c check_dmb":  "looks whether the handshake is over, and at nothing after that",
	"transport/ism/memory.c smc_ism_dmb_page":  "counts pages, in no order with anything else",
}

var (
	// barrier is a call that orders.
	barrier = regexp.MustCompile(`\b(?:smp_mb|smp_rmb|smp_wmb|virt_(?:mb|rmb|wmb|store_\w+|load_\w+)|smp_load_acquire|smp_store_release|smp_store_mb|smp_mb__\w+|atomic\w*_acquire|atomic_inc_return|atomic_sub_return)\(`)
	// function is the beginning of a definition, not of a declaration.
	function = regexp.MustCompile(`^[a-z][\w\s*]*?\b\**(\w+)\((?:[^;]*)$`)
	// named are functions that a comment names.
	named = regexp.MustCompile(`([\w/]+\.[ch]): ((?:\w+\(\)(?:, )?)+)`)
	calls = regexp.MustCompile(`\w+`)
)

// ordered returns the functions of the module that have barriers, as "file function".
func ordered(t *testing.T) map[string]bool {
	t.Helper()
	all := make(map[string]bool)
	err := filepath.WalkDir(sources, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".c") && !strings.HasSuffix(path, ".h") || strings.HasPrefix(d.Name(), "compat") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, in := strings.TrimPrefix(filepath.ToSlash(path), sources+"/"), ""
		for line := range strings.Lines(string(data)) {
			if m := function.FindStringSubmatch(strings.TrimSpace(line)); m != nil && line[0] != '\t' && line[0] != ' ' {
				in = m[1]
			}
			code, _, _ := strings.Cut(line, "/*")
			if line[0] == '\t' && barrier.MatchString(code) {
				all[file+" "+in] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEachBarrierHasATest wants a test, or a reason, for each function of the module that has a barrier, and that there are the functions
// that the tests name.
func TestEachBarrierHasATest(t *testing.T) {
	has := ordered(t)
	tested := make(map[string]bool)
	for _, lt := range load(t) {
		text := strings.Join(strings.Fields(strings.ReplaceAll(lt.comment, "*", " ")), " ")
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			for _, f := range calls.FindAllString(m[2], -1) {
				tested[m[1]+" "+f] = true
			}
			data, err := os.ReadFile(filepath.Join(sources, m[1]))
			if err != nil {
				t.Errorf("%s: %v", lt.name, err)
			}
			for _, f := range calls.FindAllString(m[2], -1) {
				if !regexp.MustCompile(`\b` + f + `\(`).Match(data) {
					t.Errorf("%s: %s has no %s()", lt.name, m[1], f)
				}
			}
		}
	}
	for f := range has {
		if !tested[f] && elsewhere[f] == "" {
			t.Errorf("%s has a barrier, and no test or reason", f)
		}
	}
	for f, why := range elsewhere {
		if !has[f] || tested[f] {
			t.Errorf("%s (%s) has no barrier, or a test", f, why)
		}
	}
	if len(has) < 40 {
		t.Errorf("only %d functions have barriers", len(has))
	}
}
