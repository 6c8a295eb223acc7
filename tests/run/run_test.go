// SPDX-License-Identifier: Apache-2.0

//go:build linux

package run

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// program is a server and its client.
type program struct {
	name string
	// method is the method that smc_run chooses.
	method string
	server
	client []string
	// want is part of what the client prints.
	want string
	// connections is how many the client makes.
	connections int
	// hold is a script that stays connected, in which smc_run is RUN.
	hold string
}

var programs = []program{
	{
		"redis", "preload",
		server{[]string{"redis-server", "--port", "6379", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"}, 6379},
		[]string{"redis-cli", "-h", "127.0.0.1", "echo", "by redis"},
		"by redis\n", 1, "exec RUN redis-cli -h 127.0.0.1 subscribe news",
	},
	{
		"nginx and curl", "preload",
		server{[]string{"nginx", "-p", work, "-c", work + "/nginx.conf"}, 8080},
		[]string{"curl", "-fsS", "http://127.0.0.1:8080/page"},
		"the page\n", 1,
		"exec RUN curl -fsS --limit-rate 1k -o /dev/null http://127.0.0.1:8080/large",
	},
	{
		"python", "preload",
		server{[]string{"python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", work + "/www", "8000"}, 8000},
		[]string{"python3", "-c", `import urllib.request as u; print(u.urlopen("http://127.0.0.1:8000/page").read().decode())`},
		"the page\n", 1,
		`exec RUN python3 -c 'import socket, signal; s = socket.create_connection(("127.0.0.1", 8000)); signal.pause()'`,
	},
	{
		"iperf3", "preload",
		server{[]string{"iperf3", "-s", "-p", "5201"}, 5201},
		[]string{"iperf3", "-c", "127.0.0.1", "-p", "5201", "-n", "4M", "-J"},
		`"sum_received"`, 2,
		"exec RUN iperf3 -c 127.0.0.1 -p 5201 -t 600 -b 1M",
	},
	{
		"Go", "seccomp",
		server{[]string{web, "serve", "127.0.0.1:8090"}, 8090},
		[]string{web, "get", "http://127.0.0.1:8090/"},
		"from Go\n", 1, "exec RUN " + web + " get http://127.0.0.1:8090/hold",
	},
	{
		"static C", "seccomp",
		server{[]string{echo, "serve", "7000"}, 7000},
		[]string{echo, "call", "7000", "by C"},
		"by C\n", 1, "exec RUN " + echo + " hold 7000",
	},
	{
		"32-bit C", "preload",
		server{[]string{echo32, "serve", "7032"}, 7032},
		[]string{echo32, "call", "7032", "by 32 bits"},
		"by 32 bits\n", 1, "exec RUN " + echo32 + " hold 7032",
	},
	{
		"static 32-bit C", "seccomp",
		server{[]string{echo32static, "serve", "7033"}, 7033},
		[]string{echo32static, "call", "7033", "by 32 bits"},
		"by 32 bits\n", 1, "exec RUN " + echo32static + " hold 7033",
	},
	{
		"busybox httpd and wget", "seccomp",
		server{[]string{"busybox", "httpd", "-f", "-p", "127.0.0.1:8070", "-h", work + "/www"}, 8070},
		[]string{"busybox", "wget", "-q", "-O", "-", "http://127.0.0.1:8070/page"},
		"the page\n", 1,
		"sleep 600 | RUN busybox nc 127.0.0.1 8070",
	},
	{
		"busybox nc", "seccomp",
		server{[]string{"busybox", "nc", "-ll", "-p", "7001", "-e", "cat"}, 7001},
		[]string{"busybox", "nc", "127.0.0.1", "7001"},
		"by cat\n", 1, "sleep 600 | RUN busybox nc 127.0.0.1 7001",
	},
}

// pipeline runs programs of all kinds, each of which adds the answer that it got.
const pipeline = `curl -fsS http://127.0.0.1:8080/page |
(cat; redis-cli -h 127.0.0.1 echo "by redis") |
(cat; python3 -c 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:8000/page").read().decode(), end="")') |
(cat; busybox wget -q -O - http://127.0.0.1:8070/page) |
(cat; ` + web + ` get http://127.0.0.1:8090/) |
(cat; ` + echo + ` call 7000 "by C") |
(cat; echo "by cat" | busybox nc 127.0.0.1 7001)`

const (
	pipelineSays        = "the page\nby redis\nthe page\nthe page\nfrom Go\nby C\nby cat\n"
	pipelineConnections = 7
	// The static programs among them have no C library to preload.
	pipelineStatic = 4
)

// TestPrograms runs servers of all kinds at once, and connects to each: with a client of its kind, with a client that stays
// connected while smcss runs, and from a pipeline of all clients.
func TestPrograms(t *testing.T) {
	g := boot(t)
	// smc_run makes the first AF_SMC socket, which loads the module.
	if err := g.InstallSMC(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("servers", func(t *testing.T) {
		for _, p := range programs {
			g.start(t, p.server)
		}
		for _, p := range programs {
			t.Run(p.name, func(t *testing.T) { g.converse(t, p) })
		}
		t.Run("pipeline", g.pipeline)
		t.Run("rules", g.rules)
		t.Run("buffers", g.buffers)
	})
	g.empty(t)
}

// converse checks a program's client.
func (g *guest) converse(t *testing.T, p program) {
	listeners := g.Must(g.name, fmt.Sprintf("smcss --state listen --port %d", p.port))
	if !strings.Contains(listeners, "LISTEN") {
		t.Errorf("no AF_SMC socket listens:\n%s", listeners)
	}
	before := g.Counters(g.name)
	r := g.run(t, append([]string{"smc_run", "-d"}, p.client...)...)
	if !strings.Contains(r.Stdout, p.want) {
		t.Errorf("the client prints %q, not %q", r.Stdout, p.want)
	}
	if want := "smc_run: method " + p.method + ": "; !strings.HasPrefix(r.Stderr, want) || !strings.Contains(r.Stderr, " is AF_SMC\n") {
		t.Errorf("says %q, not %q", r.Stderr, want)
	}
	if got, want := g.since(before), (became{smc: p.connections, served: p.connections}); got != want {
		t.Errorf("connections: %+v, want %+v", got, want)
	}
	g.hold(t, p)
}

// hold checks that smcss lists both ends of a connection.
func (g *guest) hold(t *testing.T, p program) {
	script := strings.Replace(p.hold, "RUN", "smc_run -q", 1)
	client, err := g.host().Start(lab.Cmd{Argv: []string{"/bin/sh", "-c", script}, Dir: work})
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Kill(t, client)
	list := fmt.Sprintf("smcss --state active --port %d", p.port)
	if err := g.host().WaitFor(t.Context(), list+"; test $("+list+" --mode smcd | wc -l) -gt 2"); err != nil {
		t.Errorf("no SMC-D connection with two ends: %v", err)
	}
	if out := g.Must(g.name, list+" --mode tcp"); strings.Contains(out, "ACTIVE") {
		t.Errorf("not SMC-D:\n%s", out)
	}
}

// pipeline checks that seccomp affects all programs that a shell starts, and the library those with a C library.
func (g *guest) pipeline(t *testing.T) {
	for method, static := range map[string]int{"seccomp": 0, "preload": pipelineStatic} {
		before := g.Counters(g.name)
		r := g.run(t, "smc_run", "--method", method, "sh", "-euc", pipeline)
		if r.Stdout != pipelineSays || r.Stderr != "" {
			t.Errorf("%s: %q, %q", method, r.Stdout, r.Stderr)
		}
		want := became{smc: pipelineConnections - static, served: pipelineConnections - static, server: static}
		if got := g.since(before); got != want {
			t.Errorf("%s: %+v, want %+v", method, got, want)
		}
	}
}

// rules checks that connections which rules exclude are TCP, for clients and for servers, by either method.
func (g *guest) rules(t *testing.T) {
	smc, tcp := became{smc: 1, served: 1}, became{client: 1, server: 1, byOption: 1}
	for _, method := range []string{"preload", "seccomp"} {
		for _, test := range []struct {
			rules, url string
			want       became
		}{
			{"--port 1-1023,8080", "http://127.0.0.1:8080/page", smc},
			{"--port 1-1023,8080", "http://127.0.0.1:8081/page", tcp},
			{"--to 127.0.0.0/30", "http://127.0.0.2:8080/page", smc},
			{"--to 127.0.0.0/30", "http://127.0.0.5:8080/page", tcp},
			{"--to ::1", "http://[::1]:8080/page", smc},
			{"--to 127.0.0.1", "http://[::1]:8080/page", tcp},
			{"--not 8081,127.0.0.2", "http://127.0.0.1:8080/page", smc},
			{"--not 8081,127.0.0.2", "http://127.0.0.1:8081/page", tcp},
			{"--not 8081,127.0.0.2", "http://127.0.0.2:8080/page", tcp},
		} {
			before := g.Counters(g.name)
			argv := append([]string{"smc_run", "--method", method}, strings.Fields(test.rules)...)
			if r := g.run(t, append(argv, "curl", "-fsS", test.url)...); r.Stdout != "the page\n" || r.Stderr != "" {
				t.Errorf("%s: %q, %q", argv, r.Stdout, r.Stderr)
			}
			if got := g.since(before); got != test.want {
				t.Errorf("%s %s: %+v, want %+v", argv, test.url, got, test.want)
			}
		}
		g.serverRules(t, method)
	}
}

// serverRules runs one server within the rules, and one outside.
func (g *guest) serverRules(t *testing.T, method string) {
	t.Run("server by "+method, func(t *testing.T) {
		serve := func(port string) []string {
			return []string{"python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", work + "/www", port}
		}
		for _, test := range []struct {
			port int
			want became
		}{
			{7100, became{smc: 1, served: 1}},
			{7101, became{client: 1}},
		} {
			g.start(t, server{serve(fmt.Sprint(test.port)), test.port}, "--method", method, "--port", "7100")
			before := g.Counters(g.name)
			if r := g.run(t, "smc_run", "curl", "-fsS", fmt.Sprintf("http://127.0.0.1:%d/page", test.port)); r.Stdout != "the page\n" {
				t.Errorf("%q, %q", r.Stdout, r.Stderr)
			}
			got := g.since(before)
			got.server = 0 // a listener that is TCP counts nothing, or the fallback
			if got != test.want {
				t.Errorf("port %d: %+v, want %+v", test.port, got, test.want)
			}
		}
	})
}

// buffers checks the buffer sizes of sockets of root and of another user.
func (g *guest) buffers(t *testing.T) {
	const show = `import socket; s = socket.socket()
print(s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF), s.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF))`
	most := strings.Fields(g.Must(g.name, "sysctl -n net.core.rmem_max net.core.wmem_max"))
	// Install the commands in a directory that every user can read.
	g.Must(g.name, "mkdir -m 755 "+work+"/bin; cd $(dirname $(command -v smc_run)); install smc_run libsmc-preload.so.1 "+work+"/bin")
	for _, method := range []string{"preload", "seccomp"} {
		argv := []string{work + "/bin/smc_run", "--method", method, "-r", "16m", "-t", "12m", "python3", "-c", show}
		if r := g.run(t, argv...); r.Stdout != "33554432 25165824\n" || r.Stderr != "" {
			t.Errorf("%q: %q, %q", argv, r.Stdout, r.Stderr)
		}
		argv = append([]string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, argv...)
		r := g.run(t, argv...)
		if want := twice(most[0]) + " " + twice(most[1]) + "\n"; r.Stdout != want {
			t.Errorf("%q: %q, want %q", argv, r.Stdout, want)
		}
		warning := regexp.MustCompile(`(?m)^smc_run: warning: -r 16777216 is more than this user may set: buffers get ` + most[0] + `, `)
		if !warning.MatchString(r.Stderr) || strings.Count(r.Stderr, "\n") != 2 {
			t.Errorf("%q: %q", argv, r.Stderr)
		}
	}
}

// twice doubles a number, as the kernel does with sizes of buffers.
func twice(text string) string {
	var n int
	fmt.Sscan(text, &n)
	return fmt.Sprint(2 * n)
}

// TestWithoutModule runs the same programs on a kernel without AF_SMC.
func TestWithoutModule(t *testing.T) {
	g := boot(t)
	warning := regexp.MustCompile(`^smc_run: warning: AF_SMC is not available \(.*\), so sockets are TCP: .*\n$`)
	for _, p := range programs {
		g.start(t, p.server)
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			r := g.run(t, append([]string{"smc_run"}, p.client...)...)
			if !strings.Contains(r.Stdout, p.want) || !warning.MatchString(r.Stderr) {
				t.Errorf("%q, %q", r.Stdout, r.Stderr)
			}
			refused := g.Run(g.name, append([]string{"smc_run", "--require"}, p.client...)...)
			if refused.Code != 1 || refused.Stdout != "" || !strings.HasPrefix(refused.Stderr, "smc_run: AF_SMC is not available (") {
				t.Errorf("required: exit status %d, %q, %q", refused.Code, refused.Stdout, refused.Stderr)
			}
		})
	}
	for _, method := range []string{"preload", "seccomp"} {
		r := g.run(t, "smc_run", "-q", "--port", "1", "--method", method, "sh", "-euc", pipeline)
		if r.Stdout != pipelineSays || r.Stderr != "" {
			t.Errorf("pipeline, %s: %q, %q", method, r.Stdout, r.Stderr)
		}
	}
}
