// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package preload tests the preload library outside of guests: with programs of both C libraries, and with another preloaded
// library that simulates a kernel with AF_SMC.
package preload

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/smckit/smckit/internal/need"
	"golang.org/x/sys/unix"
)

// dir contains the files that are built for the tests.
var dir string

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "preload"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// library builds the library that is tested, once.
var library = sync.OnceValues(func() (string, error) {
	build := exec.Command("../../preload/build.sh", dir)
	build.Env = append(os.Environ(), "CFLAGS=-O2 -Werror")
	out, err := build.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return filepath.Join(dir, "libsmc-preload.so.1"), err
})

// needLibrary returns the library.
func needLibrary(t *testing.T) string {
	t.Helper()
	need.Programs(t, "cc")
	lib, err := library()
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// compile builds a program, or another file by the flags, unless it exists.
func compile(t *testing.T, cc, name string, flags ...string) string {
	t.Helper()
	need.Programs(t, cc)
	path := filepath.Join(dir, "build", strings.ReplaceAll(name, " ", "-"))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-O1", "-Wall", "-Werror", "-o", path}, flags...)
	if out, err := exec.CommandContext(t.Context(), cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", cc, args, err, out)
	}
	return path
}

// bench is a program of one C library, and the way to run it.
type bench struct {
	library, driver, fake string
}

// eachLibc runs a test with the programs of each C library whose compiler is here.
func eachLibc(t *testing.T, test func(*testing.T, *bench)) {
	lib := needLibrary(t)
	lib32 := filepath.Join(dir, "lib32", filepath.Base(lib))
	// Debian's compiler does not find the kernel's headers for 32 bits, unless all of multilib is installed.
	headers, _ := exec.Command("cc", "-print-multiarch").Output()
	for _, libc := range []struct{ name, cc, library, flags string }{
		{"glibc", "cc", lib, "-pthread"},
		{"musl", "musl-gcc", lib, "-pthread"},
		{"glibc of 32 bits", "cc", lib32, "-pthread -m32 -idirafter /usr/include/" + string(headers)},
	} {
		t.Run(libc.name, func(t *testing.T) {
			t.Parallel()
			if libc.library == lib32 {
				need.Bits32(t)
			}
			flags := strings.Fields(libc.flags)
			test(t, &bench{
				libc.library, compile(t, libc.cc, libc.name+"/driver", append(flags, "src/driver.c")...),
				compile(t, libc.cc, libc.name+"/fake.so", append(flags, "-shared", "-fPIC", "src/fake.c")...),
			})
		})
	}
}

// run runs the driver with the library, and after it the fake kernel, in an otherwise empty environment. It returns the output.
func (b *bench) run(t *testing.T, env string, args ...string) (stdout, stderr string) {
	t.Helper()
	return b.runWith(t, b.library+":"+b.fake, env, args...)
}

func (b *bench) runWith(t *testing.T, preload, env string, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), b.driver, args...)
	cmd.Env = append(strings.Fields(env), "LD_PRELOAD="+preload)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s%s", env, args, err, out.String(), errOut.String())
	}
	return out.String(), errOut.String()
}

// TestSocketsAreConverted tries every form of socket(): TCP sockets must become AF_SMC sockets, and others and errno must not
// change.
func TestSocketsAreConverted(t *testing.T) {
	const flags = unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC
	tests := []struct {
		domain, typ, protocol int
		want                  string
	}{
		{unix.AF_INET, unix.SOCK_STREAM, 0, "smc 77"},
		{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP, "smc 77"},
		{unix.AF_INET, unix.SOCK_STREAM | flags, 0, "smc 77"},
		{unix.AF_INET6, unix.SOCK_STREAM, 0, "smc 77"},
		{unix.AF_INET6, unix.SOCK_STREAM | unix.SOCK_NONBLOCK, unix.IPPROTO_TCP, "smc 77"},
		{unix.AF_SMC, unix.SOCK_STREAM, 0, "smc 77"},
		{unix.AF_INET, unix.SOCK_DGRAM, 0, "plain 77"},
		{unix.AF_INET6, unix.SOCK_DGRAM | flags, unix.IPPROTO_UDP, "plain 77"},
		{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_UDP, fmt.Sprint("failed ", int(unix.EPROTONOSUPPORT))},
		{unix.AF_UNIX, unix.SOCK_STREAM, 0, "plain 77"},
		{unix.AF_NETLINK, unix.SOCK_RAW, 0, "plain 77"},
		{unix.AF_INET, 15, 0, fmt.Sprint("failed ", int(unix.EINVAL))},
		{4711, unix.SOCK_STREAM, 0, fmt.Sprint("failed ", int(unix.EAFNOSUPPORT))},
	}
	eachLibc(t, func(t *testing.T, b *bench) {
		for _, test := range tests {
			arg := fmt.Sprintf("socket=%d,%d,%d", test.domain, test.typ, test.protocol)
			out, errOut := b.run(t, "", arg)
			if out != test.want+"\n" || errOut != "" {
				t.Errorf("%s: %q, %q; want %q", arg, out, errOut, test.want)
			}
		}
	})
}

