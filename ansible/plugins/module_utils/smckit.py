# SPDX-License-Identifier: Apache-2.0
"""What the modules share: calling the commands of smckit and telling their errors."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os
import subprocess

from ansible.module_utils.common.text.converters import to_bytes, to_native

# Where commands are that neither a package nor a narrow PATH, such as that of sudo, knows of.
EXTRA_DIRS = ['/usr/local/bin']

# The documents that these modules read. Fields may be added to them, none is removed or changes its meaning.
SCHEMA = 2


def tool_path(module, tool):
    """Returns the path of a command; the module fails if there is none."""
    path = module.get_bin_path(tool, opt_dirs=EXTRA_DIRS)
    if path is None:
        module.fail_json(
            msg='%s is not installed on this host: install the package smckit, which the role smckit.smc.smc does' % tool)
    return path


def call(module, tool, args, data=None):
    """Runs a command that must succeed. Returns the document that it prints and the lines of its remarks."""
    rc, out, err = run(module, tool, args, data)
    if rc != 0:
        module.fail_json(msg=reason(tool, rc, err), rc=rc, stderr=err)
    return parse(module, tool, out, err), err.splitlines()


def query(module, tool, args):
    """Runs a command whose exit status 1 may be part of an answer, such as a "no" or a list that changed while it was read.

    Returns the document that it prints, without the number of the schema, and None; or None and the reason of the failure.
    """
    rc, out, err = run(module, tool, args)
    document = decode(out)
    if rc not in (0, 1) or (rc == 1 and (document is None or 'error' in document)):
        return None, reason(tool, rc, err)
    document = parse(module, tool, out, err)
    warn(module, err.splitlines())
    del document['schema']
    return document, None


def decode(out):
    """Returns the document in the output of a command, None if it is none of the schema."""
    try:
        document = json.loads(out)
    except ValueError:
        return None
    return document if isinstance(document, dict) and document.get('schema') == SCHEMA else None


def parse(module, tool, out, err):
    """Returns the document that a command has printed; the module fails if it is none that it could read."""
    document = decode(out)
    if document is None:
        module.fail_json(
            msg='%s did not print a document of schema %d: its version does not fit that of the collection' % (tool, SCHEMA),
            rc=0, stdout=out, stderr=err)
    return document


def system_eid(document):
    """Returns the system EID and whether it is used, None if the host has none."""
    if 'seid' not in document:
        return None
    return {'eid': document['seid'], 'enabled': document['enabled']}


def run(module, tool, args, data=None):
    """Runs a command, with data for it to read if that is not None. Returns its exit status, and what it said.

    run_command() of ansible-core loses what a command says as its last, if that comes when it has just stopped waiting for
    it, as it does once a second; and what a command says of its failure is its last.
    """
    argv = [tool_path(module, tool)] + list(args) + ['--json']
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=pipe, close_fds=True, env=dict(os.environ, LC_ALL='C', LANGUAGE='C'))
        out, err = process.communicate(to_bytes(data or ''))
    except OSError as e:
        module.fail_json(msg='%s cannot be run: %s' % (argv[0], to_native(e)))
    return process.returncode, to_native(out), to_native(err)


def netns(module):
    """Returns the options of a command that has it work in the network namespace of the module's option."""
    name = module.params['netns']
    return ['-N', name] if name else []


def requested(module, subsets):
    """Returns those of the subsets that the option gather_subset asks for."""
    asked = module.params['gather_subset']
    return [s for s in subsets if 'all' in asked or s in asked]


def reason(tool, rc, err):
    """Makes one line of what a command says of its failure."""
    lines = [line for line in err.splitlines() if line.strip()]
    if any('--json' in line and 'option' in line for line in lines):
        return '%s is not that of smckit: install the package smckit, which takes the place of smc-tools' % tool
    # Remarks come before the error.
    msg = lines[-1].strip() if lines else '%s ended with status %d and did not say why' % (tool, rc)
    if 'run as root' in msg and os.geteuid() != 0:
        msg += '; in a playbook: become: true'
    return msg


def warn(module, lines):
    """Passes the remarks of commands on."""
    for line in lines:
        if line.strip():
            module.warn(line.strip())


def module_state(loaded):
    """Returns whether AF_SMC is loaded, and the version of the module if it has one."""
    state = {'loaded': loaded}
    try:
        with open('/sys/module/smc/version') as version:
            state['version'] = version.read().strip()
    except (IOError, OSError):
        pass
    return state


def smc_loaded():
    """Tells whether the kernel has AF_SMC. Asking AF_SMC itself would have the kernel load it."""
    if os.path.isdir('/sys/module/smc'):
        return True
    # Code of the kernel itself may have no entry there.
    try:
        with open('/proc/net/protocols') as protocols:
            return any(line.split()[:1] == ['SMC'] for line in protocols)
    except (IOError, OSError):
        return False
