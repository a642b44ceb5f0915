"""Which of several sandboxes and demos is meant."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.cli.cluster_target import TargetOptions, find_target
from argosy.cli.running_sandbox_selection import select_folder
from argosy.cli.sandbox_folder_state import DataFolder, RunningInstance, get_state_folder
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


def test_of_several_that_run_the_one_of_kubeconfig_is_meant(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_file_that_a_demo_was_added_to_leads_to_its_current_context(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = kubeconfig(home / "kc" / "config", "https://prod.example:6443")
    monkeypatch.setenv("KUBECONFIG", str(shared))
    with runs(home / "dd", 1, "demo", shared), runs(get_state_folder() / "sandbox", 2):
        assert find_target_server() == "https://prod.example:6443"
        assert select_folder(None, "demo").root == home / "dd"  # for `argosy demo stop`


def test_a_kubeconfig_that_cannot_be_read_keeps_nobody_from_stopping_what_runs(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "odd").write_text("contexts: 5")
    with runs(get_state_folder() / "sandbox", 2), runs(home / "dd", 3):
        for name in ("gone", "odd"):
            monkeypatch.setenv("KUBECONFIG", str(home / name))
            assert select_folder(None, "sandbox").root == get_state_folder() / "sandbox"


def test_when_one_ends_another_that_still_runs_is_found_again(home: Path) -> None:
    with runs(home / "first", 1):
        with runs(home / "second", 2):
            with runs(home / "third", 3):
                assert find_target_server() == "https://127.0.0.1:3"
            assert find_target_server() == "https://127.0.0.1:2"
        assert find_target_server() == "https://127.0.0.1:1"
        assert json.loads((get_state_folder() / "current.json").read_text())["data_dir"] == str(home / "first")
    assert not (get_state_folder() / "current.json").exists()


def test_one_that_was_killed_is_passed_over(home: Path) -> None:
    with runs(home / "first", 1):
        with runs(home / "second", 2):
            content = (get_state_folder() / "current.json").read_text()
        (get_state_folder() / "current.json").write_text(content)
        assert find_target_server() == "https://127.0.0.1:1"
