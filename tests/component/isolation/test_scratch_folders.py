"""Scratch folders: a sweep removes those of dead processes and keeps those of living ones."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import argosy
from argosy.errors import LimitError
from argosy.gitops.render.tree_export import export_tree
from argosy.isolation import scratch_folders
from argosy.isolation.scratch_folders import LOCK_FILE_NAME, PREFIXES, create_scratch_folder, sweep_scratch_folders
from argosy.isolation.trusted_process_pool import ProcessPool
from argosy.isolation.untrusted_program_runner import create_work_folders
from support.crew_functions import hold_scratch_folder
from support.deadlines import HANG_SECONDS, wait_until
from support.file_trees import TextTree
from support.paths import TESTS

HOLD = """
import sys
from argosy.isolation.scratch_folders import create_scratch_folder
with create_scratch_folder(sys.argv[1]) as folder:
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
def holder(prefix: str = "argosy-tree-") -> Iterator[tuple[subprocess.Popen[str], Path]]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLD, prefix], **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


@pytest.mark.parametrize("prefix", PREFIXES)
def test_sweep_removes_folders_of_killed_processes_and_keeps_those_in_use(prefix: str) -> None:
    with holder(prefix) as (killed, left), holder(prefix) as (_, used):
        assert sweep_scratch_folders() == 0 and left.is_dir() and used.is_dir()
        killed.send_signal(signal.SIGKILL)
        killed.wait(HANG_SECONDS)
        assert sweep_scratch_folders() == 1
        assert not left.exists() and (used / "tree" / "file").read_text() == "content"


def test_only_listed_modules_create_temporary_files_themselves() -> None:
    """The listed modules create them below a swept folder or a folder of the user, or only if memfd is not available.
    `app edit` keeps what the user typed.
    """
    source = Path(argosy.__file__).parent
    pattern = re.compile(r"\b(?:TemporaryDirectory|mkdtemp|mkstemp|NamedTemporaryFile)\(")
    files = {str(file.relative_to(source)) for file in source.rglob("*.py") if pattern.search(file.read_text())}
    assert files == {
        "features/notebooks/runner/kernel_setup.py", "cli/editor.py", "features/notebooks/files/notebook_file.py",
        "isolation/scratch_folders.py", "http_client/client_certificates.py", "gitops/source/charts/chart_cache.py",
        "gitops/source/git/git_command_credentials.py", "gitops/source/signatures.py",
    }  # fmt: skip


KILLED_BEFORE_RENAME = """
import os, signal, sys
from pathlib import Path
from argosy.isolation import scratch_folders
kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "lock":
    scratch_folders._lock = kill
else:
    Path.rename = kill
with scratch_folders.create_scratch_folder("argosy-tree-"):
    pass
"""


def age(folder: Path, hours: float) -> None:
    moment = time.time() - hours * 3600
    os.utime(folder, (moment, moment))


@pytest.mark.parametrize(("step", "hours"), [("lock", 25), ("rename", 25), ("lock", -25)])
def test_unfinished_folder_of_a_killed_process_is_removed_after_a_day(temporary: Path, step: str, hours: float) -> None:
    """This includes a folder that was created before the clock was set back."""
    command = [sys.executable, "-c", KILLED_BEFORE_RENAME, step]
    assert subprocess.run(command, check=False, timeout=HANG_SECONDS).returncode == -signal.SIGKILL
    (left,) = temporary.iterdir()
    assert left.name.startswith(".argosy-tree-") and (left / LOCK_FILE_NAME).exists() == (step == "rename")
    for too_short in (0, 23, -23):
        age(left, too_short)
        assert sweep_scratch_folders() == 0 and left.is_dir()
    age(left, hours)
    assert sweep_scratch_folders() == 1 and list(temporary.iterdir()) == []


def test_unfinished_folder_is_kept_if_locked_or_foreign(temporary: Path) -> None:
    held, link, other = (temporary / name for name in (".argosy-tree-held", ".argosy-tree-link", ".argosy-other"))
    held.mkdir()
    other.mkdir()
    link.symlink_to(other)
    with (held / LOCK_FILE_NAME).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for folder in (held, other):
            age(folder, 1000)
        os.utime(link, (1, 1), follow_symlinks=False)
        assert sweep_scratch_folders() == 0
    assert held.is_dir() and other.is_dir() and link.is_symlink()


def test_sweep_ignores_folders_without_a_lock_and_symbolic_links(temporary: Path) -> None:
    (temporary / "argosy-tree-stranger").mkdir()
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / LOCK_FILE_NAME).touch()
    (temporary / "argosy-tree-link").symlink_to(elsewhere)
    assert sweep_scratch_folders() == 0
    assert (temporary / "argosy-tree-stranger").is_dir() and (elsewhere / LOCK_FILE_NAME).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give a folder to another user")
def test_sweep_ignores_folders_of_another_user(temporary: Path) -> None:
    folder = temporary / "argosy-tree-other"
    folder.mkdir()
    (folder / LOCK_FILE_NAME).touch()
    os.chown(folder, 65534, 65534)
    assert sweep_scratch_folders() == 0 and folder.is_dir()


