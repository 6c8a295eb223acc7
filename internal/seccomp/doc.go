// SPDX-License-Identifier: Apache-2.0

// Package seccomp gives a program AF_SMC sockets when it asks the kernel for TCP sockets. This works for static programs and Go
// programs too, which a preloaded library cannot influence, and for every process that the program starts.
//
// A system call filter (seccomp_unotify(2)) stops socket() until a supervisor, which is a separate process, has installed a
// socket in the program. The program then uses that socket without the supervisor. The filter inspects the arguments of
// socket() only, and of connect() and listen() if there are rules for addresses. When the filter is installed, the kernel finds
// out that all other system calls always pass, and does not run the filter for them. Their remaining cost is the kernel's check
// whether there is a filter: some tens of nanoseconds. A socket() that the supervisor answers takes as long as two switches
// between processes.
//
// No privilege is needed. Without CAP_SYS_ADMIN, the program and its children can no longer gain privileges by exec
// (no_new_privs): the kernel demands this before an unprivileged process may install a filter.
//
// # How the supervisor survives
//
// If its supervisor dies, a program gets no more sockets: the kernel answers ENOSYS. Therefore the supervisor runs in its own
// session, ignores the signals that end processes, starts all of its threads before the program runs, and keeps no state per
// socket. Only SIGKILL, or the kernel when memory is short, can end it before its programs.
//
// A second process with a copy of the listener could take over, but it would not make the supervisor robust. The kernel
// delivers each call to one receiver only. A call that the supervisor had received and not answered would wait for ever, unless
// the second process knew its id, so both processes would have to share a record of all calls in progress, including those that
// wait for an inspector. The program declares one tracer to Yama, and the declaration ends with that process: rules would no
// longer be applied to programs of users other than root. Finally, most causes that kill the supervisor also kill every other
// process of its control group or of its name.
//
// # Messages
//
// A program controls its own descriptors and memory, and may have fewer privileges than the supervisor. So the supervisor opens
// no file on behalf of a program. It writes messages through the program's own descriptor of standard error, if that is still
// the file that the first program was started with. A separate thread, which answers no calls, writes them, because writing may
// block.
//
// # Limitations
//
// A program gets TCP sockets if the supervisor may not inspect it: no user may read its file, or there are rules, Yama
// restricts ptrace(2), and neither the program nor the supervisor runs as root.
//
// Sockets stay TCP if io_uring makes them, if the program makes them by system calls of an ABI that is not in the tables here,
// or if the program has another supervisor. A socket belongs to the control group of the supervisor, which is the one in which
// the first program was started.
package seccomp
