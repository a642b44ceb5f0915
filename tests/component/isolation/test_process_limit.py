"""Process limit of a confined program: independent of the other processes of its user."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from argosy.isolation import rootfs
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.process_confinement import NOBODY_ID
from argosy.isolation.untrusted_program_runner import ProgramResult, list_python_paths
from support.deadlines import HANG_SECONDS, wait_until
from support.unprivileged_user import USER, run_as

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
    pytest.mark.skipif(
        not rootfs.has_process_limit_per_namespace(), reason="this kernel counts all processes of a user as one"
    ),
]

GIVEN, CROWD = 8, 40
WHOSE = {"self": NOBODY_ID, "apart": USER}
self_first = pytest.mark.parametrize("who", ["self", pytest.param("apart", marks=pytest.mark.tier("all"))])
apart_first = pytest.mark.parametrize("who", [pytest.param("self", marks=pytest.mark.tier("all")), "apart"])
STARTS_ALL_IT_CAN = """
import os, pathlib, signal, time
home = pathlib.Path.home()
(home / "up").touch()
while not (home / "go").exists():
    time.sleep(0.01)
started = 0
while started < 200:
    try:
        if os.fork() == 0:
            signal.pause()
    except BlockingIOError:
        break
    started += 1
print(started)
"""
IS_MANY = """
import os, signal, sys
user, count = map(int, sys.argv[1:])
os.setgroups([])
os.setgid(user)
os.setuid(user)
started = []
for _ in range(count):
    pid = os.fork()
    if pid == 0:
        signal.pause()
    started.append(pid)
print("up", flush=True)
sys.stdin.read()
for pid in started:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
"""
HAS_RIGHTS = """
import ctypes, struct
found = ctypes.create_string_buffer(24)
assert ctypes.CDLL(None).capget(struct.pack("=Ii", 0x20080522, 0), found) == 0
print(found.raw.strip(bytes(1)) != b"")
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        scratch = Path(name, "scratch")
        scratch.mkdir()
        scratch.chmod(0o777)
        yield Path(name)


@contextmanager
def crowd_of(user: int) -> Iterator[None]:
    command = [sys.executable, "-I", "-c", IS_MANY, str(user), str(CROWD)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as crowd:
        assert crowd.stdin and crowd.stdout and crowd.stdout.readline() == b"up\n"
        try:
            yield
        finally:
            crowd.stdin.close()
            assert crowd.wait(HANG_SECONDS) == 0


def start(who: str, folder: Path, code: str) -> ProgramResult:
    limits = ProgramLimits(wall=HANG_SECONDS, processes=GIVEN)
    command = (sys.executable, "-I", "-c", code)
    done = run_as(who, command, folder=folder, readable=list_python_paths(), scratch=folder / "scratch", limits=limits)
    if isinstance(done, Exception):
        raise done
    return done


def started_by(done: ProgramResult) -> int:
    assert done.code == 0, done.stderr
    return int(done.stdout)


@self_first
def test_later_processes_of_the_same_user_do_not_lower_the_limit(who: str, folder: Path) -> None:
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(start, who, folder, STARTS_ALL_IT_CAN)
        wait_until(lambda: (folder / "scratch/up").exists() or result.done(), "the program runs")
        with crowd_of(WHOSE[who]):
            (folder / "scratch/go").touch()
            assert started_by(result.result()) == GIVEN - 1  # it counts itself


@apart_first
def test_ended_processes_of_the_same_user_do_not_raise_the_limit(who: str, folder: Path) -> None:
    with ThreadPoolExecutor(1) as thread:
        with crowd_of(WHOSE[who]):
            result = thread.submit(start, who, folder, STARTS_ALL_IT_CAN)
            wait_until(lambda: (folder / "scratch/up").exists() or result.done(), "the program runs")
        (folder / "scratch/go").touch()
        assert started_by(result.result()) == GIVEN - 1


@pytest.mark.tier("all")
def test_without_user_namespace_the_limit_includes_other_processes(folder: Path) -> None:
    (folder / "scratch/go").touch()
    with crowd_of(NOBODY_ID):
        done = start("without", folder, STARTS_ALL_IT_CAN)
    assert done.confinement.uid == NOBODY_ID and started_by(done) > 0
    assert done.confinement.rlimits["nproc"] >= GIVEN + CROWD


@self_first
def test_user_namespace_gives_the_program_no_capabilities(who: str, folder: Path) -> None:
    done = start(who, folder, HAS_RIGHTS)
    assert (done.code, done.stdout, done.stderr) == (0, b"False\n", b"")
    assert done.confinement.uid == WHOSE[who]


def test_file_owners_are_the_same_inside_and_outside(folder: Path) -> None:
    (folder / "given.txt").touch()
    code = "import os, pathlib; print(os.stat('given.txt').st_uid); (pathlib.Path.home() / 'left').touch()"
    assert start("self", folder, code).stdout == b"0\n"
    assert (folder / "scratch/left").stat().st_uid == NOBODY_ID
