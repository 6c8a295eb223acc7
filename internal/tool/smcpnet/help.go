// SPDX-License-Identifier: Apache-2.0

package smcpnet

const rootLong = `smc_pnet shows and changes the PNET table, which tells AF_SMC which devices are
on the same physical network.

An entry attaches a network interface (eth), or a port of an RDMA device (ib),
to a PNET ID. A connection can use SMC-R if the interface that it leaves by and
a RoCE port have the same PNET ID, and SMC-D if the interface and an ISM device
have the same one. An ISM device is an entry of the kind ib, by its PCI address.
An interface without a PNET ID uses the RDMA device that belongs to it, if there
is one.

A PNET ID has 1 to 16 letters and digits. The kernel keeps it in upper case;
smc_pnet accepts both cases. A device can be in one entry only, an RDMA device
with one port only. A device that has a PNET ID from its hardware, as on IBM Z,
cannot get another one here: see smc_rnics.

Any user may read the table; root (CAP_NET_ADMIN in the initial user namespace)
may change it. Each network namespace has its own table; only that of the
initial namespace can have RDMA and ISM devices. The kernel keeps the table in
memory: after a reboot, or after a reload of the module smc, it is empty.
'smc_pnet export' and 'smc_pnet apply' save and restore it; at boot, smc_conf
and the service smc restore /etc/smc/pnet.conf.

Without a command smc_pnet shows the table. The options -a, -d, -s and -f are
those of smc-tools; the PNET ID is the operand, in any position. They print
nothing if they succeed, and accept devices that do not exist yet, with a
warning.

Exit status:
  0  done, also if there was nothing to do or to show
  1  the command failed; the table is unchanged, unless the message says
     otherwise
  2  the command line is wrong

Files:
  /etc/smc/pnet.conf  the table that smc.service applies at boot; 'smc_pnet
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
address of an RDMA or ISM device. PORT is 1 or 2, by default 1. smc_pnet refuses
a device that does not exist; with --force it adds the entry, which takes effect
when the device appears.

If the entry exists already, nothing changes, and the exit status is 0. It is an
error if the device is in another entry.

--json prints {"schema": 2, "changed": true or false, "check": true or false,
"entries_added": [...], "entries_removed": [...]}, where an entry is {"pnet_id": "PNET0",
"type": "eth" or "ib", "device": "eth4", "port": 1 or 2 (ib only)}. With --diff
there is also {"diff": {"before": "...", "after": "..."}}, the whole table as a
table file.`

const addExample = `  # A network interface
  smc_pnet add pnet0 eth eth4

  # Port 2 of an RDMA device, and an ISM device by its PCI address
  smc_pnet add pnet0 ib mlx4_0 2
  smc_pnet add pnet0 ib 0000:00:1f.0

  # Only find out whether something would change
  smc_pnet add pnet0 eth eth4 --check --json`

const delLong = `Delete all entries of a PNET ID, or one of them. It is an error if there is
nothing to delete, unless you give --ignore-missing. Use that in programs that
only need the result.

The kernel can only delete a PNET ID as a whole. To detach one device of
several, smc_pnet deletes the PNET ID and adds the others again, in their order.
New connections may use TCP in between. If that fails, smc_pnet restores the
table.

--json prints the same document as 'smc_pnet add'.`

const delExample = `  # The whole PNET ID
  smc_pnet del pnet0

  # One device, whatever its port
  smc_pnet del pnet0 eth eth4
  smc_pnet del pnet0 ib mlx4_0

  # Make sure that it is gone, and find out whether it was there
  smc_pnet del pnet0 eth eth4 --ignore-missing --json`

const showLong = `Show the table in the order in which entries were added. A line has four
fields: the PNET ID, the network interface, the RDMA or ISM device, and its
port. A missing field is n/a, or 255 for the port. An empty table is no error.

--json prints {"schema": 2, "entries": [...]}, where an entry is {"pnet_id":
"PNET0", "type": "eth" or "ib", "device": "eth4", "port": 1 or 2 (ib only)}.
Bytes of names that are not valid UTF-8, and control characters, are \xNN.`

const showExample = `  smc_pnet show
  smc_pnet show pnet0 --json`

const flushLong = `Delete all entries. PNET IDs that come from hardware stay.

--json prints the same document as 'smc_pnet add'.`

const applyLong = `Replace the table by FILE, or by standard input if FILE is '-'. smc_pnet removes
entries that are not in the file. It does not touch entries that are in both,
unless the kernel has to delete their PNET ID to remove another entry of it.

The file has one entry on each line, as for 'smc_pnet add' (add PNETID {eth NAME
| ib NAME [PORT]}). A '#' at the start of a word begins a comment; blank lines
are ignored: see smc_pnet.conf(5). If the file has a mistake, smc_pnet prints
the file, the line and the column, and changes nothing.

smc_pnet makes all changes or none: if one fails, it restores the table.
Existing connections are not affected; new ones may use TCP while the table
changes.

smc_pnet refuses new entries for devices that do not exist; with --force it adds
them, and they take effect when the device appears. At boot the service smc
applies /etc/smc/pnet.conf, see 'smc_conf apply'.

--check only predicts the changes, with the same output; it does not find out
whether the kernel would refuse them. --json prints the same document as
'smc_pnet add'.`

const applyExample = `  # What would change?
  smc_pnet apply --check --diff /etc/smc/pnet.conf

  # Change it
  smc_pnet apply /etc/smc/pnet.conf

  # An example of a file
  #   # fabric A
  #   add fabricA eth eth4
  #   add fabricA ib mlx4_0 2`

const exportLong = `Print the table as a file for 'smc_pnet apply', without PNET IDs that come from
hardware.

--json prints the same document as 'smc_pnet show'.`

const exportExample = `  smc_pnet export > /etc/smc/pnet.conf`
