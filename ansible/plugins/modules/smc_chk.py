#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r'''
---
module: smc_chk
short_description: Checks whether a host can use SMC, and whether connections to its peers do
version_added: 0.1.0
description:
  - Judges the host by C(smc_chk), which names what is wrong, and the remedy.
  - With I(peers), makes a test connection to each of them, and returns which transport it used and, if that is TCP, why. If all hosts of a
    play do so, their C(paths) are a matrix of all pairs. The role C(smckit.smc.smc) does this by its tasks C(check).
  - It changes no configuration. Like any program that uses SMC, C(smc_chk) has the kernel load AF_SMC; in check mode, the module does not.
options:
  peers:
    description:
      - The peers to connect to, each as C(HOST), C(HOST:PORT) or C([ADDRESS]:PORT), or as a dictionary of this as C(connect) and the
        C(name) by which the result calls the peer.
      - The port is 37373 by default, where C(smc_chk --server) listens on the peer. With other services, nothing is measured.
      - Without peers, only the host is judged.
    type: list
    elements: raw
    default: []
    aliases: [connect]
  require:
    description:
      - What to require of every path or, without I(peers), of the host. The task fails if it is not met.
      - C(smc) means SMC-R or SMC-D, C(smcr) and C(smcd) this one. C(none) requires nothing, so the task only reports.
    type: str
    choices: [smc, smcr, smcd, none]
    default: smc
  timeout:
    description:
      - How many seconds to wait for one answer of a peer, from 1 to 600. A test takes four times as long at most.
    type: int
    default: 10
  netns:
    description:
      - The name of the network namespace to work in, as in C(ip -n).
    type: str
attributes:
  check_mode:
    description:
      - No connection is made. Paths are judged by the configuration of the host, and the task does not fail if the requirement is not
        met, because what earlier tasks would set up is not there.
      - While AF_SMC is not loaded, the task is skipped.
    support: partial
  diff_mode:
    description: Nothing is changed.
    support: none
requirements:
  - the package smckit on the host
author:
  - The smckit authors (@smckit)
seealso:
  - module: smckit.smc.smc_info
'''

EXAMPLES = r'''
- name: Fail on hosts that cannot use SMC
  smckit.smc.smc_chk:

- name: Check that connections to hostb, where smc_chk --server runs, are SMC-R
  smckit.smc.smc_chk:
    peers: [hostb]
    require: smcr

- name: Report which transport connections to two web servers use
  smckit.smc.smc_chk:
    peers:
      - web1.example.org:80
      - {name: web2, connect: "10.0.0.2:80"}
    require: none
  register: smc

- name: Show the matrix of all hosts
  ansible.builtin.debug:
    msg: "{{ ansible_play_hosts | map('extract', hostvars, ['smc', 'paths']) | flatten }}"
  run_once: true
'''

RETURN = r'''
met:
  description: Whether the requirement is met.
  type: bool
  returned: unless the task is skipped
judgement:
  description: What C(smc_chk --json) finds about the host.
  type: dict
  returned: unless the task is skipped
  contains:
    able:
      description: Whether some connections of the host can be SMC.
      type: bool
      returned: always
    transports:
      description: What the configuration allows connections to use.
      type: list
      elements: dict
      returned: always
    findings:
      description: What is wrong, or worth to know, and the C(remedy); the most severe ones first.
      type: list
      elements: dict
      returned: always
paths:
  description: The paths to the peers, in the order of I(peers).
  type: list
  elements: dict
  returned: unless the task is skipped
  contains:
    host:
      description: The name of the host.
      type: str
      returned: always
      sample: node1
    peer:
      description: The peer, as I(peers) names it.
      type: str
      returned: always
      sample: node2
    tested:
      description: Whether this is the result of a connection, not of the configuration.
      type: bool
      returned: always
    able:
      description: Whether the connection used SMC or, if none was made, whether the configuration allows SMC.
      type: bool
      returned: always
    met:
      description: Whether the path meets the requirement.
      type: bool
      returned: always
    transport:
      description: The transport of the connection, C(smcr), C(smcd) or C(tcp).
      type: str
      returned: if there was a connection, and its transport is known
      sample: smcr
    why_not:
      description: Why the path does not meet the requirement, or why it is TCP.
      type: str
      returned: if there is something to say
      sample: "the peer fell back to TCP: the peer offered no user EID that this host knows (0x03030008 NOUEID)"
    remedy:
      description: What to do about it.
      type: str
      returned: if known
      sample: "on the peer: add the same user EID on both hosts: smcr ueid add NAME"
    live:
      description: The connection, as C(smc_chk --connect --json) has it, with its C(latency_us) and C(bytes_per_second).
      type: dict
      returned: if a connection was tried
    findings:
      description: What C(smc_chk) finds about the path.
      type: list
      elements: dict
      returned: always
