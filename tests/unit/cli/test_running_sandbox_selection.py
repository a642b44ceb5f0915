"""Selection of one of several running sandboxes and demos."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.cli.cluster_target import TargetOptions, find_target
from argosy.cli.running_sandbox_selection import select_folder
from argosy.cli.sandbox_data_folder_and_lock import DataFolder, RunningInstance, get_state_folder
from argosy.kube.objects import dump_yaml


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("ARGOSY_CONTEXT", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def kubeconfig(file: Path, server: str, name: str = "prod") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name}}],
        "clusters": [{"name": name, "cluster": {"server": server}}],
    }
    file.write_text(dump_yaml(document))
    return file


@contextlib.contextmanager
def runs(root: Path, port: int, name: str = "sandbox", file: Path | None = None) -> Iterator[DataFolder]:
    folder = DataFolder(root)
    api = f"https://127.0.0.1:{port}"
    with folder.lock_for_this_process():
        file = file or kubeconfig(folder.kubeconfig, api, "argosy")
        folder.write_run(RunningInstance(os.getpid(), api, str(file), str(folder.root), name=name))
        yield folder


def find_target_server() -> str:
    return find_target(TargetOptions()).connection.server


def test_kubeconfig_selects_among_running_sandboxes_and_demos(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = runs(get_state_folder() / "sandbox", 2)
    with runs(get_state_folder() / "demo", 1, "demo") as first, usual, runs(home / "dd", 3, "demo"):
        assert find_target_server() == "https://127.0.0.1:2"
        monkeypatch.setenv("KUBECONFIG", str(first.kubeconfig))
        assert find_target_server() == "https://127.0.0.1:1"
        assert select_folder(None, "demo").root == first.root
        assert select_folder(None, "sandbox").root == get_state_folder() / "sandbox"
        monkeypatch.setenv("KUBECONFIG", str(home / "dd" / "kubeconfig"))
        assert find_target_server() == "https://127.0.0.1:3"
        assert select_folder(None, "demo").root == home / "dd"


def test_shared_kubeconfig_uses_its_current_context_not_the_demo(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = kubeconfig(home / "kc" / "config", "https://prod.example:6443")
    monkeypatch.setenv("KUBECONFIG", str(shared))
    with runs(home / "dd", 1, "demo", shared), runs(get_state_folder() / "sandbox", 2):
        assert find_target_server() == "https://prod.example:6443"
        assert select_folder(None, "demo").root == home / "dd"  # for `argosy demo stop`


def test_unreadable_kubeconfig_does_not_prevent_selecting_the_sandbox(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "odd").write_text("contexts: 5")
    with runs(get_state_folder() / "sandbox", 2), runs(home / "dd", 3):
        for name in ("gone", "odd"):
            monkeypatch.setenv("KUBECONFIG", str(home / name))
            assert select_folder(None, "sandbox").root == get_state_folder() / "sandbox"


def test_previous_sandbox_becomes_current_when_the_latest_one_stops(home: Path) -> None:
    with runs(home / "first", 1):
        with runs(home / "second", 2):
            with runs(home / "third", 3):
                assert find_target_server() == "https://127.0.0.1:3"
            assert find_target_server() == "https://127.0.0.1:2"
        assert find_target_server() == "https://127.0.0.1:1"
        assert json.loads((get_state_folder() / "current.json").read_text())["data_dir"] == str(home / "first")
    assert not (get_state_folder() / "current.json").exists()


def test_current_file_of_a_killed_sandbox_is_ignored(home: Path) -> None:
    with runs(home / "first", 1):
        with runs(home / "second", 2):
            content = (get_state_folder() / "current.json").read_text()
        (get_state_folder() / "current.json").write_text(content)
        assert find_target_server() == "https://127.0.0.1:1"
