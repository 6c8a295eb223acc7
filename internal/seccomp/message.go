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

// fileID tells an open file from others, in whichever process it is open.
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
	// first is the process that the first program is, a pidfd. Its standard error serves where that of another program cannot
	// be had or is another file.
	first  int
	prefix string
	write  func(fd int, text string)

	// places bounds the messages that wait, lines has them. Both have the same capacity.
	places chan struct{}
	lines  chan line
	// stalled is set while the printer is busy with one message for longer than patience.
	stalled  atomic.Bool
	patience time.Duration
}

// line is a message, with the descriptor that was standard error when the message was made; -1 for none.
type line struct {
	fd       int
	text     string            // "" for a message whose program has gone
	fallback func(text string) // for a message that cannot be written; may be nil
	done     chan<- struct{}
}

const (
	printerPlaces   = 16
	printerPatience = time.Second
)

func newPrinter(stderr fileID, first int, prefix string) *printer {
	return &printer{
		stderr: stderr, first: first, prefix: prefix, write: writeIfReady, patience: printerPatience,
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

// handle writes a message to the first place that takes it. Whatever happens here, the supervisor goes on.
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

// writeTo writes to a descriptor of the standard error that the first program started with, and refuses others.
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

// print has a message written to the file that borrow returns, and waits for that, but not for long: a program that ends at
// once should not end before what is said about it, and a worker must not depend on who reads the messages. Messages are
// dropped while too many wait.
func (p *printer) print(text string, borrow func() (fd int, valid bool), fallback func(string)) {
	select {
	case p.places <- struct{}{}:
	default:
		return
	}
	// Not before there is a place: the descriptor is the printer's to close, because closing may block.
	fd, valid := borrow()
	if !valid {
		text = ""
	}
	done := make(chan struct{})
	p.lines <- line{fd: fd, text: text, fallback: fallback, done: done}
	if p.stalled.Load() {
		return
	}
	patience := time.NewTimer(p.patience)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
		p.stalled.Store(true)
	}
}

// standardError returns file 2 of the thread that waits for an answer. The thread decides what file that is: what is done
// with it needs no more than the access that the descriptor has. It is not valid if the thread has gone, because then it may
// be the file of another one with the same number.
func (w *worker) standardError(r request) (fd int, valid bool) {
	fd, err := fileOf(r.pid, unix.Stderr)
	if err != nil {
		fd = -1
	}
	return fd, w.valid(r.id)
}

// warn tells the user something, once for each key: on standard error, or by syslog(3) where that cannot be had.
func (w *worker) warn(r request, key, format string, args ...any) {
	w.mu.Lock()
	again := w.warned[key]
	w.warned[key] = true
	w.mu.Unlock()
	if !again && !w.Quiet {
		w.printer.print(about(r, format, args), func() (int, bool) { return w.standardError(r) }, w.syslog.write)
	}
}

// log says what was done for a socket, if that was asked for.
func (w *worker) log(r request, format string, args ...any) {
	if w.Debug {
		w.printer.print(about(r, format, args), func() (int, bool) { return w.standardError(r) }, nil)
	}
}

// about is a message with the program that it is about.
func about(r request, format string, args []any) string {
	return fmt.Sprintf("%s[%d]: ", command(r.pid), r.pid) + fmt.Sprintf(format, args...)
}

// command is the name of a program, for messages. Programs choose it.
func command(tid int) string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", tid))
	if err != nil {
		return "?"
	}
	return printable(strings.TrimSuffix(string(name), "\n"))
}

// printable is text on one line that no terminal takes for a command.
func printable(text string) string {
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// systemLog is where messages go that no program's standard error can take. It is opened for the first message.
type systemLog struct {
	tag  string
	once sync.Once
	w    *syslog.Writer
}

func (s *systemLog) write(text string) {
	s.once.Do(func() {
		// Where no such service runs, nobody can be told.
		s.w, _ = syslog.New(syslog.LOG_WARNING|syslog.LOG_DAEMON, s.tag)
	})
	if s.w != nil {
		_ = s.w.Warning(text)
	}
}
