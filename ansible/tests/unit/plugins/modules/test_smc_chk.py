# SPDX-License-Identifier: Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os

import pytest

from ansible_collections.smckit.smc.plugins.module_utils import smckit
from ansible_collections.smckit.smc.plugins.modules import smc_chk

from conftest import document

HOST, LIVE, FALLBACK = document('smc_chk_host'), document('smc_chk_live'), document('smc_chk_fallback')
ERROR = FALLBACK['findings'][0]
WARNING = {'condition': 'rdma-none', 'severity': 'warning', 'text': 'there is no RDMA device', 'remedy': 'install a RoCE adapter'}
NOT_ABLE = dict(HOST, able=False, transports=[], findings=[WARNING, dict(ERROR, text='no device', remedy='see the warnings')])
ONLY_SMCD = dict(HOST, transports=HOST['transports'][:1], findings=[WARNING] + HOST['findings'])
OVER_SMCD = dict(LIVE, live=dict(LIVE['live'], transport='smcd'))


@pytest.fixture(autouse=True)
def loaded(monkeypatch):
    monkeypatch.setattr(smckit, 'smc_loaded', lambda: True)


def expect_host(host, answer=HOST, more=''):
    host.expect('smc_chk' + more, answer, rc=0 if answer['able'] else 1)


def expect_path(host, peer, answer=LIVE, more=''):
    host.expect('smc_chk --connect %s --timeout 10%s' % (peer, more), answer, rc=0 if answer['able'] else 1)


@pytest.mark.parametrize('require', ['smc', 'smcr', 'smcd', 'none'])
def test_able_host(host, require):
    expect_host(host)
    result = host.succeed(smc_chk, require=require)
    assert result['changed'] is False and result['met'] and result['paths'] == []
    assert result['judgement'] == dict((k, v) for k, v in HOST.items() if k != 'schema')


@pytest.mark.parametrize('require, answer, msg', [
    ('smc', NOT_ABLE, 'this host: no device (remedy: see the warnings)'),
    ('smcr', NOT_ABLE, 'this host: no device (remedy: see the warnings)'),
    ('smcr', ONLY_SMCD, 'this host: this is SMC-D, and SMC-R is required; there is no RDMA device (remedy: install a RoCE adapter)'),
    ('smcd', dict(HOST, transports=HOST['transports'][1:], findings=[]), 'this host: this is SMC-R, and SMC-D is required'),
])
def test_host_does_not_meet_the_requirement(host, require, answer, msg):
    expect_host(host, answer)
    result = host.fail(smc_chk, require=require)
    assert result['msg'] == msg and result['changed'] is False and not result['met']
    assert result['judgement']['able'] == answer['able']


def test_only_reports(host):
    expect_host(host, NOT_ABLE)
    expect_path(host, 'b', FALLBACK)
    result = host.succeed(smc_chk, require='none', peers=['b'])
    assert result['met'] and not result['judgement']['able']
    assert result['paths'] == [{
        'host': os.uname()[1], 'peer': 'b', 'tested': True, 'able': False, 'met': True, 'transport': 'tcp', 'why_not': ERROR['text'],
        'remedy': ERROR['remedy'], 'live': FALLBACK['live'], 'findings': FALLBACK['findings'],
    }]


def test_paths(host):
    expect_host(host)
    expect_path(host, '10.0.0.2:37374')
    expect_path(host, 'c')
    result = host.succeed(smc_chk, require='smcr', peers=[{'name': 'node2', 'connect': '10.0.0.2:37374'}, 'c'])
    assert [p['peer'] for p in result['paths']] == ['node2', 'c']
    for path in result['paths']:
        assert path['tested'] and path['able'] and path['met'] and path['transport'] == 'smcr' and path['live'] == LIVE['live']
        assert 'why_not' not in path and 'remedy' not in path


def test_says_which_paths_and_why(host):
    expect_host(host)
    expect_path(host, 'b', FALLBACK)
    expect_path(host, 'c')
    expect_path(host, 'd', OVER_SMCD)
    host.expect('smc_chk --connect e --timeout 10', {'schema': 2, 'error': 'no', 'status': 1}, rc=1, err='smc_chk: no\n')
    result = host.fail(smc_chk, require='smcr', peers=['b', 'c', 'd', 'e'])
    assert result['msg'] == (
        'to b: %s (remedy: %s); to d: this is SMC-D, and SMC-R is required; to e: smc_chk: no' % (ERROR['text'], ERROR['remedy']))
    assert [p['met'] for p in result['paths']] == [False, True, False, False]
    assert [p['tested'] for p in result['paths']] == [True, True, True, False]


def test_no_connection_was_tried(host):
    expect_host(host)
    expect_path(host, 'b', dict((k, v) for k, v in FALLBACK.items() if k != 'live'))
    path = host.fail(smc_chk, peers=['b'])['paths'][0]
    assert not path['tested'] and 'transport' not in path and 'live' not in path and path['why_not'] == ERROR['text']


def test_check_mode_makes_no_connection(host):
    static = dict(NOT_ABLE, path=LIVE['path'])
    expect_host(host, more=' -N blue')
    expect_path(host, 'b', static, ' --static-analysis -N blue')
    result = host.succeed(smc_chk, check=True, peers=['b'], netns='blue')
    assert not result['met'] and result['changed'] is False
    path = result['paths'][0]
    assert not path['tested'] and not path['able'] and 'transport' not in path and path['why_not'] == 'no device'


def test_check_mode_does_not_load(host, monkeypatch):
    monkeypatch.setattr(smckit, 'smc_loaded', lambda: False)
    result = host.succeed(smc_chk, check=True, peers=['b'])
    assert result['skipped'] and result['changed'] is False


def test_command_that_fails(host):
    host.expect('smc_chk', {'schema': 2, 'error': 'no', 'status': 1}, rc=1, err='smc_chk: no\n')
    assert host.fail(smc_chk)['msg'] == 'smc_chk: no'


def test_command_of_smc_tools(host):
    host.expect('smc_chk', 'Usage: smc_chk\n', rc=1, err="smc_chk: unrecognized option '--json'\n")
    assert 'is not that of smckit' in host.fail(smc_chk)['msg']


@pytest.mark.parametrize('args, msg', [
    (dict(peers=[{'name': 'b'}]), 'is neither HOST[:PORT] nor a dictionary of connect and name'),
    (dict(peers=[{'connect': 'b', 'port': 1}]), 'is neither HOST[:PORT] nor a dictionary of connect and name'),
    (dict(peers=[5]), 'peers: 5 is neither'),
    (dict(peers=['']), 'connect has to be HOST[:PORT], not ""'),
    (dict(peers=[{'connect': 5}]), 'connect has to be HOST[:PORT], not "5"'),
    (dict(timeout=0), 'timeout 0: use 1 to 600 seconds'),
    (dict(timeout=601), 'timeout 601: use 1 to 600 seconds'),
    (dict(require='tcp'), 'value of require must be one of'),
])
def test_refuses(host, args, msg):
    assert msg in host.fail(smc_chk, **args)['msg']
