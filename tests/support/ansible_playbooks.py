"""Runs the playbook in integrations/ansible with the real ansible-playbook, against a cluster.

In: a cluster and variables. Out: Ansible's output and counts. Never: uses settings of the user who runs the tests.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from support.clusters import KUBECTL, environment, kubectl
from support.deadlines import TEST_HANG_SECONDS
from support.paths import ROOT

ANSIBLE = ROOT / "integrations" / "ansible"
ROLES = ANSIBLE / "roles"
DEPLOY = ROLES / "validated_patterns_deploy"
SECRETS = ROLES / "validated_patterns_secrets"
PROGRAM = Path(sys.executable).parent / "ansible-playbook"

needs_ansible = pytest.mark.skipif(not PROGRAM.exists(), reason=f"ansible: there is none at {PROGRAM} (make install)")
needs_kubectl = pytest.mark.skipif(not KUBECTL.exists(), reason=f"kubectl: there is none at {KUBECTL} (make install)")


class Reachable(Protocol):
    """A cluster: a sandbox, or a real one."""

    kubeconfig: Path


class Run(NamedTuple):
    code: int
    text: str  # stdout and stderr
    changed: int
    failed: int

    @property
    def words(self) -> str:
        """The output as one line, because Ansible wraps and escapes lines unpredictably."""
        return re.sub(r"\s+", " ", self.text.replace("\\n", " ").replace('\\"', '"'))


def play(running: Reachable, *flags: object, client: Path = KUBECTL, **variables: Any) -> Run:
    """Run the playbook without delays between retries."""
    home = running.kubeconfig.parent.with_name(f"{running.kubeconfig.parent.name}-ansible-home")
    home.mkdir(exist_ok=True)
    all_variables = {
        "kubectl": str(client),
        "kubeconfig": str(running.kubeconfig),
        "wait_retries": 100,
        "wait_delay": 0,
    }
    settings = {f"validated_patterns_{name}": value for name, value in {**all_variables, **variables}.items()}
    env = {**environment(home), "LC_ALL": "C.UTF-8", "ANSIBLE_NOCOLOR": "1", "COLUMNS": "400"}
    done = subprocess.run(
        [str(PROGRAM), "playbook.yml", *map(str, flags), "-e", json.dumps(settings)],
        cwd=ANSIBLE, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=TEST_HANG_SECONDS,
    )  # fmt: skip
    text = done.stdout + done.stderr
    counted = re.search(r"changed=(\d+) .* failed=(\d+)", text)
    assert counted, text
    return Run(done.returncode, text, int(counted[1]), int(counted[2]))


def create_recording_kubectl(folder: Path, before: str = "") -> Path:
    """Create a kubectl wrapper that records its arguments, and may run something else first."""
    program = folder / "noted-kubectl"
    program.write_text(f'#!/bin/sh\necho "$*" >> "{folder}/calls"\n{before}\nexec "{KUBECTL}" "$@"\n')
    program.chmod(0o755)
    return program


def ask(running: Reachable, *words: object, stdin: str | None = None) -> str:
    done = kubectl(running.kubeconfig, *words, input=stdin)
    assert done.code == 0, done.err
    return done.out


def read(running: Reachable, *words: object) -> Any:
    return json.loads(ask(running, "get", *words, "-o", "json"))
