// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// programs are the programs that run under a supervisor.
var programs = map[string]func(args []string) error{
	"kinds":   kinds,
	"one":     func([]string) error { return isTagged(unix.AF_INET) },
	"six":     func([]string) error { return isTagged(unix.AF_INET6) },
	"plain":   func([]string) error { return isPlain(unix.AF_INET) },
	"refused": refused,
	"limit":   limit,
	"alone":   alone,
	"signals": signals,
	"slow":    slow,
	"buffers": buffers,
	"netns":   otherNetNS,
	"rules":   rules,
	"busy":    busy,
	"owner":   owner,
	"exec":    execute,
	"exec-type": func(args []string) error {
		fmt.Printf("%T", execute(args))
		return nil
	},
	"calls": calls,

	"forge":      forge,
	"stuck":      stuck,
	"redirected": redirected,
	"named":      named,
}

// priority returns the priority of a socket.
func priority(fd int) (int, error) { return unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY) }

// tagged asks for a socket and reports whether the supervisor has made it.
func tagged(domain, typ, proto int) (bool, error) {
	fd, err := unix.Socket(domain, typ, proto)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	p, err := priority(fd)
	return p == tag, err
}

func isTagged(domain int) error {
	ours, err := tagged(domain, unix.SOCK_STREAM, 0)
	if err == nil && !ours {
		err = errors.New("a plain socket")
	}
	return err
}

func isPlain(domain int) error {
	ours, err := tagged(domain, unix.SOCK_STREAM, 0)
	if err == nil && ours {
		err = errors.New("not a plain socket")
	}
	return err
}

// kinds asks for sockets of all kinds, with all flags, and checks the sockets and their flags.
func kinds([]string) error {
	const stream = unix.SOCK_STREAM
	for _, c := range []struct {
		domain, typ, proto int
		want               bool
	}{
		{unix.AF_INET, stream, 0, true},
		{unix.AF_INET, stream, unix.IPPROTO_TCP, true},
		{unix.AF_INET, stream | unix.SOCK_CLOEXEC, 0, true},
		{unix.AF_INET6, stream | unix.SOCK_NONBLOCK, 0, true},
		{unix.AF_INET6, stream | unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC, unix.IPPROTO_TCP, true},
		{unix.AF_INET6, stream | unix.SOCK_CLOEXEC, unix.IPPROTO_MPTCP, true},
		{unix.AF_INET, unix.SOCK_DGRAM, 0, false},
		{unix.AF_UNIX, stream, 0, false},
		{unix.AF_NETLINK, unix.SOCK_RAW, 0, false},
	} {
		fd, err := unix.Socket(c.domain, c.typ, c.proto)
		if err != nil {
			return fmt.Errorf("%+v: %w", c, err)
		}
		p, err1 := priority(fd)
		fdFlags, err2 := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		flags, err3 := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err := errors.Join(err1, err2, err3, unix.Close(fd)); err != nil {
			return fmt.Errorf("%+v: %w", c, err)
		}
		cloexec, nonblock := c.typ&unix.SOCK_CLOEXEC != 0, c.typ&unix.SOCK_NONBLOCK != 0
		if (p == tag) != c.want || (fdFlags&unix.FD_CLOEXEC != 0) != cloexec || (flags&unix.O_NONBLOCK != 0) != nonblock {
			return fmt.Errorf("%+v: priority %d, flags of the file %#x, of the number %#x", c, p, flags, fdFlags)
		}
	}
	_, err := unix.Socket(unix.AF_INET, stream|0x10, 0)
	if !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("a type that does not exist: %w", err)
	}
	return nil
}

// refused checks that socket() fails because AF_SMC is not available.
func refused([]string) error {
	_, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if !errors.Is(err, unix.EAFNOSUPPORT) {
		return fmt.Errorf("not refused, but %w", err)
	}
	return nil
}

// limit opens as many sockets as it may.
func limit([]string) error {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 40, Max: 40}); err != nil {
		return err
	}
	var fds []int
	for {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if errors.Is(err, unix.EMFILE) {
			break
		}
		if err != nil {
			return err
		}
		fds = append(fds, fd)
	}
	if len(fds) < 20 || fds[len(fds)-1] != 39 {
		return fmt.Errorf("got %v", fds)
	}
	if err := unix.Close(fds[7]); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil || fd != fds[7] {
		return fmt.Errorf("with room for one socket: %d, %w", fd, err)
	}
	return nil
}

// alone checks that its process has no children, and prints the number of its process.
func alone([]string) error {
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); !errors.Is(err, unix.ECHILD) {
		return fmt.Errorf("there is a child: %d, %w", pid, err)
	}
	fmt.Print(os.Getpid())
	return nil
}

// execute calls Exec with a program and a supervisor, either of which may be invalid.
func execute(args []string) error {
	return Exec(Program{Path: args[0], Argv: args[:1]}, Sockets, args[1], []string{args[1], roleSupervise, "{}"})
}