const stream = "socket=2,1,0"

// TestWithoutSMC makes AF_SMC fail: then a socket must be the same as without the library.
func TestWithoutSMC(t *testing.T) {
	warning := regexp.MustCompile(`^libsmc-preload: driver\[\d+\]: AF_SMC is not available \(errno \d+\): sockets are TCP; .*\n$`)
	eachLibc(t, func(t *testing.T, b *bench) {
		for _, errno := range []unix.Errno{
			unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT, unix.EPERM, unix.EACCES, unix.EINVAL, unix.ENOBUFS, unix.ENOMEM,
		} {
			env := fmt.Sprintf("FAKE_ERRNO=%d", int(errno))
			out, errOut := b.run(t, env, stream, "socket=10,1,6", stream)
			if out != strings.Repeat("plain 77\n", 3) || !warning.MatchString(errOut) {
				t.Errorf("%v: %q, %q", errno, out, errOut)
			}
			if out, errOut := b.run(t, env+" SMC_QUIET=1", stream); out != "plain 77\n" || errOut != "" {
				t.Errorf("%v, quiet: %q, %q", errno, out, errOut)
			}
			out, errOut = b.run(t, env+" SMC_REQUIRE=1", stream, stream)
			if want := fmt.Sprintf("failed %d\n", int(errno)); out != want+want || strings.Count(errOut, "sockets are refused") != 1 {
				t.Errorf("%v, required: %q, %q", errno, out, errOut)
			}
		}
		if probe, err := unix.Socket(unix.AF_SMC, unix.SOCK_STREAM, 0); err == nil {
			unix.Close(probe)
			return
		}
		// This machine's kernel lacks it.
		if out, errOut := b.runWith(t, b.library, "", stream, stream); out != "plain 77\nplain 77\n" || !warning.MatchString(errOut) {
			t.Errorf("real: %q, %q", out, errOut)
		}
	})
}

// TestDebugLines checks the lines of SMC_DEBUG, and that the same values as in smc-tools enable it.
func TestDebugLines(t *testing.T) {
	tests := []struct {
		env  string
		args []string
		want string
	}{
		{"SMC_DEBUG=1", []string{stream}, `socket 3 is AF_SMC`},
		{"SMC_DEBUG=", []string{stream}, `socket 3 is AF_SMC`},
		{"SMC_DEBUG=yes", []string{stream}, `socket 3 is AF_SMC`},
		{"SMC_DEBUG=0", []string{stream}, ``},
		{"", []string{stream}, ``},
		{"SMC_DEBUG=1", []string{"socket=2,2,0"}, ``},
		{"SMC_DEBUG=1 SMC_QUIET=1 FAKE_ERRNO=13", []string{stream}, `AF_SMC is not available (errno 13): the socket is TCP; run 'modprobe smc' as root to see why`},
		{"SMC_DEBUG=1 SMC_PORT=1", []string{stream, "connect=127.0.0.1,1"}, `socket 3: 127.0.0.1:1 is within the rules`},
		{"SMC_DEBUG=1 SMC_PORT=2", []string{stream, "connect=127.0.0.1,1"}, `socket 3: 127.0.0.1:1 is outside of the rules: TCP`},
		{"SMC_DEBUG=1 SMC_PORT=2", []string{"socket=10,1,0", "connect=::1,1"}, `socket 3: [::1]:1 is outside of the rules: TCP`},
		{"SMC_DEBUG=1 SMC_PORT=2", []string{"socket=10,1,0", "connect=fd00:1:0:2::7,10"}, `socket 3: [fd00:1:0:2::7]:10 is outside of the rules: TCP`},
		{"SMC_DEBUG=1 SMC_PORT=2", []string{stream, "listen"}, `socket 3: listening at 0.0.0.0:0 is outside of the rules: TCP`},
		{"SMC_DEBUG=1", []string{"close2", stream}, ``},
	}
	eachLibc(t, func(t *testing.T, b *bench) {
		for _, test := range tests {
			_, errOut := b.run(t, test.env, test.args...)
			lines := strings.Split(strings.TrimSuffix(errOut, "\n"), "\n")
			last := regexp.MustCompile(`^libsmc-preload: driver\[\d+\]: `).ReplaceAllString(lines[len(lines)-1], "")
			if last != test.want || strings.HasPrefix(lines[len(lines)-1], "libsmc") != (test.want != "") {
				t.Errorf("%s %q: %q, want %q", test.env, test.args, errOut, test.want)
			}
		}
	})
}

