// SPDX-License-Identifier: Apache-2.0

// Package seccomp gives programs AF_SMC sockets where they ask the kernel for TCP sockets: static and Go programs, too, on
// which a preloaded library has no influence, and everything that they start.
//
// A filter of system calls (seccomp_unotify(2)) stops socket() until a supervisor, a process of its own, has put a socket
// into the program. What the program does with it reaches the kernel without a detour. The filter looks at socket() alone,
// and at connect() and listen() if there are rules for addresses; of all other system calls the kernel finds out, when it gets
// the filter, that they pass, and does not run it for them. What remains is that it asks whether there is a filter: some tens of
// nanoseconds. A socket() that is answered takes as long as two switches between processes.
//
// No privilege is needed. Without CAP_SYS_ADMIN, the program and its children lose the one to gain privileges by exec
// (no_new_privs), as the kernel demands of who has a filter.
//
// # What it rests on
//
// Without its supervisor a program gets no sockets any more: the kernel answers ENOSYS. So the supervisor has a session of its
// own, ignores the signals that end processes, starts all of its threads before the program runs, and keeps nothing per
// socket. Only SIGKILL, or the kernel when memory is short, can end it before its programs.
//
// A second process with a copy of the listener could take over then, but it would not make that robust. The kernel hands each call to
// one receiver only: a call that the supervisor had received and not answered would wait for ever, unless the second process knew
// its id, so both would have to share a record of all calls in progress, including those that wait for an inspector. The program
// declares one tracer to Yama, and the declaration ends with that process: rules would no longer be applied to programs of other
// users than root. And what kills the supervisor mostly kills every process of its control group, or all of its name.
//
// # Messages
//
// A program decides what its descriptors and its memory are, and may have fewer privileges than the supervisor. So the supervisor
// opens no file for a program: it writes messages by the program's own descriptor of standard error, if that is still the file
// that the first program was started with, and does so on a thread that answers no calls, because writing may block.
//
// # What it does not reach
//
// A program that the supervisor may not look into, because nobody may read its file, or by rules where Yama restricts ptrace(2)
// and neither of them is root, gets TCP sockets.
//
// Sockets made by io_uring, by system calls of processors' other modes that are not in the tables here, and by programs that are
// under somebody else's supervisor: those stay TCP. A socket belongs to the control group of the supervisor, which is the one
// that the first program has been started in.
package seccomp
