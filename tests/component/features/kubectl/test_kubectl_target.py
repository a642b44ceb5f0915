"""`argosy kubectl` and `argosy oc` choose the cluster like all other commands, and pass the choice to kubectl."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.cli.sandbox_data_folder_and_lock import DataFolder, RunningInstance
from argosy.kube.objects import dump_yaml, read_yaml
from support.clusters import Finished
from support.deadlines import HANG_SECONDS
from support.forked_commands import run

KUBECTL = Path(sys.executable).parent / "kubectl"
PROGRAM = '#!/bin/sh\necho "${KUBECONFIG-none}" "$@"\n'  # stub of kubectl: prints KUBECONFIG and its arguments


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    program = tmp_path / "real-kubectl"
    program.write_text(PROGRAM)
    program.chmod(0o700)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    inherited_env = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "ARGOSY_CONTEXT")}
    return {**inherited_env, "HOME": str(tmp_path), "ARGOSY_KUBECTL": str(program)}


@contextlib.contextmanager
def running_sandbox(kubeconfig: str = "/sandbox/kubeconfig", context: str = "") -> Iterator[None]:
    folder = DataFolder()
    with folder.lock_for_this_process():
        folder.write_run(
            RunningInstance(os.getpid(), "https://127.0.0.1:1", kubeconfig, str(folder.root), context=context)
        )
        yield


def typed(line: str, environment: dict[str, str], **more: str) -> Finished:
    return Finished(*run(line.split(), env={**environment, **more}, input="", timeout=HANG_SECONDS), 0.0)


def kubeconfig(file: Path, *names: str) -> Path:
    clusters = [{"name": name, "cluster": {"server": f"https://{name}.example.com"}} for name in names]
    contexts = [{"name": name, "context": {"cluster": name}} for name in names]
    file.parent.mkdir(exist_ok=True)
    file.write_text(dump_yaml({"current-context": names[0], "contexts": contexts, "clusters": clusters}))
    return file


def chosen(said: Finished) -> tuple[str, str, str]:
    """The current context as kubectl sees it, the user's kubeconfig, and the arguments of kubectl."""
    paths, _, words = said.out.rstrip("\n").partition(" ")
    first, _, rest = paths.partition(os.pathsep)
    current = read_yaml(Path(first).read_bytes(), where=first)
    return current["current-context"], rest, words


def test_running_sandbox_is_the_default_unless_a_flag_selects_a_cluster(environment: dict[str, str]) -> None:
    with running_sandbox():
        assert typed("kubectl get pods", environment).out == "/sandbox/kubeconfig get pods\n"
        for flag in ("--context prod", "--context=prod", "--kubeconfig x", "--server=https://x", "-s https://x"):
            assert typed(f"kubectl {flag} get pods", environment).out == f"none {flag} get pods\n"
        result = typed("kubectl exec web -- sh --context x", environment)  # --context is for the program in the Pod
        assert result.out == "/sandbox/kubeconfig exec web -- sh --context x\n"
    assert typed("kubectl get pods", environment).out == "none get pods\n"


def test_argosy_context_overrides_a_running_sandbox(environment: dict[str, str], tmp_path: Path) -> None:
    kubeconfig_path = str(kubeconfig(tmp_path / "mine", "dev", "prod"))
    environment |= {"KUBECONFIG": kubeconfig_path, "ARGOSY_CONTEXT": "prod"}
    with running_sandbox():
        assert chosen(typed("kubectl get pods -- x", environment)) == ("prod", kubeconfig_path, "get pods -- x")
        result = typed("kubectl get pods --context dev", environment)
        assert result.out == f"{kubeconfig_path} get pods --context dev\n"
        result = typed("oc project models", environment)
        assert result.out == f"{kubeconfig_path} config set-context prod --namespace models\n"


def test_argosy_context_is_resolved_in_the_default_kubeconfig(environment: dict[str, str], tmp_path: Path) -> None:
    usual = str(kubeconfig(tmp_path / ".kube" / "config", "dev", "prod"))
    assert chosen(typed("kubectl get pods", environment, ARGOSY_CONTEXT="prod")) == ("prod", usual, "get pods")


def test_sandbox_in_a_shared_kubeconfig_is_selected_by_context(environment: dict[str, str], tmp_path: Path) -> None:
    """Another context may be current in that file."""
    shared = str(kubeconfig(tmp_path / "shared", "prod", "argosy-sandbox"))
    with running_sandbox(shared, "argosy-sandbox"):
        assert chosen(typed("kubectl get pods", environment)) == ("argosy-sandbox", shared, "get pods")
        result = typed("oc project models", environment)
        assert result.out == f"{shared} config set-context argosy-sandbox --namespace models\n"


def test_unknown_context_is_an_error(environment: dict[str, str], tmp_path: Path) -> None:
    kubeconfig_path = kubeconfig(tmp_path / "mine", "dev", "prod")
    for line in ("oc project models", "kubectl get pods"):
        result = typed(line, environment, KUBECONFIG=str(kubeconfig_path), ARGOSY_CONTEXT="nope")
        assert (result.code, result.out) == (1, "")
        assert result.err == (
            "error: kubeconfig: context \"nope\" does not exist (ARGOSY_CONTEXT is set to 'nope'); "
            "correct or unset ARGOSY_CONTEXT, or choose one of: dev, prod\n"
        )
    with running_sandbox(str(kubeconfig_path), "argosy-sandbox"):
        result = typed("oc project models", environment)
        assert (result.code, result.out) == (1, "") and 'context "argosy-sandbox" does not exist' in result.err


