// SPDX-License-Identifier: Apache-2.0

//go:build linux

package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/tool/smcpolicy"
	"golang.org/x/sys/unix"
)

// ruled are programs that a preloaded library does not reach, or that are run by rules alone because that is enough.
func ruled() []program {
	programs := []program{goWeb, setuid}
	if lab.Full() {
		programs = append(programs, busybox, node)
	}
	return programs
}

// files is where servers find the file large, in a directory that does not depend on other programs.
const files = workInside + "/files"

const makeFiles = "mkdir -p " + files + "; test -e " + files + "/large || head -c 2097152 /dev/urandom >" + files + "/large\n"

// webInside is the static program of Go.
const webInside = "/usr/local/bin/web"

// goWeb has its listeners use TCP instead of Multipath TCP, which rules leave alone.
var goWeb = program{
	name:  "Go",
	ruled: true,
	shown: []string{"web"},
	prepare: func(t *testing.T, g *guest) {
		binary := filepath.Join(t.TempDir(), "web")
		build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./web")
		build.Env = append(build.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		data, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Host("a").WriteFile(t.Context(), webInside, data, 0o755); err != nil {
			t.Fatal(err)
		}
		g.Must("a", makeFiles)
	},
	server: []string{"env", "GODEBUG=multipathtcp=0", webInside, "serve", "127.0.0.1:8001", files},
	port:   8001,
	stop:   unix.SIGKILL,
	code:   128 + int(unix.SIGKILL),
	client: func(t *testing.T, s *session) {
		s.sh(t, webInside+" get http://127.0.0.1:8001/large | cmp - "+files+"/large")
	},
	hold:    []string{webInside, "hold", "http://127.0.0.1:8001/large"},
	atLeast: 1,
}

// busybox is a static program of C. Its client stays connected until its input ends, which that of a FIFO with a writer does not.
var busybox = program{
	name:    "busybox",
	ruled:   true,
	shown:   []string{"busybox"},
	prepare: func(_ *testing.T, g *guest) { g.Must("a", makeFiles+"mkfifo "+files+"/fifo") },
	server:  []string{"busybox", "httpd", "-f", "-p", "127.0.0.1:8002", "-h", files},
	port:    8002,
	stop:    unix.SIGTERM,
	code:    128 + int(unix.SIGTERM),
	client: func(t *testing.T, s *session) {
		s.sh(t, "busybox wget -q -O - http://127.0.0.1:8002/large | cmp - "+files+"/large")
	},
	hold:    []string{"sh", "-c", "exec busybox nc 127.0.0.1 8002 <>" + files + "/fifo"},
	atLeast: 1,
}

// setuidCurl is curl of root that any user may run. The dynamic linker does not preload libraries for it.
const setuidCurl = "/usr/local/bin/curl-of-root"

const asNobody = "setpriv --reuid=65534 --regid=65534 --clear-groups "

// setuid runs a client of another user, and a static server. The client's sockets belong to root because its program does. The rule is for root.
var setuid = program{
	name:  "set-user-ID",
	ruled: true,
	rule:  "user root",
	shown: []string{"busybox", "curl-of-root"},
	prepare: func(_ *testing.T, g *guest) {
		g.Must("a", makeFiles+"install -m 4755 $(command -v curl) "+setuidCurl)
	},
	server: []string{"busybox", "httpd", "-f", "-p", "127.0.0.1:8003", "-h", files},
	port:   8003,
	stop:   unix.SIGTERM,
	code:   128 + int(unix.SIGTERM),
	client: func(t *testing.T, s *session) {
		before := s.decisions(t)
		s.sh(t, asNobody+setuidCurl+" -fsS http://127.0.0.1:8003/large | cmp - "+files+"/large")
		byRoot := s.decisions(t)
		s.sh(t, asNobody+"curl -s http://127.0.0.1:9 || test $? = 7 # refused")
		if n, m := byRoot-before, s.decisions(t)-byRoot; n != 1 || m != 0 {
			t.Errorf("the rule has decided about %d clients of root, 1 expected, and about %d of another user", n, m)
		}
	},
	hold:    strings.Fields(asNobody + setuidCurl + " -fsS --limit-rate 1k -o /dev/null http://127.0.0.1:8003/large"),
	atLeast: 1,
}

// node runs a server and clients of Node.js, which has a thread pool and sockets that do not block.
var node = program{
	name:    "node",
	ruled:   true,
	shown:   []string{"node"},
	prepare: func(_ *testing.T, g *guest) { g.Must("a", makeFiles) },
	server: []string{
		"node", "-e", `require("http").createServer((q, a) => require("fs").createReadStream("` + files + `/large").pipe(a)).listen(8004, "127.0.0.1")`,
	},
	port: 8004,
	stop: unix.SIGTERM,
	code: 128 + int(unix.SIGTERM),
	client: func(t *testing.T, s *session) {
		s.sh(t, `node -e 'require("http").get("http://127.0.0.1:8004/", a => a.pipe(process.stdout))' | cmp - `+files+"/large")
	},
	hold:    []string{"node", "-e", `require("net").connect(8004, "127.0.0.1")`},
	atLeast: 1,
}

// smcRule is the command that adds the program's rule.
func (p program) smcRule() string { return strings.TrimSpace("smc_policy add smc " + p.rule) }

// decisions returns how often the rule, the only one, has decided.
func (s *session) decisions(t *testing.T) uint64 {
	t.Helper()
	var list smcpolicy.Rules
	if s.Document("a", "smc_policy --json", &list); len(list.Rules) != 1 {
		t.Fatalf("%d rules", len(list.Rules))
	}
	return list.Rules[0].Decisions
}

// attributed waits until smcss -p names a program of each connection, those of both ends among them. A socket that is not accepted yet has none.
func (p program) attributed(t *testing.T, s *session) {
	t.Helper()
	script := fmt.Sprintf("list=$(smcss -p --state active --port %d); echo \"$list\"\nif echo \"$list\" | grep ACTIVE | grep -vq 'users:(('; then exit 1; fi\n", p.port)
	for _, name := range p.shown {
		script += fmt.Sprintf("echo \"$list\" | grep -q '((\"%s'\n", name)
	}
	if err := s.Host("a").WaitFor(t.Context(), script); err != nil {
		t.Error(err)
	}
}

// backToTCP starts the server and a client once more, under a rule for TCP that comes first, and with the policy off: none of their sockets is
// SMC.
func (p program) backToTCP(t *testing.T, s *session) {
	for name, set := range map[string]string{
		"tcp": fmt.Sprintf("smc_policy add tcp port %d; %s", p.port, p.smcRule()), "off": p.smcRule() + "; smc_policy off",
	} {
		t.Run(name, func(t *testing.T) {
			s.Must("a", set)
			defer s.Must("a", "smc_policy on; smc_policy flush")
			server, err := s.Host("a").Start(s.server(p.server...))
			if err != nil {
				t.Fatal(err)
			}
			defer p.end(t, s, server)
			p.await(t, s)
			client, err := s.Host("a").Start(s.client(p.hold...))
			if err != nil {
				t.Fatal(err)
			}
			defer lab.Kill(t, client)
			connected := fmt.Sprintf("ss -Htn state connected 'sport = :%d' | grep -q .", p.port)
			if err := s.Host("a").WaitFor(t.Context(), connected); err != nil {
				t.Error(err)
			}
			if list := s.Must("a", "smcss -a"); strings.Count(list, "\n") != 1 {
				t.Errorf("these sockets are not TCP's:\n%s", list)
			}
		})
	}
}
