"""What .github holds: actions pinned by their commit, and nothing run but scripts of bin/ that exist.

    python3 tests/package/workflows.py

Prints a line per check and closes with `N passed, N failed`. Then it changes copies of the workflows, one mistake
each, and every mistake must be found.
"""
import glob
import os
import re
import subprocess
import sys

import yaml

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
#: Contexts whose text others choose: in a `run` they would be code.
FOREIGN = re.compile(r'\$\{\{(?!\s*matrix\.)')


def scripts_help(script, cache={}):
    if script not in cache:
        cache[script] = subprocess.run([os.path.join(TOP, script), '--help'], capture_output=True, text=True, check=False)
    return cache[script]


def expand(line, job):
    """The line with each value of the job's matrix, where it names one key."""
    matrix = job.get('strategy', {}).get('matrix', {})
    lines = [line]
    for key in set(re.findall(r'\$\{\{\s*matrix\.(\w+)\s*\}\}', line)):
        values = list(matrix.get(key, [])) + [row[key] for row in matrix.get('include', []) if key in row]
        if not values:
            return [line]
        lines = [re.sub(r'\$\{\{\s*matrix\.' + key + r'\s*\}\}', str(value), text) for text in lines for value in values]
    return lines


def known(kind, cache={}):
    """The names that bin/test and bin/matrix take."""
    if kind not in cache:
        listed = subprocess.run([os.path.join(TOP, 'bin', kind), '--list'], capture_output=True, text=True, check=False)
        if listed.returncode == 0:
            cache[kind] = {line.split()[0] for line in listed.stdout.splitlines() if line.strip()}
        else:
            with open(os.path.join(TOP, 'bin', kind)) as file:
                cache[kind] = set(re.search(r'^ALL=\((.*)\)$', file.read(), re.M).group(1).split())
    return cache[kind]


def check_run(where, command, job):
    problems = []
    for line in filter(None, (line.strip() for line in command.splitlines())):
        foreign = FOREIGN.search(line)
        if foreign:
            problems.append(f'{where}: text from outside in a command, use env: {line}')
        for text in expand(line, job):
            words = text.split()
            script = words[0]
            if not re.fullmatch(r'bin/[a-z-]+', script):
                problems.append(f'{where}: runs something else than a script of bin/: {text}')
                continue
            if not os.access(os.path.join(TOP, script), os.X_OK):
                problems.append(f'{where}: there is no {script}')
                continue
            if any(sign in text for sign in ('|', ';', '&', '>', '`', '$(')):
                problems.append(f'{where}: more than a call: {text}')
            help_text = scripts_help(script)
            if help_text.returncode != 0:
                problems.append(f'{where}: {script} --help fails')
            for option in (word for word in words[1:] if word.startswith('--')):
                if option not in help_text.stdout:
                    problems.append(f'{where}: {script} has no option {option}')
            names = [word for word in words[1:] if not word.startswith('-')]
            if script in ('bin/test', 'bin/matrix') and not any('matrix.' in name for name in names):
                for name in names:
                    if name not in known(script[4:]):
                        problems.append(f'{where}: {script} knows no {name}')
    return problems


def check_workflow(name, text):
    problems = []
    tree = yaml.safe_load(text)
    if tree.get('permissions') != {'contents': 'read'}:
        problems.append(f'{name}: permissions of the workflow must be contents: read')
    # YAML reads `on` as true.
    triggers = tree.get('on', tree.get(True))
    if 'pull_request_target' in triggers or 'workflow_run' in triggers:
        problems.append(f'{name}: pull_request_target and workflow_run run the code of others with rights')
    for uses in re.findall(r'^\s*(?:- )?uses:\s*(.*)$', text, re.M):
        if not re.fullmatch(r'[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*', uses):
            problems.append(f'{name}: not pinned by a commit, with its version as a comment: {uses}')
    needed = {}
    for key, job in tree['jobs'].items():
        where = f'{name}, {key}'
        if not 0 < job.get('timeout-minutes', 0) <= 120:
            problems.append(f'{where}: no time limit')
        needed[key] = [job['needs']] if isinstance(job.get('needs'), str) else job.get('needs', [])
        if not any('run' in step for step in job['steps']):
            problems.append(f'{where}: runs nothing')
        for step in job['steps']:
            if ('run' in step) == ('uses' in step):
                problems.append(f'{where}: a step either runs or uses something')
            if str(step.get('uses', '')).startswith('actions/checkout@') and step.get('with', {}).get('persist-credentials') is not False:
                problems.append(f'{where}: the checkout leaves its token behind')
            if 'run' in step:
                problems += check_run(where, step['run'], job)
    for key, names in needed.items():
        problems += [f'{name}, {key}: needs {other}, which is no job' for other in names if other not in tree['jobs']]
    return problems