// owner becomes another user and prints the owner of its socket.
func owner(args []string) error {
	uid, err1 := strconv.Atoi(args[0])
	gid, err2 := strconv.Atoi(args[1])
	if err := errors.Join(err1, err2, syscall.Setgid(gid), syscall.Setuid(uid), isTagged(unix.AF_INET)); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	fmt.Print(st.Uid, st.Gid)
	return nil
}

// signalPeriod is the time between two signals that a program gets.
const signalPeriod = 200 * time.Microsecond

// signals interrupts itself all the time, and checks that each socket() returns a socket and that no descriptor is leaked.
func signals([]string) error {
	time.AfterFunc(30*time.Second, func() { panic("no socket between two signals") })
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, unix.SIGALRM)
	interval := unix.NsecToTimeval(signalPeriod.Nanoseconds())
	before, err := openFiles()
	if err != nil {
		return err
	}
	if _, err := unix.Setitimer(unix.ITIMER_REAL, unix.Itimerval{Interval: interval, Value: interval}); err != nil {
		return err
	}
	<-caught
	for range 100 {
		if err := isTagged(unix.AF_INET); err != nil {
			return err
		}
	}
	if _, err := unix.Setitimer(unix.ITIMER_REAL, unix.Itimerval{}); err != nil {
		return err
	}
	after, err := openFiles()
	if err == nil && after != before {
		err = fmt.Errorf("%d files are open, %d were", after, before)
	}
	return err
}

func openFiles() (int, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	return len(entries), err
}

// slow asks for IPv6 sockets, which the supervisor delays until a file exists, and checks that it gets IPv4 sockets meanwhile.
// Then it creates the file.
func slow(args []string) error {
	var late errgroup.Group
	for range workers / 2 {
		late.Go(func() error {
			// Do not use unix.Socket: the Go runtime treats it as a call that does not block, and would run out of processors.
			fd, _, errno := unix.Syscall(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_STREAM, 0)
			if errno != 0 {
				return errno
			}
			return unix.Close(int(fd))
		})
	}
	for range 50 {
		if err := isTagged(unix.AF_INET); err != nil {
			return err
		}
	}
	if err := os.WriteFile(args[0], nil, 0o644); err != nil {
		return err
	}
	return late.Wait()
}

// buffers prints the buffer sizes that the supervisor has set.
func buffers([]string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	send, err1 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	receive, err2 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	fmt.Print(send, receive)
	return nil
}

// otherNetNS asks for a socket on a thread in a new network namespace.
func otherNetNS([]string) error {
	runtime.LockOSThread()
	before, err := cookie()
	if err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	after, err := cookie()
	if err != nil {
		return err
	}
	if before == after {
		return fmt.Errorf("the socket is in the old namespace: %d", after)
	}
	return nil
}

// cookie returns the network namespace of a new socket, and checks that it is the namespace of the thread.
func cookie() (uint64, error) {
	cookies := [2]uint64{}
	for i, typ := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
		fd, err := unix.Socket(unix.AF_INET, typ, 0)
		if err != nil {
			return 0, err
		}
		defer unix.Close(fd)
		if cookies[i], err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err != nil {
			return 0, err
		}
	}
	if cookies[0] != cookies[1] {
		return 0, fmt.Errorf("the supervisor's socket is in another network namespace")
	}
	return cookies[0], isTagged(unix.AF_INET)
}

// rules connects to the addresses one after the other, and listens.
func rules(args []string) error {
	for _, arg := range args {
		to, err := netip.ParseAddrPort(arg)
		if err != nil {
			return err
		}
		domain, sa := sockaddr(to)
		fd, err := unix.Socket(domain, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if err := unix.Connect(fd, sa); err != nil {
			return fmt.Errorf("%v: %w", to, err)
		}
		_, udp := sockaddr(to)
		datagrams, err := unix.Socket(domain, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		if err := unix.Connect(datagrams, udp); err != nil {
			return fmt.Errorf("UDP to %v: %w", to, err)
		}
	}
	return option(args[0])
}

func sockaddr(a netip.AddrPort) (domain int, sa unix.Sockaddr) {
	if a.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// option sets the socket option that the supervisor sets again, listens, and checks that its value has not changed.
func option(string) error {
	const name = unix.TCP_FASTOPEN_NO_COOKIE
	for want := range 2 {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, name, want); err != nil {
			return err
		}
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return err
		}
		if err := unix.Listen(fd, 1); err != nil {
			return err
		}
		got, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, name)
		if err != nil || got != want {
			return fmt.Errorf("option %d is %d, not %d: %w", name, got, want, err)
		}
	}
	return nil
}

// busy asks for sockets on many threads at once.
func busy([]string) error {
	var threads errgroup.Group
	for range 16 {
		threads.Go(func() error {
			runtime.LockOSThread()
			for range 50 {
				if err := isTagged(unix.AF_INET6); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return threads.Wait()
}
