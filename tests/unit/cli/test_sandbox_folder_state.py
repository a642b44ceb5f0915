"""State of data folders, and argosy's entries in kubeconfig files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.cli.running_sandbox_selection import select_folder
from argosy.cli.sandbox_data_folder_and_lock import DataFolder, RunningInstance, write_private_text
from argosy.errors import UserError
from argosy.features.local_sandbox import kubeconfig
from argosy.main import main


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def document(name: str = "admin", context: str = "argosy-one") -> dict[str, Any]:
    return kubeconfig.build_kubeconfig(context, "https://127.0.0.1:1", b"CA", name, "token")


def test_data_folder_can_be_locked_by_one_owner_only(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    with folder.lock_for_this_process():
        assert folder.is_locked()
        with pytest.raises(UserError, match="in use"), DataFolder(tmp_path / "data").lock_for_this_process():
            pass
    assert not folder.is_locked()


def test_stopped_run_keeps_port_and_rbac_but_is_not_running(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    with folder.lock_for_this_process():
        folder.write_run(RunningInstance(12345, "https://127.0.0.1:7000", "k", str(folder.root), rbac=True))
        assert folder.find_running_instance() is not None and select_folder(None).root == folder.root
    assert folder.find_running_instance() is None and folder.get_last_port() == 7000 and folder.get_last_rbac()
    assert select_folder(None).root != folder.root


def test_kubeconfig_merge_keeps_other_contexts_and_can_be_undone(tmp_path: Path) -> None:
    file = tmp_path / "config"
    write_private_text(file, yaml.safe_dump(document(context="work")))
    before = yaml.safe_load(file.read_text())
    kubeconfig.add_entries(file, document())
    merged = yaml.safe_load(file.read_text())
    assert [context["name"] for context in merged["contexts"]] == ["work", "argosy-one"]
    assert merged["current-context"] == "work"
    kubeconfig.remove_entries(file, document())
    assert yaml.safe_load(file.read_text()) == before


def test_private_write_through_symlink_keeps_the_symlink(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("")
    link.symlink_to(real)
    write_private_text(link, "new")
    assert link.is_symlink() and real.read_text() == "new" and real.stat().st_mode & 0o777 == 0o600


def test_adding_entries_to_a_manifest_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "deployment.yaml"
    file.write_text("apiVersion: apps/v1\nkind: Deployment\n")
    with pytest.raises(UserError, match="is not a kubeconfig"):
        kubeconfig.add_entries(file, document())


@pytest.mark.parametrize("content", [b"contexts: 5", b"contexts: [{name: [c], context: {}}]", b"\xff\xfe\x00"])
def test_malformed_kubeconfig_is_named_in_the_error_and_left_unchanged(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "odd"
    file.write_bytes(content)
    with pytest.raises(UserError) as caught:
        kubeconfig.add_entries(file, document())
    assert caught.value.where.startswith(str(file)) and file.read_bytes() == content


def test_adding_entries_to_a_folder_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot be read \(Is a directory\)"):
        kubeconfig.add_entries(tmp_path, document())


def test_run_file_of_newer_version_is_read_ignoring_unknown_fields(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    run = {"pid": os.getpid(), "api": "https://127.0.0.1:1", "kubeconfig": "k", "data_dir": str(tmp_path), "later": 1}
    with folder.lock_for_this_process():
        folder.run_file.write_text(json.dumps(run))
        instance = folder.find_running_instance()
    assert instance is not None
    assert instance.api == "https://127.0.0.1:1"


def test_run_file_of_older_version_is_read(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    run = {"pid": os.getpid(), "api": "https://127.0.0.1:1", "kubeconfig": "k", "data_dir": str(tmp_path)}
    with folder.lock_for_this_process():
        folder.run_file.write_text(json.dumps(run))
        assert folder.find_running_instance() is not None


def test_run_file_that_is_not_an_object_is_ignored(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    with folder.lock_for_this_process():
        folder.run_file.write_text("[1]")
        assert folder.find_running_instance() is None


def test_folder_with_only_empty_subfolders_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = DataFolder(tmp_path / "state" / "argosy" / "demo")
    with folder.lock_for_this_process():
        (folder.root / "logs" / "parts").mkdir(parents=True)
    folder.remove_if_empty()
    assert list((tmp_path / "state").iterdir()) == []


def test_stop_without_running_instance_keeps_user_files(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "mine")
    folder.root.mkdir()
    folder.lock.touch()
    (folder.root / "logs").mkdir()
    assert main(["sandbox", "stop", "--data-dir", str(folder.root)]) == 0
    assert main(["demo", "stop", "--data-dir", str(folder.root)]) == 0
    assert folder.lock.exists() and (folder.root / "logs").is_dir()


def test_folder_outside_the_state_folder_is_emptied_but_never_deleted(tmp_path: Path, state: Path) -> None:
    climbing = DataFolder(state / "argosy" / ".." / ".." / "outside")
    (state / "argosy").mkdir(parents=True)
    for folder in (DataFolder(tmp_path / "mine"), climbing):
        with folder.lock_for_this_process():
            (folder.root / "logs").mkdir()
        folder.remove_if_empty(was_stopped=True)
        assert list(folder.root.iterdir()) == []


@pytest.mark.parametrize("entry", ["folder", "link", "full lock", "linked lock"])
def test_folder_with_foreign_entries_is_left_unchanged(tmp_path: Path, state: Path, entry: str) -> None:
    folder, elsewhere = DataFolder(state / "argosy" / "demo"), tmp_path / "elsewhere"
    elsewhere.touch()
    with folder.lock_for_this_process():
        (folder.root / "logs").mkdir()
    match entry:
        case "folder":
            (folder.root / "pictures").mkdir()
        case "link":
            (folder.root / "logs" / "link").symlink_to(tmp_path)
        case "full lock":
            folder.lock.write_text("of another program")
        case _:
            folder.lock.unlink()
            folder.lock.symlink_to(elsewhere)
    before = sorted(folder.root.rglob("*"))
    folder.remove_if_empty(was_stopped=True)
    assert sorted(folder.root.rglob("*")) == before and elsewhere.exists()


def test_folder_with_log_files_is_kept(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "cluster")
    with folder.lock_for_this_process():
        (folder.root / "logs").mkdir()
        (folder.root / "logs" / "audit.log").write_text("kept")
        folder.remove_if_empty()
    folder.remove_if_empty()
    assert (folder.root / "logs" / "audit.log").read_text() == "kept" and folder.lock.exists()


def test_locked_and_never_used_folders_are_not_removed(tmp_path: Path) -> None:
    folder, unused = DataFolder(tmp_path / "cluster"), DataFolder(tmp_path / "unused")
    unused.root.mkdir()
    with folder.lock_for_this_process():
        folder.remove_if_empty()
        assert folder.lock.exists()
    unused.remove_if_empty()
    assert unused.root.is_dir()


def test_lock_file_removed_during_locking_is_recreated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that opened the lock file before a stop deleted it must not hold a lock on the deleted file."""
    folder = DataFolder(tmp_path / "cluster")
    first = [True]

    def locked_after_removal(handle: int) -> bool:
        if first.pop() if first else False:
            folder.lock.unlink()
        return True

    monkeypatch.setattr("argosy.cli.sandbox_data_folder_and_lock._try_lock", locked_after_removal)
    with folder.lock_for_this_process():
        assert folder.lock.exists()
