"""`argosy kubectl` and `argosy oc` choose their cluster as every other command does, and pass the choice to kubectl."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.app.folder import DataFolder, Run
from argosy.model.manifest import dump
from support.clusters import Finished
from support.deadlines import HANG_SECONDS
from support.forked_commands import run

PROGRAM = '#!/bin/sh\necho "${KUBECONFIG-none}" "$@"\n'  # stands for the real kubectl: prints what it was told


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    program = tmp_path / "real-kubectl"
    program.write_text(PROGRAM)
    program.chmod(0o700)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    kept = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "ARGOSY_CONTEXT")}
    return {**kept, "HOME": str(tmp_path), "ARGOSY_KUBECTL": str(program)}


@contextlib.contextmanager
def running_sandbox(kubeconfig: str = "/sandbox/kubeconfig", context: str = "") -> Iterator[None]:
    folder = DataFolder()
    with folder.owned():
        folder.write_run(Run(os.getpid(), "https://127.0.0.1:1", kubeconfig, str(folder.root), context=context))
        yield


def typed(line: str, environment: dict[str, str], **more: str) -> Finished:
    return Finished(*run(line.split(), env={**environment, **more}, input="", timeout=HANG_SECONDS), 0.0)


def kubeconfig(file: Path, name: str) -> Path:
    cluster = {"name": name, "cluster": {"server": f"https://{name}.example.com"}}
    contexts = [{"name": name, "context": {"cluster": name}}]
    file.write_text(dump({"current-context": name, "contexts": contexts, "clusters": [cluster]}))
    return file


def test_the_running_sandbox_is_meant_unless_something_says_otherwise(environment: dict[str, str]) -> None:
    with running_sandbox():
        assert typed("kubectl get pods", environment).out == "/sandbox/kubeconfig get pods\n"
        for flag in ("--context prod", "--context=prod", "--kubeconfig x", "--server=https://x", "-s https://x"):
            assert typed(f"kubectl {flag} get pods", environment).out == f"none {flag} get pods\n"
        said = typed("kubectl exec web -- sh --context x", environment)  # for the program in the Pod
        assert said.out == "/sandbox/kubeconfig exec web -- sh --context x\n"
    assert typed("kubectl get pods", environment).out == "none get pods\n"


def test_argosy_context_goes_before_a_running_sandbox(environment: dict[str, str]) -> None:
    with running_sandbox():
        said = typed("kubectl get pods -- x", environment, ARGOSY_CONTEXT="prod")
        assert said.out == "none get --context=prod pods -- x\n"
        said = typed("kubectl get pods --context dev", environment, ARGOSY_CONTEXT="prod")
        assert said.out == "none get pods --context dev\n"
        said = typed("oc project models", environment, ARGOSY_CONTEXT="prod")
        assert said.out == "none config set-context prod --namespace models\n"


def test_a_sandbox_in_a_shared_kubeconfig_is_named_by_its_context(environment: dict[str, str]) -> None:
    """Another context may be current in that file."""
    with running_sandbox("/home/config", "argosy-sandbox"):
        said = typed("kubectl get pods", environment)
        assert said.out == "/home/config get --context=argosy-sandbox pods\n"
        said = typed("oc project models", environment)
        assert said.out == "/home/config config set-context argosy-sandbox --namespace models\n"


def test_kubeconfig_goes_before_a_running_sandbox(environment: dict[str, str], tmp_path: Path) -> None:
    mine = str(kubeconfig(tmp_path / "mine", "mine"))
    with running_sandbox():
        assert typed("kubectl get pods", environment, KUBECONFIG=mine).out == f"{mine} get pods\n"


@pytest.mark.parametrize("program", ["real", "none"])
def test_a_kubeconfig_that_does_not_exist_is_an_error(environment: dict[str, str], program: str) -> None:
    more = {"KUBECONFIG": "/nonexistent"} | ({"ARGOSY_KUBECTL": "none"} if program == "none" else {})
    with running_sandbox():
        for line in ("kubectl get pods", "oc delete pod web"):
            said = typed(line, environment, **more)
            assert said.code == 1 and said.out == ""
            assert "no kubeconfig at /nonexistent, which KUBECONFIG names" in said.err


def test_what_asks_no_cluster_needs_no_kubeconfig(environment: dict[str, str]) -> None:
    for words in ("config view", "version --client", "create ns a --dry-run=client", "get --help"):
        said = typed(f"kubectl {words}", environment, KUBECONFIG="/nonexistent")
        assert said.out == f"/nonexistent {words}\n"


def test_the_small_kubectl_goes_by_argosy_context(environment: dict[str, str], tmp_path: Path) -> None:
    more = {"KUBECONFIG": str(kubeconfig(tmp_path / "mine", "mine")), "ARGOSY_CONTEXT": "gone"}
    said = typed("kubectl get pods", environment, ARGOSY_KUBECTL="none", **more)
    assert said.code == 1 and 'context "gone" does not exist; choose one of: mine' in said.err


def test_the_small_kubectl_ignores_argosy_context_if_a_flag_names_the_file(
    environment: dict[str, str], tmp_path: Path
) -> None:
    mine = kubeconfig(tmp_path / "mine", "mine")
    said = typed(f"oc --kubeconfig {mine} project", environment, ARGOSY_KUBECTL="none", ARGOSY_CONTEXT="gone")
    assert said.out == 'Using project "default" on server "https://mine.example.com".\n'
