#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r'''
---
module: smc_ueid
short_description: Enterprise IDs (EIDs) of AF_SMC
version_added: 0.1.0
description:
  - Adds user EIDs to those of the host, removes them, or replaces them by a list. Enables or disables the system EID.
  - Two hosts that have an EID in common can use SMC version 2 with each other. The kernel keeps up to four user EIDs, for all
    network namespaces.
  - The module makes all changes of user EIDs or none.
  - The kernel keeps EIDs in memory, until the next boot. The role smckit.smc.smc keeps them in C(/etc/smc/eid.conf).
options:
  eids:
    description:
      - User EIDs, each 1 to 32 characters out of A-Z, 0-9, dot and hyphen, the first a letter or digit, no two dots in a row.
      - The empty list is useful only with I(state=exact), where it removes all user EIDs.
    type: list
    elements: str
    aliases: [eid]
  state:
    description:
      - With C(present) the host has these user EIDs, and keeps others.
      - With C(absent) it does not have them.
      - With C(exact) it has these and no others.
    type: str
    choices: [present, absent, exact]
    default: present
  seid:
    description:
      - Whether to use the system EID, which hosts on IBM Z with an ISM device of version 2 have. Without this option it is not
        changed. Only a host that has a user EID can disable it.
      - On a host without a system EID, C(true) is an error and C(false) is not.
    type: bool
attributes:
  check_mode:
    description: Predicts what would be changed.
    support: full
  diff_mode:
    description: Shows the EIDs before and after.
    support: full
requirements:
  - the package smckit on the host
  - root, for changes
author:
  - The smckit authors (@smckit)
seealso:
  - module: smckit.smc.smc_pnet
  - module: smckit.smc.smc_facts
'''

EXAMPLES = r'''
- name: Let this host use SMC version 2 with all hosts that have the same EID
  smckit.smc.smc_ueid:
    eids: MYCLUSTER

- name: Use this EID and no other, not even the system EID
  smckit.smc.smc_ueid:
    eids: [MYCLUSTER]
    state: exact
    seid: false

- name: Remove an EID
  smckit.smc.smc_ueid:
    eids: OLDCLUSTER
    state: absent
'''

RETURN = r'''
eids:
  description: The user EIDs that the host has now, or would have.
  type: list
  elements: str
  returned: success
  sample: [MYCLUSTER]
added:
  description: The user EIDs that were added, or would be.
  type: list
  elements: str
  returned: success
  sample: [MYCLUSTER]
removed:
  description: The user EIDs that were removed, or would be.
  type: list
  elements: str
  returned: success
  sample: []
seid:
  description: The system EID, and whether it is used, or would be.
  type: dict
  returned: success, if the host has one
  sample: {eid: IBM-SYSZ-ISMSEID0000000012345678, enabled: false}
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

# How many user EIDs the kernel keeps.
MOST = 4
# A user EID that the kernel accepts.
VALID = re.compile(r'(?!.*\.\.)[A-Z0-9][A-Z0-9.-]{0,31}\Z')


def user_eids(module):
    return smckit.call(module, 'smcr', ['ueid', 'show'])[0]['ueids']


def system_eid(module):
    """Returns the system EID, None if the host has none."""
    return smckit.system_eid(smckit.call(module, 'smcd', ['seid', 'show'])[0])


def unique(names):
    return [name for i, name in enumerate(names) if name not in names[:i]]


def check_eids(module, eids):
    for eid in eids:
        if not VALID.match(eid):
            module.fail_json(
                msg='"%s" is no user EID: it has 1 to 32 characters out of A-Z 0-9 . -, the first a letter or digit, '
                    'no two dots in a row' % eid)


def plan(module, have, eids):
    """Returns what is to be added and removed."""
    state = module.params['state']
    add = [e for e in eids if e not in have] if state != 'absent' else []
    drop = []
    if state == 'absent':
        drop = [e for e in have if e in eids]
    elif state == 'exact':
        drop = [e for e in have if e not in eids]
    total = len(have) + len(add) - len(drop)
    if add and total > MOST:
        module.fail_json(msg='the host would have %d user EIDs, and the kernel keeps %d at most: remove some' % (total, MOST))
    return add, drop


