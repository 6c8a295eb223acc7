// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"fmt"
	"strings"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

const examples = `  smcss -a                          # every socket
  smcss --mode tcp --explain        # connections that fell back to TCP, the reason, and what to do
  smcss -ap --port 5201             # sockets of port 5201 and their processes
  smcss -i --sort send-rate         # connections with bytes, rates and buffers, the fastest first
  smcss -s                          # counts only
  smcss -dRW                        # SMC-R connections with all details
  smcss --peer 10.1.0.0/16 --uid postgres
  smcss --watch 1 --mode tcp        # again every second
  smcss --json | jq -r '.sockets[] | select(.fallback) | .fallback.reason.name'`

const helpHead = `List the AF_SMC sockets of a network namespace. Without options, sockets in
state INIT and LISTEN are left out.

Columns
%s
  A row ends early if there is nothing more to show: INIT after the inode,
  LISTEN after the local address, CLOSED after the interface, TCP after the
  reason.

Columns of -d (numbers are in hex)
%s
Columns of -R
%s
Columns of -D
%s
Column of -p
  Process   users:(("NAME",pid=PID,fd=FD),...) as in ss; only processes that the
            caller may inspect

Line of -i, below each connection
  age       since the handshake
  sent, acked, received
            bytes: written here; of these, reported as read by the peer; written
            by the peer
  send_rate, recv_rate
            with --watch since the last listing, otherwise since the handshake
  sendq     bytes that wait to be sent, of the bytes of the send buffer
  peerq     bytes sent and not reported as read, of the peer's buffer
  recvq     bytes not read yet, of the receive buffer
  failovers how often the connection has changed to another link
  blocked   a writer waits for room
  tcp_rtt, tcp_retrans, tcp_bytes_retrans
            of the TCP connection, which SMC uses for the handshake only: round
            trip and its variation, segments and bytes that were sent again
  A connection over TCP has TCP's counters and queues. "n/a" stands for what the
  kernel does not provide: stock modules do not count bytes of SMC connections.

Sorting
  --sort KEY sorts each listing: states, users, modes and addresses upwards,
  other keys downwards, and sockets without the value last. A "-" before the key
  turns the order around. smcss keeps all sockets in memory then.

States
  INIT              not connected yet
  LISTEN            waits for connections
  ACTIVE            connected
  PEERCLOSEWAIT1    this side has closed or shut down sending, the peer has not
  PEERCLOSEWAIT2    both have ended sending, waits for the peer to close
  APPCLOSEWAIT1     the peer has closed or shut down sending, this side has not
  APPCLOSEWAIT2     both have ended sending, the peer first; waits for close
                    here
  APPFINCLOSEWAIT1  shut down here, closed by the peer; waits for close here
  PEERFINCLOSEWAIT  closed here after the peer had ended sending; waits for the
                    peer to close
  PEERABORTWAIT     aborted here, waits for the peer to agree
  PROCESSABORT      aborted by the peer, waits for close here
  CLOSED            closed

Filters
  --state, --mode, --port, --local, --peer and --uid narrow the list. Each takes
  values separated by commas and may be repeated. A socket is listed if it
  matches one value of each given option. --state lists INIT and LISTEN without
  -a. The kernel reports SMC-R for sockets that are not connected: --mode leaves
  them out; -R does not, as in smc-tools. IPv4 addresses also match their
  IPv4-mapped form. Put an IPv6 address before a port in brackets.

Summary
  -s counts all sockets, as with -a; -l, -D, -R and the filters narrow it.

Watching
  --watch clears a terminal before each listing; otherwise an empty line
  separates listings. With --json each listing is one line, and has the time.

JSON
  { "schema": 2, "time": RFC 3339 time, "sockets": [ {
      "state", "transport", "uid", "inode", "cookie",
      "local": {"address", "tcp_port"}, "peer": {"address", "tcp_port"},
      "ifindex", "netdev", "shutdown": {"receive", "send"},
      "fallback": {"reason": REASON, "peer_reason": REASON},
      "connection": {...},    with -d: buffers in bytes, cursors, flags
      "link": {...},          with -R or -d
      "dmb": {...},           with -D or -d
      "info": {"age_seconds", "bytes_sent", "bytes_acked", "bytes_received",
               "bytes_read", "bytes_sent_per_second", ...,
               "tcp": {...}},   with -i
      "processes": [{"pid", "process", "fd"}]    with -p
    } ], "interrupted": true }
  REASON: {"code", "name", and with --explain "text", "remedy"}
  With -s: { "schema": 2, "time", "socket_count",
      "states": [{"state", "socket_count"}],
      "transports": [{"transport", "socket_count"}],
      "fallbacks": [{"reason": REASON, "peer_reason": REASON, "socket_count"}] }

  Fields that a socket does not have are left out: the peer before connect, the
  transport before there is one. "time" is present with --watch.
  "interrupted" means that the list changed while it was read, so some
  sockets may be missing or listed twice. Tokens and 64-bit numbers are text,
  in hex. If the list breaks off, the document stays incomplete, so that no
  program can parse it.

Exit status
  0  success, also if the list was empty or interrupted
  1  failed, for instance because SMC is not available
  2  the command line is wrong

Fallback reasons
`

// longHelp is the manual. The reasons come from the table that --explain uses.
func longHelp() string {
	var b strings.Builder
	fmt.Fprintf(&b, helpHead, baseColumns.help(), debugColumns.help(), linkColumns.help(), dmbColumns.help())
	for _, r := range netlinksmc.Reasons() {
		fmt.Fprintf(&b, "  %s  %-12s  %s\n", r, r.Name(), r.Text())
	}
	b.WriteString("  Other systems than Linux have their own numbers.")
	return b.String()
}
