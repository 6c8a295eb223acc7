// SPDX-License-Identifier: Apache-2.0

package smcchk

const long = `smc_chk checks whether this host can use SMC. If it cannot, smc_chk prints why, and
what to do. It checks the module, sockets, devices, ports, GIDs, PNET and
enterprise IDs, settings and packet filters. With -C it checks the path to a peer
and makes a connection. It prints the transport of the connection, the SMC version
and the speed. If the connection was TCP, it prints the reason and what to do.

A finding is an error if it makes SMC impossible; otherwise it is a warning or
information. The line below it has the remedy. --conditions lists all findings
and remedies. A line that begins with "unknown" names a fact that smc_chk could
not read.

For measurements, run 'smc_chk --server' on the peer. To see only the transport,
connect to any service that listens. On a host without AF_SMC the server listens
on TCP, and reports this to its clients.

Any user may run smc_chk. Only root can read packet filters and IPsec policies.
The kernel loads the module if it can, as for any program that uses AF_SMC.

JSON
  {"schema": 2, "able", "kernel_release", "module", "transports", "path", "live",
  "findings", "unknown_facts"}

EXIT STATUS
  0  SMC is possible, or was used
  1  SMC is not possible, or was not used, or the command failed
  2  the command line is wrong`

const example = `  # can this host use SMC?
  smc_chk

  # is a connection to hostb SMC? On hostb, and then here:
  smc_chk --server
  smc_chk --connect hostb

  # is a connection to its web server SMC?
  smc_chk --connect hostb:80

  # can a connection to hostb be SMC? This makes no connection
  smc_chk --connect hostb --static-analysis

  # the PNET ID of an interface
  smc_chk --pnetid eth0

  # the errors, for a program
  smc_chk --json | jq -r '.findings[] | select(.severity == "error") | .condition'`