// TestLinesStayOnStandardError runs a program that closes standard error, so that a socket gets its number. The library must
// not write to the socket.
func TestLinesStayOnStandardError(t *testing.T) {
	eachLibc(t, func(t *testing.T, b *bench) {
		// The first socket is file 2. Writing to it, which is not connected, would end the program by SIGPIPE.
		out, _ := b.run(t, "SMC_DEBUG=1 SMC_PORT=1", "close2", stream, "connect=127.0.0.1,2", stream)
		if out != "smc 77\nplain\nsmc 77\n" {
			t.Errorf("%q", out)
		}
	})
}

// TestBuffers sets sizes in the environment, in the format of smc-tools.
func TestBuffers(t *testing.T) {
	eachLibc(t, func(t *testing.T, b *bench) {
		plain, _ := b.runWith(t, "", "", stream, "size")
		_, plain, _ = strings.Cut(plain, "\n")
		for env, want := range map[string]string{
			"SMC_SNDBUF=65536 SMC_RCVBUF=32768": "131072 65536\n",
			"SMC_SNDBUF=64k SMC_RCVBUF=32K":     "131072 65536\n",
			"SMC_SNDBUF=0 SMC_RCVBUF=":          plain,
			"":                                  plain,
		} {
			if out, errOut := b.run(t, env, stream, "size"); out != "smc 77\n"+want || errOut != "" {
				t.Errorf("%s: %q, %q; want %q", env, out, errOut, want)
			}
		}
		for _, bad := range []string{"x", "k", "1x", "12kk", "-1", "2048m", "4294967296", "99999999999999999999", "0x10", "1.5m"} {
			out, errOut := b.run(t, "SMC_SNDBUF="+bad, stream, "size")
			if out != "smc 77\n"+plain || !strings.Contains(errOut, "SMC_SNDBUF="+bad+" is invalid: the buffers stay as they are\n") {
				t.Errorf("SMC_SNDBUF=%s: %q, %q", bad, out, errOut)
			}
		}
		// Other sockets keep their sizes.
		before, _ := b.runWith(t, "", "", "socket=2,2,0", "size")
		if out, _ := b.run(t, "SMC_SNDBUF=64k SMC_RCVBUF=64k", "socket=2,2,0", "size"); out != before {
			t.Errorf("of UDP: %q, want %q", out, before)
		}
	})
}

