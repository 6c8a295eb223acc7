#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r'''
---
module: smc_pnet
short_description: Entries of the PNET table of AF_SMC
version_added: 0.1.0
description:
  - Adds entries to the PNET table, removes them, or replaces the table by a list.
  - The table tells AF_SMC which devices are on the same physical network. A connection can use SMC-R if the interface that it
    leaves by and a RoCE port have the same PNET ID, and SMC-D if the interface and an ISM device have the same one.
  - The module makes all changes or none.
  - The kernel keeps the table in memory, until the next boot. The role smckit.smc.smc keeps it in C(/etc/smc/pnet.conf).
options:
  pnet_id:
    description:
      - The PNET ID, 1 to 16 letters and digits. The kernel keeps it in upper case.
      - Without I(type) and I(device), I(state=absent) removes all entries of the PNET ID. Other states need both.
    type: str
  type:
    description:
      - The kind of device, C(eth) for a network interface, C(ib) for a port of an RDMA device or for an ISM device.
    type: str
    choices: [eth, ib]
  device:
    description:
      - The name of the network interface or RDMA device, or the PCI address of an RDMA or ISM device.
    type: str
  port:
    description:
      - The port of an RDMA device. The default is 1, and with I(state=absent) whichever is in the table.
    type: int
    choices: [1, 2]
  entries:
    description:
      - Several entries.
      - The empty list is useful only with I(state=exact), where it empties the table.
    type: list
    elements: dict
    suboptions:
      pnet_id:
        description: As I(pnet_id).
        type: str
        required: true
      type:
        description: As I(type).
        type: str
        choices: [eth, ib]
      device:
        description: As I(device).
        type: str
      port:
        description: As I(port).
        type: int
        choices: [1, 2]
  table:
    description:
      - The whole table as text, in the format of a table file, one C(add PNETID {eth NAME | ib NAME [PORT]}) a line. For
        I(state=exact).
    type: str
  state:
    description:
      - With C(present) the table has these entries, and keeps others.
      - With C(absent) the table does not have these entries.
      - With C(exact) the table has these entries and no others.
    type: str
    choices: [present, absent, exact]
    default: present
  force:
    description:
      - Accept devices that do not exist. Their entries take effect when they appear.
    type: bool
    default: false
  netns:
    description:
      - The name of the network namespace to work in, as in C(ip -n). Only the table of the initial one can have RDMA and ISM
        devices.
    type: str
attributes:
  check_mode:
    description: Predicts the changes. It does not find out whether the kernel would refuse them.
    support: full
  diff_mode:
    description: Shows the whole table before and after.
    support: full
requirements:
  - the package smckit on the host
  - root, for changes
author:
  - The smckit authors (@smckit)
seealso:
  - module: smckit.smc.smc_ueid
  - module: smckit.smc.smc_facts
'''

EXAMPLES = r'''
- name: Put this interface and this RoCE port on one physical network
  smckit.smc.smc_pnet:
    entries:
      - {pnet_id: FABRICA, type: eth, device: ens1f0np0}
      - {pnet_id: FABRICA, type: ib, device: mlx5_0, port: 2}

- name: Remove one interface
  smckit.smc.smc_pnet:
    pnet_id: FABRICA
    type: eth
    device: ens1f0np0
    state: absent

- name: Remove all entries of a PNET ID
  smckit.smc.smc_pnet:
    pnet_id: FABRICA
    state: absent

- name: Replace the table by a file on the control machine
  smckit.smc.smc_pnet:
    table: "{{ lookup('ansible.builtin.file', 'pnet.conf') }}"
    state: exact

- name: Empty the table
  smckit.smc.smc_pnet:
    entries: []
    state: exact
'''

RETURN = r'''
added:
  description: The entries that the module added, or would add.
  type: list
  elements: dict
  returned: success
  sample:
    - {pnet_id: FABRICA, type: ib, device: mlx5_0, port: 2}
removed:
  description: The entries that the module removed, or would remove.
  type: list
  elements: dict
  returned: success
  sample: []
rc:
  description: The exit status of the command that failed.
  type: int
  returned: failure of a command
stderr:
  description: What it said.
  type: str
  returned: failure of a command
