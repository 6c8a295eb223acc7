// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// stageEnv marks the process that only starts the supervisor, and ends: so the program has a child no more.
const stageEnv = "_SMCKIT_SUPERVISOR"

// started is a supervisor, as the process sees it that becomes the program.
type started struct {
	conn int // a socket to it
	pid  int
}

// start has a supervisor started that waits for the listener.
func start(argv []string) (started, error) {
	if len(argv) == 0 {
		return started{}, errors.New("no program given")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return started{}, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "supervisor")
	s := started{conn: pair[0]}
	between, err := launch(argv[0], argv, append(os.Environ(), stageEnv+"=1"), theirs)
	// Only the supervisor has the other end now: if it goes, so does the connection.
	theirs.Close()
	if err == nil {
		s.pid, err = s.await(between)
	}
	if err != nil {
		s.close()
		return started{}, err
	}
	return s, nil
}

// await waits for the end of the process in between and for the supervisor's first word. Return: the supervisor's process.
func (s started) await(between *os.Process) (int, error) {
	state, err := between.Wait()
	if err != nil {
		return 0, err
	}
	pid, err := s.hear()
	// A process that is no supervisor says nothing: then its status is all there is.
	if errors.Is(err, io.ErrUnexpectedEOF) && !state.Success() {
		return 0, errors.New(state.String())
	}
	return pid, err
}

// launch starts a program with a session of its own and no file but its end of the connection, as file 3.
func launch(path string, argv, env []string, conn *os.File) (*os.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	return os.StartProcess(path, argv, &os.ProcAttr{
		Dir: "/", Env: env,
		Files: []*os.File{null, null, null, conn},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
}

// detach starts the supervisor from the process in between, whose end leaves it to whoever adopts orphans.
func detach(conn *os.File) error {
	// Files that this process was started with without knowing of them are not the supervisor's either: a pipe that does not
	// end, a lock that is not given up.
	if err := closeOnExec(4); err != nil {
		return fmt.Errorf("closing inherited files: %w", err)
	}
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, stageEnv+"=") })
	_, err := launch("/proc/self/exe", os.Args, env, conn)
	return err
}

// closeOnExec has exec close all files from a number on.
func closeOnExec(first int) error {
	if unix.CloseRange(uint(first), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	// Some containers know this call as little as old kernels do.
	entries, err := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

// hear waits for a word of the supervisor's, which is the number of its process, or 0 and what is wrong.
func (s started) hear() (int, error) {
	word := make([]byte, maxWord)
	n, err := retry(func() (int, error) { return unix.Read(s.conn, word) })
	if err != nil {
		return 0, err
	}
	if n < 4 {
		return 0, io.ErrUnexpectedEOF
	}
	pid := int(binary.NativeEndian.Uint32(word))
	if pid == 0 {
		return 0, errors.New(string(word[4:n]))
	}
	return pid, nil
}

// maxWord is how long a word may be.
const maxWord = 512

// hand gives the listener to the supervisor, tells it what standard error is, and waits until it works there.
func (s started) hand(listener int) error {
	stderr, err := binary.Append(nil, binary.NativeEndian, identify(unix.Stderr))
	if err != nil {
		return err
	}
	_, err = retry(func() (int, error) {
		return 0, unix.Sendmsg(s.conn, stderr, unix.UnixRights(listener), nil, unix.MSG_NOSIGNAL)
	})
	// If it were open here, too, the kernel would not notice that the supervisor has gone.
	unix.Close(listener)
	if err == nil {
		_, err = s.hear()
	}
	return err
}

func (s started) close() { unix.Close(s.conn) }

// peer returns the process that has made the connection, and will be the first program, as a pidfd; -1 where that cannot be had.
func peer(conn *os.File) int {
	cred, err := unix.GetsockoptUcred(int(conn.Fd()), unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return -1
	}
	fd, err := unix.PidfdOpen(int(cred.Pid), 0)
	if err != nil {
		return -1
	}
	return fd
}

// say is the supervisor's word, at first that it waits for the listener, then that it has it.
func say(conn *os.File) error { return send(conn, os.Getpid(), "") }

// complain is the supervisor's word that it cannot work. Its standard error is nobody's.
func complain(conn *os.File, err error) { _ = send(conn, 0, err.Error()) }

func send(conn *os.File, pid int, text string) error {
	word := append(binary.NativeEndian.AppendUint32(nil, uint32(pid)), text...)
	_, err := retry(func() (int, error) { return unix.Write(int(conn.Fd()), word[:min(len(word), maxWord)]) })
	return err
}

// take waits for the listener, which comes with the identity of standard error. Nobody sends one if the filter could not be
// installed.
func take(conn *os.File) (listener int, stderr fileID, err error) {
	buf, oob := make([]byte, binary.Size(stderr)), make([]byte, unix.CmsgSpace(4))
	var noob int
	n, err := retry(func() (int, error) {
		n, m, _, _, err := unix.Recvmsg(int(conn.Fd()), buf, oob, unix.MSG_CMSG_CLOEXEC)
		noob = m
		return n, err
	})
	if err != nil {
		return -1, stderr, err
	}
	if n == 0 {
		return -1, stderr, io.EOF
	}
	if _, err := binary.Decode(buf[:n], binary.NativeEndian, &stderr); err != nil {
		return -1, stderr, fmt.Errorf("file 3 brings no identity of standard error: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:noob])
	if err != nil || len(messages) != 1 {
		return -1, stderr, fmt.Errorf("file 3 brings no listener of seccomp(2): %d messages, %v", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, stderr, fmt.Errorf("file 3 brings no listener of seccomp(2): %d files, %v", len(fds), err)
	}
	return fds[0], stderr, nil
}

// retry does something again for as long as a signal interrupts it.
func retry(do func() (int, error)) (int, error) {
	for {
		n, err := do()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
