"""A temporary folder whose creation failed is created completely the next time, and nothing is left behind."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.features.notifications.commit_metadata import CommitMetadataReader
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.simulators.pod_processes.runner import RunningPod

MAKERS: dict[str, Callable[[Path], RunningPod | CommitMetadataReader]] = {
    "Pod": lambda logs: RunningPod(ResourceKey("", "Pod", "web", "p"), [], [], logs),
    "notifications": lambda logs: CommitMetadataReader(),
}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert tempfile.gettempdir() == str(folder)  # gettempdir() creates a file to find the folder
    return folder


@pytest.mark.parametrize(("maker", "step"), [("Pod", "mkdir"), ("Pod", "chmod"), ("notifications", "mkdir")])
def test_failed_folder_creation_leaves_nothing_and_succeeds_the_next_time(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maker: str, step: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    folder_owner = MAKERS[maker](tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, step, refuse)
        with pytest.raises(OSError, match="No space left"):
            folder_owner.get_mirror_folder()
    assert list(temporary.iterdir()) == []
    folder = folder_owner.get_mirror_folder()
    assert folder.is_dir() and folder_owner.get_mirror_folder() == folder
    assert maker != "Pod" or folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o711
    folder_owner.close()
    assert list(temporary.iterdir()) == []
