"""A cgroup for each run: where it can be created, which limits it sets, and its removal.

A folder with fake kernel files replaces the cgroup that this process owns;
tests/component/isolation/test_real_cgroup.py uses real cgroups.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from argosy.isolation import cgroup, confined_program_launcher

GONE = 4_000_000_000  # no process has this PID
FILES = (
    "cgroup.procs", "cgroup.kill", "cgroup.subtree_control", "memory.max", "memory.swap.max", "memory.oom.group",
    "memory.events", "pids.max",
)  # fmt: skip
NEEDS = {"memory": 100 << 20, "processes": 8}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fake cgroup delegated to this process; its files are created and removed as by the kernel."""

    def mkdir(path):
        os.mkdir(path)
        for name in FILES:
            Path(path, name).write_text("")
        Path(path, "cgroup.controllers").write_text("cpu memory pids\n")

    def rmdir(path):
        if not os.path.isdir(path):
            raise FileNotFoundError(path)
        if Path(path, "cgroup.procs").read_text() and not Path(path, "cgroup.kill").read_text():
            raise OSError(errno.EBUSY, "Device or resource busy", str(path))
        shutil.rmtree(path)

    def makedirs(path, exist_ok):
        if not os.path.isdir(path):
            mkdir(path)

    kernel = {**vars(os), "mkdir": mkdir, "rmdir": rmdir, "makedirs": makedirs}
    monkeypatch.setattr(cgroup, "os", SimpleNamespace(**kernel))
    folder = tmp_path / "system.slice" / "argosy.service"
    folder.parent.mkdir()
    mkdir(folder)
    return folder


def find(own: Path, *, kind: str = "cgroup2", root: str = "/") -> str:
    mounted = own.parents[1]
    mounts, membership = mounted / "mountinfo", mounted / "membership"
    mounts.write_text(f"30 23 0:26 {root} {mounted} rw,nosuid shared:4 - {kind} cgroup2 rw\n")
    inside = "/" + str(own.relative_to(mounted))
    membership.write_text(f"1:name=systemd:/\n0::{'' if root == '/' else root}{inside}\n")
    return cgroup.find_delegated_parent(str(mounts), str(membership))


def make(own: Path, scratch: int = 0) -> str:
    path, lock = cgroup.create(str(own), NEEDS, scratch)
    os.close(lock)  # as if the launcher had been killed
    return path


