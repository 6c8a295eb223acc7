// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestProgramsGetTheSupervisorsSockets(t *testing.T) {
	need(t)
	absent := behaviour{Fail: unix.EAFNOSUPPORT}
	required := behaviour{Fail: unix.EAFNOSUPPORT, Require: true}
	shell := func(script string) []string { return []string{"sh", "-euc", script, self(t), roleProgram} }
	for _, c := range []struct {
		name string
		b    behaviour
		argv []string
		says string // in standard error
	}{
		{"of each kind", behaviour{}, program(t, "kinds"), ""},
		{"as the log says", behaviour{Log: true}, program(t, "one"), "]: a socket is AF_SMC\n"},
		{"as many as it may have", behaviour{}, program(t, "limit"), ""},
		{"while signals interrupt it", behaviour{}, program(t, "signals"), ""},
		{"while signals come faster than sockets", behaviour{Slow: true}, program(t, "signals"), ""},
		{"on many threads", behaviour{}, program(t, "busy"), ""},
		{"in a child and its child", behaviour{}, shell(`"$0" $1 one & wait $!; sh -c "\"\$0\" \$1 six" "$0" $1`), ""},
		{"after exec", behaviour{}, shell(`exec env "$0" $1 kinds`), ""},
		{"in a pipeline", behaviour{}, shell(`{ "$0" $1 one || echo failed >&2; } |
			{ "$0" $1 six || echo failed >&2; } | "$0" $1 busy`), ""},
		{"or TCP sockets, for lack of AF_SMC", absent, program(t, "plain"), "AF_SMC is not available"},
		{"or none, for lack of AF_SMC that it requires", required, program(t, "refused"), "sockets are refused"},
		{"or TCP sockets, if the kernel refuses ours", behaviour{Deny: unix.EACCES}, program(t, "plain"), "permission denied): sockets are TCP"},
		{"or none, if it refuses those that are required", behaviour{Deny: unix.EAFNOSUPPORT, Require: true}, program(t, "refused"), "sockets are refused"},
		{"or TCP sockets, if the program has too many files for ours", behaviour{Deny: unix.EMFILE}, program(t, "plain"), ""},
		{"or TCP sockets, if the supervisor has a bug", behaviour{Crash: true}, program(t, "plain"), "internal error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, stderr := run(t, under(t, c.b, c.argv...))
			if c.says == "" && stderr != "" || !strings.Contains(stderr, c.says) {
				t.Errorf("standard error: %q", stderr)
			}
		})
	}
}

// TestWarningComesOnce checks that several programs without AF_SMC sockets cause one warning.
func TestWarningComesOnce(t *testing.T) {
	need(t)
	const script = `for i in 1 2 3; do "$0" $1 plain; done`
	_, stderr := run(t, under(t, behaviour{Fail: unix.EAFNOSUPPORT}, "sh", "-euc", script, self(t), roleProgram))
	if strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "]: AF_SMC is not available (address family not supported "+
		"by protocol): sockets are TCP; why not\n") {
		t.Errorf("%q", stderr)
	}
}

// TestProgramIsUntouched compares the state of a shell with and without a supervisor.
func TestProgramIsUntouched(t *testing.T) {
	need(t)
	// Use builtins where possible: a shell that starts programs changes for a moment.
	const look = `echo "$0 $*" /proc/$$/fd/*; pwd; umask; ulimit -a; ls -l /proc/$$/fd; env
while read line; do case $line in Sig[BIC]*|Cap*|Uid*|Gid*|Groups*|PPid*) echo $line;; esac; done </proc/$$/status
read x y z parent group session tty rest </proc/$$/stat; echo $parent $group $session $tty
read x </proc/$$/oom_score_adj; echo $x; read x </proc/$$/timerslack_ns; echo $x`
	inherited, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer inherited.Close()
	argv := []string{"sh", "-c", look, "name", "a b", ""}
	get := func(cmd *exec.Cmd) string {
		cmd.ExtraFiles = []*os.File{inherited, inherited}
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "A=1"}
		cmd.Dir = "/proc"
		in, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		cmd.Stdin = in
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		// The numbers of pipes and processes, and the times, differ.
		return regexp.MustCompile(`pipe:\[\d+\]|/proc/\d+|\w+ +\d+ \d\d:\d\d`).ReplaceAllString(string(out), "*")
	}
	plain := get(exec.CommandContext(t.Context(), argv[0], argv[1:]...))
	supervised := get(under(t, behaviour{}, argv...))
	if plain != supervised {
		t.Errorf("without a supervisor:\n%s\nwith one:\n%s", plain, supervised)
	}
}

