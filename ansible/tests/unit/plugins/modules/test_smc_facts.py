# SPDX-License-Identifier: Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os

import pytest

from ansible_collections.smckit.smc.plugins.module_utils import smckit
from ansible_collections.smckit.smc.plugins.modules import smc_facts

from conftest import document

ENTRY = {'pnet_id': 'NET1', 'type': 'eth', 'device': 'eth0'}


@pytest.fixture
def loaded(monkeypatch):
    monkeypatch.setattr(smckit, 'smc_loaded', lambda: True)


def facts(result):
    assert not result.get('changed')
    return result['ansible_facts']['smc']


def without(document, *keys):
    return dict((k, v) for k, v in document.items() if k not in keys)


@pytest.mark.parametrize('check', [False, True])
def test_all(host, loaded, check):
    host.expect('smcr info', document('smcr_info'))
    host.expect('smc_rnics', document('smc_rnics'))
    host.expect('smc_pnet show', {'schema': 2, 'entries': [ENTRY]})
    host.expect('smcr ueid show', document('smcr_ueid'))
    host.expect('smcd seid show', document('smcd_seid'))
    host.expect('smcr linkgroup', document('smcr_linkgroup'))
    host.expect('smcd linkgroup', document('smcd_linkgroup'))
    host.expect('smcr -a stats', document('smcr_stats'))
    host.expect('smcd -a stats', document('smcd_stats'))
    smc = facts(host.succeed(smc_facts, check=check))
    assert smc['kernel'] == os.uname()[2]
    assert smc['module']['loaded']
    assert smc['info'] == without(document('smcr_info'), 'schema')
    assert smc['devices'] == document('smc_rnics')['devices']
    assert smc['pnet'] == [ENTRY]
    assert smc['ueids'] == ['MYCLUSTER', 'A.B-C']
    assert smc['seid'] == {'eid': document('smcd_seid')['seid'], 'enabled': document('smcd_seid')['enabled']}
    assert smc['linkgroups'] == {t: document(t + '_linkgroup')['linkgroups'] for t in ('smcr', 'smcd')}
    assert smc['stats'] == {t: without(document(t + '_stats'), 'schema', 'transport') for t in ('smcr', 'smcd')}


def test_subset_in_a_namespace(host, loaded):
    host.expect('smc_pnet show -N blue', {'schema': 2, 'entries': []})
    smc = facts(host.succeed(smc_facts, gather_subset=['pnet'], netns='blue'))
    assert sorted(smc) == ['kernel', 'module', 'pnet'] and smc['pnet'] == []


def test_asks_nothing_while_not_loaded(host, monkeypatch):
    monkeypatch.setattr(smckit, 'smc_loaded', lambda: False)
    smc = facts(host.succeed(smc_facts))
    assert sorted(smc) == ['kernel', 'module'] and smc['module']['loaded'] is False


def test_what_a_kernel_does_not_tell(host, loaded):
    host.expect('smcr ueid show', rc=1, err='smcr: needs Linux 5.16 or newer\n')
    host.expect('smcd seid show', {'schema': 2})
    result = host.succeed(smc_facts, gather_subset=['eids'])
    assert sorted(facts(result)) == ['kernel', 'module']
    assert result['warnings'][-1] == 'smcr: needs Linux 5.16 or newer'


def test_unknown_subset(host, loaded):
    assert 'value of gather_subset must be one or more of' in host.fail(smc_facts, gather_subset=['everything'])['msg']
