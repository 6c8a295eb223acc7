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

// workers is how many system calls are answered at once. One that is slow, because a module is being loaded, holds up no other.
// What a program can hold up is not theirs to do: see inspection and printer. Each has a thread from the beginning: a supervisor must not need one when the user's
// limit for threads has been reached.
const workers = 8

// name is what ps(1) shows of the supervisor.
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

// Supervise answers until the last program under the filter has gone. It belongs into a process of its own, which Exec has
// started, and gets the file that it was given: the listener arrives there. The process is to end when Supervise returns, which
// at first it does at once, having started the one that stays.
func Supervise(conn *os.File, o Options) error {
	if os.Getenv(stageEnv) != "" {
		err := detach(conn)
		if err != nil {
			complain(conn, err)
		}
		return err
	}
	endure()
	// The path that it was started by names it otherwise, which is /proc/self/exe.
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
	s, end, err := prepare(conn, o)
	if errors.Is(err, errNotWanted) {
		return nil
	}
	if err != nil {
		complain(conn, err)
		return err
	}
	conn.Close()
	// As long as one worker answers, programs get sockets.
	for range workers {
		if err = <-end; !errors.Is(err, io.EOF) {
			s.syslog.write("a worker of the supervisor has ended: " + printable(err.Error()))
			continue
		}
		return nil
	}
	return err
}

// errNotWanted ends a supervisor whose program will not be.
var errNotWanted = errors.New("the filter has not been installed")

// prepare starts to answer. Whatever ends a worker is sent to end.
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
	if err := say(conn); err != nil {
		return s, nil, err
	}
	fd, stderr, err := take(conn)
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
		s.add = s.give
	}
	s.printer = newPrinter(stderr, first, o.Prefix)
	s.inspection = newInspection(cmp.Or(o.patience, inspectPatience), s.uninspected)
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
	// What the collector needs of threads, it has now.
	runtime.GC()
	return s, ended, say(conn)
}

// endure keeps the process from ending before its programs do.
func endure() {
	// Who ends a service, or a machine, signals all of its processes, and the programs may need sockets to end in order.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE, unix.SIGALRM,
		unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGXCPU, unix.SIGXFSZ, unix.SIGVTALRM, unix.SIGPROF, unix.SIGIO, unix.SIGPWR)
	// The limits are the program's. What of them cannot be raised stays.
	for _, resource := range []int{unix.RLIMIT_CPU, unix.RLIMIT_DATA, unix.RLIMIT_AS, unix.RLIMIT_NOFILE} {
		var limit unix.Rlimit
		if unix.Getrlimit(resource, &limit) == nil {
			limit.Cur = limit.Max
			_ = unix.Setrlimit(resource, &limit)
		}
	}
	// Only root may. A dead supervisor would be worse than the few megabytes that it has.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0)
}

// worker answers one call at a time, on a thread of its own.
type worker struct {
	*supervisor
	net netns // of the thread
}

// work answers calls until there is no program left. It says when it is ready.
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

// blockSignals keeps signals from the calling thread. If one interrupts the kernel as it puts a file into a program, the call may
// return 0 without a file, and the Go runtime sends signals to its threads.
func blockSignals() error {
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	return unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil)
}

// answer answers a call, whatever happens.
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

// request is a system call that is to be answered.
type request struct {
	id   uint64
	pid  int
	kind call
	args [3]uint64
}

// decode finds out which call was made. Its arguments may be in the program's memory, which another thread can change: what
// is decided by them is which of two kinds of socket a program gets, not what it is allowed to do.
func (w *worker) decode(n notification) request {
	r := request{id: n.id, pid: int(n.pid)}
	for _, a := range w.abis {
		if a.arch != n.arch {
			continue
		}
		kind, inMemory := a.which(n.nr)
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

// refused says that the kernel does not let the supervisor look into a program. The reason is in the program, if it has other
// privileges or nobody may read its file, or in the system's settings.
func (w *worker) refused(r request, what string, err error) {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) {
		return // it has gone
	}
	hint := ""
	if errors.Is(err, unix.EPERM) {
		hint = "; where kernel.yama.ptrace_scope is not 0, only root can for the children of a program"
	}
	w.warn(r, what, "%s is not possible (%v): its socket stays as it is%s", what, err, hint)
}
