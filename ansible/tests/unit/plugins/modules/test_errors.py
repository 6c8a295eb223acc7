# SPDX-License-Identifier: Apache-2.0
"""What all modules say if commands are missing, refuse or are others."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import pytest

from ansible_collections.smckit.smc.plugins.module_utils import smckit
from ansible_collections.smckit.smc.plugins.modules import smc_chk, smc_facts, smc_info, smc_pnet, smc_ueid

ENTRY = {'pnet_id': 'NET1', 'type': 'eth', 'device': 'eth0'}
ADD = 'smc_pnet add NET1 eth eth0 --diff'


@pytest.mark.parametrize('module, args, tool', [
    (smc_pnet, ENTRY, 'smc_pnet'),
    (smc_ueid, {'eids': ['A']}, 'smcr'),
    (smc_facts, {'gather_subset': ['devices']}, 'smc_rnics'),
    (smc_info, {}, 'smckit'),
    (smc_chk, {}, 'smc_chk'),
])
def test_missing_command(host, monkeypatch, module, args, tool):
    monkeypatch.setattr(smckit, 'smc_loaded', lambda: True)
    host.install([])
    assert host.fail(module, **args)['msg'].startswith(tool + ' is not installed on this host: install the package smckit')


def test_not_root(host, monkeypatch):
    monkeypatch.setattr('os.geteuid', lambda: 1000)
    host.expect(ADD, rc=1, err='smc_pnet: adding NET1 eth eth0: permission denied: run as root, that is with CAP_NET_ADMIN in the initial user namespace\n')
    assert host.fail(smc_pnet, **ENTRY)['msg'].endswith('; in a playbook: become: true')


def test_no_module(host):
    host.expect(ADD, rc=1, err="smc_pnet: SMC module not loaded: run 'modprobe smc', or use a kernel that has it\n")
    result = host.fail(smc_pnet, **ENTRY)
    assert result['msg'] == "smc_pnet: SMC module not loaded: run 'modprobe smc', or use a kernel that has it"
    assert result['rc'] == 1


def test_command_of_smc_tools(host):
    host.expect(ADD, rc=1, err="smc_pnet: unrecognized option '--json'\nTry 'smc_pnet -h'\n")
    assert 'is not that of smckit' in host.fail(smc_pnet, **ENTRY)['msg']


def test_silent_failure(host):
    host.expect(ADD, rc=139)
    assert host.fail(smc_pnet, **ENTRY)['msg'] == 'smc_pnet ended with status 139 and did not say why'


@pytest.mark.parametrize('out', ['', 'done\n', '[]', '{"schema": 1}'])
def test_other_document(host, out):
    host.expect('smcr ueid show', out)
    result = host.fail(smc_ueid, eids=['A'])
    assert 'did not print a document of schema 2' in result['msg'] and result['stdout'] == out


@pytest.mark.parametrize('protocols, loaded', [
    ('protocol  size sockets\nSMC6  1 0\nSMC   1 0\nTCP 1 0\n', True),
    ('protocol  size sockets\nSMCX  1 0\nTCP 1 0\n', False),
    (None, False),
])
def test_loaded(tmp_path, monkeypatch, protocols, loaded):
    path = tmp_path / 'protocols'
    if protocols is not None:
        path.write_text(protocols)
    monkeypatch.setattr('os.path.isdir', lambda p: False)
    real = open
    monkeypatch.setattr('builtins.open', lambda p, *more: real(str(path) if p == '/proc/net/protocols' else p, *more))
    assert smckit.smc_loaded() is loaded
