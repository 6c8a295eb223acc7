// SPDX-License-Identifier: Apache-2.0

package smcchk

const long = `smc_chk says whether this host can speak SMC, and if not, why and what to do. It
looks at the module, sockets, devices, ports, GIDs, PNET and enterprise IDs,
settings and packet filters. With -C it does so for the way to a peer, and makes
a connection: what carried it, with which version, how fast; if it was TCP, for
which reason, and what to do about that.

What was found is an error, if what was asked for does not work, or else a
warning or information, each with a remedy in the line below. --conditions lists
all. What could not be found out is said.

A peer needs 'smc_chk --server' for the measurements. Anything that listens will
do to see what carries a connection to it. A server without AF_SMC listens on
TCP, and says so to its clients.

Everybody may run it. Packet filters and IPsec policies are shown to root only.
The kernel loads the module, if it can, as for any program that wants AF_SMC.

JSON
  {"schema": 1, "able", "kernel", "module", "transports", "path", "live",
  "findings", "unknown"}

EXIT STATUS
  0  yes: SMC is possible, or was used
  1  no, or the command failed
  2  the command line makes no sense`

const example = `  # can this host speak SMC?
  smc_chk

  # is a connection to hostb SMC? On hostb, and then here:
  smc_chk --server
  smc_chk --connect hostb

  # is one to its web server?
  smc_chk --connect hostb:80

  # would it be, without trying it
  smc_chk --connect hostb --static-analysis

  # the PNET ID of an interface
  smc_chk --pnetid eth0

  # what is wrong, for a program
  smc_chk --json | jq -r '.findings[] | select(.severity == "error") | .id'`
