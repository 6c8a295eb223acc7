// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool"
)

// tools are our commands.
var tools = func() map[string]cli.Tool {
	all := map[string]cli.Tool{}
	for _, t := range tool.All() {
		all[t.Name] = t
	}
	return all
}()

// others are the other programs that the documents may call.
var others = strings.Fields(`
	apt apt-get bash cat cd chmod cp curl dmesg dnf docker dpkg echo env exec export for grep install ip journalctl kill ln lsmod lspci ls
	make man mkdir modinfo modprobe mokutil nft ping rdma rm rmmod rpm sed sh sleep sort ss sudo sysctl systemctl tail tcpdump tee test true
	udevadm uname unshare virsh
	gcc git go ansible-galaxy ansible-playbook
	ab iperf3 nginx podman python3 redis-benchmark redis-cli redis-server
	app ./app ./run.sh`) // stand for the reader's own; tests make them

// root is where the repository begins.
const root = "../.."

// files lists the documents whose command lines are checked.
func files(t *testing.T) []string {
	t.Helper()
	names := []string{"README.md", "CONTRIBUTING.md", "ansible/README.md"}
	docs, err := filepath.Glob(root + "/docs/*.md")
	if err != nil || len(docs) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, d := range docs {
		names = append(names, "docs/"+filepath.Base(d))
	}
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func blocksOf(t *testing.T, name string) []Block {
	t.Helper()
	blocks, err := Blocks(name, read(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

// TestCommandLines checks every command line of the documents with the parser of its command, without running it.
func TestCommandLines(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9_-]+):`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	n := 0
	for _, name := range files(t) {
		for _, b := range blocksOf(t, name) {
			if b.By != "" {
				if _, err := os.Stat(filepath.Join(root, b.By)); err != nil {
					t.Errorf("%s:%d: what runs the block is not there: %v", name, b.Line, err)
				}
			}
			for _, l := range b.Lines {
				n++
				for _, c := range l.Calls {
					checkCall(t, name, l.Number, c, targets)
				}
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d command lines: the search for them is wrong", n)
	}
}

func checkCall(t *testing.T, name string, line int, c Call, targets map[string]bool) {
	t.Helper()
	if tool, ok := tools[c[0]]; ok {
		if err := cli.Check(tool, c[1:]); err != nil {
			t.Errorf("%s:%d: %q: %v", name, line, c, err)
		}
		return
	}
	if !slices.Contains(others, c[0]) {
		t.Errorf("%s:%d: %q: a program that this test does not know", name, line, c[0])
	}
	if c[0] == "make" && !slices.Contains(c, "-C") {
		for _, target := range c[1:] {
			if !strings.Contains(target, "=") && !targets[target] {
				t.Errorf("%s:%d: the Makefile has no target %q", name, line, target)
			}
		}
	}
}

// TestBlocksRunElsewhere checks that the file which is said to run a block names the document, whose lines it runs then, or contains the
// commands of the block.
func TestBlocksRunElsewhere(t *testing.T) {
	for _, name := range files(t) {
		for _, b := range blocksOf(t, name) {
			if b.By == "" {
				continue
			}
			text := read(t, b.By)
			if strings.Contains(text, `"`+name+`"`) {
				continue
			}
			for _, l := range b.Lines {
				program := l.First()[0]
				if program == "make" {
					program = strings.Join(l.First(), " ")
				}
				if !strings.Contains(text, program) {
					t.Errorf("%s:%d: %s does not name %q", name, l.Number, b.By, program)
				}
			}
		}
	}
}

// TestCommandsInText checks the commands in code spans of the text, such as `smcss -a`.
func TestCommandsInText(t *testing.T) {
	span := regexp.MustCompile("`([^`\n]+)`")
	// These are not meant to be typed: patterns of a command line, and quotes of smc-tools in compat.md.
	pattern := regexp.MustCompile(`…|\.\.\.|[][|<>*]|\b[A-Z]{2,}\b`)
	n := 0
	for _, name := range files(t) {
		if name == "docs/compat.md" {
			continue
		}
		for i, line := range strings.Split(read(t, name), "\n") {
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				words := strings.Fields(m[1])
				if _, ours := tools[words0(words)]; !ours || len(words) < 2 || pattern.MatchString(m[1]) {
					continue
				}
				n++
				stmts, err := statements(m[1], i)
				if err != nil {
					t.Errorf("%s:%d: %v", name, i+1, err)
					continue
				}
				for _, c := range stmts[0].Calls {
					if _, ours := tools[c[0]]; ours {
						checkCall(t, name, i+1, c, nil)
					}
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d commands: the search for them is wrong", n)
	}
}

func words0(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// TestIndentedCommands checks that all command lines are in fenced blocks, so that the other tests find them.
func TestIndentedCommands(t *testing.T) {
	indented := regexp.MustCompile(`^(?: {4}|\t)(?:[$#] )?([a-z_-]+)(?: |$)`)
	for _, name := range files(t) {
		fenced := false
		for i, line := range strings.Split(read(t, name), "\n") {
			if fence.MatchString(line) {
				fenced = !fenced
			}
			m := indented.FindStringSubmatch(line)
			if fenced || m == nil {
				continue
			}
			if _, ours := tools[m[1]]; ours || slices.Contains(others, m[1]) {
				t.Errorf("%s:%d: %q: put it into a fenced block of sh", name, i+1, strings.TrimSpace(line))
			}
		}
	}
}

// TestBenchmarksInDocuments checks that the benchmarks in arguments of `make bench` exist: those lines are not run.
func TestBenchmarksInDocuments(t *testing.T) {
	sources, err := filepath.Glob(root + "/tests/bench/*_test.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no benchmarks: %v", err)
	}
	var text strings.Builder
	for _, s := range sources {
		text.WriteString(read(t, strings.TrimPrefix(s, root+"/")))
	}
	n := 0
	for _, name := range files(t) {
		for _, b := range blocksOf(t, name) {
			for _, l := range b.Lines {
				for _, word := range l.First() {
					var want []string
					if which, ok := strings.CutPrefix(word, "BENCH="); ok {
						function, sub, _ := strings.Cut(which, "/")
						want = []string{"func Benchmark" + function + "(", sub}
					} else if flag, ok := strings.CutPrefix(word, "BENCHFLAGS=-"); ok {
						want = []string{`"` + flag + `"`}
					}
					for _, w := range want {
						n++
						if !strings.Contains(text.String(), w) {
							t.Errorf("%s:%d: %s: tests/bench has no %s", name, l.Number, word, w)
						}
					}
				}
			}
		}
	}
	if n < 6 {
		t.Errorf("only %d things to look for: the search for them is wrong", n)
	}
}