def test_folder_is_removed_when_its_context_ends(temporary: Path) -> None:
    with create_scratch_folder("argosy-run-") as folder:
        assert folder.parent == temporary and sweep_scratch_folders() == 0
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS])
def test_folder_is_used_unlocked_and_never_swept_if_flock_is_not_supported(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(handle: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", refuse)
        used = create_scratch_folder("argosy-tree-")
        folder = used.__enter__()
    (folder / "file").touch()
    assert sweep_scratch_folders() == 0 and (folder / "file").exists()
    used.__exit__(None, None, None)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("name", ["open", "write", "rename"])
def test_failed_creation_leaves_no_folder(temporary: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    assert tempfile.gettempdir() == str(temporary)  # gettempdir() creates a file to find the folder
    with monkeypatch.context() as patch:
        patch.setattr(Path if name == "rename" else scratch_folders.os, name, refuse)
        with pytest.raises(OSError, match="No space left"), create_scratch_folder("argosy-tree-"):
            pass
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("host", "boot", "is_swept"),
    [("", "", True), ("", "another", True), ("another", "", True), ("another", "another", False)],
    ids=["here", "before the last boot", "another container of this host", "another host"],
)
def test_sweep_ignores_folders_of_another_host(temporary: Path, host: str, boot: str, is_swept: bool) -> None:
    """A lock of another host on a shared file system may not be visible here. Containers of one host share
    its boot id.
    """
    with holder() as (killed, left):
        killed.send_signal(signal.SIGKILL)
        killed.wait(HANG_SECONDS)
    own_host, own_boot = (left / LOCK_FILE_NAME).read_text().splitlines()
    (left / LOCK_FILE_NAME).write_text(f"{host or own_host}\n{boot or own_boot}\n")
    assert sweep_scratch_folders() == is_swept and left.exists() != is_swept


def test_next_sweep_finishes_an_interrupted_removal(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with (
        monkeypatch.context() as patch,
        pytest.raises(KeyboardInterrupt),
        create_scratch_folder("argosy-tree-") as folder,
    ):
        (folder / "tree").mkdir()
        patch.setattr(shutil, "rmtree", interrupt)
    assert folder.is_dir() and sweep_scratch_folders() == 1
    assert list(temporary.iterdir()) == []


def test_program_with_a_writable_tree_cannot_access_the_lock(temporary: Path) -> None:
    with export_tree(TextTree({"a.txt": "a"}), writable=True) as root, create_work_folders(root.parent) as (scratch, _):
        (folder,) = temporary.glob("argosy-tree-*")
        assert (folder / LOCK_FILE_NAME).stat().st_uid == folder.stat().st_uid == os.geteuid()
        assert folder not in (Path(scratch), root) and not (Path(scratch) / LOCK_FILE_NAME).exists()
        assert folder.stat().st_mode & 0o066 == 0
    assert list(temporary.iterdir()) == []


@pytest.mark.anyio
async def test_call_that_times_out_leaves_no_folder(temporary: Path) -> None:
    crew, folder_names, ended = ProcessPool(workers=1), list[str](), threading.Event()

    def watch() -> None:
        while not folder_names and not ended.wait(0.01):
            folder_names.extend(path.name for path in temporary.glob("argosy-tree-*"))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        for seconds in (1.0, 3.0, 10.0, 30.0):  # a slow machine may need more than the first timeout to start
            with pytest.raises(LimitError):
                await crew.run(hold_scratch_folder, seconds=seconds)
            if folder_names:
                break
    finally:
        ended.set()
        watching.join()
        await crew.close()
    assert folder_names
    assert [name for name in os.listdir(temporary) if "argosy-tree" in name] == []


def test_next_worker_removes_the_folder_of_a_killed_process(temporary: Path) -> None:
    with holder() as (killed, left):
        killed.send_signal(signal.SIGKILL)
        killed.wait(HANG_SECONDS)
    script = "import asyncio, operator\nfrom argosy.isolation.trusted_process_pool import ProcessPool\n"
    script += "async def work():\n    crew = ProcessPool(workers=1)\n    await crew.run(operator.add, 1, 1)\n"
    script += "    await crew.close()\nasyncio.run(work())"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=HANG_SECONDS)
    assert not left.exists()


WORK = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from argosy.cli.sigterm_shutdown import raise_on_sigterm
from argosy.isolation.trusted_process_pool import ProcessPool
from support.crew_functions import hold_scratch_folder

async def work():
    crew = ProcessPool(workers=1)
    try:
        await crew.run(hold_scratch_folder)
    finally:
        await crew.close()

with raise_on_sigterm():
    asyncio.run(work())
"""


def test_sigterm_removes_the_folder_and_the_command_exits_by_the_signal(temporary: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WORK.format(tests=str(TESTS))]) as process:
        try:
            wait_until(lambda: list(temporary.glob("argosy-tree-*")))
            process.terminate()
            assert process.wait(HANG_SECONDS) == -signal.SIGTERM
        finally:
            process.kill()
    assert list(temporary.glob("*argosy-tree-*")) == []
