# SPDX-License-Identifier: Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import pytest

from ansible_collections.smckit.smc.plugins.modules import smc_pnet

ETH = {'pnet_id': 'NET1', 'type': 'eth', 'device': 'eth0'}
IB = {'pnet_id': 'NET1', 'type': 'ib', 'device': 'mlx5_0', 'port': 2}
ETH_LINE = 'add NET1 eth eth0\n'
IB_LINE = 'add NET1 ib mlx5_0 2\n'


def changes(added=(), removed=(), before='', after='', check=False):
    return {
        'schema': 2, 'changed': bool(added or removed), 'check': check, 'entries_added': list(added), 'entries_removed': list(removed),
        'diff': {'before': before, 'after': after},
    }


def test_adds_one(host):
    host.expect('smc_pnet add NET1 eth eth0 --diff', changes(added=[ETH], after=ETH_LINE))
    result = host.succeed(smc_pnet, **ETH)
    assert result['changed'] and result['added'] == [ETH] and result['removed'] == []
    assert 'diff' not in result


def test_has_it_already(host):
    host.expect('smc_pnet add NET1 eth eth0 --diff', changes(before=ETH_LINE, after=ETH_LINE))
    assert not host.succeed(smc_pnet, **ETH)['changed']


def test_port_force_netns_and_small_letters(host):
    host.expect('smc_pnet add net1 ib mlx5_0 2 --diff --force -N blue', changes(added=[IB], after=IB_LINE))
    host.succeed(smc_pnet, pnet_id='net1', type='ib', device='mlx5_0', port=2, force=True, netns='blue')


def test_check_and_diff(host):
    host.expect('smc_pnet add NET1 eth eth0 --diff --check', changes(added=[ETH], before=IB_LINE, after=IB_LINE + ETH_LINE, check=True))
    result = host.succeed(smc_pnet, check=True, diff=True, **ETH)
    assert result['changed']
    assert result['diff']['before'] == IB_LINE
    assert result['diff']['after'] == IB_LINE + ETH_LINE


def test_several_in_check_mode(host):
    host.expect('smc_pnet add NET1 eth eth0 --diff --check', changes(added=[ETH], before='add A eth a\n', after='add A eth a\n' + ETH_LINE))
    host.expect('smc_pnet add NET1 ib mlx5_0 2 --diff --check', changes(added=[IB], before='add A eth a\n', after='add A eth a\n' + IB_LINE))
    result = host.succeed(smc_pnet, check=True, diff=True, entries=[ETH, IB])
    assert result['added'] == [ETH, IB]
    assert result['diff']['after'] == 'add A eth a\n' + ETH_LINE + IB_LINE


def test_adds_several(host):
    host.expect('smc_pnet add NET1 eth eth0 --diff --check', changes(added=[ETH], after=ETH_LINE))
    host.expect('smc_pnet add NET1 ib mlx5_0 2 --diff --check', changes(added=[IB], after=IB_LINE))
    host.expect('smc_pnet add NET1 eth eth0 --diff', changes(added=[ETH], after=ETH_LINE))
    host.expect('smc_pnet add NET1 ib mlx5_0 2 --diff', changes(added=[IB], before=ETH_LINE, after=ETH_LINE + IB_LINE))
    result = host.succeed(smc_pnet, diff=True, entries=[ETH, IB])
    assert result['changed'] and result['added'] == [ETH, IB]
    assert result['diff']['before'] == '' and result['diff']['after'] == ETH_LINE + IB_LINE


def test_has_several_already(host):
    both = ETH_LINE + IB_LINE
    host.expect('smc_pnet add NET1 eth eth0 --diff --check', changes(before=both, after=both))
    host.expect('smc_pnet add NET1 ib mlx5_0 2 --diff --check', changes(before=both, after=both))
    assert not host.succeed(smc_pnet, entries=[ETH, IB])['changed']


