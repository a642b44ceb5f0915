"""Runs the examples of the docs: the Python code as written, and the shell sessions against a sandbox."""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from argosy.kube.objects import key_of
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SESSION = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
KUBECTL = shutil.which("kubectl", path=str(ROOT / ".venv" / "bin"))
ENDLESS = "…"  # the page omits the rest


def python_in(page: str) -> str:
    return "\n".join(PYTHON.findall((ROOT / page).read_text()))


async def run_python(text: str) -> dict[str, Any]:
    code = compile(text, "example", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    module = types.ModuleType("example")
    if code.co_flags & inspect.CO_COROUTINE:
        await types.FunctionType(code, module.__dict__)()
    else:
        exec(code, module.__dict__)
    return module.__dict__


def test_embedded_cluster_example_runs() -> None:
    variables = asyncio.run(run_python(python_in("docs/concepts/embedded-cluster.md")))
    assert variables["made"]["data"] == {"mode": "fast"}


def test_controller_example_reconciles_a_config_map() -> None:
    async def main() -> None:
        example = await run_python(python_in("docs/concepts/controller-runtime.md"))
        metadata = {"name": "settings", "namespace": "default"}
        async with EmbeddedCluster.open() as cluster:
            config_map = await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
            running = asyncio.create_task(example["run"]([example["Greeter"]()], cluster))
            async with asyncio.timeout(HANG_SECONDS):
                while (await cluster.get(key_of(config_map)) or {}).get("data") != {"greeting": "hello"}:
                    await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())


# -- shell sessions ------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    command: str
    output: str


def steps_in(page: str) -> list[Step]:
    """Commands after `$ `, each with the output that the page shows."""
    steps: list[Step] = []
    for session in SESSION.findall((DOCS / page).read_text()):
        for line in session.splitlines():
            if line.startswith("$ "):
                steps.append(Step(line[2:], ""))
            else:
                steps[-1] = Step(steps[-1].command, steps[-1].output + line + "\n")
    return steps


def plain(text: str) -> list[str]:
    """Output without what differs between runs: ages, random names, column widths, file paths."""
    text = re.sub(r"(/[\w.\-]+)*/(kubeconfig|team-a|sandbox)\b", "PLACE", text)
    text = re.sub(r"\b\d+m?s\b", "AGE", text)
    text = re.sub(r"pid \d+", "pid N", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", text)
    text = re.sub(r"user-alice-\w+", "user-alice", text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Any]:
    """A folder with the files that the pages mention, a running sandbox, and a function that runs commands in it."""
    if not KUBECTL:
        pytest.skip("no kubectl in .venv/bin: make install")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "argosy").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m argosy "$@"\n')
    (programs / "argosy").chmod(0o755)
    (programs / "kubectl").symlink_to(KUBECTL)
    state = tmp_path / "state"
    env = {
        "HOME": str(tmp_path),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "XDG_STATE_HOME": str(state),
        "KUBECONFIG": str(state / "argosy/sandbox/kubeconfig"),
    }
    (tmp_path / "settings.yaml").write_text(SETTINGS)
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/models.yaml").write_text(CHURN + "---\n" + DEFINITION)
    (tmp_path / "definition.yaml").write_text(DEFINITION)
    (tmp_path / "churn.yaml").write_text(CHURN)
    started: list[subprocess.Popen[str]] = []

    def start(*flags: str) -> None:
        command = [str(programs / "argosy"), "sandbox", "start", *flags]
        process = subprocess.Popen(command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        assert "sandbox ready" in process.stdout.readline()

    def enter(command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            check=False,
            env=env,
            cwd=tmp_path,
            text=True,
            timeout=HANG_SECONDS,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return done.stdout

    yield types.SimpleNamespace(start=start, enter=enter)
    for process in started:
        process.terminate()
        process.wait(HANG_SECONDS)


SETTINGS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: fast}
"""
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: models.ml.example.com}
spec:
  group: ml.example.com
  names: {kind: Model, plural: models, singular: model, shortNames: [mdl]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Replicas, type: integer, jsonPath: .spec.replicas}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {replicas: {type: integer, minimum: 0, default: 1}}
            x-kubernetes-validations: [{rule: "self.replicas <= 10", message: "at most ten"}]
"""
CHURN = """\
apiVersion: ml.example.com/v1
kind: Model
metadata: {name: churn, namespace: default}
spec: {}
"""


def check(shell: Any, page: str, *, first: str, last: str) -> None:
    """Run the steps from the one that begins with `first` to the last that ends in `last`; compare their output."""
    steps = steps_in(page)
    begin = next(number for number, step in enumerate(steps) if step.command.startswith(first))
    end = max(number for number, step in enumerate(steps) if step.command.endswith(last))
    assert begin <= end
    for command, documented_output in steps[begin : end + 1]:
        printed, expected = plain(shell.enter(command)), plain(documented_output)
        if any(ENDLESS in line for line in expected):
            expected = [line for line in expected if ENDLESS not in line]
            printed = [line for line in printed if line in expected]
        if expected:
            assert printed == expected, command


@pytest.mark.tier("all")
def test_users_and_rbac_session_prints_what_the_page_shows(shell: Any) -> None:
    shell.start("--rbac")
    check(shell, "guides/users-and-rbac.md", first="argosy sandbox user add", last="get configmaps")


def test_field_ownership_session_prints_what_the_page_shows(shell: Any) -> None:
    shell.start()
    check(shell, "guides/kubectl.md", first="kubectl apply --server-side", last="--force-conflicts -f settings.yaml")


@pytest.mark.tier("all")
def test_custom_resource_session_prints_what_the_page_shows(shell: Any) -> None:
    shell.start()
    check(shell, "guides/kubectl.md", first="kubectl apply -f definition.yaml", last=":-1}}'")


@pytest.mark.tier("all")
def test_sandbox_load_session_prints_what_the_page_shows(shell: Any) -> None:
    shell.start()
    check(shell, "guides/sandbox.md", first="argosy sandbox load", last="load -f manifests/")


@pytest.mark.tier("all")
def test_environments_session_prints_what_the_page_shows(shell: Any) -> None:
    shell.start("--addons", "argocd_operator")
    check(shell, "guides/environments.md", first="argosy init", last="setup status -f models/argosy.yaml")


def test_session_check_fails_when_output_differs(shell: Any) -> None:
    with pytest.raises(AssertionError, match="get pods"):
        check(shell, "guides/users-and-rbac.md", first="argosy sandbox user add", last="get pods")
