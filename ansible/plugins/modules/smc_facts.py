#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r'''
---
module: smc_facts
short_description: What a host's kernel knows about AF_SMC
version_added: 0.1.0
description:
  - Returns facts about the module, devices, the PNET table, EIDs, link groups and statistics. It changes nothing.
  - While AF_SMC is not loaded, facts that need it are left out, because a request would make the kernel load it.
  - Facts that this kernel does not report are left out with a warning.
  - M(smckit.smc.smc_info) has sockets, and returns values to the task that asks for them instead of facts.
options:
  gather_subset:
    description:
      - What to return, besides C(kernel) and C(module), which are always returned.
    type: list
    elements: str
    choices: [all, info, devices, pnet, eids, linkgroups, stats]
    default: [all]
  netns:
    description:
      - The name of the network namespace to query, as in C(ip -n).
    type: str
attributes:
  check_mode:
    description: The same, since nothing is changed.
    support: full
  diff_mode:
    description: Nothing is changed.
    support: none
  facts:
    description: Returns facts that are kept for the host.
    support: full
requirements:
  - the package smckit on the host
author:
  - The smckit authors (@smckit)
seealso:
  - module: smckit.smc.smc_info
  - module: smckit.smc.smc_pnet
  - module: smckit.smc.smc_ueid
'''

EXAMPLES = r'''
- name: Gather all facts
  smckit.smc.smc_facts:

- name: Check that every connection can use SMC-R
  ansible.builtin.assert:
    that:
      - ansible_facts.smc.module.loaded
      - ansible_facts.smc.pnet | selectattr('type', 'eq', 'ib') | list | length > 0
      - "'MYCLUSTER' in ansible_facts.smc.ueids"

- name: Show how many connections fell back to TCP
  smckit.smc.smc_facts:
    gather_subset: [stats]
'''

RETURN = r'''
ansible_facts:
  description: The facts. Facts of other subsets than the requested ones are left out.
  type: dict
  returned: always
  contains:
    smc:
      description: What is known of AF_SMC.
      type: dict
      returned: always
      contains:
        kernel:
          description: The release of the kernel.
          type: str
          returned: always
          sample: 6.12.9-amd64
        module:
          description: Whether AF_SMC is C(loaded), and the C(version) of the module if it tells that.
          type: dict
          returned: always
          sample: {loaded: true, version: 0.1.0}
        info:
          description: What kernel and hardware can do, as C(smcr info --json) has it.
          type: dict
          returned: if AF_SMC is loaded
        devices:
          description: RDMA and ISM devices, as C(smc_rnics --json) has them.
          type: list
          elements: dict
          returned: if AF_SMC is loaded
        pnet:
          description: The entries of the PNET table.
          type: list
          elements: dict
          returned: if AF_SMC is loaded
          sample:
            - {pnet_id: FABRICA, type: ib, device: mlx5_0, port: 2}
        ueids:
          description: The user EIDs.
          type: list
          elements: str
          returned: if AF_SMC is loaded
          sample: [MYCLUSTER]
        seid:
          description: The system EID, and whether it is used.
          type: dict
          returned: if the host has one
          sample: {eid: IBM-SYSZ-ISMSEID0000000012345678, enabled: true}
        linkgroups:
          description: Link groups by C(smcr) and C(smcd), as C(smcr linkgroup --json) and C(smcd linkgroup --json) have them.
          type: dict
          returned: if AF_SMC is loaded
        stats:
          description:
            - Statistics by C(smcr) and C(smcd), as C(smcr stats --json) and C(smcd stats --json) have them, since AF_SMC was
              loaded.
          type: dict
          returned: if AF_SMC is loaded
'''

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.smckit.smc.plugins.module_utils import smckit

SUBSETS = ['info', 'devices', 'pnet', 'eids', 'linkgroups', 'stats']


class Facts(object):
    """Collects facts."""

    def __init__(self, module):
        self.module = module
        self.netns = smckit.netns(module)

    def ask(self, tool, *args):
        """Returns the document of a command. One that fails gives a warning, and an empty document."""
        rc, out, err = smckit.run(self.module, tool, list(args) + self.netns)
        if rc != 0:
            self.module.warn(smckit.reason(tool, rc, err))
            return {}
        smckit.warn(self.module, err.splitlines())
        return smckit.parse(self.module, tool, out, err)

    def info(self):
        document = self.ask('smcr', 'info')
        document.pop('schema', None)
        return {'info': document} if document else {}

    def devices(self):
        return some(self.ask('smc_rnics'), devices='devices')

    def pnet(self):
        return some(self.ask('smc_pnet', 'show'), entries='pnet')

    def eids(self):
        facts = some(self.ask('smcr', 'ueid', 'show'), ueids='ueids')
        seid = smckit.system_eid(self.ask('smcd', 'seid', 'show'))
        if seid is not None:
            facts['seid'] = seid
        return facts

    def linkgroups(self):
        return {'linkgroups': self.both('linkgroups', 'linkgroup')}

    def stats(self):
        return {'stats': self.both(None, '-a', 'stats')}

    def both(self, field, *args):
        """Returns what is known of SMC-R and SMC-D: of each the document, or a field of it."""
        found = {}
        for tool in ('smcr', 'smcd'):
            document = self.ask(tool, *args)
            for key in ('schema', 'transport'):
                document.pop(key, None)
            if document:
                found[tool] = document[field] if field else document
        return found


def some(document, **names):
    """Returns the fields of a document that are there, by new names."""
    return dict((new, document[old]) for old, new in names.items() if old in document)


def build_module():
    return AnsibleModule(
        argument_spec=dict(
            gather_subset=dict(type='list', elements='str', choices=['all'] + SUBSETS, default=['all']),
            netns=dict(type='str'),
        ),
        supports_check_mode=True,
    )


def main():
    module = build_module()
    loaded = smckit.smc_loaded()
    facts = {'kernel': os.uname()[2], 'module': smckit.module_state(loaded)}
    collect = Facts(module)
    for subset in smckit.requested(module, SUBSETS) if loaded else []:
        facts.update(getattr(collect, subset)())
    module.exit_json(ansible_facts={'smc': facts})


if __name__ == '__main__':
    main()