def test_changes_nothing_if_one_cannot_be(host):
    host.expect('smc_pnet add NET1 eth eth0 --diff --check', changes(added=[ETH], after=ETH_LINE))
    host.expect('smc_pnet add NET1 ib mlx5_0 2 --diff --check', rc=1, err='smc_pnet: there is no RDMA device "mlx5_0"\n')
    result = host.fail(smc_pnet, entries=[ETH, IB])
    assert result['msg'] == 'smc_pnet: there is no RDMA device "mlx5_0"'
    assert result['rc'] == 1 and 'mlx5_0' in result['stderr']
    assert not result.get('changed')


def test_takes_back_what_it_has_done(host):
    host.expect('smc_pnet add NET1 eth eth0 --diff --check', changes(added=[ETH], before='add A eth a\n', after='add A eth a\n' + ETH_LINE))
    host.expect('smc_pnet add NET1 ib mlx5_0 2 --diff --check', changes(added=[IB], before='add A eth a\n', after='add A eth a\n' + IB_LINE))
    host.expect('smc_pnet add NET1 eth eth0 --diff', changes(added=[ETH], before='add A eth a\n', after='add A eth a\n' + ETH_LINE))
    host.expect('smc_pnet add NET1 ib mlx5_0 2 --diff', rc=1, err='smc_pnet: the kernel says no\n')
    host.expect('smc_pnet del NET1 eth eth0 --ignore-missing', changes())
    result = host.fail(smc_pnet, entries=[ETH, IB])
    assert result['msg'] == 'smc_pnet: the kernel says no' and not result.get('changed')


def test_says_so_if_it_cannot_take_back(host):
    host.expect('smc_pnet add NET1 eth eth0 --diff --check', changes(added=[ETH], after=ETH_LINE))
    host.expect('smc_pnet add NET1 ib mlx5_0 2 --diff --check', changes(added=[IB], after=IB_LINE))
    host.expect('smc_pnet add NET1 eth eth0 --diff', changes(added=[ETH], after=ETH_LINE))
    host.expect('smc_pnet add NET1 ib mlx5_0 2 --diff', rc=1, err='smc_pnet: no\n')
    host.expect('smc_pnet del NET1 eth eth0 --ignore-missing', rc=1, err='smc_pnet: no again\n')
    result = host.fail(smc_pnet, entries=[ETH, IB])
    assert result['msg'] == 'smc_pnet: no; and not all changes could be undone: smc_pnet: no again'
    assert result['changed']


def test_takes_back_what_it_has_removed(host):
    """Others have added an entry meanwhile, which stays: only the module's own changes are undone."""
    third = {'pnet_id': 'OLD', 'type': 'eth', 'device': 'eth9'}
    for entry, line in ((ETH, 'NET1 eth eth0'), (IB, 'NET1 ib mlx5_0 2'), (third, 'OLD eth eth9')):
        host.expect('smc_pnet del %s --ignore-missing --diff --check -N blue' % line, changes(removed=[entry]))
    host.expect('smc_pnet del NET1 eth eth0 --ignore-missing --diff -N blue', changes(removed=[ETH]))
    host.expect('smc_pnet del NET1 ib mlx5_0 2 --ignore-missing --diff -N blue', changes(removed=[IB]))
    host.expect('smc_pnet del OLD eth eth9 --ignore-missing --diff -N blue', rc=1, err='smc_pnet: no\n')
    host.expect('smc_pnet add NET1 eth eth0 --force -N blue', rc=1, err='smc_pnet: eth0 is in NET7\n')
    host.expect('smc_pnet add NET1 ib mlx5_0 2 --force -N blue', changes(added=[IB]))
    result = host.fail(smc_pnet, state='absent', entries=[ETH, IB, third], netns='blue')
    assert result['msg'] == 'smc_pnet: no; and not all changes could be undone: smc_pnet: eth0 is in NET7'
    assert result['changed']