'''

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.six import string_types
from ansible_collections.smckit.smc.plugins.module_utils import smckit

TOOL = 'smc_chk'
NAMES = {'smc': 'SMC', 'smcr': 'SMC-R', 'smcd': 'SMC-D', 'tcp': 'TCP'}


class Check(object):
    """Checks a host, and the paths to its peers."""

    def __init__(self, module):
        self.module = module
        self.require = module.params['require']
        self.netns = smckit.netns(module)

    def judge(self):
        """Returns what the command finds about the host; the module fails if the command does."""
        document, why_not = smckit.query(self.module, TOOL, self.netns)
        if document is None:
            self.module.fail_json(msg=why_not)
        return document

    def path(self, peer):
        """Returns what the command finds about the path to a peer. If the command fails, the path is not able."""
        args = ['--connect', peer['connect'], '--timeout', str(self.module.params['timeout'])]
        if self.module.check_mode:
            args.append('--static-analysis')
        document, why_not = smckit.query(self.module, TOOL, args + self.netns)
        cell = {'host': os.uname()[1], 'peer': peer['name'], 'tested': False, 'able': False, 'findings': []}
        if document is None:
            return dict(cell, why_not=why_not, met=self.require == 'none')
        cell.update((k, document[k]) for k in ('able', 'findings', 'live') if k in document)
        cell['tested'] = 'live' in cell
        if 'transport' in cell.get('live', {}):
            cell['transport'] = cell['live']['transport']
            used = [cell['transport']]
        else:
            used = carriers(document)
        cell['met'] = meets(self.require, cell['able'], used)
        if not cell['met'] or not cell['able']:
            cell.update(explain(self.require, document, used))
        return cell


def carriers(document):
    """Returns the transports that the configuration allows."""
    return [t['transport'] for t in document['transports']]


def meets(require, able, used):
    """Tells whether a requirement is met by what can be used, or was used."""
    return require == 'none' or able and (require == 'smc' or require in used)


def explain(require, document, used):
    """Returns the reason why there is no SMC, or not the required transport, and the remedy if it is known."""
    if document['able']:
        reason = 'this is %s, and %s is required' % (' or '.join(sorted(set(NAMES.get(u, u) for u in used))), NAMES[require])
        # The causes are not errors, because SMC is possible.
        causes = [f for f in document['findings'] if f['severity'] == 'warning']
        return dict({'why_not': '; '.join([reason] + [f['text'] for f in causes])}, **remedy(causes))
    causes = [f for f in document['findings'] if f['severity'] == 'error']
    return dict({'why_not': '; '.join(f['text'] for f in causes) or 'SMC is not possible'}, **remedy(causes))


def remedy(causes):
    remedies = [f['remedy'] for f in causes if f['remedy']]
    return {'remedy': '; '.join(remedies)} if remedies else {}


def sentence(subject, answer):
    """Returns one line about what does not meet the requirement."""
    text = '%s: %s' % (subject, answer['why_not'])
    return text + ' (remedy: %s)' % answer['remedy'] if 'remedy' in answer else text


def parse_peers(module):
    """Returns the peers, each with name and what to connect to."""
    peers = []
    for peer in module.params['peers']:
        if isinstance(peer, string_types):
            peer = {'connect': peer}
        if not isinstance(peer, dict) or not set(['connect']) <= set(peer) <= set(['connect', 'name']):
            module.fail_json(msg='peers: %s is neither HOST[:PORT] nor a dictionary of connect and name' % (peer,))
        if not isinstance(peer['connect'], string_types) or not peer['connect']:
            module.fail_json(msg='peers: connect has to be HOST[:PORT], not "%s"' % (peer['connect'],))
        peers.append({'connect': peer['connect'], 'name': str(peer.get('name', peer['connect']))})
    return peers


def build_module():
    return AnsibleModule(
        argument_spec=dict(
            peers=dict(type='list', elements='raw', default=[], aliases=['connect']),
            require=dict(type='str', choices=['smc', 'smcr', 'smcd', 'none'], default='smc'),
            timeout=dict(type='int', default=10),
            netns=dict(type='str'),
        ),
        supports_check_mode=True,
    )


def main():
    module = build_module()
    peers, require = parse_peers(module), module.params['require']
    if not 1 <= module.params['timeout'] <= 600:
        module.fail_json(msg='timeout %d: use 1 to 600 seconds' % module.params['timeout'])
    if module.check_mode and not smckit.smc_loaded():
        module.exit_json(changed=False, skipped=True, msg='AF_SMC is not loaded, and check mode does not load it')
    check = Check(module)
    judgement = check.judge()
    paths = [check.path(peer) for peer in peers]
    if peers:
        faults = [sentence('to ' + p['peer'], p) for p in paths if not p['met']]
    elif meets(require, judgement['able'], carriers(judgement)):
        faults = []
    else:
        faults = [sentence('this host', explain(require, judgement, carriers(judgement)))]
    result = dict(changed=False, met=not faults, judgement=judgement, paths=paths)
    if faults and not module.check_mode:
        module.fail_json(msg='; '.join(faults), **result)
    module.exit_json(**result)


if __name__ == '__main__':
    main()
