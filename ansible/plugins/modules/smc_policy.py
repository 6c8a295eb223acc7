#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r'''
---
module: smc_policy
short_description: Rules about which sockets use SMC
version_added: 0.1.0
description:
  - Adds a rule to the policy of a host, removes one, or replaces all rules by a list; turns the policy off and on.
  - By a rule, ordinary TCP sockets of any program become SMC, or SMC sockets stay TCP. The first rule whose conditions all hold decides.
  - With C(auto) the module learns for each service whether SMC pays.
  - The kernel needs smckit's module.
  - The kernel keeps the rules in memory, until the next boot. The role smckit.smc.smc keeps them in C(/etc/smc/policy.conf).
options:
  rule:
    description:
      - A rule in the words of C(smc_policy add), such as C(smc port 6379 name redis). For I(state=present).
    type: str
  name:
    description:
      - The name of a rule. For I(state=absent).
    type: str
  rules:
    description:
      - All rules, in their order. For I(state=exact). The empty list removes all.
    type: list
    elements: str
  state:
    description:
      - With C(present) there is this rule; others stay.
      - With C(absent) there is no rule of this name.
      - With C(exact) there are these rules and no others.
    type: str
    choices: [present, absent, exact]
    default: present
  at:
    description:
      - The number of a new rule in the list; by default it comes to the end. It is an error if the rule is there with another number.
    type: int
  force:
    description:
      - Accept control groups that do not exist.
    type: bool
    default: false
  enabled:
    description:
      - Whether rules are used. If not, all new connections are TCP.
    type: bool
  netns:
    description:
      - The name of the network namespace to work in, as in C(ip -n). Each has its own rules.
    type: str
attributes:
  check_mode:
    description: Predicts the changes.
    support: full
  diff_mode:
    description: Shows all rules before and after.
    support: full
requirements:
  - the package smckit on the host
  - root, for changes
author:
  - The smckit authors (@smckit)
seealso:
  - module: smckit.smc.smc_facts
'''

EXAMPLES = r'''
- name: Have redis use SMC, on clients and servers
  smckit.smc.smc_policy:
    rule: smc port 6379 name redis

- name: Have the module find out for each of these ports
  smckit.smc.smc_policy:
    rule: auto port 8000-8100

- name: Keep one network on TCP, whatever other rules say
  smckit.smc.smc_policy:
    rule: tcp to 10.9.0.0/16
    at: 1

- name: Remove a rule
  smckit.smc.smc_policy:
    name: redis
    state: absent

- name: These rules and no others
  smckit.smc.smc_policy:
    rules:
      - tcp to 10.9.0.0/16
      - smc port 6379,8000-8100
    state: exact

- name: All new connections use TCP
  smckit.smc.smc_policy:
    enabled: false
'''

RETURN = r'''
added:
  description: The rules that the module added, or would add.
  type: list
  elements: str
  returned: success
  sample: [smc name redis port 6379]
removed:
  description: The rules that the module removed, or would remove.
  type: list
  elements: str
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

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.smckit.smc.plugins.module_utils import smckit

TOOL = 'smc_policy'


def options(module, adds):
    """Returns the options of a command that changes the rules; adds is true if it may add some."""
    argv = ['--diff']
    if module.check_mode:
        argv.append('--check')
    if adds and module.params['force']:
        argv.append('--force')
    return argv + smckit.netns(module)


def check_words(module, rule):
    """Ends the module for words that the command would take for options."""
    words = rule.split()
    for word in words:
        if word.startswith('-'):
            module.fail_json(msg='rule "%s": "%s" is no word of a rule' % (rule, word))
    return words


def command(module):
    """Returns the arguments that have the command carry out the wish for rules, and its input; None if there is none."""
    p = module.params
    if p['state'] == 'exact' and p['rules'] is not None:
        for rule in p['rules']:
            if '\n' in rule:
                module.fail_json(msg='rule "%s" has several lines' % rule)
        return ['apply', '-'] + options(module, True), ''.join(rule + '\n' for rule in p['rules'])
    if p['state'] == 'present' and p['rule'] is not None:
        at = [] if p['at'] is None else ['--at', str(p['at'])]
        return ['add'] + check_words(module, p['rule']) + at + options(module, True), None
    if p['state'] == 'absent' and p['name'] is not None:
        if p['name'].startswith('-'):
            module.fail_json(msg='"%s" is no name of a rule' % p['name'])
        return ['del', p['name'], '--ignore-missing'] + options(module, False), None
    return None


def change(module, result):
    """Adds or removes rules."""
    wish = command(module)
    if wish is None:
        return
    document, remarks = smckit.call(module, TOOL, *wish)
    smckit.warn(module, remarks)
    result.update(changed=document['changed'], added=document['rules_added'], removed=document['rules_removed'])
    if module._diff:
        result['diff'] = dict(document['diff'], before_header='rules', after_header='rules')


def switch(module, result):
    """Turns the policy off or on."""
    enabled = module.params['enabled']
    if enabled is None:
        return
    check = ['--check'] if module.check_mode else []
    document, remarks = smckit.call(module, TOOL, ['on' if enabled else 'off'] + check + smckit.netns(module))
    smckit.warn(module, remarks)
    result['changed'] = result['changed'] or document['changed']


def check_parameters(module):
    """Ends the module if the parameters do not belong together."""
    p = module.params
    for key, state in (('rule', 'present'), ('name', 'absent'), ('rules', 'exact')):
        if p[key] is not None and p['state'] != state:
            module.fail_json(msg='%s is for state=%s' % (key, state))
    if p['at'] is not None and p['rule'] is None:
        module.fail_json(msg='at belongs to a rule')
    if p['state'] != 'present' and p['name'] is None and p['rules'] is None:
        module.fail_json(msg='state=%s needs %s' % (p['state'], {'absent': 'name', 'exact': 'rules'}[p['state']]))


def main():
    module = AnsibleModule(
        argument_spec=dict(
            rule=dict(type='str'),
            name=dict(type='str'),
            rules=dict(type='list', elements='str'),
            state=dict(type='str', choices=['present', 'absent', 'exact'], default='present'),
            at=dict(type='int'),
            force=dict(type='bool', default=False),
            enabled=dict(type='bool'),
            netns=dict(type='str'),
        ),
        mutually_exclusive=[('rule', 'name', 'rules')],
        required_one_of=[('rule', 'name', 'rules', 'enabled')],
        supports_check_mode=True,
    )
    check_parameters(module)
    result = dict(changed=False, added=[], removed=[])
    change(module, result)
    switch(module, result)
    module.exit_json(**result)


if __name__ == '__main__':
    main()