def test_removes_one_whatever_its_port(host):
    host.expect('smc_pnet del NET1 ib mlx5_0 --ignore-missing --diff', changes(removed=[IB], before=IB_LINE))
    result = host.succeed(smc_pnet, pnet_id='NET1', type='ib', device='mlx5_0', state='absent')
    assert result['removed'] == [IB]


def test_removes_a_pnet_id(host):
    host.expect('smc_pnet del NET1 --ignore-missing --diff --check', changes(removed=[ETH, IB], before=ETH_LINE + IB_LINE, check=True))
    result = host.succeed(smc_pnet, pnet_id='NET1', state='absent', check=True, diff=True)
    assert result['removed'] == [ETH, IB] and result['diff']['after'] == ''


def test_makes_the_table_exact(host):
    host.expect('smc_pnet apply - --diff -N blue', changes(added=[IB], removed=[ETH], before=ETH_LINE, after=IB_LINE), stdin=IB_LINE)
    result = host.succeed(smc_pnet, entries=[IB], state='exact', netns='blue', diff=True)
    assert result['added'] == [IB] and result['removed'] == [ETH]
    assert result['diff']['before'] == ETH_LINE and result['diff']['after'] == IB_LINE


def test_predicts_the_exact_table(host):
    host.expect('smc_pnet apply - --diff --check --force', changes(added=[IB], after=IB_LINE, check=True), stdin='# mine\n' + IB_LINE)
    assert host.succeed(smc_pnet, table='# mine\n' + IB_LINE, state='exact', force=True, check=True)['changed']


def test_empties_the_table(host):
    host.expect('smc_pnet apply - --diff', changes(removed=[ETH], before=ETH_LINE), stdin='')
    assert host.succeed(smc_pnet, entries=[], state='exact')['removed'] == [ETH]


def test_passes_remarks_on(host):
    host.expect('smc_pnet add NET1 eth eth0 --diff', changes(added=[ETH], after=ETH_LINE), err='smc_pnet: mind the gap\n')
    assert host.succeed(smc_pnet, **ETH)['warnings'][-1] == 'smc_pnet: mind the gap'


@pytest.mark.parametrize('args, msg', [
    (dict(), 'one of the following is required'),
    (dict(pnet_id='A', entries=[]), 'mutually exclusive'),
    (dict(table='', entries=[], state='exact'), 'mutually exclusive'),
    (dict(table=''), 'table is for state=exact'),
    (dict(pnet_id='A'), 'entry "A": type and device are missing'),
    (dict(pnet_id='A', type='eth'), 'type and device belong together'),
    (dict(pnet_id='A', device='eth0', state='absent'), 'type and device belong together'),
    (dict(pnet_id='A', type='eth', device='eth0', port=1), 'only an entry of type ib has a port'),
    (dict(pnet_id='A', type='ib', device='x', port=3), 'value of port must be one of'),
    (dict(pnet_id='A', type='wifi', device='x'), 'value of type must be one of'),
    (dict(pnet_id='A', state='gone'), 'value of state must be one of'),
    (dict(entries=[{'type': 'eth', 'device': 'eth0'}]), 'missing required arguments: pnet_id'),
    (dict(pnet_id='-f', state='absent'), 'pnet_id cannot be "-f"'),
    (dict(pnet_id='', state='absent'), 'pnet_id cannot be ""'),
    (dict(pnet_id='A', type='eth', device='x\nadd B eth y', state='exact'), 'device cannot be'),
    (dict(pnet_id='A', type='eth', device='#x', state='exact'), 'device cannot be'),
    (dict(entries=[ETH, dict(ETH, pnet_id='B')]), 'eth eth0 is given twice'),
    (dict(entries=[dict(IB, port=1), IB], state='exact'), 'ib mlx5_0 is given twice'),
])
def test_refuses(host, args, msg):
    assert msg in host.fail(smc_pnet, **args)['msg']