def test_own_cgroup_is_found_and_controllers_are_enabled_for_children(own):
    assert find(own) == str(own)
    assert (own / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_own_cgroup_is_found_below_a_mounted_subtree(own):
    assert find(own, root="/kubepods/pod1") == str(own)


@pytest.mark.parametrize("root", ["/../..", "/kubepods/pod2"])
def test_no_cgroup_is_found_if_the_own_one_is_not_mounted(own, root):
    """As in a container that mounts the host's cgroups: those are not its own and have other limits."""
    mounts, membership = own.parents[1] / "mountinfo", own.parents[1] / "membership"
    mounts.write_text(f"30 23 0:26 {root} {own} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n")
    membership.write_text("0::/\n")
    assert cgroup.find_delegated_parent(str(mounts), str(membership)) == ""
    mount = f"31 23 0:26 / {own} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
    mounts.write_text(mounts.read_text().replace(str(own), "/elsewhere") + mount)
    assert cgroup.find_delegated_parent(str(mounts), str(membership)) == str(own)


def test_no_cgroup_is_found_above_the_own_namespace(own):
    mounts, membership = own.parents[1] / "mountinfo", own.parents[1] / "membership"
    mounts.write_text(f"30 23 0:26 / {own / 'x'} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n")
    membership.write_text("0::/..\n")
    assert cgroup.find_delegated_parent(str(mounts), str(membership)) == ""


def test_no_cgroup_is_found_without_cgroup_v2(own):
    assert find(own, kind="cgroup") == ""


def test_no_cgroup_is_found_without_the_controllers(own):
    (own / "cgroup.controllers").write_text("hugetlb\n")
    assert find(own) == ""


@pytest.mark.parametrize("closed", ["cgroup.procs", "cgroup.subtree_control"])
def test_no_cgroup_is_found_without_write_permission(own, monkeypatch, closed):
    monkeypatch.setattr(cgroup.os, "access", lambda path, mode: not str(path).endswith(closed))
    assert find(own) == ""


def refuse_while_occupied(monkeypatch: pytest.MonkeyPatch, own: Path) -> None:
    """Behave like the kernel: a cgroup with processes cannot enable controllers for its children."""
    write = cgroup._write

    def wrapped(path, name, value):
        if name == "cgroup.subtree_control" and Path(path, "cgroup.procs").read_text():
            raise OSError(errno.EBUSY, "Device or resource busy")
        if name == "cgroup.procs":
            (own / name).write_text("")
        write(path, name, value)

    monkeypatch.setattr(cgroup, "_write", wrapped)


def test_own_processes_are_moved_to_a_child_cgroup(own, monkeypatch):
    refuse_while_occupied(monkeypatch, own)
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n")
    assert find(own) == str(own)
    assert (own / "argosy-processes" / "cgroup.procs").read_text() == str(os.getpid())
    (own / "cgroup.subtree_control").write_text("memory pids")
    assert find(own / "argosy-processes") == str(own)  # our next process starts in that cgroup


def test_foreign_processes_are_not_moved(own, monkeypatch):
    refuse_while_occupied(monkeypatch, own)
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n{os.getppid()}\n")
    assert find(own) == ""
    assert not (own / "argosy-processes").exists()


def test_move_tolerates_processes_that_end_or_start_meanwhile(own, monkeypatch):
    refuse_while_occupied(monkeypatch, own)
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n")
    write, moves = cgroup._write, []

    def wrapped(path, name, value):
        write(path, name, value)
        if name == "cgroup.procs":
            moves.append(value)
            if len(moves) == 1:
                (own / name).write_text(f"{os.getpid()}\n")  # another process was started meanwhile
                raise ProcessLookupError(errno.ESRCH, "No such process")

    monkeypatch.setattr(cgroup, "_write", wrapped)
    assert find(own) == str(own)
    assert len(moves) == 2


def test_run_is_limited_in_memory_and_processes_and_has_no_swap(own):
    group = Path(make(own, 50 << 20))
    assert group.parent == own
    assert int((group / "memory.max").read_text()) == (100 + 50 + 16) << 20
    assert int((group / "pids.max").read_text()) == 10
    assert ((group / "memory.swap.max").read_text(), (group / "memory.oom.group").read_text()) == ("0", "1")
    cgroup.enter(str(group))
    assert (group / "cgroup.procs").read_text() == "0"


def test_out_of_memory_kill_of_a_run_is_detected(own):
    group = Path(make(own))
    assert not cgroup.was_out_of_memory(str(group))
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 1\noom_kill 0\n")
    assert not cgroup.was_out_of_memory(str(group))
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 1\noom_kill 2\n")
    assert cgroup.was_out_of_memory(str(group))
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 0\noom 0\noom_kill 2\n")
    assert not cgroup.was_out_of_memory(str(group)), "the machine was out of memory, not the run"


def test_remove_deletes_a_cgroup_with_running_processes(own):
    group = Path(make(own))
    (group / "cgroup.procs").write_text("123\n")
    cgroup.remove(str(group))
    assert not group.exists()
    cgroup.remove(str(group))  # no-op


@pytest.mark.parametrize("sweep", [find, make], ids=["at the start", "before a run"])
def test_cgroups_of_killed_launchers_are_removed_and_others_are_kept(own, sweep):
    """The lock shows that the launcher is alive; the PID may be of another namespace or of a new process."""
    living, lock = cgroup.create(str(own), NEEDS, 0)
    elsewhere = own / f"argosy-run-{GONE}-2"
    os.rename(living, elsewhere)
    for name in (f"argosy-run-{GONE}-1", f"argosy-run-{os.getpid()}-2", "argosy-run-x", "of-somebody-else"):
        cgroup.os.mkdir(own / name)
    before = {path for path in own.iterdir() if path.is_dir()}
    sweep(own)
    assert {path.name for path in before if path.exists()} == {elsewhere.name, "argosy-run-x", "of-somebody-else"}
    os.close(lock)


def test_cgroup_with_leftover_processes_of_a_killed_launcher_is_removed(own):
    left = own / f"argosy-run-{GONE}-1"
    cgroup.os.mkdir(left)
    (left / "cgroup.procs").write_text("123\n")
    find(own)
    assert not left.exists()


def test_new_cgroup_is_created_again_if_another_process_removes_it(own, monkeypatch):
    mkdir, paths = cgroup.os.mkdir, []

    def mkdir_and_lose_the_first(path):
        mkdir(path)
        paths.append(path)
        if len(paths) == 1:
            shutil.rmtree(path)

    monkeypatch.setattr(cgroup.os, "mkdir", mkdir_and_lose_the_first)
    assert os.path.isdir(make(own))
    assert len(paths) == 2


@pytest.mark.parametrize("can_enter", [True, False])
def test_socket_buffers_are_counted_if_the_run_cannot_enter_its_cgroup(own, can_enter, monkeypatch):
    path, lock = cgroup.create(str(own), NEEDS, 0)
    if not can_enter:
        Path(path, "cgroup.procs").unlink()
    order = {"cgroup": path, "cgroup_lock": lock, "apart": False, "before": 0, "scratch": str(own / "none")}
    order["needs"] = {"memory": 1 << 20, "scratch": 1}
    entered, entering = os.pipe()
    confined_program_launcher._enter_cgroup(order, entering)
    assert os.read(entered, 1) == (b"1" if can_enter else b"")
    monkeypatch.setattr(confined_program_launcher.descendants, "list_descendants", lambda pid: [])
    monkeypatch.setattr(confined_program_launcher.descendants, "measure_socket_buffers", lambda pids: 2 << 20)
    assert confined_program_launcher._find_excess(order) == ("" if can_enter else "memory")
    os.close(entered)
