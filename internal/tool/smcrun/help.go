// SPDX-License-Identifier: Apache-2.0

package smcrun

const long = `Run COMMAND with AF_SMC sockets in place of TCP sockets. COMMAND runs in the
same process. Programs that it starts get AF_SMC sockets too. Connections to
peers that do not use SMC are TCP; 'smcss' lists these connections. If AF_SMC is
not available, all connections are TCP, and smc_run prints a warning.

METHODS
  preload   A library that is loaded before the C library creates the sockets. It
            costs nothing, but has no effect on programs that make system calls
            without the C library. Requires ` + libraryName + `.
  seccomp   A supervisor answers the system call socket() of COMMAND and of all
            programs that it starts, of any kind, 32-bit ones included. A new
            socket takes a fraction of a millisecond longer. Unless root runs
            smc_run, sudo and other set-user-ID programs get no privileges if
            COMMAND starts them. Requires Linux 5.14 and /proc; without them
            COMMAND runs over TCP, with a warning.
  auto      Looks at the file of COMMAND, or of the interpreter that its first
            line names (env's operand for env):
              a Go program, or a statically linked one     seccomp
              a dynamically linked program                 preload
              the same, if the library is not installed    seccomp
              a program that gains privileges when it
              starts, such as one with set-user-ID         not changed: TCP

smc_run cannot know what a shell will start. Shells are dynamically linked, so
auto uses preload, and static and Go programs in a script stay on TCP. Use
--method seccomp for such scripts.

RULES
  LIST is separated by commas, and options may be repeated. --port and --to name
  the ports and addresses that may use SMC, --not those that must not. For a
  client these are the port and address that it connects to, for a server those
  that it listens on. If a server listens on all addresses, only its port
  matters. Connections outside of the rules are TCP.

BUFFERS
  -r and -t set the size of the socket buffers of each AF_SMC socket. SIZE is in
  bytes, or ends in k or m. Only root may exceed net.core.rmem_max and wmem_max;
  smc_run does not change these limits.

SERVICES
  --unit NAME writes /etc/systemd/system/NAME.service.d/zz-smc.conf, by which
  systemd runs the commands of the service with smc_run and the options that you
  give: -d, -q, -r, -t, --method, --port, --to, --not, --require. NAME may be an
  alias, a template (NAME@) or an instance of one. The drop-in also allows
  AF_SMC and the calls of the supervisor to a service that is restricted to
  other address families or system calls. smc_run asks systemd-analyze, if it is
  installed, whether systemd accepts the result, and writes nothing if not.
  systemd reads the drop-in with 'systemctl daemon-reload', and the service must
  be restarted; --restart does both. Notes on standard error name what stays
  TCP or needs care. If the service's own files change, run --unit again: with
  the same options, it prints 'unchanged' if the drop-in is right.

ENVIRONMENT
  You can use the library without smc_run, with LD_PRELOAD. Then SMC_DEBUG,
  SMC_QUIET, SMC_REQUIRE (1 is on), SMC_RCVBUF, SMC_SNDBUF (sizes), SMC_PORT,
  SMC_TO and SMC_NOT (lists) replace the options. The last five are also the
  defaults of smc_run's options.

EXIT STATUS
  That of COMMAND, or
  1    AF_SMC or the library is required and missing
  2    the command line is wrong
  126  COMMAND cannot be executed
  127  COMMAND is not found

FILES
  ` + libraryName + `
       the library. smc_run looks for it next to itself, in ../lib and ../lib64
       from there (32-bit: lib32, ../lib32, ../lib/i386-linux-gnu), then in the
       lib directories of /usr/local and /usr`

const example = `  # a server and its client
  smc_run redis-server
  smc_run redis-cli -h 10.0.0.1

  # a Go program: smc_run chooses seccomp
  smc_run prometheus --web.listen-address=:9090

  # a script that starts programs of all kinds
  smc_run --method seccomp ./backup.sh

  # a service of systemd: look, do it, undo it
  smc_run --unit redis-server --check --diff
  smc_run --unit redis-server --port 6379 --restart
  smc_run --unit redis-server --undo --restart

  # SMC with the database only, larger buffers, and a message about each socket
  smc_run -d -r 1m -t 1m --port 5432 --to 10.0.0.0/8 ./app`
