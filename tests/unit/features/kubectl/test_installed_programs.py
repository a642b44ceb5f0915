"""Program lookup in the folders of PATH; unreadable folders are skipped."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.features.demo.in_process_demo_stack import COMMAND_ARGUMENTS, write_command_stubs
from argosy.features.kubectl.installed_programs import find_kubectl, find_program

ORDINARY_USER = 12345


@contextlib.contextmanager
def ordinary_user() -> Iterator[None]:
    """Run as an unprivileged user if the tests run as root, because root can read every folder."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(ORDINARY_USER)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Set PATH to an unreadable folder, a name that is too long, an empty entry, and a folder with a kubectl.

    The folders are not below tmp_path, which another user cannot read.
    """
    with tempfile.TemporaryDirectory() as temporary_folder:
        root = Path(temporary_folder)
        root.chmod(0o755)
        for folder in (root / "closed", root / "open"):
            folder.mkdir()
            (folder / "kubectl").write_text("#!/bin/sh\n")
            (folder / "kubectl").chmod(0o755)
        (root / "closed").chmod(0)
        folders = [root / "closed", root / ("x" * 300), "", root / "open"]
        monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))
        monkeypatch.delenv("ARGOSY_KUBECTL", raising=False)
        yield root
        (root / "closed").chmod(0o700)


def test_unreadable_path_folders_are_skipped(place: Path) -> None:
    with ordinary_user():
        assert find_program("kubectl") == str(place / "open" / "kubectl")
        assert find_kubectl() == str(place / "open" / "kubectl")
        assert find_program("argosy") == ""


def test_demo_writes_command_stubs_despite_unreadable_path_folders(place: Path) -> None:
    tools = place / "bin"
    tools.mkdir()
    if os.geteuid() == 0:
        os.chown(tools, ORDINARY_USER, -1)
    with ordinary_user():
        write_command_stubs(tools)
    assert sorted(file.name for file in tools.iterdir()) == sorted(COMMAND_ARGUMENTS.keys() - {"kubectl"})
