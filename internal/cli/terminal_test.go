// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// asAsking is the variable that makes TestTerminal the command that asks. Its value has the arguments.
const asAsking = "SMCKIT_CLI_TEST_ASKS"

// The ends of processes of TestTerminal, in the words of os.ProcessState.
const (
	done       = "exit status 0"
	refused1   = "exit status 1"
	byInt      = "signal: interrupt"
	byTerm     = "signal: terminated"
	onQuestion = "suite kill: end 3 connections? [y/N] "
	answeredNo = "suite kill: the answer is no: nothing changed\r\n"
)

// TestTerminal checks the question of Confirm in a process of its own, whose standard input and standard error are a terminal. Users type
// the answer, or end the process, when they have read the question.
func TestTerminal(t *testing.T) {
	if args, ok := os.LookupEnv(asAsking); ok {
		os.Args = append(os.Args[:1], strings.Fields(args)...)
		os.Exit(Main(suite))
	}
	for _, tt := range []struct {
		name, args, typed string
		signal            syscall.Signal
		end, out, screen  string
	}{
		// The terminal shows what is typed, a control character with a circumflex, except for ctrl-D.
		{"yes", "kill", "y\n", 0, done, "ended\n", onQuestion + "y\r\n"},
		{"yes in full", "kill", "Yes\n", 0, done, "ended\n", onQuestion + "Yes\r\n"},
		{"yes and end of file", "kill", "y\x04\x04", 0, done, "ended\n", onQuestion + "y\r\n"},
		{"no", "kill", "n\n", 0, refused1, "", onQuestion + "n\r\n" + answeredNo},
		{"another word", "kill", "yellow\n", 0, refused1, "", onQuestion + "yellow\r\n" + answeredNo},
		{"empty line", "kill", "\n", 0, refused1, "", onQuestion + "\r\n" + answeredNo},
		{"ctrl-D", "kill", "\x04", 0, refused1, "", onQuestion + "\r\n" + answeredNo},
		{"ctrl-C", "kill", "\x03", 0, byInt, "", onQuestion + "^C\r\n"},
		{"SIGINT", "kill", "", syscall.SIGINT, byInt, "", onQuestion + "\r\n"},
		{"SIGTERM", "kill", "", syscall.SIGTERM, byTerm, "", onQuestion + "\r\n"},
		{"--yes", "kill --yes", "", 0, done, "ended\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			terminal, far := openTerminal(t)
			var out bytes.Buffer
			cmd := asking(t, tt.args, &out)
			cmd.Stdin, cmd.Stderr = far, far
			// ctrl-C sends its signal to the session whose terminal this is.
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			far.Close()
			screen := readUntil(t, terminal, onQuestion)
			if _, err := io.WriteString(terminal, tt.typed); err != nil && tt.typed != "" {
				t.Error(err)
			}
			if tt.signal != 0 {
				if err := cmd.Process.Signal(tt.signal); err != nil {
					t.Error(err)
				}
			}
			screen += readUntil(t, terminal, "")
			_ = cmd.Wait()
			if end := cmd.ProcessState.String(); end != tt.end || out.String() != tt.out || screen != tt.screen {
				t.Errorf("%s, %q, the terminal shows %q", end, &out, screen)
			}
		})
	}
}

// TestNoTerminal checks that the same process does not take an answer from a file or a pipe.
func TestNoTerminal(t *testing.T) {
	const refusal = "suite kill: cannot ask whether to end 3 connections, since standard input is no terminal: use --yes\n"
	for _, tt := range []struct {
		name, args  string
		in          io.Reader
		end, out    string
		wantRefusal string
	}{
		{"null", "kill", nil, refused1, "", refusal},
		{"pipe", "kill", strings.NewReader("y\n"), refused1, "", refusal},
		{"null, --yes", "kill --yes", nil, done, "ended\n", ""},
		{"pipe, --yes", "kill --yes", strings.NewReader("n\n"), done, "ended\n", ""},
	} {
		var out, stderr bytes.Buffer
		cmd := asking(t, tt.args, &out)
		cmd.Stdin, cmd.Stderr = tt.in, &stderr
		_ = cmd.Run()
		if end := cmd.ProcessState.String(); end != tt.end || out.String() != tt.out || stderr.String() != tt.wantRefusal {
			t.Errorf("%s: %s, %q, %q", tt.name, end, &out, &stderr)
		}
	}
}

// asking returns the process that asks.
func asking(t *testing.T, args string, out io.Writer) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTerminal$")
	cmd.Env = append(os.Environ(), asAsking+"="+args)
	cmd.Stdout = out
	return cmd
}

// openTerminal returns both ends of a new terminal: the user's, and the program's.
func openTerminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine has no terminals: %v", err)
	}
	t.Cleanup(func() { user.Close() })
	raw, err := user.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number uint32
	var openErr error
	err = raw.Control(func(fd uintptr) {
		if openErr = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); openErr == nil {
			number, openErr = unix.IoctlGetUint32(int(fd), unix.TIOCGPTN)
		}
	})
	if err != nil || openErr != nil {
		t.Fatal(err, openErr)
	}
	if program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Skipf("this machine has no terminals: %v", err)
	}
	t.Cleanup(func() { program.Close() })
	return user, program
}

// readUntil reads what a terminal shows, up to text, or as long as a program has the terminal.
func readUntil(t *testing.T, terminal *os.File, text string) string {
	t.Helper()
	var screen []byte
	buf := make([]byte, 256)
	for text == "" || !bytes.HasSuffix(screen, []byte(text)) {
		n, err := terminal.Read(buf)
		screen = append(screen, buf[:n]...)
		if err != nil {
			break
		}
	}
	return string(screen)
}