def steps(count, add, drop):
    """Returns the changes in an order in which the host has an EID at all times, if there is one."""
    add, drop = list(add), list(drop)
    ordered = []
    while add or drop:
        if add and count < MOST:
            ordered.append(('add', add.pop(0)))
            count += 1
        else:
            ordered.append(('del', drop.pop(0)))
            count -= 1
    return ordered


def carry_out(module, ordered):
    """Makes the changes: all of them or, as far as that can be, none."""
    done = []
    for verb, eid in ordered:
        rc, out, err = smckit.run(module, 'smcr', ['ueid', verb, eid])
        if rc != 0:
            undo(module, done, rc, err)
        smckit.warn(module, err.splitlines())
        done.append((verb, eid))


def undo(module, done, rc, err):
    """Ends the module after a failure between changes, with the EIDs as they were."""
    msg = smckit.reason('smcr', rc, err)
    for verb, eid in reversed(done):
        back, dummy, why = smckit.run(module, 'smcr', ['ueid', 'del' if verb == 'add' else 'add', eid])
        if back != 0:
            module.fail_json(
                msg='%s; and the EIDs could not be restored: %s' % (msg, smckit.reason('smcr', back, why)),
                rc=rc, stderr=err, changed=True)
    module.fail_json(msg=msg, rc=rc, stderr=err)


def check_seid(module, now, eids):
    """Ends the module if the system EID cannot be what is asked for."""
    want = module.params['seid']
    if want and now is None:
        module.fail_json(msg='this host has no system EID to enable')
    if want is False and now is not None and not eids:
        module.fail_json(msg='the system EID cannot be disabled while no user EID is defined: add one')


def change_seid(module, eids, lost):
    """Enables or disables the system EID. Returns whether that was, or would be, a change, and the state after it."""
    want = module.params['seid']
    now = system_eid(module)
    if now is None:
        return False, None
    if module.check_mode and lost and not eids:
        # The kernel sees to it when the last user EID goes.
        now = dict(now, enabled=True)
    if want is None or now['enabled'] == want:
        return False, now
    if not module.check_mode:
        smckit.call(module, 'smcd', ['seid', 'enable' if want else 'disable'])
    return True, dict(now, enabled=want)


def text(eids, seid):
    lines = ['%s\n' % eid for eid in eids]
    if seid is not None:
        lines.append('%s [%s]\n' % (seid['eid'], 'enabled' if seid['enabled'] else 'disabled'))
    return ''.join(lines)


def build_module():
    return AnsibleModule(
        argument_spec=dict(
            eids=dict(type='list', elements='str', aliases=['eid']),
            state=dict(type='str', choices=['present', 'absent', 'exact'], default='present'),
            seid=dict(type='bool'),
        ),
        required_one_of=[('eids', 'seid')],
        supports_check_mode=True,
    )


def main():
    module = build_module()
    have = user_eids(module)
    seid_before = system_eid(module)
    add, drop = [], []
    if module.params['eids'] is not None:
        eids = unique(module.params['eids'])
        check_eids(module, eids)
        add, drop = plan(module, have, eids)
    after = [e for e in have if e not in drop] + add
    check_seid(module, seid_before, after)
    if not module.check_mode:
        carry_out(module, steps(len(have), add, drop))
    seid_changed, seid = change_seid(module, after, drop)
    result = dict(changed=bool(add or drop or seid_changed), eids=after, added=add, removed=drop)
    if seid is not None:
        result['seid'] = seid
    if module._diff:
        result['diff'] = dict(
            before=text(have, seid_before), after=text(after, seid), before_header='EIDs', after_header='EIDs')
    module.exit_json(**result)


if __name__ == '__main__':
    main()
