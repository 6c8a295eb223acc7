// SPDX-License-Identifier: Apache-2.0

package smcpolicy

const rootLong = `smc_policy says which sockets of a host use SMC, with smckit's module: ordinary
TCP sockets of any program become SMC by a rule, without smc_run and without a
restart of the program, and SMC sockets stay TCP by a rule.

A rule has a verdict, smc, tcp or auto, and conditions. The module evaluates the
rules in their order when a socket is to connect or to listen; the first one
whose conditions all hold decides. If none does, a socket stays what the program
made.
With auto, the module learns for each service whether SMC pays: see 'smc_policy
auto --help'.
A socket that a rule makes SMC is TCP if the peer has no SMC, or no device
serves the connection: 'smcss -a' shows why.

Conditions:
  port LIST         the local port of a listener, the remote one of a client:
                    the port of the service
  local LIST        local ports; that of a client is known after bind() only
  remote LIST       ports of the peer, for clients
  to NETWORKS       clients that connect to an address in one of these
  from NETWORKS     servers: connections from an address in one of these; other
                    rules decide about the other connections of the listener
  peer NETWORKS     both
  user USER         who made the socket: user and group as in 'ls -l' of a file
  group GROUP       that the process creates, names or numbers
  cgroup PATH       the socket was made in this control group (version 2), or
                    below it: system.slice/redis.service
  role ROLE         connect (clients) or listen (servers)
  name NAME         the name of the rule, which is no condition

Lists have commas and no blanks: port 6379,8000-8100. Each condition can be
there once. Names of users and groups are those in /etc/passwd and /etc/group;
of others, give the number.

Rules are for sockets that programs make afterwards, of programs that run
already, too. A socket is decided about when it is to connect or to listen; one
that is left to TCP then stays TCP, also if it connects again. Connections that
exist stay as they are. Sockets that the kernel makes for itself are never
converted; if a program makes a socket and hands it over to the kernel, as
iscsid, nbd-client, rpc.nfsd and usbip do, put a rule with tcp for it first.

Any user may read the rules; root (CAP_NET_ADMIN in the user namespace that owns
the network namespace) may change them. Each network namespace has its own
rules. The kernel keeps them in memory: after a reboot, or after a reload of the
module smc, there are none. 'smc_conf save' keeps them in /etc/smc/policy.conf,
and the service smc restores them.

Without a command smc_policy shows the rules. 'smc_policy memory' shows and
limits the memory of SMC.

Exit status:
  0  done, also if there was nothing to do
  1  the command failed; the rules are unchanged
  2  the command line is wrong`

const rootExample = `  # redis and a range of ports use SMC, on clients and servers
  smc_policy add smc port 6379,8000-8100

  # One network uses TCP whatever other rules say
  smc_policy add tcp to 10.9.0.0/16 --at 1

  # A service, by its control group
  smc_policy add smc cgroup system.slice/redis.service role listen name redis

  # What decides about a connection?
  smc_policy explain --user www-data 10.1.0.2:6379

  # Undo it
  smc_policy del redis
  smc_policy flush`

const addLong = `Add a rule at the end of the list, or as number N. If the rule is there already,
nothing changes, and the exit status is 0; with --at it is an error if the rule
has another number. It is an error, too, if another rule has the same conditions
or the same name: delete that one first.

smc_policy refuses a control group that does not exist; with --force it adds the
rule. A control group is found by its path, so a rule still holds when a service
has been restarted. The path is that of the host, in a container, too.

--json prints {"schema": 2, "changed": true or false, "check": true or false,
"rules_added": [...], "rules_removed": [...]}, where a rule is a line of
'smc_policy export'. With --diff there is also {"diff": {"before": "...",
"after": "..."}}, the whole list as a file.`

const addExample = `  smc_policy add smc port 6379
  smc_policy add tcp user backup --at 1
  smc_policy add smc cgroup system.slice/nginx.service role listen port 80,443 name web`

const delLong = `Delete a rule by its name, or by its number in 'smc_policy show'. It is an error if
there is no such rule, unless you give --ignore-missing.

Connections of the rule stay as they are. --json prints the same document as
'smc_policy add'.`

const delExample = `  smc_policy del web
  smc_policy del 3 --check`

