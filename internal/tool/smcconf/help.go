// SPDX-License-Identifier: Apache-2.0

package smcconf

const rootLong = `smc_conf keeps the configuration of AF_SMC, which the kernel forgets at a reboot,
in files, and makes the kernel what they say. The service smc does that when the
system starts, and when a device comes that is named in pnet.conf.

The files are in DIR, /etc/smc if it is left out. In all of them a '#' at the
start of a word begins a comment, and blank lines are ignored. What a missing
file could say is left alone.

  pnet.conf  the PNET table, in the words of smc_pnet, an entry a line:
             add PNETID {eth NAME | ib NAME [PORT]}
  eid.conf   up to four user EIDs, one a line, and 'seid enable' or 'seid
             disable' for the system EID of IBM Z
  smc.conf   settings, 'NAME = VALUE': those of net.smc.* (without that), where
             switches are on or off and loopback is off, namespace or on, and
             handshake_limit, which is on or off

The files belong to one network namespace: -N uses those in DIR for another one,
which for most purposes should not be /etc/smc. RDMA devices, ISM devices and
EIDs belong to the host.

Exit status:
  0  done, also if there was nothing to do
  1  the command failed; nothing was changed, unless the message says otherwise
  2  the command line makes no sense`

const rootExample = `  # Keep what was set up by hand
  smc_conf save

  # After the files were edited
  smc_conf apply --check
  smc_conf apply`

const applyLong = `Make the kernel what the files say, and print a line for each change; nothing if
there is nothing to change. If there is a mistake in one of the files, the
message has the file and the line, and nothing is changed.

pnet.conf and eid.conf say what there shall be: other entries and user EIDs are
deleted. If a file has none at all, as after the installation, those that there
are stay: 'smc_pnet flush' and 'smcr ueid flush' delete them. A setting that is
not in smc.conf stays as it is.

These are left out, with a warning on standard error: an entry for a device that
does not exist, unless it is in the table already; a setting that the kernel's
SMC module does not have; 'seid enable' on a host without a system EID. The next
apply after a device has come adds its entry: the service smc sees to that.

If the kernel refuses a change, those before it are undone, or else the message
says what is different now. Several smc_conf wait for one another.

Settings are for new connections and link groups. Existing connections are not
affected; new ones may use TCP while entries of their PNET ID change.

--check only predicts what would be changed; it does not find out whether the
kernel would refuse it.

--json prints {"schema": 1, "changed": true or false, "check": true or false,
"changes": [...], "warnings": [...]}. A change is {"file": "pnet.conf",
"action": "add" or "delete" or "set", "name": "LAB0 eth eth0"}; with "set" it
also has "before" and "after". With --diff there is also {"diff": {"before":
"...", "after": "..."}}, the lines that go and those that come.`

const applyExample = `  # What would change?
  smc_conf apply --check --diff

  # Change it
  smc_conf apply

  # The files of another network namespace
  smc_conf -N blue apply /etc/netns/blue/smc`

const checkLong = `Read the files and report the first mistake, with file and line. The kernel is
not asked, so this works on another machine, too.

--json prints {"schema": 1, "table": ["LAB0 eth eth0", ...], "ueids": [...],
"seid": "enable" or "disable" (if there is such a line), "settings": {"rmem":
"131072", ...}}.`

const checkExample = `  smc_conf check
  smc_conf check roles/smc/files`

const saveLong = `Change the files so that they say what the kernel has: the PNET table without
the PNET IDs that devices have from their hardware, the user EIDs, and settings
that are not the default.

Files that say so already are not touched. In the others comments, and the order
of what stays, are kept; lines for what the kernel does not have are removed,
others corrected, and what is missing is added at the end. Lines that 'smc_conf
apply' leaves out stay. Each file is replaced at once and keeps its mode and
owner.

A line is printed for each file that was written. If there is a mistake in one
of the files, nothing is written.

--json prints {"schema": 1, "changed": true or false, "check": true or false,
"files": [...]}, with the paths of those that were written.`

const saveExample = `  # What would be written?
  smc_conf save --check

  # Keep the present configuration over a reboot
  smc_conf save
  systemctl enable smc`
