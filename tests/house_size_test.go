// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFileSize keeps each file at one topic, and at 600 lines.
func TestFileSize(t *testing.T) {
	const most = 600
	for _, file := range repoFiles(t) {
		if ext := path.Ext(file); ext != ".go" && ext != ".c" && ext != ".h" {
			continue
		}
		if n := bytes.Count(read(t, file), []byte("\n")); n > most {
			t.Errorf("%s: %d lines, more than %d: split it by topic", file, n, most)
		}
	}
}

// kernelSources returns the C files of the module.
func kernelSources(t *testing.T) map[string][]string {
	t.Helper()
	sources := make(map[string][]string)
	for _, file := range repoFiles(t) {
		if strings.HasPrefix(file, "kernel/") && (path.Ext(file) == ".c" || path.Ext(file) == ".h") {
			sources[file] = strings.Split(string(read(t, file)), "\n")
		}
	}
	if len(sources) < 100 {
		t.Fatalf("only %d files: the listing is wrong", len(sources))
	}
	return sources
}

// function is a function of a C or Go file: its name, the line where it begins, and how many lines it has.
type function struct {
	name        string
	line, lines int
}

// cFunctions lists the functions of a file in the kernel's style, where a function's braces stand in the first column.
func cFunctions(lines []string) []function {
	name := regexp.MustCompile(`(\w+)\(`)
	var all []function
	head, open := 0, -1
	for i, line := range lines {
		if line == "{" {
			open = i
		}
		if line == "}" && open >= 0 {
			f := function{line: head + 1, lines: i - head + 1}
			if m := name.FindStringSubmatch(strings.Join(lines[head:open], " ")); m != nil {
				f.name = m[1]
			}
			all = append(all, f)
			open = -1
		}
		// A head begins after the line that ends the previous declaration.
		ends := line == "" || strings.HasPrefix(line, "}") || strings.HasPrefix(line, "#") ||
			strings.HasSuffix(line, ";") || strings.HasSuffix(line, "*/")
		if open < 0 && ends {
			head = i + 1
		}
	}
	return all
}

// TestKernelFunctionSize keeps functions of the module at 60 lines.
func TestKernelFunctionSize(t *testing.T) {
	const most = 60
	functions := 0
	for file, lines := range kernelSources(t) {
		for _, f := range cFunctions(lines) {
			functions++
			if f.lines > most {
				t.Errorf("%s:%d: %s has %d lines, more than %d: split it", file, f.line, f.name, f.lines, most)
			}
		}
	}
	if functions < 1000 {
		t.Errorf("only %d functions: the test does not find them", functions)
	}
}

// goFunctions lists the functions of a Go file.
func goFunctions(t *testing.T, file string, source []byte) (all []function) {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			line := set.Position(f.Pos()).Line
			all = append(all, function{name: f.Name.Name, line: line, lines: set.Position(f.End()).Line - line + 1})
		}
	}
	return all
}

// TestGoFunctionSize keeps functions in Go at 60 lines, too, except those of tests, which are often tables.
func TestGoFunctionSize(t *testing.T) {
	const most = 60
	functions := 0
	for _, file := range repoFiles(t) {
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		source := read(t, file)
		if source == nil {
			continue
		}
		for _, f := range goFunctions(t, file, source) {
			functions++
			if f.lines > most {
				t.Errorf("%s:%d: %s has %d lines, more than %d: split it", file, f.line, f.name, f.lines, most)
			}
		}
	}
	if functions < 1000 {
		t.Errorf("only %d functions: the test does not find them", functions)
	}
}

// statement is a line of a C file without its indentation, and its number.
type statement struct {
	number int
	text   string
}

// statements returns the lines that can be written twice: neither empty ones nor directives nor entries of tables.
func statements(lines []string) []statement {
	entry := regexp.MustCompile(`^[.{[].*,$|^[A-Z_0-9]+,$`)
	var all []statement
	for i, line := range lines {
		if text := strings.TrimSpace(line); text != "" && text[0] != '#' && !entry.MatchString(text) {
			all = append(all, statement{i + 1, text})
		}
	}
	return all
}

// TestKernelRepetition checks that no two places of the module share 12 lines, which should be one function.
func TestKernelRepetition(t *testing.T) {
	const most = 11
	type place struct {
		file string
		line int
	}
	seen := make(map[string]place)
	for file, lines := range kernelSources(t) {
		all := statements(lines)
		for i := 0; i+most < len(all); i++ {
			var key strings.Builder
			for _, s := range all[i : i+most+1] {
				key.WriteString(s.text + "\n")
			}
			here := place{file, all[i].number}
			if other, ok := seen[key.String()]; ok {
				t.Errorf("%s:%d and %s:%d share %d lines: write them once", here.file, here.line, other.file, other.line, most+1)
			}
			seen[key.String()] = here
		}
	}
}

// TestSizeRules checks that the rules above detect violations.
func TestSizeRules(t *testing.T) {
	source := "#include <a>\nstruct a {\n\tint b;\n};\n/* Why. */\nstatic int\nadd(int a,\n    int b)\n{\n\treturn a + b;\n}\n\nvoid none(void)\n{\n}\n"
	functions := cFunctions(strings.Split(source, "\n"))
	want := []function{{"add", 6, 6}, {"none", 13, 3}}
	if !slices.Equal(functions, want) {
		t.Errorf("got %v, want %v", functions, want)
	}
	goSource := "package a\n\n// Why.\nfunc add(a int) int {\n\treturn a\n}\n\nfunc (b T) none() {}\n"
	functions, want = goFunctions(t, "a.go", []byte(goSource)), []function{{"add", 4, 3}, {"none", 8, 1}}
	if !slices.Equal(functions, want) {
		t.Errorf("got %v, want %v", functions, want)
	}
	text := "#define A\n\t{ 1, 2 },\n\t[B] = 3,\n\t.c = 4,\n\tREAD,\n\n\tcall();\n"
	if all := statements(strings.Split(text, "\n")); len(all) != 1 || all[0] != (statement{7, "call();"}) {
		t.Errorf("got %v", all)
	}
}
