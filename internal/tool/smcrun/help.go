// SPDX-License-Identifier: Apache-2.0

package smcrun

const long = `Run COMMAND with AF_SMC sockets in the place of TCP sockets. The process is
the same, and what COMMAND starts has AF_SMC sockets, too. Connections to peers
that do not speak SMC are TCP, as 'smcss' shows, and so are all if AF_SMC is not
available, with a warning.

METHODS
  preload   A library that is loaded before the C library makes the sockets. It
            costs nothing, and does not reach programs that make system calls of
            their own. Needs ` + libraryName + `.
  seccomp   A supervisor answers the system call socket() of COMMAND and of all
            that it starts, whatever it is made with; 32-bit programs, too. A
            socket takes a fraction of a millisecond longer to make. Unless root
            does it, sudo and other programs with the set-user-ID bit have no
            privileges below COMMAND. Needs Linux 5.14 and /proc: without,
            COMMAND runs over TCP, with a warning.
  auto      Looks at the file of COMMAND, or of the interpreter that its first
            line names (env's operand for env):
              a Go program, or a statically linked one     seccomp
              a dynamically linked program                 preload
              the same, if the library is not installed    seccomp
              set-user-ID and the like, of somebody else   left alone: TCP

What a shell starts cannot be known beforehand: shells are dynamically linked,
so auto uses preload, and static and Go programs in a script keep TCP. Use
--method seccomp for those.

RULES
  LIST is separated by commas, and options may be repeated. --port and --to name
  what may be SMC's, --not what must not. For a program that connects that is
  the port and address that it connects to, for a server those that it listens
  at. A server that listens at all addresses is decided upon by its port. All
  that is outside of the rules is TCP.

BUFFERS
  -r and -t set the size of the socket buffers of each AF_SMC socket; SIZE is
  bytes, or has k or m behind it. More than net.core.rmem_max and wmem_max is
  for root, whose sockets get it without a change of these limits.

ENVIRONMENT
  The library can be used without smc_run, with LD_PRELOAD: SMC_DEBUG,
  SMC_QUIET, SMC_REQUIRE (1 is on), SMC_RCVBUF, SMC_SNDBUF (sizes), SMC_PORT,
  SMC_TO and SMC_NOT (lists) stand for the options. The last five are the
  defaults of smc_run's options, too.

EXIT STATUS
  That of COMMAND, or
  1    AF_SMC or the library is missing, and required
  2    the command line makes no sense
  126  COMMAND cannot be executed
  127  COMMAND is not found

FILES
  ` + libraryName + `
       the library, looked for beside smc_run, in ../lib and ../lib64 from there
       (of 32 bits: lib32, ../lib32, ../lib/i386-linux-gnu), then in the lib
       directories of /usr/local and /usr`

const example = `  # a server and its client
  smc_run redis-server
  smc_run redis-cli -h 10.0.0.1

  # a Go program: seccomp, chosen by itself
  smc_run prometheus --web.listen-address=:9090

  # a script that starts programs of all kinds
  smc_run --method seccomp ./backup.sh

  # SMC with the database alone, larger buffers, and a word on each socket
  smc_run -d -r 1m -t 1m --port 5432 --to 10.0.0.0/8 ./app`
