"""Cluster target of a command: flags, ARGOSY_CONTEXT, KUBECONFIG, a running sandbox, ~/.kube/config."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.cli.application_service_connection import find_demo_repository
from argosy.cli.cluster_target import TargetOptions, find_target
from argosy.cli.sandbox_data_folder_and_lock import DataFolder, RunningInstance
from argosy.errors import UserError
from argosy.features.controller.process import choose_target
from argosy.kube.objects import dump_yaml


def kubeconfig(file: Path, *names: str) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": names[0],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in names],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example.com"}} for name in names],
        "users": [{"name": name, "user": {"token": "t"}} for name in names],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dump_yaml(document))
    return file


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("ARGOSY_CONTEXT", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def server(options: TargetOptions | None = None) -> str:
    return find_target(options or TargetOptions()).connection.server


def test_default_kubeconfig_is_used_without_other_settings(home: Path) -> None:
    kubeconfig(home / ".kube" / "config", "usual", "other")
    assert server() == "https://usual.example.com"


def test_kubeconfig_variable_overrides_default_kubeconfig(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig(home / ".kube" / "config", "usual")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(home / "mine", "mine")))
    assert server() == "https://mine.example.com"


@contextlib.contextmanager
def running_sandbox(api: str = "https://127.0.0.1:1", **details: str) -> Iterator[DataFolder]:
    folder = DataFolder()
    with folder.lock_for_this_process():
        folder.write_run(RunningInstance(os.getpid(), api, str(folder.kubeconfig), str(folder.root), **details))
        yield folder


def test_running_sandbox_takes_precedence_over_default_kubeconfig(home: Path) -> None:
    kubeconfig(home / ".kube" / "config", "usual")
    with running_sandbox():
        assert find_target(TargetOptions()).display_name == "the sandbox (https://127.0.0.1:1)"
    assert server() == "https://usual.example.com"


def test_kubeconfig_variable_takes_precedence_over_running_sandbox(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(home / "mine", "mine")))
    with running_sandbox():
        target = find_target(TargetOptions())
    assert (target.display_name, target.is_embedded) == ("context mine (https://mine.example.com)", False)


def test_missing_kubeconfig_file_is_an_error_even_with_a_running_sandbox(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(home / "gone"))
    with running_sandbox(), pytest.raises(UserError) as raised:
        find_target(TargetOptions())
    assert str(raised.value) == (
        f"kubeconfig: no kubeconfig at {home / 'gone'}, which KUBECONFIG names; "
        "correct or unset KUBECONFIG, or start a cluster with: argosy sandbox start"
    )


def test_empty_kubeconfig_variable_is_treated_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", os.pathsep):
        monkeypatch.setenv("KUBECONFIG", value)
        with running_sandbox():
            assert find_target(TargetOptions()).display_name == "the sandbox (https://127.0.0.1:1)"


def test_kubeconfig_of_the_sandbox_keeps_its_own_user_credentials(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with limited permissions must not become the administrator."""
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(home / "ann", "ann")))
    with running_sandbox("https://ann.example.com"):
        target = find_target(TargetOptions())
    assert (target.display_name, target.is_embedded) == ("the sandbox (https://ann.example.com)", True)
    assert (target.connection.token, target.connection.token_file) == ("t", "")


def test_argosy_context_is_looked_up_in_the_kubeconfig_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig(home / ".kube" / "config", "usual")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(home / "mine", "mine", "other")))
    monkeypatch.setenv("ARGOSY_CONTEXT", "other")
    with running_sandbox():
        assert server() == "https://other.example.com"


def test_controller_in_a_pod_honours_argosy_context_and_kubeconfig(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    kubeconfig(home / ".kube" / "config", "usual", "other")
    monkeypatch.setenv("ARGOSY_CONTEXT", "other")
    assert choose_target(TargetOptions()).connection.server == "https://other.example.com"
    monkeypatch.delenv("ARGOSY_CONTEXT")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(home / "mine", "mine")))
    assert choose_target(TargetOptions()).connection.server == "https://mine.example.com"


def test_demo_repository_is_used_only_if_the_demo_is_the_target(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_sandbox(name="demo", repository="/demo/models.git"):
        assert find_demo_repository(TargetOptions()) == Path("/demo/models.git")
        assert find_demo_repository(TargetOptions(data_dir=DataFolder().root)) == Path("/demo/models.git")
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(home / "mine", "mine")))
        assert find_demo_repository(TargetOptions()) is None
        monkeypatch.setenv("KUBECONFIG", str(home / "gone"))
        assert find_demo_repository(TargetOptions()) is None
        (home / "odd").write_text("contexts: [{name: c, context: foo}]")
        monkeypatch.setenv("KUBECONFIG", str(home / "odd"))
        assert find_demo_repository(TargetOptions()) is None


def test_sandbox_in_another_folder_is_displayed_with_its_folder(home: Path) -> None:
    folder = DataFolder(home / "second")
    with folder.lock_for_this_process():
        folder.write_run(RunningInstance(os.getpid(), "https://127.0.0.1:1", str(folder.kubeconfig), str(folder.root)))
        target = find_target(TargetOptions(data_dir=home / "second"))
    assert target.display_name == f"the sandbox in {home / 'second'} (https://127.0.0.1:1)"