// TestProgramIsTheSameProcess checks that the program keeps the number of the process and has no children.
func TestProgramIsTheSameProcess(t *testing.T) {
	need(t)
	cmd := under(t, behaviour{}, program(t, "alone")...)
	stdout, _ := run(t, cmd)
	if stdout != strconv.Itoa(cmd.Process.Pid) {
		t.Errorf("the process started as %d is %s", cmd.Process.Pid, stdout)
	}
}

// TestSlowAnswersHoldUpNoOthers delays the answers to some calls until others have been answered.
func TestSlowAnswersHoldUpNoOthers(t *testing.T) {
	need(t)
	file := filepath.Join(t.TempDir(), "now")
	run(t, under(t, behaviour{Wait: file}, program(t, "slow", file)...))
}

func TestBuffersHaveTheirSizes(t *testing.T) {
	need(t)
	stdout, _ := run(t, under(t, behaviour{Send: 70000, Receive: 50000}, program(t, "buffers")...))
	if stdout != "140000 100000" { // the kernel doubles them
		t.Errorf("sizes are %s", stdout)
	}
}

func TestSocketsBelongToTheProgramsNetworkNamespace(t *testing.T) {
	need(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can enter network namespaces")
	}
	run(t, under(t, behaviour{}, program(t, "netns")...))
}

// TestSocketsBelongToTheProgramsUser runs the supervisor as root and the program as another user.
func TestSocketsBelongToTheProgramsUser(t *testing.T) {
	need(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can change users")
	}
	stdout, _ := run(t, under(t, behaviour{}, program(t, "owner", "123", "456")...))
	if stdout != "123 456" {
		t.Errorf("the socket belongs to %s", stdout)
	}
}

// TestRules connects to ports inside and outside of the rules.
func TestRules(t *testing.T) {
	need(t)
	inside, outside := listenTCP(t, "127.0.0.1:0"), listenTCP(t, "127.0.0.1:0")
	b := behaviour{Ports: []uint16{inside.Port()}, Log: true}
	mapped := netip.AddrPortFrom(netip.AddrFrom16(outside.Addr().As16()), outside.Port())
	_, stderr := run(t, under(t, b, program(t, "rules", inside.String(), outside.String(), mapped.String())...))
	for text, want := range map[string]int{
		" is AF_SMC\n": 5,
		fmt.Sprintf(": %v is within the rules\n", inside):           2, // one of them UDP
		fmt.Sprintf(": %v is outside of the rules: TCP\n", outside): 2,
		": 127.0.0.1:":                    6,
		" is outside of the rules: TCP\n": 4, // with the two listeners
	} {
		if got := strings.Count(stderr, text); got != want {
			t.Errorf("%q: %d times, not %d:\n%s", text, got, want, stderr)
		}
	}
}

// listenTCP accepts connections until the test ends.
func listenTCP(t *testing.T, at string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return netip.MustParseAddrPort(l.Addr().String())
}

// nobody runs a program as a user without privileges.
var nobody = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}

// TestWithoutPrivileges checks that everything works for any user, who only can no longer gain privileges by exec.
func TestWithoutPrivileges(t *testing.T) {
	need(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	at := listenTCP(t, "127.0.0.1:0")
	binary := copyOfSelf(t, 0o755)
	for _, c := range []struct {
		name string
		b    behaviour
		args []string
		says string
	}{
		{"sockets", behaviour{}, []string{roleProgram, "kinds"}, ""},
		{
			"rules",
			behaviour{Ports: []uint16{1}, Log: true},
			[]string{roleProgram, "rules", at.String()},
			at.String() + " is outside of the rules: TCP\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := under(t, c.b, append([]string{binary}, c.args...)...)
			cmd.Path, cmd.SysProcAttr = binary, nobody
			if _, stderr := run(t, cmd); !strings.Contains(stderr, c.says) {
				t.Errorf("%q", stderr)
			}
		})
	}
	for uid, want := range map[string]string{"root": "0", "nobody": "1"} {
		cmd := under(t, behaviour{}, "sed", "-n", `s/NoNewPrivs:\t//p`, "/proc/self/status")
		if uid == "nobody" {
			cmd.Path, cmd.SysProcAttr = binary, nobody
		}
		if stdout, _ := run(t, cmd); strings.TrimSpace(stdout) != want {
			t.Errorf("no_new_privs of %s is %s", uid, stdout)
		}
	}
}

