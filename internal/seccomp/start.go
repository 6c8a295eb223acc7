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

// launcherEnv marks the launcher, a process that starts the supervisor and ends, so that the supervisor is not a child of the
// program.
const launcherEnv = "_SMCKIT_SUPERVISOR"

// started is a running supervisor as seen by the process that becomes the program.
type started struct {
	conn int // a socket to it
	pid  int
}

// start starts a supervisor, which then waits for the listener.
func start(path string, argv []string) (started, error) {
	if len(argv) == 0 {
		return started{}, errors.New("no program given")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return started{}, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "supervisor")
	s := started{conn: pair[0]}
	launcher, err := launch(path, argv, append(os.Environ(), launcherEnv+"=1"), theirs)
	// Only the supervisor has the other end now, so the connection ends with it.
	theirs.Close()
	if err == nil {
		s.pid, err = s.await(launcher)
	}
	if err != nil {
		s.close()
		return started{}, err
	}
	return s, nil
}

// await waits until the launcher ends and the supervisor reports that it is ready. It returns the supervisor's process.
func (s started) await(launcher *os.Process) (int, error) {
	state, err := launcher.Wait()
	if err != nil {
		return 0, err
	}
	pid, err := s.recvReply()
	// A program that is not a supervisor sends no reply: then report its exit status.
	if errors.Is(err, io.ErrUnexpectedEOF) && !state.Success() {
		return 0, errors.New(state.String())
	}
	return pid, err
}

// launch starts a program in a new session. Its only file besides /dev/null is its end of the connection, as file 3.
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

// detach starts the supervisor from the launcher. When the launcher ends, the supervisor is an orphan.
func detach(conn *os.File) error {
	// The supervisor must not keep files that this process inherited: it would keep pipes open and locks held.
	if err := closeOnExec(4); err != nil {
		return fmt.Errorf("closing inherited files: %w", err)
	}
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, launcherEnv+"=") })
	_, err := launch("/proc/self/exe", os.Args, env, conn)
	return err
}

// closeOnExec sets the close-on-exec flag of all files from a number on.
func closeOnExec(first int) error {
	if unix.CloseRange(uint(first), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	// Old kernels lack this call, and some containers refuse it.
	entries, err := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

// recvReply waits for a reply of the supervisor: the number of its process, or 0 and an error message.
func (s started) recvReply() (int, error) {
	reply := make([]byte, maxReply)
	n, err := retry(func() (int, error) { return unix.Read(s.conn, reply) })
	if err != nil {
		return 0, err
	}
	if n < 4 {
		return 0, io.ErrUnexpectedEOF
	}
	pid := int(binary.NativeEndian.Uint32(reply))
	if pid == 0 {
		return 0, errors.New(string(reply[4:n]))
	}
	return pid, nil
}

// maxReply is the maximum length of a reply.
const maxReply = 512

// sendListener sends the listener and the identity of standard error to the supervisor, and waits until it is ready to answer
// calls.
func (s started) sendListener(listener int) error {
	stderr, err := binary.Append(nil, binary.NativeEndian, identify(unix.Stderr))
	if err != nil {
		return err
	}
	_, err = retry(func() (int, error) {
		return 0, unix.Sendmsg(s.conn, stderr, unix.UnixRights(listener), nil, unix.MSG_NOSIGNAL)
	})
	// If it stayed open here, the kernel would not notice when the supervisor ends.
	unix.Close(listener)
	if err == nil {
		_, err = s.recvReply()
	}
	return err
}

func (s started) close() { unix.Close(s.conn) }

// peer returns a pidfd of the process that made the connection and will become the first program, or -1 if that fails.
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

// sendReady reports that the supervisor is ready, first to receive the listener, then to answer calls.
func sendReady(conn *os.File) error { return send(conn, os.Getpid(), "") }

// sendError reports that the supervisor cannot work. Its standard error is /dev/null.
func sendError(conn *os.File, err error) { _ = send(conn, 0, err.Error()) }

func send(conn *os.File, pid int, text string) error {
	reply := append(binary.NativeEndian.AppendUint32(nil, uint32(pid)), text...)
	_, err := retry(func() (int, error) { return unix.Write(int(conn.Fd()), reply[:min(len(reply), maxReply)]) })
	return err
}

// recvListener waits for the listener and the identity of standard error. It returns io.EOF if the filter could not be
// installed.
func recvListener(conn *os.File) (listener int, stderr fileID, err error) {
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
		return -1, stderr, fmt.Errorf("file 3 did not deliver the identity of standard error: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:noob])
	if err != nil || len(messages) != 1 {
		return -1, stderr, fmt.Errorf("file 3 did not deliver a listener of seccomp(2): %d messages, %v", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, stderr, fmt.Errorf("file 3 did not deliver a listener of seccomp(2): %d files, %v", len(fds), err)
	}
	return fds[0], stderr, nil
}

// retry repeats a call as long as a signal interrupts it.
func retry(do func() (int, error)) (int, error) {
	for {
		n, err := do()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