const showLong = `Show the rules, in the order of evaluation, with counters: the calls of
connect() and listen() that the rule has decided, or with 'from' the connections
of listeners; the connections of these
sockets that became SMC, and that are TCP; the bytes that ended connections have
moved by SMC. Connections to a listener that a rule has left to TCP are not
counted.

--json prints {"schema": 2, "enabled": true or false, "rules": [...]}.`

const showExample = `  smc_policy show
  smc_policy show --json`

const flushLong = `Delete all rules. --json prints the same document as 'smc_policy add'.`

const applyLong = `Replace the rules by those of FILE, or of standard input if FILE is '-'. Rules that
are in both keep their counters.

The file has one rule on each line, as the words of 'smc_policy add'. A '#'
begins a comment at the start of a word. If the file has a mistake, smc_policy
prints the file, the line and the word, and changes nothing. The change is made
at once: no connection sees a part of it.

A rule that is in both at another place moves; with --diff it is there as removed
(-) and as added (+). --check only predicts the changes. --json prints the same
document as 'smc_policy add', in which such a rule is in both lists.`

const applyExample = `  smc_policy apply --check --diff policy.conf
  smc_policy apply policy.conf`

const exportLong = `Print the rules as a file for 'smc_policy apply'. --json prints the same document as
'smc_policy show'.`

const exportExample = `  smc_policy export > policy.conf`

const onLong = `Use the rules again, after 'smc_policy off'. Without rules, sockets that are made
for SMC use SMC.

--json prints {"schema": 2, "changed": true or false, "check": true or false,
"enabled": true}.`

const offLong = `Have all connections that begin from now on use TCP: those of sockets that were
made for SMC, too. The rules stay, and 'smc_policy on' has them used again.

--json prints {"schema": 2, "changed": true or false, "check": true or false,
"enabled": false}.`

const peersLong = `Show the peers with which SMC was not possible, such as a server that has no
device, or one that did not answer a proposal. For a time, the module leaves the
SMC option out of the SYN to such a server, and out of the answer to such a
client. The connection is TCP at once, without an SMC handshake, for the reason
that is shown: the code, and its meaning; if the peer gave the reason, its code
follows after a slash.

Peer is the address of the peer and the port of the service: that of the peer if
the role of this host is connect, and that of this host if it is listen. A server
is remembered for the sockets of the user with the UID, because a program can
make its own handshakes fail; clients are remembered for all users. Left is
the time until the module forgets the peer: net.smc.remember_peers sets it, 60
seconds by default; 0 turns this off. The module forgets peers at once when a
device, a PNET ID, an EID, an IPsec policy or a setting changes on this host. It
cannot see that a peer has been repaired.

'smc_policy peers flush' forgets all peers, so that the next connection with each
of them tries SMC. Connections that exist stay as they are.

Each network namespace has its own list, of at most 2048 peers for each role.
Any user may read it; root (CAP_NET_ADMIN in the user namespace that owns the
network namespace) may flush it.

--json prints {"schema": 2, "peers": [...]}, and with flush {"schema": 2,
"changed": true or false, "check": true or false, "forgotten": [...]}.`

const peersExample = `  smc_policy peers
  smc_policy peers flush`

const explainLong = `Say which rule decides about a connection to HOST:PORT, or about the connections
of a listener on :PORT, and what becomes of a TCP socket and of an SMC socket. The socket is one
that you make now, unless you name another user, group or control group. For
another user, the group is his primary one in /etc/passwd, unless you name one.
The answer is about a client that has not called bind(), and for a rule with auto
it is what the service has learned so far. If the module remembers that SMC was
not possible with the server, a second line says so: see 'smc_policy peers'.

Whether a connection that is to use SMC does so depends on the peer and the
devices: 'smc_chk --connect HOST' tries it, and names the device.

--json prints {"schema": 2, "enabled": true or false, "answers": [...]}, with an
answer for each address of the host.`

const explainExample = `  smc_policy explain 10.1.0.2:6379
  smc_policy explain --cgroup system.slice/redis.service :6379`

