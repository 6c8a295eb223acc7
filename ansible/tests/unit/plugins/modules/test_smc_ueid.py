# SPDX-License-Identifier: Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import pytest

from ansible_collections.smckit.smc.plugins.modules import smc_ueid

from conftest import document

NONE = {'schema': 2}
CHANGED = {'schema': 2, 'changed': True}
NAME = document('smcd_seid')['seid']


def ueids(*names):
    return {'schema': 2, 'ueids': list(names)}


def seid(enabled):
    return {'schema': 2, 'seid': NAME, 'enabled': enabled}


def has(host, eids, system=NONE):
    """The script's beginning: what the module asks for."""
    host.expect('smcr ueid show', eids)
    host.expect('smcd seid show', system)


def test_adds(host):
    has(host, document('smcr_ueid'))
    host.expect('smcr ueid add C', CHANGED)
    host.expect('smcd seid show', NONE)
    result = host.succeed(smc_ueid, eids=['C', 'MYCLUSTER', 'C'], diff=True)
    assert result['changed'] and result['added'] == ['C'] and result['eids'] == ['MYCLUSTER', 'A.B-C', 'C']
    assert 'seid' not in result
    assert result['diff']['before'] == 'MYCLUSTER\nA.B-C\n'
    assert result['diff']['after'] == 'MYCLUSTER\nA.B-C\nC\n'


def test_has_it_already(host):
    has(host, document('smcr_ueid'))
    host.expect('smcd seid show', NONE)
    result = host.succeed(smc_ueid, eid='MYCLUSTER')
    assert not result['changed'] and result['added'] == []


def test_check_mode_only_asks(host):
    has(host, ueids('A'))
    host.expect('smcd seid show', NONE)
    result = host.succeed(smc_ueid, eids=['B'], state='exact', check=True)
    assert result['changed'] and result['eids'] == ['B'] and result['removed'] == ['A'] and result['added'] == ['B']


def test_removes(host):
    has(host, ueids('A', 'B'))
    host.expect('smcr ueid del B', CHANGED)
    host.expect('smcd seid show', NONE)
    result = host.succeed(smc_ueid, eids=['B', 'C'], state='absent')
    assert result['removed'] == ['B'] and result['eids'] == ['A']


def test_exact_never_leaves_the_host_without(host):
    has(host, ueids('A'))
    host.expect('smcr ueid add B', CHANGED)
    host.expect('smcr ueid del A', CHANGED)
    host.expect('smcd seid show', NONE)
    assert host.succeed(smc_ueid, eids=['B'], state='exact')['eids'] == ['B']


def test_exact_makes_room(host):
    has(host, ueids('A', 'B', 'C', 'D'))
    host.expect('smcr ueid del A', CHANGED)
    host.expect('smcr ueid add E', CHANGED)
    host.expect('smcd seid show', NONE)
    assert host.succeed(smc_ueid, eids=['B', 'C', 'D', 'E'], state='exact')['changed']


def test_exact_nothing(host):
    has(host, ueids('A'), seid(False))
    host.expect('smcr ueid del A', CHANGED, err='smcr: the kernel has enabled the system EID\n')
    host.expect('smcd seid show', seid(True))
    result = host.succeed(smc_ueid, eids=[], state='exact')
    assert result['eids'] == [] and result['seid']['enabled']
    assert result['warnings'][-1] == 'smcr: the kernel has enabled the system EID'


def test_predicts_that_the_system_eid_is_enabled(host):
    has(host, ueids('A'), seid(False))
    host.expect('smcd seid show', seid(False))
    assert host.succeed(smc_ueid, eids=[], state='exact', check=True)['seid']['enabled']


def test_takes_back_what_it_has_done(host):
    has(host, ueids('A'))
    host.expect('smcr ueid add B', CHANGED)
    host.expect('smcr ueid add C', rc=1, err='smcr: no\n')
    host.expect('smcr ueid del B', CHANGED)
    result = host.fail(smc_ueid, eids=['B', 'C'])
    assert result['msg'] == 'smcr: no' and result['rc'] == 1 and not result.get('changed')


def test_disables_the_system_eid(host):
    has(host, ueids('A'), document('smcd_seid'))
    host.expect('smcd seid show', document('smcd_seid'))
    host.expect('smcd seid disable', CHANGED)
    result = host.succeed(smc_ueid, seid=False, diff=True)
    assert result['changed'] and result['seid'] == {'eid': NAME, 'enabled': False}
    assert result['diff']['after'] == 'A\n' + NAME + ' [disabled]\n'


def test_predicts_the_system_eid(host):
    has(host, ueids(), seid(False))
    host.expect('smcd seid show', seid(False))
    assert host.succeed(smc_ueid, seid=True, check=True)['changed']


def test_system_eid_is_so_already(host):
    has(host, ueids('A'), seid(True))
    host.expect('smcd seid show', seid(True))
    assert not host.succeed(smc_ueid, seid=True)['changed']


def test_no_system_eid_to_disable(host):
    has(host, ueids('A'))
    host.expect('smcd seid show', NONE)
    assert not host.succeed(smc_ueid, seid=False)['changed']


@pytest.mark.parametrize('args, have, system, msg', [
    (dict(eids=['B'], seid=True), ueids(), NONE, 'no system EID'),
    (dict(eids=[], state='exact', seid=False), ueids('A'), seid(True), 'cannot be disabled'),
    (dict(eids=['B']), ueids('A', 'C', 'D', 'E'), NONE, 'would have 5 user EIDs'),
    (dict(eids=['small']), ueids(), NONE, '"small" is no user EID'),
    (dict(eids=['A..B']), ueids(), NONE, '"A..B" is no user EID'),
    (dict(eids=['A' * 33]), ueids(), NONE, 'is no user EID'),
    (dict(eids=['-A']), ueids(), NONE, 'is no user EID'),
    (dict(eids=['A\n']), ueids(), NONE, 'is no user EID'),
])
@pytest.mark.parametrize('check', [False, True])
def test_refuses(host, args, have, system, msg, check):
    has(host, have, system)
    assert msg in host.fail(smc_ueid, check=check, **args)['msg']


def test_needs_something_to_do(host):
    assert 'one of the following is required' in host.fail(smc_ueid)['msg']
