// SPDX-License-Identifier: Apache-2.0

package smcchk

const long = `smc_chk checks whether this host can use SMC, and if not, says why and what to do.
It checks the module, sockets, devices, ports, GIDs, PNET and enterprise IDs,
settings and packet filters. With -C it checks the path to a peer and makes a
connection. It prints what carried the connection, the SMC version and the
speed. If the connection was TCP, it prints the reason and what to do.

A finding is an error if it is why the answer is no, otherwise a warning or
information. Each has a remedy in the line below. --conditions lists all.
smc_chk also says what it could not find out.

For the measurements, run 'smc_chk --server' on the peer. To see only what
carries a connection, any service that listens will do. On a host without
AF_SMC the server listens on TCP, and tells its clients so.

Everybody may run smc_chk; only root sees packet filters and IPsec policies.
The kernel loads the module if it can, as for any program that uses AF_SMC.

JSON
  {"schema": 1, "able", "kernel", "module", "transports", "path", "live",
  "findings", "unknown"}

EXIT STATUS
  0  yes: SMC is possible, or was used
  1  no, or the command failed
  2  the command line is wrong`

const example = `  # can this host use SMC?
  smc_chk

  # is a connection to hostb SMC? On hostb, and then here:
  smc_chk --server
  smc_chk --connect hostb

  # is a connection to its web server SMC?
  smc_chk --connect hostb:80

  # would it be, without making a connection
  smc_chk --connect hostb --static-analysis

  # the PNET ID of an interface
  smc_chk --pnetid eth0

  # the errors, for a program
  smc_chk --json | jq -r '.findings[] | select(.severity == "error") | .id'`
