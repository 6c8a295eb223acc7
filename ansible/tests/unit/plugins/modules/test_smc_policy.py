# SPDX-License-Identifier: Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import pytest

from ansible_collections.smckit.smc.plugins.modules import smc_policy

RULE = 'smc port 6379 name redis'
TEXT = 'smc name redis port 6379'


def changes(added=(), removed=(), before='', after='', check=False):
    return {
        'schema': 2, 'changed': bool(added or removed), 'check': check, 'rules_added': list(added), 'rules_removed': list(removed),
        'diff': {'before': before, 'after': after},
    }


def turned(changed, enabled, check=False):
    return {'schema': 2, 'changed': changed, 'check': check, 'enabled': enabled}


def test_adds_one(host):
    host.expect('smc_policy add smc port 6379 name redis --diff', changes(added=[TEXT], after=TEXT + '\n'))
    result = host.succeed(smc_policy, rule=RULE)
    assert result['changed'] and result['added'] == [TEXT] and result['removed'] == []
    assert 'diff' not in result


def test_has_it_already(host):
    host.expect('smc_policy add smc port 6379 name redis --diff', changes(before=TEXT + '\n', after=TEXT + '\n'))
    assert not host.succeed(smc_policy, rule=RULE)['changed']


def test_place_force_netns_check_and_diff(host):
    host.expect('smc_policy add tcp --at 1 --diff --check --force -N blue', changes(added=['tcp'], before='smc\n', after='tcp\nsmc\n', check=True))
    result = host.succeed(smc_policy, rule='tcp', at=1, force=True, netns='blue', check=True, diff=True)
    assert result['changed'] and result['diff']['before'] == 'smc\n' and result['diff']['after'] == 'tcp\nsmc\n'


def test_removes_one(host):
    host.expect('smc_policy del redis --ignore-missing --diff', changes(removed=[TEXT], before=TEXT + '\n'))
    assert host.succeed(smc_policy, name='redis', state='absent')['removed'] == [TEXT]


def test_has_these_and_no_others(host):
    host.expect('smc_policy apply - --diff', changes(added=['tcp'], removed=['smc']), stdin='tcp\nsmc port 1 # why\n')
    assert host.succeed(smc_policy, rules=['tcp', 'smc port 1 # why'], state='exact')['changed']


def test_removes_all(host):
    host.expect('smc_policy apply - --diff', changes(removed=['smc']), stdin='')
    assert host.succeed(smc_policy, rules=[], state='exact')['removed'] == ['smc']


@pytest.mark.parametrize('enabled,word', [(True, 'on'), (False, 'off')])
def test_turns_the_policy(host, enabled, word):
    host.expect('smc_policy %s -N blue' % word, turned(True, enabled))
    assert host.succeed(smc_policy, enabled=enabled, netns='blue')['changed']
    host.expect('smc_policy %s --check' % word, turned(True, enabled, check=True))
    assert host.succeed(smc_policy, enabled=enabled, check=True)['changed']
    host.expect('smc_policy %s' % word, turned(False, enabled))
    assert not host.succeed(smc_policy, enabled=enabled)['changed']


def test_rule_and_switch(host):
    host.expect('smc_policy add smc port 6379 name redis --diff', changes(added=[TEXT]))
    host.expect('smc_policy on', turned(False, True))
    result = host.succeed(smc_policy, rule=RULE, enabled=True)
    assert result['changed'] and result['added'] == [TEXT]


@pytest.mark.parametrize('args,msg', [
    (dict(rule=RULE, state='exact'), 'rule is for state=present'),
    (dict(name='redis'), 'name is for state=absent'),
    (dict(rules=['smc']), 'rules is for state=exact'),
    (dict(enabled=True, state='absent'), 'state=absent needs name'),
    (dict(enabled=True, at=1), 'at belongs to a rule'),
    (dict(rule='smc --force'), 'rule "smc --force": "--force" is no word of a rule'),
    (dict(name='--help', state='absent'), '"--help" is no name of a rule'),
    (dict(rules=['smc\ntcp'], state='exact'), 'rule "smc\ntcp" has several lines'),
])
def test_refuses(host, args, msg):
    assert host.fail(smc_policy, **args)['msg'] == msg


def test_tells_the_reason(host):
    host.expect('smc_policy add smc port x --diff', rc=2, err='smc_policy: word 3: port "x": ports are numbers\n')
    result = host.fail(smc_policy, rule='smc port x')
    assert result['msg'] == 'smc_policy: word 3: port "x": ports are numbers' and result['rc'] == 2
