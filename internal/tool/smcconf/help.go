// SPDX-License-Identifier: Apache-2.0

package smcconf

const rootLong = `smc_conf keeps the configuration of AF_SMC in files, because the kernel loses it
at a reboot, and applies the files to the kernel. The service smc applies them
when the system starts, and when a device appears that pnet.conf names.

The files are in DIR, by default /etc/smc. In all of them a '#' at the start of
a word begins a comment, and blank lines are ignored. If a file is missing, its
part of the configuration is not changed.

  pnet.conf  the PNET table, an entry on each line, as for smc_pnet:
             add PNETID {eth NAME | ib NAME [PORT]}
  eid.conf   up to four user EIDs, one on each line, and 'seid enable' or 'seid
             disable' for the system EID of IBM Z
  smc.conf   settings, 'NAME = VALUE': those of net.smc.* without that prefix,
             where switches are on or off and loopback is off, namespace or on,
             and handshake_limit, which is on or off
  policy.conf
             rules of the policy in their order, one on each line, as the words
             of 'smc_policy add'

The files belong to one network namespace. -N applies those in DIR to another
one; for that, DIR should usually not be /etc/smc. RDMA devices, ISM devices and
EIDs belong to the host.

Exit status:
  0  done, also if there was nothing to do
  1  the command failed; nothing was changed, unless the message says otherwise
  2  the command line is wrong`

const rootExample = `  # Keep the configuration that you set up by hand
  smc_conf save

  # After editing the files
  smc_conf apply --check
  smc_conf apply`

const applyLong = `Apply the files to the kernel, and print a line for each change. If a file has a
mistake, smc_conf prints the file and the line, and changes nothing.

pnet.conf, eid.conf and policy.conf are complete: smc_conf deletes entries, user
EIDs and rules that are not in them. Exception: if a file has no entry at all,
as after the installation, the kernel's entries stay; 'smc_pnet flush', 'smcr
ueid flush' and 'smc_policy flush' delete them. A setting that is not in smc.conf is not changed.

smc_conf leaves these out, with a warning on standard error: an entry for a
device that does not exist, unless it is in the table already; a setting that
the kernel's SMC module does not have; 'seid enable' on a host without a system
EID; rules, if the module is not smckit's. When a device appears, the service
smc applies its entry.

If the kernel refuses a change, smc_conf undoes those before it. If that fails
too, the message says what is different now. Only one smc_conf runs at a time;
others wait.

Settings count for new connections and link groups. Existing connections are not
affected; new ones may use TCP while entries of their PNET ID change.

--check only predicts the changes; it does not find out whether the kernel would
refuse them.

--json prints {"schema": 2, "changed": true or false, "check": true or false,
"changes": [...], "warnings": [...]}. A change is {"file": "pnet.conf",
"action": "add" or "delete" or "set", "item": "LAB0 eth eth0"}; with "set" it
also has "old_value" and "new_value". With --diff there is also {"diff": {"before":
"...", "after": "..."}}, the lines that are removed and those that are added.`

const applyExample = `  # What would change?
  smc_conf apply --check --diff

  # Change it
  smc_conf apply

  # The files of another network namespace
  smc_conf -N blue apply /etc/netns/blue/smc`

const checkLong = `Read the files and report the first mistake, with file and line. This does not
ask the kernel, so it works on other machines too.

--json prints {"schema": 2, "entry_lines": ["LAB0 eth eth0", ...], "ueids":
[...], "seid_setting": "enable" or "disable" (if there is such a line),
"settings": {"rmem": "131072", ...}, "rule_lines": ["smc port 6379", ...]}.`

const checkExample = `  smc_conf check
  smc_conf check roles/smc/files`

const saveLong = `Change the files to match the kernel: the PNET table without the PNET IDs that
devices have from their hardware, the user EIDs, settings that differ from
their default, and the rules of the policy.

smc_conf does not touch files that already match. In the others it keeps
comments and the order of lines, removes lines that have no counterpart in
the kernel, corrects others, and adds missing ones at the end. Lines that 'smc_conf
apply' leaves out stay. It replaces each file in one step, and keeps mode and
owner.

smc_conf prints a line for each file that it writes. If a file has a mistake, it
writes nothing.

--json prints {"schema": 2, "changed": true or false, "check": true or false,
"files": [...]}, with the paths of the files that were written.`

const saveExample = `  # What would be written?
  smc_conf save --check

  # Keep the present configuration over a reboot
  smc_conf save
  systemctl enable smc`