def test_demo_is_displayed_as_the_demo(home: Path) -> None:
    folder = DataFolder()
    with folder.lock_for_this_process():
        run = RunningInstance(os.getpid(), "https://127.0.0.1:1", str(folder.kubeconfig), str(folder.root), name="demo")
        folder.write_run(run)
        target = find_target(TargetOptions())
    assert (target.display_name, target.connection.name) == ("the demo (https://127.0.0.1:1)", "the demo")


def test_argosy_context_takes_precedence_over_running_sandbox(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig(home / ".kube" / "config", "usual", "other")
    monkeypatch.setenv("ARGOSY_CONTEXT", "other")
    folder = DataFolder()
    with folder.lock_for_this_process():
        folder.write_run(RunningInstance(os.getpid(), "https://127.0.0.1:1", str(folder.kubeconfig), str(folder.root)))
        assert server() == "https://other.example.com"


def test_flags_take_precedence_over_argosy_context(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig(home / ".kube" / "config", "usual", "other")
    monkeypatch.setenv("ARGOSY_CONTEXT", "other")
    assert server(TargetOptions(context="usual")) == "https://usual.example.com"
    assert find_target(TargetOptions(kubeconfig=kubeconfig(home / "f", "other"))).display_name == (
        "context other (https://other.example.com)"
    )


def test_argosy_context_is_ignored_for_a_kubeconfig_given_by_flag(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = kubeconfig(home / "two.yaml", "current", "staging")
    monkeypatch.setenv("ARGOSY_CONTEXT", "staging")
    assert server(TargetOptions(kubeconfig=two)) == "https://current.example.com"
    assert server(TargetOptions(kubeconfig=two, context="staging")) == "https://staging.example.com"


def test_error_without_any_cluster_suggests_starting_one() -> None:
    with pytest.raises(UserError, match="or start a cluster with"):
        find_target(TargetOptions())


def test_missing_kubeconfig_error_mentions_argosy_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGOSY_CONTEXT", "prod")
    with running_sandbox(), pytest.raises(UserError) as raised:
        find_target(TargetOptions())
    assert str(raised.value) == (
        "kubeconfig: no kubeconfig at ~/.kube/config (ARGOSY_CONTEXT is set to 'prod'); "
        "correct or unset ARGOSY_CONTEXT, or set KUBECONFIG, or start a cluster with: argosy sandbox start"
    )


def test_unknown_context_error_mentions_argosy_context(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig(home / ".kube" / "config", "usual")
    monkeypatch.setenv("ARGOSY_CONTEXT", "gone")
    with pytest.raises(UserError) as raised:
        find_target(TargetOptions())
    assert str(raised.value) == (
        "kubeconfig: context \"gone\" does not exist (ARGOSY_CONTEXT is set to 'gone'); "
        "correct or unset ARGOSY_CONTEXT, or choose one of: usual"
    )


def test_kubeconfig_that_is_a_folder_is_rejected(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(home))
    for options in (TargetOptions(), TargetOptions(kubeconfig=home)):
        with running_sandbox(), pytest.raises(UserError) as raised:
            find_target(options)
        assert str(raised.value) == f"{home}: is a folder, not a kubeconfig; name a file in it"


def test_kubeconfig_without_contexts_is_rejected(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / "empty.yaml"
    file.write_text("apiVersion: v1\nkind: Config\n")
    monkeypatch.setenv("KUBECONFIG", str(file))
    advice = "choose another file with --kubeconfig or KUBECONFIG, or log in to a cluster, such as with oc login"
    for options, problem in (
        (TargetOptions(), "no current-context is set"),
        (TargetOptions(context="x"), 'context "x" does not exist'),
        (TargetOptions(kubeconfig=file), "no current-context is set"),
    ):
        with pytest.raises(UserError) as raised:
            find_target(options)
        assert str(raised.value) == f"kubeconfig: {problem}: there are no contexts in {file}; {advice}"


def test_kubeconfig_of_a_stopped_demo_suggests_argosy_demo(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(home / "state" / "argosy" / "demo" / "kubeconfig"))
    with pytest.raises(UserError, match=r"or start a cluster with: argosy demo$"):
        find_target(TargetOptions())


def test_stale_current_file_is_not_a_target(home: Path) -> None:
    current = home / "state" / "argosy" / "current.json"
    current.parent.mkdir(parents=True)
    current.write_text(json.dumps({"pid": os.getpid(), "data_dir": str(home / "gone")}))
    kubeconfig(home / ".kube" / "config", "usual")
    assert server() == "https://usual.example.com"


def test_data_dir_without_a_sandbox_does_not_fall_back_to_another_cluster(home: Path) -> None:
    kubeconfig(home / ".kube" / "config", "usual")
    with pytest.raises(UserError, match="no sandbox is running; start one with: argosy sandbox start"):
        find_target(TargetOptions(data_dir=home / "mistyped"))
