// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"cmp"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// workers is the number of threads that answer system calls. While one of them is slow, because a module is being loaded, the
// others continue. They never do anything that a program can block: see inspection and printer. All threads exist from the
// beginning, because the supervisor must work when the user's limit for threads has been reached.
const workers = 8

// name is the name of the supervisor in ps(1).
var name = []byte("smc_supervisor\x00")

// supervisor answers the system calls of programs.
type supervisor struct {
	Options
	*listener
	printer    *printer
	inspection *inspection
	syslog     systemLog
	abis       []abi
	home       netns
	root       bool

	mu     sync.Mutex
	warned map[string]bool
}

// Supervise answers calls until the last program with the filter has ended. Call it in the process that Exec has started, with
// the file over which the listener arrives, and end the process when it returns. In the launcher it starts the supervisor and
// returns at once.
func Supervise(conn *os.File, o Options) error {
	if os.Getenv(launcherEnv) != "" {
		err := detach(conn)
		if err != nil {
			sendError(conn, err)
		}
		return err
	}
	ignoreTermination()
	// Otherwise the name would be that of the path it was started by, /proc/self/exe.
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
	s, end, err := prepare(conn, o)
	if errors.Is(err, errNotWanted) {
		return nil
	}
	if err != nil {
		sendError(conn, err)
		return err
	}
	conn.Close()
	// Programs get sockets as long as one worker runs.
	for range workers {
		if err = <-end; !errors.Is(err, io.EOF) {
			s.syslog.write("a worker of the supervisor has ended: " + printable(err.Error()))
			continue
		}
		return nil
	}
	return err
}

// errNotWanted ends a supervisor whose program will not be executed.
var errNotWanted = errors.New("the filter has not been installed")

// prepare starts the threads. Each worker sends the error that ends it to end.
func prepare(conn *os.File, o Options) (s *supervisor, end <-chan error, err error) {
	if o.socket == nil {
		o.socket = smcSocket
	}
	s = &supervisor{
		Options: o, abis: abis[runtime.GOARCH], root: os.Geteuid() == 0, warned: map[string]bool{},
		syslog: systemLog{tag: cmp.Or(strings.TrimSuffix(o.Prefix, ": "), "smc_supervisor")},
	}
	if s.home, err = ownNetNS(); err != nil {
		return s, nil, err
	}
	first := peer(conn)
	if err := sendReady(conn); err != nil {
		return s, nil, err
	}
	fd, stderr, err := recvListener(conn)
	if errors.Is(err, io.EOF) {
		return s, nil, errNotWanted
	}
	if err != nil {
		return s, nil, err
	}
	if s.listener, err = newListener(fd); err != nil {
		return s, nil, err
	}
	if s.add == nil {
		s.add = s.addFD
	}
	s.printer = newPrinter(stderr, first, o.Prefix)
	s.inspection = newInspection(cmp.Or(o.timeout, inspectTimeout), s.uninspected)
	ready, ended := make(chan error), make(chan error, workers)
	go s.printer.run(ready)
	for range workers {
		go func() { ended <- s.work(ready) }()
	}
	for range inspectors {
		go s.inspect(ready)
	}
	for range workers + inspectors + 1 {
		if err := <-ready; err != nil {
			return s, nil, err
		}
	}
	// Make the garbage collector start its threads now.
	runtime.GC()
	return s, ended, sendReady(conn)
}

// ignoreTermination protects the process from signals, limits and the OOM killer, so that it does not end before its programs.
func ignoreTermination() {
	// The end of a service, or of a machine, signals all of its processes, and programs may need sockets for an orderly
	// shutdown.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE, unix.SIGALRM,
		unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGXCPU, unix.SIGXFSZ, unix.SIGVTALRM, unix.SIGPROF, unix.SIGIO, unix.SIGPWR)
	// The limits are inherited from the program. Raise them as far as possible.
	for _, resource := range []int{unix.RLIMIT_CPU, unix.RLIMIT_DATA, unix.RLIMIT_AS, unix.RLIMIT_NOFILE} {
		var limit unix.Rlimit
		if unix.Getrlimit(resource, &limit) == nil {
			limit.Cur = limit.Max
			_ = unix.Setrlimit(resource, &limit)
		}
	}
	// Only root may do this. It is justified because the supervisor uses only a few megabytes, and without it no program gets
	// sockets.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0)
}

// worker answers one call at a time, on a thread of its own.
type worker struct {
	*supervisor
	net netns // of its thread
}

// work reports on ready, then answers calls until no program with the filter is left.
func (s *supervisor) work(ready chan<- error) error {
	runtime.LockOSThread()
	err := blockSignals()
	ready <- err
	if err != nil {
		return err
	}
	w := worker{s, s.home}
	for {
		n, err := s.receive()
		if err != nil {
			return err
		}
		if s.needsInspection(n) {
			s.inspection.submit(n, processOf(int(n.pid)))
			continue
		}
		w.answer(n)
	}
}

// blockSignals blocks all signals for the calling thread. If a signal interrupts the kernel while it installs a file in a
// program, the call may return 0 without a file, and the Go runtime does send signals to its threads.
func blockSignals() error {
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	return unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil)
}

// answer answers a call. If the code panics, the call proceeds.
func (w *worker) answer(n notification) {
	defer func() {
		if r := recover(); r != nil {
			w.warn(request{id: n.id, pid: int(n.pid)}, "panic", "internal error, a socket stays as it is: %v", r)
			w.proceed(n.id)
		}
	}()
	c := w.decode(n)
	switch {
	case c.kind == callSocket && isTCP(c):
		w.makeSocket(c)
	case c.kind == callConnect && w.Match != nil:
		w.connect(c)
	case c.kind == callListen && w.Match != nil:
		w.listen(c)
	default:
		w.proceed(n.id)
	}
}

// request is a system call that waits for an answer.
type request struct {
	id   uint64
	pid  int
	kind call
	args [3]uint64
}

// decode finds out which call was made. Its arguments may be in the program's memory, which another thread can change at any
// time. That is harmless: they only decide which of two kinds of socket the program gets, not what it is allowed to do.
func (w *worker) decode(n notification) request {
	r := request{id: n.id, pid: int(n.pid)}
	for _, a := range w.abis {
		if a.arch != n.arch {
			continue
		}
		kind, inMemory := a.callByNumber(n.nr)
		if !inMemory {
			r.kind = kind
			copy(r.args[:], n.args[:])
			return r
		}
		kind, count := indirect(n.args[0])
		args, err := readWords(r.pid, n.args[1], a.word, count)
		if err != nil {
			w.refused(r, "reading the arguments of socketcall()", err)
			return r
		}
		if w.valid(n.id) {
			r.kind = kind
			copy(r.args[:], args)
		}
	}
	return r
}

// refused warns that the kernel does not let the supervisor inspect a program: the program has other privileges, no user may
// read its file, or a setting of the system forbids it.
func (w *worker) refused(r request, what string, err error) {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) {
		return // it has ended
	}
	hint := ""
	if errors.Is(err, unix.EPERM) {
		hint = "; if kernel.yama.ptrace_scope is not 0, only root can do this for programs that the program starts"
	}
	w.warn(r, what, "%s is not possible (%v): its socket stays as it is%s", what, err, hint)
}