// TestProgramThatCannotBeLookedInto runs a program whose file its user may execute but not read. The kernel protects it from a
// supervisor without privileges, so it gets TCP sockets.
func TestProgramThatCannotBeLookedInto(t *testing.T) {
	need(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can make a program that it cannot read")
	}
	binary, unreadable := copyOfSelf(t, 0o755), copyOfSelf(t, 0o711)
	for _, b := range []behaviour{{}, {Ports: []uint16{1}}} {
		cmd := under(t, b, unreadable, roleProgram, "plain")
		cmd.Path, cmd.SysProcAttr = binary, nobody
		// The supervisor cannot warn either: it has no access to the program's standard error.
		run(t, cmd)
	}
}

// copyOfSelf copies this program to a directory that every user can enter.
func copyOfSelf(t *testing.T, mode os.FileMode) string {
	t.Helper()
	data, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "smckit-seccomp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "program")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, m := range map[string]os.FileMode{dir: 0o755, path: mode} {
		if err := os.Chmod(file, m); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestOneSupervisorOnly tries to start a second supervisor.
func TestOneSupervisorOnly(t *testing.T) {
	need(t)
	out, err := under(t, behaviour{}, append([]string{self(t), roleRun, "{}"}, program(t, "one")...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), ErrSupervised.Error()) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestErrorsOfExec checks the errors of programs and supervisors that cannot be executed.
func TestErrorsOfExec(t *testing.T) {
	need(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	const starting = "starting the supervisor of system calls: "
	for _, c := range []struct{ path, supervisor, want string }{
		{dir + "/missing", "/proc/self/exe", "no such file or directory"},
		{dir, "/proc/self/exe", "permission denied"},
		{text, "/proc/self/exe", "exec format error"},
		{"/bin/true", dir + "/missing", starting + "fork/exec " + dir + "/missing: no such file or directory"},
		{"/bin/true", "/bin/false", starting + "exit status 1"},
		{"/bin/true", "/bin/true", starting + "unexpected EOF"},
	} {
		out, err := exec.CommandContext(t.Context(), self(t), roleProgram, "exec", c.path, c.supervisor).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%+v: %v: %s", c, err, out)
		}
	}
}

// TestSupervisorReportsErrors starts a supervisor whose launcher cannot start it. It must report that over the connection,
// because its standard error is /dev/null.
func TestSupervisorReportsErrors(t *testing.T) {
	need(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can unmount /proc, in a namespace of its own")
	}
	const script = `mount -t tmpfs none /proc && exec "$0" $1 exec /bin/true "$0"`
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", script, self(t), roleProgram)
	out, err := cmd.CombinedOutput()
	const want = "starting the supervisor of system calls: fork/exec /proc/self/exe: no such file or directory\n"
	// Without /proc, the race detector warns before.
	if err == nil || !strings.HasSuffix(string(out), want) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestErrorsBeforeTheFilter checks the types of errors: an UnavailableError means that the program can still be executed, an
// ExecError that it cannot.
func TestErrorsBeforeTheFilter(t *testing.T) {
	need(t)
	for _, c := range []struct{ path, supervisor, want string }{
		{"/bin/true", "/bin/false", "*seccomp.UnavailableError"},
		{"/no/such", "/proc/self/exe", "*seccomp.ExecError"},
	} {
		out, err := exec.CommandContext(t.Context(), self(t), roleProgram, "exec-type", c.path, c.supervisor).Output()
		if err != nil || string(out) != c.want {
			t.Errorf("%+v: %q, %v", c, out, err)
		}
	}
}

// TestSupervisor checks the process of the supervisor from its start to its end.
func TestSupervisor(t *testing.T) {
	need(t)
	mark := filepath.Join(t.TempDir(), "mark")
	cmd := under(t, behaviour{Wait: mark}, "sh", "-euc", `exec 3>&-; echo ready; read go; exec "$0" $1 one`, self(t), roleProgram)
	in, out := pipes(t, cmd)
	// The program inherits this pipe and closes it. The supervisor must not keep it open.
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd.ExtraFiles = []*os.File{write}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	expect(t, out, "ready\n")
	if b, err := io.ReadAll(read); err != nil || len(b) > 0 {
		t.Errorf("%q, %v", b, err)
	}
	supervisor := findSupervisor(t, mark)
	checkDetached(t, supervisor, cmd.Process.Pid)
	for _, s := range []unix.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGPIPE, unix.SIGALRM, unix.SIGTSTP,
	} {
		if err := unix.Kill(supervisor, s); err != nil {
			t.Fatal(err)
		}
	}
	end := watchExit(t, supervisor)
	if _, err := io.WriteString(in, "go\n"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	end()
}

// TestSupervisorStaysForOrphans runs a program that ends before its child.
func TestSupervisorStaysForOrphans(t *testing.T) {
	need(t)
	mark := filepath.Join(t.TempDir(), "mark")
	const script = `exec 3<&0; { read go; "$0" $1 one; echo $?; } <&3 & echo left`
	cmd := under(t, behaviour{Wait: mark}, "sh", "-euc", script, self(t), roleProgram)
	in, out := pipes(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	expect(t, out, "left\n")
	supervisor := findSupervisor(t, mark)
	if _, err := cmd.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	end := watchExit(t, supervisor)
	if _, err := io.WriteString(in, "go\n"); err != nil {
		t.Fatal(err)
	}
	expect(t, out, "0\n")
	end()
}

// pipes are a command's standard input and output.
func pipes(t *testing.T, cmd *exec.Cmd) (io.Writer, io.Reader) {
	t.Helper()
	inRead, in, err1 := os.Pipe()
	out, outWrite, err2 := os.Pipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inRead, outWrite, os.Stderr
	t.Cleanup(func() {
		for _, f := range []*os.File{inRead, in, out, outWrite} {
			f.Close()
		}
	})
	if err := out.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return in, out
}

// expect reads a text and compares it.
func expect(t *testing.T, r io.Reader, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if n, err := io.ReadFull(r, got); err != nil || string(got) != text {
		t.Fatalf("%q, %v; not %q", got[:n], err, text)
	}
}

// findSupervisor finds the process of a supervisor by something in its arguments.
func findSupervisor(t *testing.T, mark string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, file := range files {
		cmdline, _ := os.ReadFile(file)
		args := strings.Split(string(cmdline), "\x00")
		if len(args) > 2 && args[1] == roleSupervise && strings.Contains(args[2], mark) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, pid)
		}
	}
	if len(found) != 1 {
		t.Fatalf("supervisors: %v", found)
	}
	return found[0]
}

// checkDetached checks that a supervisor shares nothing with its program.
func checkDetached(t *testing.T, supervisor, program int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/", supervisor)
	if cwd, err := os.Readlink(dir + "cwd"); err != nil || cwd != "/" {
		t.Errorf("its directory is %q, %v", cwd, err)
	}
	if sid, err := unix.Getsid(supervisor); err != nil || sid != supervisor {
		t.Errorf("process %d is in session %d, %v", supervisor, sid, err)
	}
	status, err := readStatus(supervisor)
	if err != nil {
		t.Fatal(err)
	}
	if parent, err := status.number("PPid:", 0); err != nil || parent == program {
		t.Errorf("its parent is %d, %v", parent, err)
	}
	if filters, err := status.number("Seccomp_filters:", 0); err != nil || filters != 0 {
		t.Errorf("it has %d filters, %v", filters, err)
	}
	// The supervisor may not have closed its end of the connection yet.
	var files []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if files = filesOf(t, dir+"fd"); !slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(f, "socket:") }) {
			break
		}
	}
	want := []string{os.DevNull, os.DevNull, os.DevNull, "anon_inode:[pidfd]", "anon_inode:seccomp notify"}
	if !slices.Equal(files, want) {
		t.Errorf("its files are %q, not %q", files, want)
	}
}

// filesOf lists the open files of a process, without those of the Go runtime.
func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		target, err := os.Readlink(dir + "/" + e.Name())
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(target, "/sys/fs/cgroup/") && target != "anon_inode:[eventpoll]" && target != "anon_inode:[eventfd]" {
			files = append(files, target)
		}
	}
	return files
}

// watchExit returns a function that waits until a running process, which need not be a child, ends.
func watchExit(t *testing.T, pid int) (wait func()) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		defer unix.Close(fd)
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := retry(func() (int, error) { return unix.Poll(fds, 10_000) })
		if err != nil || n != 1 {
			t.Errorf("the supervisor has not ended: %v", err)
		}
	}
}