def check_dependabot(text):
    tree = yaml.safe_load(text)
    followed = {update['package-ecosystem'] for update in tree['updates']}
    return [f'dependabot.yml: {system} is not followed' for system in ('cargo', 'github-actions') if system not in followed]


def read(folder):
    return {os.path.basename(path): open(path).read() for path in sorted(glob.glob(os.path.join(folder, 'workflows', '*.yml')))}


MISTAKES = {
    'a tag instead of a commit': ('ci.yml', r'@[0-9a-f]{40} # v7\.0\.1', '@v7'),
    'a commit without its version': ('ci.yml', r'(@[0-9a-f]{40}) # v7\.0\.1', r'\1'),
    'a command that is no script': ('ci.yml', r'run: bin/test\n', 'run: make test\n'),
    'a script that does not exist': ('ci.yml', r'run: bin/test\n', 'run: bin/tests\n'),
    'a suite that does not exist': ('ci.yml', r'run: bin/test style', 'run: bin/test styles'),
    'a system that does not exist': ('ci.yml', r'system: \[bookworm', 'system: [buster'),
    'an option that does not exist': ('ci.yml', r'bin/release --dry-run', 'bin/release --dryrun'),
    'a pipe behind the script': ('ci.yml', r'run: bin/setup\n', 'run: bin/setup | cat\n'),
    'text from outside in a command': ('split.yml', r'"\$TAG"', '${{ github.event.release.tag_name }}'),
    'rights for a whole workflow': ('release.yml', r'permissions:\n  contents: read', 'permissions:\n  contents: write'),
    'no time limit': ('release.yml', r'    timeout-minutes: 15\n', ''),
    'a job that does not exist': ('release.yml', r'needs: \[extension, ffi', 'needs: [extensions, ffi'),
    'code of others with rights': ('ci.yml', r'  pull_request:\n', '  pull_request_target:\n'),
    'a token that stays': ('ci.yml', r'persist-credentials: false', 'persist-credentials: true'),
}


def main():
    folder = os.path.join(TOP, '.github')
    passed = failed = 0

    def verdict(what, problems):
        nonlocal passed, failed
        print('FAILED ' if problems else 'ok     ', what)
        for problem in problems:
            print('       ', problem)
        passed, failed = passed + (not problems), failed + bool(problems)

    workflows = read(folder)
    verdict('there are workflows', [] if {'ci.yml', 'release.yml', 'split.yml'} <= set(workflows) else ['one is missing'])
    for name, text in workflows.items():
        verdict(name, check_workflow(name, text))
    verdict('dependabot.yml', check_dependabot(open(os.path.join(folder, 'dependabot.yml')).read()))
    for what, (name, old, new) in MISTAKES.items():
        changed = re.sub(old, new, workflows[name])
        if changed == workflows[name]:
            verdict(f'the mistake "{what}"', [f'{name} does not hold {old} any more: adapt the mistake'])
            continue
        verdict(f'the mistake "{what}" is found', [] if set(check_workflow(name, changed)) - set(check_workflow(name, workflows[name])) else ['it was not found'])
    print(f'{passed} passed, {failed} failed')
    return failed != 0


if __name__ == '__main__':
    sys.exit(main())