def test_oc_project_requires_an_existing_current_context(environment: dict[str, str], tmp_path: Path) -> None:
    kubeconfig_path = kubeconfig(tmp_path / "mine", "dev")
    kubeconfig_path.write_text(kubeconfig_path.read_text().replace("current-context: dev", "current-context: nope"))
    result = typed("oc project models", environment, KUBECONFIG=str(kubeconfig_path))
    assert (result.code, result.out) == (1, "") and 'context "nope" does not exist; choose one of: dev' in result.err


def test_local_commands_run_with_an_unknown_argosy_context(environment: dict[str, str]) -> None:
    assert typed("kubectl config view", environment, ARGOSY_CONTEXT="nope").out == "none config view\n"
    assert typed("kubectl version --client", environment, ARGOSY_CONTEXT="nope").out.endswith(" version --client\n")


@pytest.mark.skipif(not KUBECTL.exists(), reason="there is no kubectl beside this Python (make install)")
def test_two_word_plugin_gets_its_arguments_and_the_chosen_context(environment: dict[str, str], tmp_path: Path) -> None:
    """The real kubectl finds a plug-in by the words before the first flag."""
    kubeconfig_path = str(kubeconfig(tmp_path / "mine", "dev", "prod"))
    plug_in = tmp_path / "kubectl-argo-rollouts"
    plug_in.write_text(f'#!/bin/sh\necho "$@" at $({KUBECTL} config current-context)\n')
    plug_in.chmod(0o700)
    environment |= {"ARGOSY_KUBECTL": str(KUBECTL), "PATH": f"{tmp_path}:{environment['PATH']}"}
    result = typed(
        "kubectl argo rollouts list -n ml -- x", environment, KUBECONFIG=kubeconfig_path, ARGOSY_CONTEXT="prod"
    )
    assert (result.out, result.err) == ("list -n ml -- x at prod\n", "")
    with running_sandbox(kubeconfig_path, "prod"):
        assert typed("kubectl argo rollouts list", environment).out == "list at prod\n"


@pytest.mark.skipif(not KUBECTL.exists(), reason="there is no kubectl beside this Python (make install)")
@pytest.mark.parametrize("line", ["get pods", "exec web -- sh --context dev", "run web --image=x -- y", "logs web"])
def test_real_kubectl_connects_to_the_chosen_context(environment: dict[str, str], tmp_path: Path, line: str) -> None:
    kubeconfig_path = kubeconfig(tmp_path / "mine", "dev", "prod")
    kubeconfig_path.write_text(
        kubeconfig_path.read_text().replace("https://prod.example.com", "http://127.0.0.1:1")
    )  # nothing listens
    environment |= {"ARGOSY_KUBECTL": str(KUBECTL), "KUBECONFIG": str(kubeconfig_path), "ARGOSY_CONTEXT": "prod"}
    result = typed(f"kubectl {line}", environment)
    assert result.code == 1 and "The connection to the server 127.0.0.1:1 was refused" in result.err


def test_kubeconfig_variable_overrides_a_running_sandbox(environment: dict[str, str], tmp_path: Path) -> None:
    kubeconfig_path = str(kubeconfig(tmp_path / "mine", "mine"))
    with running_sandbox():
        assert typed("kubectl get pods", environment, KUBECONFIG=kubeconfig_path).out == f"{kubeconfig_path} get pods\n"


@pytest.mark.parametrize("program", ["real", "none"])
def test_missing_kubeconfig_is_an_error(environment: dict[str, str], program: str) -> None:
    more = {"KUBECONFIG": "/nonexistent"} | ({"ARGOSY_KUBECTL": "none"} if program == "none" else {})
    with running_sandbox():
        for line in ("kubectl get pods", "oc delete pod web"):
            result = typed(line, environment, **more)
            assert result.code == 1 and result.out == ""
            assert "no kubeconfig at /nonexistent, which KUBECONFIG names" in result.err


def test_local_commands_need_no_kubeconfig(environment: dict[str, str]) -> None:
    for words in ("config view", "version --client", "create ns a --dry-run=client", "get --help"):
        result = typed(f"kubectl {words}", environment, KUBECONFIG="/nonexistent")
        assert result.out == f"/nonexistent {words}\n"


def test_builtin_kubectl_uses_argosy_context(environment: dict[str, str], tmp_path: Path) -> None:
    more = {"KUBECONFIG": str(kubeconfig(tmp_path / "mine", "mine")), "ARGOSY_CONTEXT": "gone"}
    result = typed("kubectl get pods", environment, ARGOSY_KUBECTL="none", **more)
    assert result.code == 1 and "context \"gone\" does not exist (ARGOSY_CONTEXT is set to 'gone')" in result.err


def test_builtin_kubectl_ignores_argosy_context_if_kubeconfig_flag_is_set(
    environment: dict[str, str], tmp_path: Path
) -> None:
    kubeconfig_path = kubeconfig(tmp_path / "mine", "mine")
    result = typed(
        f"oc --kubeconfig {kubeconfig_path} project", environment, ARGOSY_KUBECTL="none", ARGOSY_CONTEXT="gone"
    )
    assert result.out == 'Using project "default" on server "https://mine.example.com".\n'


@pytest.mark.parametrize("flag", [["--context", ""], ["--kubeconfig="], ["--context="], ["--kubeconfig", ""]], ids=str)
def test_empty_context_or_kubeconfig_flag_selects_running_sandbox(environment: dict[str, str], flag: list[str]) -> None:
    """kubectl treats an empty flag as unset: the running sandbox is used, not ~/.kube/config."""
    with running_sandbox():
        finished = run(["kubectl", "get", "pods", *flag], env=environment, input="", timeout=HANG_SECONDS)
    assert Finished(*finished, 0.0).out.split()[0] == "/sandbox/kubeconfig"
