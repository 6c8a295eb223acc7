# SPDX-License-Identifier: Apache-2.0
"""Runs modules against commands that follow a script, and checks that they were called as it says."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os
import sys

import pytest

from ansible.module_utils import basic
from ansible.module_utils.common.text.converters import to_bytes

DOCUMENTS = os.path.join(os.path.dirname(__file__), 'documents')

# A command of the script. It answers the next call that the script has, if that is how it was called.
FAKE = '''#!%s
import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, 'script.json')) as f:
    script = json.load(f)
with open(os.path.join(here, 'calls.json')) as f:
    calls = json.load(f)
call = {'argv': [os.path.basename(sys.argv[0])] + sys.argv[1:], 'stdin': sys.stdin.read(), 'locale': os.environ.get('LC_ALL')}
n = len(calls)
calls.append(call)
with open(os.path.join(here, 'calls.json'), 'w') as f:
    json.dump(calls, f)
if n >= len(script) or call['argv'] != script[n]['argv'] or call['stdin'] != script[n]['stdin']:
    sys.stderr.write('not in the script: %%s\\n' %% json.dumps(call))
    sys.exit(99)
sys.stdout.write(script[n]['out'])
sys.stderr.write(script[n]['err'])
sys.exit(script[n]['rc'])
''' % sys.executable

TOOLS = ['smckit', 'smc_chk', 'smc_pnet', 'smc_policy', 'smcr', 'smcd', 'smc_rnics']


def document(name):
    """Returns a document as the command prints it. They are those of the tests of the commands, which a test compares."""
    with open(os.path.join(DOCUMENTS, name + '.json')) as f:
        return json.load(f)


class Host(object):
    """A host with commands that follow a script."""

    def __init__(self, directory, monkeypatch, capsys):
        self.directory, self.monkeypatch, self.capsys = str(directory), monkeypatch, capsys
        self.script, self.said = [], []
        self.install(TOOLS)
        monkeypatch.setenv('PATH', self.directory)
        # Programs that are installed on this machine do not count.
        monkeypatch.setattr('ansible_collections.smckit.smc.plugins.module_utils.smckit.EXTRA_DIRS', [])

    def install(self, tools):
        for tool in TOOLS:
            path = os.path.join(self.directory, tool)
            if tool in tools:
                with open(path, 'w') as f:
                    f.write(FAKE)
                os.chmod(path, 0o755)
            elif os.path.exists(path):
                os.remove(path)

    def expect(self, command, out='', rc=0, err='', stdin=''):
        """Adds a call to the script: the words of the command, and its answer, a document or a text."""
        if isinstance(out, dict):
            out = json.dumps(out)
        self.script.append(dict(argv=command.split() + ['--json'], out=out, rc=rc, err=err, stdin=stdin))

    def run(self, module, check=False, diff=False, **args):
        """Runs a module and returns its result. All of the script, and nothing else, must have been called."""
        for name, value in (('script', self.script), ('calls', [])):
            with open(os.path.join(self.directory, name + '.json'), 'w') as f:
                json.dump(value, f)
        args = dict(args, _ansible_check_mode=check, _ansible_diff=diff)
        self.monkeypatch.setattr(basic, '_ANSIBLE_ARGS', to_bytes(json.dumps({'ANSIBLE_MODULE_ARGS': args})))
        self.monkeypatch.setattr(basic, '_ANSIBLE_PROFILE', 'legacy', raising=False)
        with pytest.raises(SystemExit):
            module.main()
        result = json.loads(self.capsys.readouterr().out)
        with open(os.path.join(self.directory, 'calls.json')) as f:
            calls = json.load(f)
        assert [c['argv'] for c in calls] == [c['argv'] for c in self.script], result
        assert [c['stdin'] for c in calls] == [c['stdin'] for c in self.script]
        assert all(c['locale'] == 'C' for c in calls)
        record([c['argv'] for c in calls])
        self.script = []
        return result

    def fail(self, module, **args):
        result = self.run(module, **args)
        assert result.get('failed'), result
        return result

    def succeed(self, module, **args):
        result = self.run(module, **args)
        assert not result.get('failed'), result
        return result


def record(calls):
    """Tells whoever asks for it which command lines the modules make."""
    path = os.environ.get('SMCKIT_COMMAND_LINES')
    if path:
        with open(path, 'a') as f:
            for argv in calls:
                f.write(json.dumps(argv) + '\n')


@pytest.fixture
def host(tmp_path, monkeypatch, capsys):
    # The modules look for commands in places of the system, too.
    monkeypatch.setattr('os.geteuid', lambda: 0)
    return Host(tmp_path, monkeypatch, capsys)