const autoLong = `Show the services about whose connections rules with the verdict auto decide. A
service is the local port of a server (:80), or the address and port that
clients connect to.

New connections of a service are SMC at first. For each connection that ends, SMC
or TCP, the module learns whether SMC pays for it: it does if the connection has
moved net.smc.auto_bytes, or was open for net.smc.auto_time. After
net.smc.auto_samples connections for which SMC does not pay, more than those for
which it does, new connections are TCP, and SMC again when it pays for more than
it does not. A connection that is open for long, or moves much, counts as several.
When a service has had no connection for net.smc.auto_forget, it is forgotten.
'man af_smc' has the settings.

Columns:
  Use     what new connections are: smc or tcp
  Paid    connections that have ended and for which SMC pays
  Unpaid  those for which it does not
  Open    connections that are open
  Left    seconds until the service is forgotten, if no connection begins or ends

With flush, the module forgets what all services have learned: their new
connections are SMC again, and those that are open do not count.

--json prints {"schema": 2, "services": [...]}, and with flush {"schema": 2,
"changed": true or false, "check": true or false, "forgotten": [...]}.`

const autoExample = `  smc_policy add auto
  smc_policy auto
  smc_policy auto flush`

const memoryLong = `Show how much memory SMC has for data, or set a ceiling: a number with K, M or G
(1024, 1024^2 or 1024^3 bytes), none, or default. Without --host it is the ceiling
of the network namespace, by default none; otherwise that of the host, which you
can set in the initial network namespace only, and which by default is as much
as TCP may have: the third number of net.ipv4.tcp_mem, in pages.

A connection reserves its buffers when it is set up. Within the host, buffers
get memory when there is data, and 16K for each are reserved: at a ceiling, a
writer that needs more waits for the reader, as if the buffer was full. Above
three quarters of a ceiling, new connections get smaller buffers: each at most a
64th of what is left, but not less than 16K. If there is no room for these, the
connection is TCP, with the reason MEM_LIMIT in 'smcss -a'. If you lower a
ceiling below what is reserved, no connection ends.

  Ceiling            the most that may be reserved
  Reserved           the sum of RMBs, send rings, DMBs and queues
  Highest            the most that was reserved at any time
  RMBs, Send rings   buffers of SMC-R
  DMBs               buffers of SMC-D; within the host, their pages with data,
                     or 16K of each
  Queues of links    messages of SMC-R
  Idle buffers       RMBs and send rings that link groups keep for their next
                     connections. They are given back if memory is short, and
                     when the link group ends: net.smc.lgr_idle_time
  Ends that are TCP  because of a ceiling; each end of a connection that has
                     found the ceiling counts

The column Namespace has what connections of the network namespace have. The
column Host is there in the initial network namespace only. It has what all
connections and link groups have.

In a user namespace, root can only lower the ceiling of the network namespace.
But it can make other network namespaces, for which the ceiling of the host
counts, and memory.max of the cgroup.

The ceilings are the settings net.smc.max_memory_kbytes and
net.smc.host_max_memory_kbytes. 'smc_conf save' keeps them in
/etc/smc/smc.conf.

--check only predicts the change. --json prints {"schema": 2, "namespace": {...},
"host": {...}} with sizes in bytes, or for a new ceiling {"schema": 2,
"changed": true or false, "check": true or false, "ceiling_bytes":
BYTES}.`

const memoryExample = `  smc_policy memory
  smc_policy memory 64M
  smc_policy memory --host 256M
  smc_policy memory none
  smc_policy memory --host default`

const namespacesLong = `Have network namespaces that have no rules of their own, such as those of
containers, use the rules of the initial network namespace: on or off. Without an
argument, say which of the two it is. By default it is off.

If it is on, your rules are for the sockets of all containers, also of those that
run already, for the sockets that they make from then on. Conditions about users,
groups and control groups mean those of the host. The counters of the rules count
the sockets of all these namespaces, and 'smc_policy off' in the initial
network namespace is for them, too. A namespace with a rule of its own, or with
its policy off, is not concerned. What services have learned (auto), the peers
with which SMC was not possible, and ceilings of memory belong to each namespace.

'smc_conf save' keeps it as the setting policy_for_namespaces.

--check only predicts the change. --json prints {"schema": 2, "changed": true or
false, "check": true or false, "enabled": true or false}.`

const namespacesExample = `  smc_policy add smc cgroup machine.slice
  smc_policy namespaces on`
