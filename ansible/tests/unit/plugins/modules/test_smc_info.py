# SPDX-License-Identifier: Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os

import pytest

from ansible_collections.smckit.smc.plugins.module_utils import smckit
from ansible_collections.smckit.smc.plugins.modules import smc_info

from conftest import document

NO_SOCKETS = {'schema': 2, 'error': 'list SMC sockets: SMC module not available', 'remedy': "load it with 'modprobe smc_diag'", 'status': 1}


@pytest.fixture
def loaded(monkeypatch):
    monkeypatch.setattr(smckit, 'smc_loaded', lambda: True)


def without_schema(document):
    return dict((k, v) for k, v in document.items() if k != 'schema')


@pytest.mark.parametrize('check', [False, True])
def test_all(host, loaded, check):
    sockets, groups = document('smckit_sockets')['sockets'], document('smckit_groups')
    host.expect('smckit', document('smckit'))
    host.expect('smckit sockets -a', document('smckit_sockets'))
    host.expect('smckit groups', groups)
    host.expect('smckit devices', document('smc_rnics'))
    result = host.succeed(smc_info, check=check)
    assert result['changed'] is False and 'ansible_facts' not in result
    assert result['kernel_release'] == os.uname()[2] and result['module']['loaded']
    assert result['status'] == without_schema(document('smckit'))
    assert sorted(result['sockets']) == ['0x7?', 'none', 'smcd', 'smcr', 'tcp']
    for transport in ('smcr', 'smcd', 'tcp'):
        assert result['sockets'][transport] == [s for s in sockets if s.get('transport') == transport] != []
    assert result['sockets']['none'] == [s for s in sockets if 'transport' not in s] != []
    assert result['linkgroups'] == {t: groups[t]['linkgroups'] for t in ('smcr', 'smcd')}
    assert result['devices'] == document('smc_rnics')['devices']


def test_host_that_cannot_use_smc(host, loaded):
    host.expect('smckit', document('smckit_bare'), rc=1)
    result = host.succeed(smc_info, gather_subset=['status'])
    assert result['status'] == without_schema(document('smckit_bare'))


def test_list_that_changed(host, loaded):
    host.expect('smckit sockets -a -N blue', dict(document('smckit_sockets'), interrupted=True), rc=1, err='smckit: the list changed\n')
    result = host.succeed(smc_info, gather_subset=['sockets'], netns='blue')
    assert len(result['sockets']['smcr']) > 0
    assert result['warnings'][-1] == 'smckit: the list changed'


def test_failure_of_one_command(host, loaded):
    host.expect('smckit sockets -a', NO_SOCKETS, rc=1, err='smckit: list SMC sockets: SMC module not available\n')
    host.expect('smckit devices', document('smc_rnics'))
    result = host.succeed(smc_info, gather_subset=['devices', 'sockets'])
    assert 'sockets' not in result and 'devices' in result
    assert result['warnings'][-1] == 'smckit: list SMC sockets: SMC module not available'


def test_asks_nothing_while_not_loaded(host, monkeypatch):
    monkeypatch.setattr(smckit, 'smc_loaded', lambda: False)
    result = host.succeed(smc_info)
    assert result['module']['loaded'] is False
    assert not set(result) & set(smc_info.SUBSETS)
