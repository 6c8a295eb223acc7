// SPDX-License-Identifier: Apache-2.0

// Package wrongtest runs wrong command lines, and right ones on hosts that cannot do what they ask for. A file has the lines of a family
// of commands. Below each is its status, and its line on standard error:
//
//	smcr foo
//		2 smcr: object "foo" is unknown; see 'smcr --help'
//	[no permission] smcr ueid add LAB.ONE
//		1 smcr: add user EID "LAB.ONE": permission denied: run as root ...
//
// Words in quotation marks are literals of Go. DIR is a directory of the test.
package wrongtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/internal/catalogue"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/golden"
	"github.com/spf13/cobra"
)

// Host is what is special about the host of a command line.
type Host string

// The hosts. The last three have the module, and another standard output.
const (
	Usual        Host = ""
	NoModule     Host = "no module"
	NoPermission Host = "no permission"
	// Full is a full disk, Closed a descriptor that nothing can be written to, and Pipe one whose reader has gone.
	Full   Host = "full"
	Closed Host = "closed"
	Pipe   Host = "pipe"
)

var hosts = []Host{NoModule, NoPermission, Full, Closed, Pipe}

// Command is a command with its fakes.
type Command struct {
	Tool cli.Tool
	// Dir is the directory that lines and messages call DIR; it may be empty.
	Dir string
}

// Suite returns smckit with one command, for lines that begin with both.
func Suite(sub string, tool cli.Tool) cli.Tool {
	return cli.Tool{
		Name: "smckit", New: func(*cli.Env) *cobra.Command { return &cobra.Command{Use: "smckit"} },
		Subs: []cli.Sub{{Name: sub, Tool: tool}},
	}
}

// Run runs the lines in a file and compares what comes of them. It fails if the file has fewer than least. command returns the command of
// a name for one line. The flag -update of the test rewrites the file.
func Run(t *testing.T, file string, least int, command func(t *testing.T, name string, h Host) Command) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	rows := 0
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\n"); strings.HasPrefix(line, "\t") {
			continue
		}
		rows++
		got.WriteString(line + "\n\t" + fail(t, line, command) + "\n")
	}
	if rows < least {
		t.Errorf("%s: %d command lines are fewer than %d", file, rows, least)
	}
	golden.Check(t, file, got.String())
}

// Lines returns the words of the command lines in a file, without those for special hosts.
func Lines(t *testing.T, file string) [][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		if host, words := split(t, line); host == Usual {
			all = append(all, words)
		}
	}
	return all
}

// fail runs a command line, and returns its status with its line on standard error.
func fail(t *testing.T, line string, command func(t *testing.T, name string, h Host) Command) string {
	t.Helper()
	host, words := split(t, line)
	c := command(t, words[0], host)
	if c.Dir != "" {
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "DIR", c.Dir)
		}
	}
	var out, stderr bytes.Buffer
	env := &cli.Env{
		In: strings.NewReader(""), Out: host.output(t, &out), Err: &stderr, Getenv: func(string) string { return "" },
		EnterNetNS: func(name string) error { return errors.New("entered " + name) },
		Explain:    host.catalogue().Explain,
	}
	status := cli.Run(t.Context(), c.Tool, env, words[1:])
	said := stderr.String()
	if c.Dir != "" {
		said = strings.ReplaceAll(said, c.Dir, "DIR")
	}
	lines := 1
	if host == Pipe {
		lines = 0
	}
	// smc_run has statuses of its own, as env has.
	if status < 1 || status > 127 || out.Len() > 0 || strings.Count(said, "\n") != lines {
		t.Errorf("%s: status %d, %q, %q", line, status, &out, said)
	}
	return strings.TrimRight(fmt.Sprintf("%d %s", status, said), "\n ")
}

// split returns the host and the words of a line.
func split(t *testing.T, line string) (Host, []string) {
	t.Helper()
	host := Usual
	if inner, ok := strings.CutPrefix(line, "["); ok {
		name, rest, _ := strings.Cut(inner, "] ")
		if host, line = Host(name), rest; !slices.Contains(hosts, host) {
			t.Fatalf("%s: there is no host %q", line, name)
		}
	}
	words := strings.Fields(line)
	for i, w := range words {
		if !strings.HasPrefix(w, `"`) {
			continue
		}
		literal, err := strconv.Unquote(w)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		words[i] = literal
	}
	return host, words
}

// output returns the standard output of the host: out, unless it is special.
func (h Host) output(t *testing.T, out io.Writer) io.Writer {
	t.Helper()
	var f *os.File
	var err error
	switch h {
	case Full:
		f, err = os.OpenFile("/dev/full", os.O_WRONLY, 0)
	case Closed:
		f, err = os.Open(os.DevNull)
	case Pipe:
		var r *os.File
		if r, f, err = os.Pipe(); err == nil {
			r.Close()
		}
	default:
		return out
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// catalogue returns the host as the catalogue of messages sees it, for a user without privileges. Without a module, DKMS has its sources.
func (h Host) catalogue() *catalogue.Host {
	host := &catalogue.Host{Kernel: catalogue.Kernel{Release: "7.2"}}
	if h == NoModule {
		host.Setup = catalogue.Setup{DKMS: "0.1.0", Package: true, Headers: true}
	} else {
		host.Module = catalogue.Module{Loaded: true, Ours: true}
	}
	return host
}

// Dial returns a connection to netlink families. Their lists are empty. They acknowledge other requests, unless they are not permitted.
func (h Host) Dial(families ...string) *genetlink.Conn {
	return genltest.Dial(func(g genetlink.Message, m netlink.Message) ([]genetlink.Message, error) {
		if h == NoModule {
			return nil, genltest.Error(int(syscall.ENOENT))
		}
		for i, name := range families {
			family := genetlink.Family{ID: uint16(0x20 + i), Name: name, Version: 1}
			// The request that looks up a family has its name.
			if uint16(m.Header.Type) == family.ID || bytes.Contains(g.Data, []byte(name+"\x00")) {
				return genltest.ServeFamily(family, h.answer)(g, m)
			}
		}
		return nil, genltest.Error(int(syscall.ENOENT))
	})
}

func (h Host) answer(_ genetlink.Message, m netlink.Message) ([]genetlink.Message, error) {
	switch {
	case m.Header.Flags&netlink.Dump == netlink.Dump:
		return nil, io.EOF
	case h == NoPermission:
		return nil, genltest.Error(int(syscall.EPERM))
	}
	return nil, nil
}