// TestRulesKeepTCP checks that sockets outside of the rules lose their mark, and that the options of other sockets do not
// change.
func TestRulesKeepTCP(t *testing.T) {
	tests := []struct {
		env  string
		args []string
		want string
	}{
		{"SMC_PORT=1", []string{stream, "connect=127.0.0.1,1"}, "smc"},
		{"SMC_PORT=2", []string{stream, "connect=127.0.0.1,1"}, "plain"},
		{"SMC_NOT=1", []string{stream, "connect=127.0.0.1,1"}, "plain"},
		{"SMC_TO=127.0.0.0/8", []string{stream, "connect=127.1.2.3,1"}, "smc"},
		{"SMC_TO=10.0.0.0/8", []string{stream, "connect=127.1.2.3,1"}, "plain"},
		{"SMC_TO=10.0.0.0/8", []string{"socket=10,1,0", "connect=::ffff:127.0.0.1,1"}, "plain"},
		{"SMC_TO=127.0.0.1", []string{"socket=10,1,0", "connect=::ffff:127.0.0.1,1"}, "smc"},
		{"SMC_NOT=::1", []string{"socket=10,1,0", "connect=::1,1"}, "plain"},
		{"SMC_PORT=1", []string{stream, "bind=127.0.0.1,0", "connect=127.0.0.1,1"}, "smc"},
		{"SMC_PORT=1", []string{stream, "bind=127.0.0.1,0", "listen"}, "plain"},
		{"SMC_TO=127.0.0.1", []string{stream, "bind=127.0.0.1,0", "listen"}, "smc"},
		{"SMC_TO=10.0.0.1", []string{stream, "bind=127.0.0.1,0", "listen"}, "plain"},
		{"SMC_TO=10.0.0.1", []string{stream, "listen"}, "smc"},
		{"SMC_TO=10.0.0.1", []string{"socket=10,1,0", "listen"}, "smc"},
		{"SMC_TO=10.0.0.1 SMC_PORT=80", []string{stream, "listen"}, "plain"},
		{"SMC_PORT=2", []string{"socket=2,2,0", "connect=127.0.0.1,1"}, "plain"},
		{"SMC_PORT=2", []string{stream, "badconnect=0"}, "-1 14"},
		{"SMC_PORT=2", []string{stream, "badconnect=4096"}, "-1 14"},
		{"", []string{stream, "connect=127.0.0.1,1"}, "smc"},
		{"SMC_PORT= SMC_TO=", []string{stream, "connect=127.0.0.1,1"}, "smc"},
	}
	eachLibc(t, func(t *testing.T, b *bench) {
		for _, test := range tests {
			out, errOut := b.run(t, test.env, test.args...)
			lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
			if got := lines[len(lines)-1]; got != test.want || errOut != "" {
				t.Errorf("%s %q: %q, %q; want %q", test.env, test.args, got, errOut, test.want)
			}
		}
	})
}

// TestBadRulesKeepAllTCP sets invalid rules.
func TestBadRulesKeepAllTCP(t *testing.T) {
	eachLibc(t, func(t *testing.T, b *bench) {
		for _, env := range []string{"SMC_PORT=x", "SMC_PORT=80,", "SMC_PORT=80-70", "SMC_TO=10.0.0.0/33", "SMC_TO=80", "SMC_NOT=1.2.3"} {
			out, errOut := b.run(t, env, stream)
			if out != "plain 77\n" || !strings.Contains(errOut, env+" is invalid: all sockets stay TCP\n") {
				t.Errorf("%s: %q, %q", env, out, errOut)
			}
			// If AF_SMC is required, a typing mistake in the rules must not lead to TCP.
			out, errOut = b.run(t, "SMC_REQUIRE=1 "+env, stream, "socket=2,2,0")
			if want := fmt.Sprintf("failed %d\nplain 77\n", int(unix.EINVAL)); out != want ||
				!strings.Contains(errOut, env+" is invalid: all sockets are refused\n") {
				t.Errorf("%s, required: %q, %q", env, out, errOut)
			}
		}
	})
}

// TestThreadsAndSignals makes sockets in eight threads, interrupts socket() by signal handlers, and cancels a thread at a
// cancellation point of the C library.
func TestThreadsAndSignals(t *testing.T) {
	eachLibc(t, func(t *testing.T, b *bench) {
		if out, errOut := b.run(t, "SMC_SNDBUF=64k", "threads", "signals"); out != "threads done\nsignals done\n" {
			t.Errorf("%q, %q", out, errOut)
		}
		if out, _ := b.run(t, "SMC_PORT=1", "cancel"); out != "cancelled\n" {
			t.Errorf("%q", out)
		}
	})
}

// TestLibraryNeedsNothing checks the file: it depends on no other library, so that it serves all C libraries; it resolves no
// symbol when a signal handler calls it; its stack is not executable.
func TestLibraryNeedsNothing(t *testing.T) {
	lib := needLibrary(t)
	checkLibrary(t, lib)
	t.Run("32 bits", func(t *testing.T) {
		need.Compiler32(t)
		checkLibrary(t, filepath.Join(filepath.Dir(lib), "lib32", filepath.Base(lib)))
	})
}
