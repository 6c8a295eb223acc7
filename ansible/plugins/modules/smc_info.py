#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r'''
---
module: smc_info
short_description: What a host does with SMC now
version_added: 0.1.0
description:
  - Returns whether the host can use SMC and why not, its sockets by transport, link groups and devices. It changes nothing.
  - M(smckit.smc.smc_facts) returns facts, which Ansible keeps for the host and later tasks find in C(ansible_facts.smc). They are the
    configuration and its state, which seldom change. This module returns the state of this moment, which changes with each connection,
    and only to the task that asks for it, so use C(register).
  - While AF_SMC is not loaded, only C(kernel_release) and C(module) are returned, because a request would make the kernel load it.
    M(smckit.smc.smc_chk) says why it is not.
  - What this kernel does not report is left out with a warning.
options:
  gather_subset:
    description:
      - What to return, besides C(kernel_release) and C(module), which are always returned.
    type: list
    elements: str
    choices: [all, status, sockets, linkgroups, devices]
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
requirements:
  - the package smckit on the host
author:
  - The smckit authors (@smckit)
seealso:
  - module: smckit.smc.smc_chk
  - module: smckit.smc.smc_facts
'''

EXAMPLES = r'''
- name: Ask what the host does with SMC
  smckit.smc.smc_info:
  register: smc

- name: Show why connections fell back to TCP
  ansible.builtin.debug:
    var: smc.status.fallback_counts.reasons

- name: Look at the sockets
  smckit.smc.smc_info:
    gather_subset: [sockets]
  register: smc

- name: Check that the clients of redis use SMC-R
  ansible.builtin.assert:
    that: smc.sockets.tcp | selectattr('local.tcp_port', 'defined') | selectattr('local.tcp_port', 'eq', 6379) | list | length == 0
'''

RETURN = r'''
kernel_release:
  description: The release of the kernel.
  type: str
  returned: always
  sample: 6.12.9-amd64
module:
  description: Whether AF_SMC is C(loaded), and the C(version) of the module if it tells that.
  type: dict
  returned: always
  sample: {loaded: true, version: 0.1.0}
status:
  description: What the host does with SMC, as C(smckit --json) has it.
  type: dict
  returned: if AF_SMC is loaded, and requested
  contains:
    able:
      description: Whether the host can use SMC.
      type: bool
      returned: always
    findings:
      description: What is wrong, or worth to know, and the C(remedy); the most severe ones first.
      type: list
      elements: dict
      returned: always
    fallback_counts:
      description: How many connections fell back to TCP, and for which reasons, since the last reset of the statistics.
      type: dict
      returned: if known
sockets:
  description:
    - The AF_SMC sockets by transport, as C(smckit sockets -a --json) has them, in the lists C(smcr), C(smcd) and C(tcp).
    - Sockets without a transport, such as those that listen, are in the list C(none). A transport that smckit does not know has a list
      by its number.
  type: dict
  returned: if AF_SMC is loaded, and requested
  sample: {smcr: [], smcd: [], tcp: [], none: [{state: LISTEN, local: {address: 0.0.0.0, tcp_port: 6379}}]}
linkgroups:
  description: Link groups by C(smcr) and C(smcd), as C(smckit groups --json) has them.
  type: dict
  returned: if AF_SMC is loaded, and requested
devices:
  description: RDMA and ISM devices, as C(smckit devices --json) has them.
  type: list
  elements: dict
  returned: if AF_SMC is loaded, and requested
'''

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.smckit.smc.plugins.module_utils import smckit

SUBSETS = ['status', 'sockets', 'linkgroups', 'devices']


class Info(object):
    """Collects what the host does with SMC."""

    def __init__(self, module):
        self.module = module
        self.netns = smckit.netns(module)

    def ask(self, *args):
        """Returns the document of a command of smckit. One that fails gives a warning, and None."""
        document, why_not = smckit.query(self.module, 'smckit', list(args) + self.netns)
        if document is None:
            smckit.warn(self.module, [why_not])
        return document

    def status(self):
        return self.ask()

    def sockets(self):
        document = self.ask('sockets', '-a')
        return by_transport(document['sockets']) if document else None

    def linkgroups(self):
        document = self.ask('groups')
        return dict((t, groups['linkgroups']) for t, groups in document.items()) if document else None

    def devices(self):
        document = self.ask('devices')
        return document['devices'] if document else None


def by_transport(sockets):
    """Returns lists of sockets by their transports."""
    lists = {'smcr': [], 'smcd': [], 'tcp': [], 'none': []}
    for socket in sockets:
        lists.setdefault(socket.get('transport', 'none'), []).append(socket)
    return lists


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
    result = {'kernel_release': os.uname()[2], 'module': smckit.module_state(loaded)}
    info = Info(module)
    for subset in smckit.requested(module, SUBSETS) if loaded else []:
        found = getattr(info, subset)()
        if found is not None:
            result[subset] = found
    module.exit_json(changed=False, **result)


if __name__ == '__main__':
    main()
