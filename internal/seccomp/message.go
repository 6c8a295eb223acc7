// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"log/syslog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// fileID identifies an open file, independently of the process that has it open.
type fileID struct {
	Known      bool
	Dev, Inode uint64
}

// identify returns the zero fileID for a descriptor that is closed. It may block: fstat(2) asks a file system in user space.
func identify(fd int) fileID {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fileID{}
	}
	return fileID{true, uint64(st.Dev), st.Ino}
}

// printer writes messages to the standard error of programs, on a thread of its own: a write, fstat(2) and even close(2) of a
// file that a program has opened may block for as long as that program likes.
type printer struct {
	// stderr is the standard error that the first program started with. Nothing is written to another file: a program that
	// has closed its standard error may have opened a database in its place.
	stderr fileID
	// first is a pidfd of the first program. The printer uses its standard error if that of another program is not accessible
	// or is another file.
	first  int
	prefix string
	write  func(fd int, text string)

	// lines is the queue of messages, and places limits its length. Both have the same capacity.
	places chan struct{}
	lines  chan line
	// stalled is set while one message takes the printer longer than timeout.
	stalled atomic.Bool
	timeout time.Duration
}

// line is a message, with the descriptor that was standard error when the message was made; -1 for none.
type line struct {
	fd       int
	text     string            // "" for a message whose program has ended
	fallback func(text string) // for a message that cannot be written; may be nil
	done     chan<- struct{}
}

const (
	printerPlaces = 16
	printTimeout  = time.Second
)

func newPrinter(stderr fileID, first int, prefix string) *printer {
	return &printer{
		stderr: stderr, first: first, prefix: prefix, write: writeIfReady, timeout: printTimeout,
		places: make(chan struct{}, printerPlaces), lines: make(chan line, printerPlaces),
	}
}

// run writes the messages; it does not return.
func (p *printer) run(ready chan<- error) {
	runtime.LockOSThread()
	ready <- nil
	for l := range p.lines {
		p.handle(l)
		if l.fd >= 0 {
			unix.Close(l.fd)
		}
		p.stalled.Store(false)
		<-p.places
		close(l.done)
	}
}

// handle writes a message to the first destination that accepts it. A panic here must not end the supervisor.
func (p *printer) handle(l line) {
	defer func() { _ = recover() }()
	switch {
	case l.text == "":
	case p.writeTo(l.fd, l.text):
	case p.writeToFirst(l.text):
	case l.fallback != nil:
		l.fallback(l.text)
	}
}

// writeTo writes to a descriptor if it refers to the standard error that the first program started with, and returns false if
// not.
func (p *printer) writeTo(fd int, text string) bool {
	if fd < 0 || !p.stderr.Known || identify(fd) != p.stderr {
		return false
	}
	p.write(fd, p.prefix+text+"\n")
	return true
}

func (p *printer) writeToFirst(text string) bool {
	fd, err := unix.PidfdGetfd(p.first, unix.Stderr, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return p.writeTo(fd, text)
}

// writeIfReady drops the text if its reader does not keep up.
func writeIfReady(fd int, text string) {
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	if n, err := unix.Poll(ready, 0); err == nil && n == 1 && ready[0].Revents == unix.POLLOUT {
		_, _ = unix.Write(fd, []byte(text))
	}
}

// print queues a message for the file that borrow returns, and waits until it is written, but no longer than timeout: a program
// that ends at once should not end before the message about it, and a worker must not depend on the reader of the messages.
// print drops a message if the queue is full.
func (p *printer) print(text string, borrow func() (fd int, valid bool), fallback func(string)) {
	select {
	case p.places <- struct{}{}:
	default:
		return
	}
	// Borrow the descriptor only when the queue has room: closing it may block, so only the printer may do it.
	fd, valid := borrow()
	if !valid {
		text = ""
	}
	done := make(chan struct{})
	p.lines <- line{fd: fd, text: text, fallback: fallback, done: done}
	if p.stalled.Load() {
		return
	}
	timeout := time.NewTimer(p.timeout)
	defer timeout.Stop()
	select {
	case <-done:
	case <-timeout.C:
		p.stalled.Store(true)
	}
}

// standardError returns file 2 of the thread that waits for an answer. The thread can choose any file for it, so the printer
// must use it only in ways that the descriptor itself permits. valid is false if the thread has ended, because another thread
// may have its number by then.
func (w *worker) standardError(r request) (fd int, valid bool) {
	fd, err := fileOf(r.pid, unix.Stderr)
	if err != nil {
		fd = -1
	}
	return fd, w.valid(r.id)
}

// warn prints a warning, once for each key: to standard error, or by syslog(3) where standard error is not accessible.
func (w *worker) warn(r request, key, format string, args ...any) {
	w.mu.Lock()
	again := w.warned[key]
	w.warned[key] = true
	w.mu.Unlock()
	if !again && !w.Quiet {
		w.printer.print(about(r, format, args), func() (int, bool) { return w.standardError(r) }, w.syslog.write)
	}
}

// log prints how a socket was answered, if Debug is set.
func (w *worker) log(r request, format string, args ...any) {
	if w.Debug {
		w.printer.print(about(r, format, args), func() (int, bool) { return w.standardError(r) }, nil)
	}
}

// about returns a message that begins with the name and number of the program.
func about(r request, format string, args []any) string {
	return fmt.Sprintf("%s[%d]: ", command(r.pid), r.pid) + fmt.Sprintf(format, args...)
}

// command returns the name of a program for messages. The program itself chooses this name, so it is escaped.
func command(tid int) string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", tid))
	if err != nil {
		return "?"
	}
	return printable(strings.TrimSuffix(string(name), "\n"))
}

// printable escapes text so that it is one line and contains no control sequences of terminals.
func printable(text string) string {
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// systemLog takes the messages that cannot be written to a program's standard error. It is opened for the first message.
type systemLog struct {
	tag  string
	once sync.Once
	w    *syslog.Writer
}

func (s *systemLog) write(text string) {
	s.once.Do(func() {
		// If no syslog service runs, the message is lost.
		s.w, _ = syslog.New(syslog.LOG_WARNING|syslog.LOG_DAEMON, s.tag)
	})
	if s.w != nil {
		_ = s.w.Warning(text)
	}
}
