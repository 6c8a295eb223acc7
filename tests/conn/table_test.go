// SPDX-License-Identifier: Apache-2.0

// Package conn proves in user space how connections end and how they move bytes. Tests search the closing table of kernel/conn,
// alone, between two endpoints, and with an endpoint that behaves like Linux's own module. A model for spin, stream.pml, has a
// ring, a writer and a reader that run the same table. Another, failover.pml, has a connection that changes its links.
package conn

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/need"
)

const header = "../../kernel/conn/close_table.h"

// named is an entry of an enum or a set of flags of the header, with the comment that explains it.
type named struct{ name, comment string }

// meaning is struct smc_close_meaning.
type meaning struct {
	code                  int
	eof, shut, deaf, over bool
}

// step is struct smc_close_step.
type step struct {
	valid   bool
	next    int
	actions int
}

// table is the closing table as the module has it: names from the header's text, data from its compiled form.
type table struct {
	states, events, actions []named
	meanings                []meaning
	steps                   [][]step
}

// index returns the number of the name; the properties below speak of states, events and actions by name.
func index(list []named, name string) int {
	i := slices.IndexFunc(list, func(n named) bool { return n.name == name })
	if i < 0 {
		panic("the closing table has no " + name)
	}
	return i
}

func (tb *table) state(name string) int      { return index(tb.states, name) }
func (tb *table) event(name string) int      { return index(tb.events, name) }
func (tb *table) action(name string) int     { return 1 << index(tb.actions, name) }
func (tb *table) at(s, e string) *step       { return &tb.steps[tb.state(s)][tb.event(e)] }
func (tb *table) does(s step, a string) bool { return s.actions&tb.action(a) != 0 }

// clone returns a copy whose data can be changed.
func (tb *table) clone() *table {
	c := *tb
	c.meanings = slices.Clone(tb.meanings)
	c.steps = nil
	for _, row := range tb.steps {
		c.steps = append(c.steps, slices.Clone(row))
	}
	return &c
}

// describe returns a step in words: the next state, then what is done, in order.
func (tb *table) describe(s step) string {
	words := []string{tb.states[s.next].name}
	for i, a := range tb.actions {
		if s.actions&(1<<i) != 0 {
			words = append(words, a.name)
		}
	}
	return strings.Join(words, " ")
}

// compiled are the files besides the program itself that a program of src/ is made of.
var compiled = []string{header, "../../kernel/wire/shim.h"}

// run returns the output of a program.
func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// compile builds a program of src/ with the header of the module, as strictly as tests/wire does. It also reads the files
// that the compiler reads, because the go command repeats a test only if a file has changed that the test itself has read.
func compile(t *testing.T, source string) (program string) {
	t.Helper()
	need.LabPrograms(t, "cc")
	for _, file := range append([]string{source}, compiled...) {
		if _, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	program = filepath.Join(t.TempDir(), "program")
	run(t, "", "cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror",
		"-fsanitize=address,undefined", "-I"+filepath.Dir(header), "-o", program, source)
	return program
}

// load reads the table from the header of the module.
func load(t *testing.T) *table {
	t.Helper()
	tb := names(t)
	if err := tb.parse(run(t, "", compile(t, "src/dump.c"))); err != nil {
		t.Fatal(err)
	}
	return tb
}

// names reads the enums and flags of the header.
func names(t *testing.T) *table {
	t.Helper()
	data, err := os.ReadFile(header)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	enum := func(of string) []named {
		_, body, _ := strings.Cut(text, "enum "+of+" {\n")
		body, _, _ = strings.Cut(body, "};")
		return match(`(?m)^\tSMC_CLOSE_(\w+),[ \t]*(?:/\* (.*) \*/)?$`, body)
	}
	return &table{
		states:  enum("smc_close_state"),
		events:  enum("smc_close_event"),
		actions: match(`(?m)^#define SMC_CLOSE_(\w+)\s+0x[0-9a-f]+[ \t]*(?:/\* (.*) \*/)?$`, text),
	}
}

func match(pattern, text string) []named {
	var all []named
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, named{m[1], m[2]})
	}
	return all
}

// parse reads what src/dump.c prints.
func (tb *table) parse(dump string) error {
	for line := range strings.Lines(dump) {
		fields := strings.Fields(line)
		var n []int
		for _, f := range fields[1:] {
			v, err := strconv.Atoi(f)
			if err != nil {
				return err
			}
			n = append(n, v)
		}
		switch {
		case fields[0] == "sizes" && n[0] == len(tb.states) && n[1] == len(tb.events):
			tb.steps = make([][]step, n[0])
		case fields[0] == "state" && n[0] == len(tb.meanings):
			tb.meanings = append(tb.meanings, meaning{n[1], n[2] == 1, n[3] == 1, n[4] == 1, n[5] == 1})
		case fields[0] == "step" && n[1] == len(tb.steps[n[0]]) && n[3] < len(tb.states) && n[4] < 1<<len(tb.actions):
			tb.steps[n[0]] = append(tb.steps[n[0]], step{n[2] == 1, n[3], n[4]})
		default:
			return fmt.Errorf("%d states, %d events and %d actions have names, but the table says %q",
				len(tb.states), len(tb.events), len(tb.actions), line)
		}
	}
	if len(tb.steps) == 0 || len(tb.steps[len(tb.steps)-1]) != len(tb.events) {
		return errors.Join(io.ErrUnexpectedEOF, fmt.Errorf("%d rows", len(tb.steps)))
	}
	return nil
}
