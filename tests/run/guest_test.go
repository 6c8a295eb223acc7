// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package run runs unchanged programs of other projects with smc_run in guests: dynamically linked programs with the preload
// library, and programs that make their system calls without a C library by seccomp.
package run

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
	"golang.org/x/sys/unix"
)

// kernel is the one that runs. smc_run does not depend on it, but TestWithoutModule does: Debian ships no AF_SMC with it.
var kernel = lab.Newest()

// Places in the guest.
const (
	work = "/run/work"
	web  = work + "/web"
	echo = work + "/echo"

	echo32       = work + "/echo32"
	echo32static = work + "/echo32static"
)

const nginxConf = `
daemon off;
user root;
worker_processes 1;
pid ` + work + `/nginx.pid;
error_log stderr warn;
events { worker_connections 64; }
http {
	access_log off;
	client_body_temp_path ` + work + `/nginx.body;
	proxy_temp_path ` + work + `/nginx.proxy;
	fastcgi_temp_path ` + work + `/nginx.fastcgi;
	uwsgi_temp_path ` + work + `/nginx.uwsgi;
	scgi_temp_path ` + work + `/nginx.scgi;
	server { listen 8080; listen 8081; listen [::1]:8080; root ` + work + `/www; }
}
`

// guest is a host with programs to run.
type guest struct {
	*lab.Test
	name string
}

// boot starts a guest without AF_SMC.
func boot(t *testing.T) *guest {
	return bootHosts(t, kernel)[0]
}

// bootHosts starts guests with these kernels, in one network.
func bootHosts(t *testing.T, kernels ...string) (guests []*guest) {
	t.Helper()
	lab.Need(t)
	commands, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	programs := compiled(t)
	// Two guests have one processor each: with more processors than this machine has, timers of RDMA would expire.
	lt := lab.Start(t, lab.Options{Kernels: kernels, CPUs: 3 - len(kernels), Memory: 1024, Programs: []string{commands}})
	for i := range kernels {
		g := &guest{lt, string(rune('a' + i))}
		g.Must(g.name, `ip link set lo up; mkdir -p `+work+`/www; cd `+work+`/www
echo "the page" >page; head -c 8388608 /dev/zero >large`)
		for path, data := range programs {
			if err := g.host().WriteFile(t.Context(), path, data, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		guests = append(guests, g)
	}
	return guests
}

func (g *guest) host() *lab.Host { return g.Host(g.name) }

// files has what compiled has returned.
var files map[string][]byte

// compiled returns the files for guests by their path there. It compiles the programs once for all tests.
func compiled(t *testing.T) map[string][]byte {
	t.Helper()
	if files == nil {
		files = map[string][]byte{
			web:  build(t, "go", "build", "-trimpath", "-o", "OUT", "./web"),
			echo: build(t, "cc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-o", "OUT", "src/echo.c"),

			echo32:       build(t, "cc", "-m32", "-O2", "-Wall", "-Wextra", "-Werror", "-o", "OUT", "src/echo.c"),
			echo32static: build(t, "cc", "-m32", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-o", "OUT", "src/echo.c"),

			work + "/nginx.conf": []byte(nginxConf),
		}
	}
	return files
}

// build runs a compiler, for which OUT is the program that it makes.
func build(t *testing.T, argv ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	for i := range argv {
		argv[i] = strings.Replace(argv[i], "OUT", out, 1)
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, text)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// server is a program that serves until the test ends.
type server struct {
	argv []string
	port int
}

// start starts a server with smc_run and waits until it listens.
func (g *guest) start(t *testing.T, s server, options ...string) {
	t.Helper()
	argv := append(append([]string{"smc_run", "-d"}, options...), s.argv...)
	p, err := g.host().Start(lab.Cmd{Argv: argv, Dir: work})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Signal(unix.SIGKILL)
		// Do not use the test's context, which has ended.
		ctx, cancel := context.WithTimeout(context.Background(), lab.Scale(20*time.Second))
		defer cancel()
		r, err := p.Wait(ctx)
		if err != nil || r.Code != 128+int(unix.SIGKILL) || t.Failed() {
			t.Errorf("%q: exit status %d, %v\n%s%s", argv, r.Code, err, r.Stdout, r.Stderr)
		}
	})
	if err := g.host().WaitFor(t.Context(), fmt.Sprintf("ss -Hltn 'sport = :%d' | grep -q .", s.port)); err != nil {
		t.Fatal(err)
	}
}

// run runs a program, which must succeed, and returns its output.
func (g *guest) run(t *testing.T, argv ...string) lab.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(60*time.Second))
	defer cancel()
	r, err := g.host().Run(ctx, lab.Cmd{Argv: argv, Dir: work, Stdin: strings.NewReader("by cat\n")})
	if err != nil || r.Code != 0 {
		t.Fatalf("%q: exit status %d, %v\n%s%s", argv, r.Code, err, r.Stdout, r.Stderr)
	}
	return r
}

// became counts connections by their outcome.
type became struct {
	smc      int // connections that are SMC-D, or SMC-R, as their clients count them
	served   int // and their servers
	client   int // clients that fell back
	server   int // servers
	byOption int // clients, because an option rules SMC out
}

// since counts the outcomes of connections since a first count; SMC connections are SMC-D.
func (g *guest) since(before lab.Counters) became { return between(before, g.Counters(g.name)) }

func between(before, now lab.Counters) became {
	return became{
		smc:      now.Connections.ClientV2 - before.Connections.ClientV2,
		served:   now.Connections.ServerV2 - before.Connections.ServerV2,
		client:   now.Fallback.Client.Total - before.Fallback.Client.Total,
		server:   now.Fallback.Server.Total - before.Fallback.Server.Total,
		byOption: now.Fallback.Client.Of("OPTUNSUPP") - before.Fallback.Client.Of("OPTUNSUPP"),
	}
}

// empty waits until no AF_SMC socket is left, nor any supervisor, and removes the module.
func (g *guest) empty(t *testing.T) {
	t.Helper()
	script := `smcss -a; test "$(smcss -a | wc -l)" = 1; ! grep -l smc_run /proc/[0-9]*/comm`
	if err := g.host().WaitFor(t.Context(), script); err != nil {
		t.Error(err)
	}
	if err := g.host().WaitFor(t.Context(), "rmmod smc_diag 2>&1 || test ! -e /sys/module/smc_diag; rmmod smc"); err != nil {
		t.Error(err)
	}
}
