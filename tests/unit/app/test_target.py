"""Which cluster a command talks to: flags, then the environment, then a sandbox that runs, then a kubeconfig."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from argosy.app.folder import DataFolder, Run
from argosy.app.target import TargetOptions, find_target
from argosy.model.errors import UserError
from argosy.model.manifest import dump


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
    file.write_text(dump(document))
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


def test_the_usual_kubeconfig_is_the_last_resort(home: Path) -> None:
    kubeconfig(home / ".kube" / "config", "usual", "other")
    assert server() == "https://usual.example.com"


def test_kubeconfig_goes_before_the_usual_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig(home / ".kube" / "config", "usual")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(home / "mine", "mine")))
    assert server() == "https://mine.example.com"


def test_a_running_sandbox_goes_before_kubeconfig(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(home / "mine", "mine")))
    folder = DataFolder()
    with folder.owned():
        folder.write_run(Run(os.getpid(), "https://127.0.0.1:1", str(folder.kubeconfig), str(folder.root)))
        found = find_target(TargetOptions())
    assert found.where == "the sandbox (https://127.0.0.1:1)"
    assert server() == "https://mine.example.com"


def test_one_that_is_elsewhere_is_named_by_its_folder(home: Path) -> None:
    folder = DataFolder(home / "second")
    with folder.owned():
        folder.write_run(Run(os.getpid(), "https://127.0.0.1:1", str(folder.kubeconfig), str(folder.root)))
        found = find_target(TargetOptions(data_dir=home / "second"))
    assert found.where == f"the sandbox in {home / 'second'} (https://127.0.0.1:1)"


def test_a_demo_is_called_one(home: Path) -> None:
    folder = DataFolder()
    with folder.owned():
        run = Run(os.getpid(), "https://127.0.0.1:1", str(folder.kubeconfig), str(folder.root), name="demo")
        folder.write_run(run)
        found = find_target(TargetOptions())
    assert (found.where, found.connection.name) == ("the demo (https://127.0.0.1:1)", "the demo")


def test_argosy_context_goes_before_a_running_sandbox(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig(home / ".kube" / "config", "usual", "other")
    monkeypatch.setenv("ARGOSY_CONTEXT", "other")
    folder = DataFolder()
    with folder.owned():
        folder.write_run(Run(os.getpid(), "https://127.0.0.1:1", str(folder.kubeconfig), str(folder.root)))
        assert server() == "https://other.example.com"


def test_flags_go_before_everything(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig(home / ".kube" / "config", "usual", "other")
    monkeypatch.setenv("ARGOSY_CONTEXT", "other")
    assert server(TargetOptions(context="usual")) == "https://usual.example.com"
    assert find_target(TargetOptions(kubeconfig=kubeconfig(home / "f", "other"))).where == (
        "context other (https://other.example.com)"
    )


def test_without_any_cluster_the_error_says_what_to_do() -> None:
    with pytest.raises(UserError, match="or start a cluster with"):
        find_target(TargetOptions())


def test_whose_demo_is_over_learns_how_to_start_it_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(home / "state" / "argosy" / "demo" / "kubeconfig"))
    with pytest.raises(UserError, match=r"or start a cluster with: argosy demo$"):
        find_target(TargetOptions())


def test_a_sandbox_that_is_gone_is_no_target(home: Path) -> None:
    current = home / "state" / "argosy" / "current.json"
    current.parent.mkdir(parents=True)
    current.write_text(json.dumps({"pid": os.getpid(), "data_dir": str(home / "gone")}))
    kubeconfig(home / ".kube" / "config", "usual")
    assert server() == "https://usual.example.com"


def test_a_folder_that_is_named_and_has_no_sandbox_is_no_way_to_another_cluster(home: Path) -> None:
    kubeconfig(home / ".kube" / "config", "usual")
    with pytest.raises(UserError, match="no sandbox is running; start one with: argosy sandbox start"):
        find_target(TargetOptions(data_dir=home / "mistyped"))
