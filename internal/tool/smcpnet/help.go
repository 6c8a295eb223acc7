// SPDX-License-Identifier: Apache-2.0

package smcpnet

const rootLong = `smc_pnet shows and changes the PNET table, which tells AF_SMC which devices are
on the same physical network.

An entry attaches a network interface (eth), or a port of an RDMA device (ib),
to a PNET ID. SMC-R is used for a connection if the interface it leaves by and
a RoCE port have the same PNET ID; SMC-D likewise with an ISM device, which is
an entry of the kind ib, by its PCI address. An interface without a PNET ID
uses the RDMA device that belongs to it, if there is one.

A PNET ID has 1 to 16 letters and digits. The kernel keeps it in upper case,
and smc_pnet takes it in any. A device can be in one entry only, an RDMA device
with one port only. A device that has a PNET ID from its hardware, as on IBM Z,
cannot get another one here: see smc_rnics.

The table is read by anybody and changed by root (CAP_NET_ADMIN in the initial
user namespace). Each network namespace has its own; RDMA and ISM devices can
only be in that of the initial namespace. It is kept in memory: after a reboot,
or after the module smc was loaded anew, it is empty. 'smc_pnet export' and
'smc_pnet apply' save and restore it; smc_conf and the service smc do that at
boot time, for /etc/smc/pnet.conf.

Without a command the table is shown. The options -a, -d, -s and -f are those
of smc-tools and do what they do there; the PNET ID is the operand, wherever it
stands. They print nothing if they succeed, and they accept devices that do not
exist yet, with a warning.

Exit status:
  0  done, also if there was nothing to do or to show
  1  the command failed; the table is what it was before, unless the message
     says otherwise
  2  the command line makes no sense

Files:
  /etc/smc/pnet.conf  the table that smc.service makes at boot; 'smc_pnet
                      export' writes such files, smc_pnet.conf(5) describes them`

const rootExample = `  # Connect through eth4 by RoCE over port 2 of mlx4_0
  smc_pnet add pnet0 eth eth4
  smc_pnet add pnet0 ib mlx4_0 2

  # The same with the options of smc-tools
  smc_pnet -a pnet0 -I eth4 -D mlx4_0 -P 2

  # Show everything, and one PNET ID
  smc_pnet
  smc_pnet show pnet0

  # Keep the table over a reboot
  smc_pnet export > /etc/smc/pnet.conf
  systemctl enable smc`

const addLong = `Attach a network interface (eth) or a port of an RDMA or ISM device (ib) to a
PNET ID.

NAME is the name of an interface, or the name of an RDMA device or the PCI
address of an RDMA or ISM device. PORT is 1 or 2 and 1 if left out. A device
that does not exist is refused; with --force it is added, and the entry takes
effect when the device appears.

If the entry is there already, nothing is changed, and the exit status is 0. It
is an error if the device is in another entry.

--json prints {"schema": 1, "changed": true or false, "check": true or false,
"added": [...], "removed": [...]}, where an entry is {"pnet_id": "PNET0",
"type": "eth" or "ib", "device": "eth4", "port": 1 or 2 (ib only)}. With --diff
there is also {"diff": {"before": "...", "after": "..."}}, the whole table as a
table file.`

const addExample = `  # A network interface
  smc_pnet add pnet0 eth eth4

  # Port 2 of an RDMA device, and an ISM device by its PCI address
  smc_pnet add pnet0 ib mlx4_0 2
  smc_pnet add pnet0 ib 0000:00:1f.0

  # Only say whether something would change
  smc_pnet add pnet0 eth eth4 --check --json`

const delLong = `Delete all entries of a PNET ID, or one of them. It is an error if there is
nothing to delete, unless --ignore-missing is given, as it should be by programs
that only care for the result.

The kernel deletes PNET IDs as a whole only. To detach one device of several,
smc_pnet deletes the PNET ID and adds the others again, in their order; new
connections may use TCP in between. If that fails, the table is made what it
was.

--json prints the same document as 'smc_pnet add'.`

const delExample = `  # The whole PNET ID
  smc_pnet del pnet0

  # One device, whatever its port
  smc_pnet del pnet0 eth eth4
  smc_pnet del pnet0 ib mlx4_0

  # Make sure that it is gone, and say whether it was there
  smc_pnet del pnet0 eth eth4 --ignore-missing --json`

const showLong = `Show the table in the order in which entries were added. A line has four
fields: the PNET ID, the network interface, the RDMA or ISM device, and its
port. What an entry does not have is n/a, or 255 for the port. It is no error
if there is nothing to show.

--json prints {"schema": 1, "entries": [...]}, where an entry is {"pnet_id":
"PNET0", "type": "eth" or "ib", "device": "eth4", "port": 1 or 2 (ib only)}.
Bytes of names that are not valid UTF-8, and control characters, are \xNN.`

const showExample = `  smc_pnet show
  smc_pnet show pnet0 --json`

const flushLong = `Delete all entries. PNET IDs that devices have from their hardware stay.

--json prints the same document as 'smc_pnet add'.`

const applyLong = `Make the table what FILE says, or standard input if FILE is '-'. Entries that
are not in the file are removed; those that are in both are not touched, unless
the kernel has to delete their PNET ID to remove another entry of it.

The file has one entry per line, in the words of 'smc_pnet add' (add PNETID
{eth NAME | ib NAME [PORT]}). A '#' at the start of a word begins a comment;
blank lines are ignored: see smc_pnet.conf(5). If there is a mistake in it, the
message has the file, the line and the column, and nothing is changed.

All changes are made, or none: if one fails, the table is made what it was.
Existing connections are not affected; new ones may use TCP in the moments
between.

New entries for devices that do not exist are refused; with --force they are
added, and take effect when the device appears. At boot time the service smc
applies /etc/smc/pnet.conf, see 'smc_conf apply'.

--check only predicts what would be changed, with the same output; it does not
find out whether the kernel would refuse it. --json prints the same document as
'smc_pnet add'.`

const applyExample = `  # What would change?
  smc_pnet apply --check --diff /etc/smc/pnet.conf

  # Change it
  smc_pnet apply /etc/smc/pnet.conf

  # A file as it may look
  #   # fabric A
  #   add fabricA eth eth4
  #   add fabricA ib mlx4_0 2`

const exportLong = `Print the table as a file for 'smc_pnet apply'. PNET IDs that devices have from
their hardware are not part of it.

--json prints the same document as 'smc_pnet show'.`

const exportExample = `  smc_pnet export > /etc/smc/pnet.conf`
