"""A cgroup for each run: where one can be made, what it limits, and that it goes. The kernel's files are stood in for.

A folder stands for a cgroup, as on a kernel where this process owns one; tests/component/isolation/test_real_cgroup.py
uses real ones.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from argosy.isolation import cgroup, launcher

GONE = 4_000_000_000  # no process has this number
FILES = (
    "cgroup.procs", "cgroup.kill", "cgroup.subtree_control", "memory.max", "memory.swap.max", "memory.oom.group",
    "memory.events", "pids.max",
)  # fmt: skip
NEEDS = {"memory": 100 << 20, "processes": 8}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process's cgroup, delegated, with files that appear and go as the kernel's do."""

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
    return cgroup.find_parent(str(mounts), str(membership))


def make(own: Path, scratch: int = 0) -> str:
    path, lock = cgroup.create(str(own), NEEDS, scratch)
    os.close(lock)  # as if its launcher had been killed
    return path


def test_our_own_cgroup_is_found_and_its_children_get_controllers(own):
    assert find(own) == str(own)
    assert (own / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_a_part_of_the_tree_that_is_mounted_alone_is_found(own):
    assert find(own, root="/kubepods/pod1") == str(own)


@pytest.mark.parametrize("root", ["/../..", "/kubepods/pod2"])
def test_there_is_none_where_our_own_is_not_mounted(own, root):
    """As in a container that shows the host's cgroups: those are not its own, and have other limits."""
    mounts, membership = own.parents[1] / "mountinfo", own.parents[1] / "membership"
    mounts.write_text(f"30 23 0:26 {root} {own} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n")
    membership.write_text("0::/\n")
    assert cgroup.find_parent(str(mounts), str(membership)) == ""
    mount = f"31 23 0:26 / {own} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
    mounts.write_text(mounts.read_text().replace(str(own), "/elsewhere") + mount)
    assert cgroup.find_parent(str(mounts), str(membership)) == str(own)


def test_there_is_none_above_our_own_namespace(own):
    mounts, membership = own.parents[1] / "mountinfo", own.parents[1] / "membership"
    mounts.write_text(f"30 23 0:26 / {own / 'x'} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n")
    membership.write_text("0::/..\n")
    assert cgroup.find_parent(str(mounts), str(membership)) == ""


def test_there_is_none_without_version_2(own):
    assert find(own, kind="cgroup") == ""


def test_there_is_none_without_the_controllers(own):
    (own / "cgroup.controllers").write_text("hugetlb\n")
    assert find(own) == ""


@pytest.mark.parametrize("closed", ["cgroup.procs", "cgroup.subtree_control"])
def test_there_is_none_that_we_may_not_write_to(own, monkeypatch, closed):
    monkeypatch.setattr(cgroup.os, "access", lambda path, mode: not str(path).endswith(closed))
    assert find(own) == ""


def refuse_while_occupied(monkeypatch: pytest.MonkeyPatch, own: Path) -> None:
    """As the kernel does: a cgroup with processes cannot give its children controllers."""
    write = cgroup._write

    def wrapped(path, name, value):
        if name == "cgroup.subtree_control" and Path(path, "cgroup.procs").read_text():
            raise OSError(errno.EBUSY, "Device or resource busy")
        if name == "cgroup.procs":
            (own / name).write_text("")
        write(path, name, value)

    monkeypatch.setattr(cgroup, "_write", wrapped)


def test_our_own_processes_make_way(own, monkeypatch):
    refuse_while_occupied(monkeypatch, own)
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n")
    assert find(own) == str(own)
    assert (own / "argosy-processes" / "cgroup.procs").read_text() == str(os.getpid())
    (own / "cgroup.subtree_control").write_text("memory pids")
    assert find(own / "argosy-processes") == str(own)  # the next process of ours begins down there


def test_processes_of_others_are_not_moved(own, monkeypatch):
    refuse_while_occupied(monkeypatch, own)
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n{os.getppid()}\n")
    assert find(own) == ""
    assert not (own / "argosy-processes").exists()


def test_a_process_that_ends_or_starts_while_ours_make_way_does_no_harm(own, monkeypatch):
    refuse_while_occupied(monkeypatch, own)
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n")
    write, moves = cgroup._write, []

    def wrapped(path, name, value):
        write(path, name, value)
        if name == "cgroup.procs":
            moves.append(value)
            if len(moves) == 1:
                (own / name).write_text(f"{os.getpid()}\n")  # one more was started meanwhile
                raise ProcessLookupError(errno.ESRCH, "No such process")

    monkeypatch.setattr(cgroup, "_write", wrapped)
    assert find(own) == str(own)
    assert len(moves) == 2


def test_a_run_is_limited_in_memory_with_its_scratch_and_in_processes_and_has_no_swap(own):
    group = Path(make(own, 50 << 20))
    assert group.parent == own
    assert int((group / "memory.max").read_text()) == (100 + 50 + 16) << 20
    assert int((group / "pids.max").read_text()) == 10
    assert ((group / "memory.swap.max").read_text(), (group / "memory.oom.group").read_text()) == ("0", "1")
    cgroup.enter(str(group))
    assert (group / "cgroup.procs").read_text() == "0"


def test_it_is_known_whether_the_kernel_ended_a_run_for_its_memory(own):
    group = Path(make(own))
    assert not cgroup.was_out_of_memory(str(group))
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 1\noom_kill 0\n")
    assert not cgroup.was_out_of_memory(str(group))
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 1\noom_kill 2\n")
    assert cgroup.was_out_of_memory(str(group))
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 0\noom 0\noom_kill 2\n")
    assert not cgroup.was_out_of_memory(str(group)), "the machine was out of memory, not the run"


def test_a_run_leaves_none_behind_whatever_still_runs_in_it(own):
    group = Path(make(own))
    (group / "cgroup.procs").write_text("123\n")
    cgroup.remove(str(group))
    assert not group.exists()
    cgroup.remove(str(group))  # nothing to do


@pytest.mark.parametrize("sweep", [find, make], ids=["at the start", "before a run"])
def test_those_of_killed_launchers_are_removed_and_others_stay(own, sweep):
    """The lock says whether its launcher lives; the number may be of another namespace, or of a new process."""
    living, lock = cgroup.create(str(own), NEEDS, 0)
    elsewhere = own / f"argosy-run-{GONE}-2"
    os.rename(living, elsewhere)
    for name in (f"argosy-run-{GONE}-1", f"argosy-run-{os.getpid()}-2", "argosy-run-x", "of-somebody-else"):
        cgroup.os.mkdir(own / name)
    before = {path for path in own.iterdir() if path.is_dir()}
    sweep(own)
    assert {path.name for path in before if path.exists()} == {elsewhere.name, "argosy-run-x", "of-somebody-else"}
    os.close(lock)


def test_what_a_killed_launcher_left_running_is_ended_and_removed(own):
    left = own / f"argosy-run-{GONE}-1"
    cgroup.os.mkdir(left)
    (left / "cgroup.procs").write_text("123\n")
    find(own)
    assert not left.exists()


def test_a_new_cgroup_that_another_process_removes_at_once_is_made_again(own, monkeypatch):
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
def test_sockets_are_counted_if_the_run_could_not_enter_its_cgroup(own, can_enter, monkeypatch):
    path, lock = cgroup.create(str(own), NEEDS, 0)
    if not can_enter:
        Path(path, "cgroup.procs").unlink()
    order = {"cgroup": path, "cgroup_lock": lock, "apart": False, "before": 0, "scratch": str(own / "none")}
    order["needs"] = {"memory": 1 << 20, "scratch": 1}
    entered, entering = os.pipe()
    launcher._enter_cgroup(order, entering)
    assert os.read(entered, 1) == (b"1" if can_enter else b"")
    monkeypatch.setattr(launcher.descendants, "list_descendants", lambda pid: [])
    monkeypatch.setattr(launcher.descendants, "measure_socket_buffers", lambda pids: 2 << 20)
    assert launcher._find_excess(order) == ("" if can_enter else "memory")
    os.close(entered)
