"""Limits on memory that no process maps: socket buffers and a scratch folder on tmpfs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from argosy.isolation import LimitExceeded, rootfs
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.untrusted_program_runner import list_python_paths, run
from support.deadlines import HANG_SECONDS
from support.open_folders import everyone, only_root
from support.unprivileged_user import run_as

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines more than by rlimits")
# Fills the buffers of many sockets, then waits to be killed; it uses almost no memory of its own.
SOCKETS = """
import os, socket, time
for _ in range(6):
    if not os.fork():
        break
held = []
try:
    while True:
        held.append(socket.socketpair())
        for end in held[-1]:
            end.setblocking(False)
            try:
                while True:
                    end.send(b"x" * 65536)
            except BlockingIOError:
                pass
except OSError:
    time.sleep(1000)
"""
FULL = """
import os
home = os.environ["HOME"]
written = 0
try:
    while written < 64 << 20:
        with open(f"{home}/{written}", "wb") as file:
            written += file.write(bytes(1 << 18))
except OSError as problem:
    print(problem.errno, written, flush=True)
    raise
"""
TMPFS = "stat -f -c %T $HOME; echo kept > $HOME/a; cat $HOME/a"


def python(who: str, folder: Path, code: str, limits: ProgramLimits):
    return run_as(who, (sys.executable, "-I", "-c", code), folder=folder, readable=list_python_paths(), limits=limits)


@everyone
def test_socket_buffers_count_towards_the_memory_limit(who, folder):
    limits = ProgramLimits(memory=192 << 20, wall=HANG_SECONDS)
    problem = python(who, folder, SOCKETS, limits)
    assert isinstance(problem, LimitExceeded) and problem.limit == "memory"


def can_mount() -> bool:
    child = os.fork()
    if child == 0:
        os._exit(0 if rootfs.unshare(rootfs.CLONE_NEWNS) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="a user may not be allowed to mount anything")
def test_scratch_folder_of_root_is_a_tmpfs(folder):
    if not can_mount():
        pytest.skip("this machine lets root make no mount namespace")
    done = run(("sh", "-c", TMPFS), folder=folder, limits=ProgramLimits(wall=HANG_SECONDS))
    assert (done.stdout, done.confinement.scratch_tmpfs) == (b"tmpfs\nkept\n", True)


@pytest.mark.tier("all")
@only_root
def test_scratch_folder_of_user_with_namespaces_is_a_tmpfs(folder):
    done = run_as("apart", ("sh", "-c", TMPFS), folder=folder, limits=ProgramLimits(wall=HANG_SECONDS))
    assert (done.stdout, done.confinement.scratch_tmpfs) == (b"tmpfs\nkept\n", True)


def test_given_scratch_folder_is_used_instead_of_a_tmpfs(folder):
    scratch = folder / "scratch"
    scratch.mkdir()
    done = run(("sh", "-c", TMPFS), folder=folder, scratch=scratch, limits=ProgramLimits(wall=HANG_SECONDS))
    assert done.confinement.scratch_tmpfs is False
    assert (scratch / "a").read_text() == "kept\n"


@everyone
def test_full_scratch_folder_raises_scratch_limit_exceeded(who, folder):
    problem = python(who, folder, FULL, ProgramLimits(scratch=8 << 20, wall=HANG_SECONDS))
    assert isinstance(problem, LimitExceeded) and problem.limit == "scratch"


@everyone
def test_deleted_open_files_count_once_towards_the_scratch_limit(who, folder):
    code = """
import os, time
file = open(f"{os.environ['HOME']}/a", "wb")
os.unlink(file.name)
file.write(bytes(5 << 20))
file.flush()
time.sleep(0.5)
print("done")
"""
    done = python(who, folder, code, ProgramLimits(scratch=8 << 20, wall=HANG_SECONDS))
    assert done.stdout == b"done\n"
