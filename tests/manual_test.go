// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/need"
	"github.com/smckit/smckit/pkg/pnet"
)

// TestManualSettings checks that af_smc(7) has the settings and parameters that the module has, with their defaults.
func TestManualSettings(t *testing.T) {
	page := strings.ReplaceAll(string(read(t, "man/af_smc.7")), `\-`, "-")
	source := string(read(t, "kernel/control/sysctl_gen.c"))
	knob := regexp.MustCompile(`\t\[SMC_SYSCTL_[A-Z0-9_]+\] = \{(.*) \},`)
	field := regexp.MustCompile(`KNOB\((\w+)\)|\.name = "(\w+)"`)
	initial := regexp.MustCompile(`\.init = (\w+)`)
	var want []string
	for _, m := range knob.FindAllStringSubmatch(source, -1) {
		f := field.FindStringSubmatch(m[1])
		name, value := f[1]+f[2], "0"
		if i := initial.FindStringSubmatch(m[1]); i != nil {
			value = i[1]
		}
		if name != "port_add_delay" { // of /proc/net/smc only
			want = append(want, name+" "+value)
		}
	}
	if len(want) < 13 {
		t.Fatalf("only %d settings found in the source: %q", len(want), want)
	}
	var got []string
	for _, m := range regexp.MustCompile(`net\.smc\.(\w+) "(?: \*)? \(([^)]*)\)`).FindAllStringSubmatch(page, -1) {
		// The default is a part of its own between semicolons: neither the range nor the unit.
		for part := range strings.SplitSeq(m[2], ";") {
			if part = strings.TrimSpace(part); regexp.MustCompile(`^\d+$`).MatchString(part) {
				got = append(got, m[1]+" "+part)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings of kernel/control/sysctl_gen.c (-) and of man/af_smc.7 (+): %s", diff)
	}

	for _, file := range repoFiles(t) {
		// null.c and fake.c are modules for tests.
		if !strings.HasPrefix(file, "kernel/") || !strings.HasSuffix(file, ".c") || file == "kernel/transport/null.c" || strings.HasSuffix(file, "/ism/fake.c") {
			continue
		}
		for _, m := range regexp.MustCompile(`(?m)^module_param\((\w+), (\w+),.*\);\nMODULE_PARM_DESC\(\w+, "(.*)"\)`).FindAllStringSubmatch(string(read(t, file)), -1) {
			if !strings.Contains(m[3], "for tests") && !strings.Contains(page, "\n.IR "+m[1]+` " (`+m[2]+";") {
				t.Errorf("man/af_smc.7 is without the module's parameter %s", m[1])
			}
		}
	}
}

// examples returns the text between .EX and .EE in a page.
func examples(t *testing.T, file string) []string {
	t.Helper()
	var found []string
	for _, m := range regexp.MustCompile(`(?s)\n\.EX\n(.*?\n)\.EE`).FindAllStringSubmatch(string(read(t, file)), -1) {
		found = append(found, strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\e`, `\`).Replace(m[1]))
	}
	return found
}

// TestManualTables checks that the tables in smc_pnet.conf(5) are valid or invalid as the page claims.
func TestManualTables(t *testing.T) {
	right, wrong := 0, 0
	for _, text := range examples(t, "man/smc_pnet.conf.5") {
		if !strings.Contains("\n"+text, "\nadd ") {
			continue
		}
		table, err := pnet.Parse(strings.NewReader(text), "example")
		at := slices.IndexFunc(strings.Split(text, "\n"), func(l string) bool { return strings.HasSuffix(l, "# a mistake") })
		var mistake *pnet.ParseError
		switch {
		case at < 0 && err == nil && len(table) > 0:
			right++
		case at >= 0 && errors.As(err, &mistake) && mistake.Line == at+1:
			wrong++
		default:
			t.Errorf("error %v for\n%s", err, text)
		}
	}
	if right == 0 || wrong == 0 {
		t.Errorf("%d tables and %d mistakes found: the page is read wrongly", right, wrong)
	}
}

// TestManualProgram checks that the program in af_smc(7) compiles.
func TestManualProgram(t *testing.T) {
	need.Programs(t, "cc")
	at := slices.IndexFunc(examples(t, "man/af_smc.7"), func(text string) bool { return strings.HasPrefix(text, "#include") })
	if at < 0 {
		t.Fatal("no program in man/af_smc.7")
	}
	file := filepath.Join(t.TempDir(), "example.c")
	if err := os.WriteFile(file, []byte(examples(t, "man/af_smc.7")[at]), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
