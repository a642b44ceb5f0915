"""Temporary folders do not outlive their processes, and those of living ones are left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from argosy.confine.crew import Crew
from argosy.confine.scratch_folders import LOCK, scratch_folder, sweep_scratch_folders
from argosy.model.errors import LimitError
from support.crew_functions import hold_scratch_folder
from support.deadlines import HANG_SECONDS, wait_until
from support.paths import TESTS

HOLD = """
import sys
from argosy.confine.scratch_folders import scratch_folder
with scratch_folder("argosy-tree-") as folder:
    (folder / "tree").mkdir()
    (folder / "tree" / "file").write_text("content")
    (folder / "tree").chmod(0o555)
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@contextmanager
def holder() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLD], **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_a_folder_of_a_killed_process_is_removed_and_that_of_a_living_one_is_kept() -> None:
    with holder() as (killed, left), holder() as (_, used):
        assert sweep_scratch_folders() == 0 and left.is_dir() and used.is_dir()
        killed.send_signal(signal.SIGKILL)
        killed.wait(HANG_SECONDS)
        assert sweep_scratch_folders() == 1
        assert not left.exists() and (used / "tree" / "file").read_text() == "content"


def test_a_folder_without_a_lock_and_one_behind_a_link_are_left_alone(temporary: Path) -> None:
    (temporary / "argosy-tree-stranger").mkdir()
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / LOCK).touch()
    (temporary / "argosy-tree-link").symlink_to(elsewhere)
    assert sweep_scratch_folders() == 0
    assert (temporary / "argosy-tree-stranger").is_dir() and (elsewhere / LOCK).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give a folder to another user")
def test_a_folder_of_another_user_is_left_alone(temporary: Path) -> None:
    folder = temporary / "argosy-tree-other"
    folder.mkdir()
    (folder / LOCK).touch()
    os.chown(folder, 65534, 65534)
    assert sweep_scratch_folders() == 0 and folder.is_dir()


def test_a_folder_is_removed_at_the_end_of_its_use(temporary: Path) -> None:
    with scratch_folder("argosy-run-") as folder:
        assert folder.parent == temporary and sweep_scratch_folders() == 0
    assert list(temporary.iterdir()) == []


@pytest.mark.anyio
async def test_a_render_that_times_out_leaves_no_folder(temporary: Path) -> None:
    crew = Crew(workers=1)
    try:
        with pytest.raises(LimitError):
            await crew.run(hold_scratch_folder, seconds=3.0)
    finally:
        await crew.close()
    assert [name for name in os.listdir(temporary) if "argosy-tree" in name] == []


def test_the_next_worker_removes_what_a_killed_process_left(temporary: Path) -> None:
    with holder() as (killed, left):
        killed.send_signal(signal.SIGKILL)
        killed.wait(HANG_SECONDS)
    script = "import asyncio, operator\nfrom argosy.confine.crew import Crew\n"
    script += "async def work():\n    crew = Crew(workers=1)\n    await crew.run(operator.add, 1, 1)\n"
    script += "    await crew.close()\nasyncio.run(work())"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=HANG_SECONDS)
    assert not left.exists()


WORK = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from argosy.cli.termination import closed_on_sigterm
from argosy.confine.crew import Crew
from support.crew_functions import hold_scratch_folder

async def work():
    crew = Crew(workers=1)
    try:
        await crew.run(hold_scratch_folder)
    finally:
        await crew.close()

with closed_on_sigterm():
    asyncio.run(work())
"""


def test_a_command_that_gets_sigterm_leaves_no_folder_and_ends_by_the_signal(temporary: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WORK.format(tests=str(TESTS))]) as process:
        try:
            wait_until(lambda: list(temporary.glob("argosy-tree-*")))
            process.terminate()
            assert process.wait(HANG_SECONDS) == -signal.SIGTERM
        finally:
            process.kill()
    assert list(temporary.glob("*argosy-tree-*")) == []
