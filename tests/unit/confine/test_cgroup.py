"""A cgroup for each run: where one can be made, what it limits, and that it goes. The kernel's files are stood in for.

A folder stands for a cgroup, as on a kernel where this process owns one; the last test uses a real one where there is.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from argosy.confine import cgroup
from argosy.confine.limits import ProgramLimits
from argosy.confine.program import run

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

    kernel = {**vars(os), "mkdir": mkdir, "rmdir": rmdir, "makedirs": lambda path, exist_ok: mkdir(path)}
    monkeypatch.setattr(cgroup, "os", SimpleNamespace(**kernel))
    place = tmp_path / "system.slice" / "argosy.service"
    place.parent.mkdir()
    mkdir(place)
    return place


def find(own: Path, *, kind: str = "cgroup2", root: str = "/") -> str:
    mounted = own.parents[1]
    mounts, membership = mounted / "mountinfo", mounted / "membership"
    mounts.write_text(f"30 23 0:26 {root} {mounted} rw,nosuid shared:4 - {kind} cgroup2 rw\n")
    inside = "/" + str(own.relative_to(mounted))
    membership.write_text(f"1:name=systemd:/\n0::{'' if root == '/' else root}{inside}\n")
    return cgroup.find_parent(str(mounts), str(membership))


def test_our_own_cgroup_is_found_and_its_children_get_controllers(own):
    assert find(own) == str(own)
    assert (own / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_a_part_of_the_tree_that_is_mounted_alone_is_found(own):
    assert find(own, root="/kubepods/pod1") == str(own)


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


def test_a_run_is_limited_in_memory_with_its_scratch_and_in_processes_and_has_no_swap(own):
    made = Path(cgroup.make(str(own), NEEDS, 50 << 20))
    assert made.parent == own
    assert int((made / "memory.max").read_text()) == (100 + 50 + 16) << 20
    assert int((made / "pids.max").read_text()) == 10
    assert ((made / "memory.swap.max").read_text(), (made / "memory.oom.group").read_text()) == ("0", "1")
    cgroup.enter(str(made))
    assert (made / "cgroup.procs").read_text() == "0"


def test_it_is_known_whether_the_kernel_ended_a_run_for_its_memory(own):
    made = Path(cgroup.make(str(own), NEEDS, 0))
    assert not cgroup.was_out_of_memory(str(made))
    (made / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 1\noom_kill 0\n")
    assert not cgroup.was_out_of_memory(str(made))
    (made / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 1\noom_kill 2\n")
    assert cgroup.was_out_of_memory(str(made))


def test_a_run_leaves_none_behind_whatever_still_runs_in_it(own):
    made = Path(cgroup.make(str(own), NEEDS, 0))
    (made / "cgroup.procs").write_text("123\n")
    cgroup.remove(str(made))
    assert not made.exists()
    cgroup.remove(str(made))  # nothing to do


def test_those_of_killed_launchers_are_removed_at_the_start_and_others_stay(own):
    for name in (f"argosy-run-{GONE}-1", f"argosy-run-{os.getpid()}-2", "argosy-run-x", "of-somebody-else"):
        cgroup.os.mkdir(own / name)
    (own / f"argosy-run-{GONE}-1" / "cgroup.procs").write_text("123\n")
    find(own)
    left = {path.name for path in own.iterdir() if path.is_dir()}
    assert left == {f"argosy-run-{os.getpid()}-2", "argosy-run-x", "of-somebody-else"}


def test_a_real_run_is_in_a_real_cgroup_and_leaves_none(tmp_path):
    parent = cgroup.find_parent()
    if not parent:
        pytest.skip("no cgroup (version 2, with memory and pids) is delegated to this process")
    tmp_path.chmod(0o755)
    done = run(("true",), folder=Path("/usr/share"), limits=ProgramLimits())
    assert done.confinement.cgroup
    assert not [name for name in os.listdir(parent) if name.startswith("argosy-run-")]