'''

import re

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.smckit.smc.plugins.module_utils import smckit

TOOL = 'smc_pnet'
NAME = re.compile(r'[^\s#-]\S*\Z')


def words(entry):
    """Returns an entry in the words of the command."""
    return [str(entry[key]) for key in ('pnet_id', 'type', 'device', 'port') if entry[key] is not None]


def problem(entry, state):
    """Says what is wrong with an entry, before any command is run."""
    if (entry['type'] is None) != (entry['device'] is None):
        return 'type and device belong together'
    if entry['port'] is not None and entry['type'] != 'ib':
        return 'only an entry of type ib has a port'
    if entry['device'] is None and state != 'absent':
        return 'type and device are missing'
    # These would be taken for options, comments or several words.
    for key in ('pnet_id', 'device'):
        if entry[key] is not None and not NAME.match(entry[key]):
            return '%s cannot be "%s"' % (key, entry[key])
    return None


def check_entries(module, entries, state):
    """Ends the module if the entries make no sense, or contradict each other."""
    seen = set()
    for entry in entries:
        wrong = problem(entry, state)
        if wrong:
            module.fail_json(msg='entry "%s": %s' % (' '.join(words(entry)), wrong))
        if state == 'absent':
            continue
        device = (entry['type'], entry['device'])
        if device in seen:
            module.fail_json(msg='%s %s is given twice: a device can be in one entry only' % device)
        seen.add(device)


def options(module, check, devices):
    """Returns the options of a command that changes the table; devices is true if it may add some."""
    argv = ['--diff']
    if check:
        argv.append('--check')
    if devices and module.params['force']:
        argv.append('--force')
    return argv + smckit.netns(module)


def command(module, entry, state, check):
    """Returns the arguments that have the command carry out the wish for one entry."""
    if state == 'present':
        return ['add'] + words(entry) + options(module, check, True)
    return ['del'] + words(entry) + ['--ignore-missing'] + options(module, check, False)


class Changes(object):
    """What several commands have changed together, or would change if each were the first."""

    def __init__(self):
        self.added, self.removed = [], []
        self.before, self.after = None, None

    def add(self, document):
        self.added += [e for e in document['entries_added'] if e not in self.added]
        self.removed += [e for e in document['entries_removed'] if e not in self.removed]
        before, after = (document['diff'][k].splitlines() for k in ('before', 'after'))
        if self.before is None:
            self.before, self.after = before, list(before)
        gone = [line for line in before if line not in after]
        self.after = [line for line in self.after if line not in gone]
        self.after += [line for line in after if line not in before and line not in self.after]

    def any(self):
        return bool(self.added or self.removed)

    def result(self, module):
        result = dict(changed=self.any(), added=self.added, removed=self.removed)
        if module._diff:
            result['diff'] = dict(
                before=text(self.before or []), after=text(self.after or []), before_header='PNET table', after_header='PNET table')
        return result


def text(lines):
    return ''.join(line + '\n' for line in lines)


def change_each(module, entries, state):
    """Adds or removes entries one by one: all of them or, as far as that can be, none."""
    predicted = Changes()
    # Find errors before anything is changed. One command by itself sees to that.
    if module.check_mode or len(entries) > 1:
        for entry in entries:
            document, remarks = smckit.call(module, TOOL, command(module, entry, state, True))
            predicted.add(document)
        if module.check_mode or not predicted.any():
            return predicted

    made = Changes()
    for entry in entries:
        rc, out, err = smckit.run(module, TOOL, command(module, entry, state, False))
        if rc != 0:
            undo(module, made, rc, err)
        smckit.warn(module, err.splitlines())
        made.add(smckit.parse(module, TOOL, out, err))
    return made


def undo(module, made, rc, err):
    """Ends the module after a failure between changes, with what it has changed undone: others may have changed the table, too."""
    msg = smckit.reason(TOOL, rc, err)
    # A device can be in one entry only, so the new one goes before the old one comes back. What has vanished meanwhile was in the
    # table, and is to be in it again.
    steps = [['del'] + words(entry) + ['--ignore-missing'] for entry in map(whole, made.added)]
    steps += [['add'] + words(entry) + ['--force'] for entry in map(whole, made.removed)]
    failures = []
    for step in steps:
        back, dummy, why = smckit.run(module, TOOL, step + smckit.netns(module))
        if back != 0:
            failures.append(smckit.reason(TOOL, back, why))
    if failures:
        module.fail_json(
            msg='%s; and not all changes could be undone: %s' % (msg, '; '.join(failures)), rc=rc, stderr=err, changed=True)
    module.fail_json(msg=msg, rc=rc, stderr=err)


def whole(entry):
    """Returns an entry that the command has printed, with the keys that it may lack."""
    return dict(dict.fromkeys(('pnet_id', 'type', 'device', 'port')), **entry)


def make_exact(module, table):
    """Makes the table what a text says, which the command does as a whole."""
    made = Changes()
    document, remarks = smckit.call(module, TOOL, ['apply', '-'] + options(module, module.check_mode, True), table)
    smckit.warn(module, remarks)
    made.add(document)
    return made


def wanted(module):
    """Returns the entries that the parameters name, None if they give a text instead."""
    p = module.params
    if p['table'] is not None:
        if p['state'] != 'exact':
            module.fail_json(msg='table is for state=exact')
        return None
    if p['entries'] is not None:
        entries = p['entries']
    else:
        entries = [dict((key, p[key]) for key in ('pnet_id', 'type', 'device', 'port'))]
    check_entries(module, entries, p['state'])
    return entries


def build_module():
    entry = dict(
        type=dict(type='str', choices=['eth', 'ib']),
        device=dict(type='str'),
        port=dict(type='int', choices=[1, 2]),
    )
    return AnsibleModule(
        argument_spec=dict(
            pnet_id=dict(type='str'),
            entries=dict(type='list', elements='dict', options=dict(entry, pnet_id=dict(type='str', required=True))),
            table=dict(type='str'),
            state=dict(type='str', choices=['present', 'absent', 'exact'], default='present'),
            force=dict(type='bool', default=False),
            netns=dict(type='str'),
            **entry
        ),
        mutually_exclusive=[('pnet_id', 'entries', 'table')],
        required_one_of=[('pnet_id', 'entries', 'table')],
        required_by=dict(type='pnet_id', device='pnet_id', port='device'),
        supports_check_mode=True,
    )


def main():
    module = build_module()
    state = module.params['state']
    entries = wanted(module)
    if state != 'exact':
        changes = change_each(module, entries, state)
    elif entries is None:
        changes = make_exact(module, module.params['table'])
    else:
        changes = make_exact(module, text('add ' + ' '.join(words(e)) for e in entries))
    module.exit_json(**changes.result(module))


if __name__ == '__main__':
    main()
