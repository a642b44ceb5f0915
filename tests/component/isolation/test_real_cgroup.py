"""Isolation in real cgroups (version 2).

The tests are skipped if the kernel does not delegate a cgroup to the test process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from argosy.isolation import LimitExceeded, cgroup
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.untrusted_program_runner import ProgramResult, list_python_paths, run
from support.deadlines import HANG_SECONDS, wait_until

FOLDER = Path("/usr/share")
# Opens 120 socket pairs: few enough that the launcher does not count them without a cgroup.
BUFFERS = """
import socket, time
held = []
for _ in range(120):
    held.append(socket.socketpair())
    for end in held[-1]:
        end.setblocking(False)
        try:
            while True:
                end.send(b"x" * 4096)
        except BlockingIOError:
            pass
time.sleep(1000)
"""
HOARD = """
import mmap
held = []
while True:
    held.append(mmap.mmap(-1, 1 << 22))  # shared, so that rlimits do not count it
    held[-1].write(bytes(1 << 22))
"""
FORKS = """
import os, time
started = 0
try:
    while True:
        if not os.fork():
            time.sleep(1000)
        started += 1
except OSError as problem:
    print(started, problem.errno)
"""
SLEEPER = f"""
from pathlib import Path
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.untrusted_program_runner import run
run(("sleep", "1000"), folder=Path("/usr/share"), limits=ProgramLimits(wall={HANG_SECONDS}))
"""


@pytest.fixture(autouse=True)
def parent() -> Path:
    path = cgroup.find_delegated_parent()
    if not path:
        pytest.skip("no cgroup (version 2, with memory and pids) is delegated to this process")
    return Path(path)


def python(code: str, **limits: int) -> ProgramResult:
    command = (sys.executable, "-I", "-S", "-c", code)
    return run(
        command, folder=FOLDER, readable=list_python_paths(), limits=ProgramLimits(**{"wall": HANG_SECONDS, **limits})
    )


def runs(parent: Path) -> list[Path]:
    return [path for path in parent.iterdir() if path.name.startswith("argosy-run-")]


def test_run_uses_a_cgroup_and_removes_it(parent):
    done = run(("true",), folder=FOLDER, limits=ProgramLimits(wall=HANG_SECONDS))
    assert done.confinement.cgroup
    assert not done.confinement.optional_missing
    assert runs(parent) == []


@pytest.mark.parametrize("code", [HOARD, BUFFERS], ids=["shared memory", "buffers of sockets"])
def test_kernel_kills_a_run_that_exceeds_its_memory_limit(parent, code):
    with pytest.raises(LimitExceeded) as raised:
        python(code, memory=32 << 20, scratch=1 << 20)
    assert raised.value.limit == "memory"
    assert "needs more than 32 MiB of memory" in str(raised.value)
    assert runs(parent) == []


def test_out_of_memory_kill_is_detected_from_memory_events(parent):
    """A program may allocate a lot between two checks of the launcher; `memory.events` records the kill."""
    path, lock = cgroup.create(str(parent), {"memory": 1 << 20, "processes": 8}, 0)
    child = os.fork()
    if child == 0:
        cgroup.enter(path)
        held = bytearray(64 << 20)
        os._exit(len(held) and 1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert cgroup.was_out_of_memory(path)
    cgroup.remove(path)
    os.close(lock)
    assert runs(parent) == []


def test_out_of_memory_kill_by_a_parent_cgroup_is_not_reported_as_the_runs_limit(parent):
    above = parent / "above"
    above.mkdir()
    (above / "cgroup.subtree_control").write_text("+memory +pids")
    (above / "memory.max").write_text(str(8 << 20))
    path, lock = cgroup.create(str(above), {"memory": 256 << 20, "processes": 8}, 0)
    child = os.fork()
    if child == 0:
        cgroup.enter(path)
        held = bytearray(64 << 20)
        os._exit(len(held) and 1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert not cgroup.was_out_of_memory(path)
    cgroup.remove(path)
    os.close(lock)
    above.rmdir()


def test_process_limit_stops_fork_with_eagain(parent):
    started, number = map(int, python(FORKS, processes=8).stdout.split())
    assert (started < 8, number) == (True, 11)  # EAGAIN
    path, lock = cgroup.create(str(parent), {"memory": 256 << 20, "processes": 1}, 0)
    child = os.fork()
    if child == 0:
        cgroup.enter(path)
        try:
            for _ in range(3):
                if not os.fork():
                    time.sleep(1000)
            os._exit(0)
        except OSError as problem:
            os._exit(problem.errno)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 11
    cgroup.remove(path)  # removes the two processes too
    os.close(lock)
    assert not os.path.exists(path)


def start_sleeper(parent: Path) -> tuple[subprocess.Popen[bytes], Path]:
    process = subprocess.Popen([sys.executable, "-c", SLEEPER], stderr=subprocess.DEVNULL)
    wait_until(lambda: any((path / "pids.current").read_text() != "0\n" for path in runs(parent)))
    return process, runs(parent)[0]


def test_cgroup_is_removed_when_the_caller_is_killed(parent):
    process, path = start_sleeper(parent)
    process.kill()
    process.wait()
    wait_until(lambda: not path.exists())


def test_next_run_removes_the_cgroup_of_a_killed_launcher(parent):
    process, path = start_sleeper(parent)
    os.kill(int(path.name.split("-")[2]), signal.SIGKILL)
    process.wait()
    run(("true",), folder=FOLDER, limits=ProgramLimits(wall=HANG_SECONDS))
    wait_until(lambda: cgroup.find_delegated_parent() and runs(parent) == [])


def test_argosy_in_another_pid_namespace_does_not_stop_a_running_program(parent):
    """The launcher's process id means nothing in another PID namespace."""
    process, path = start_sleeper(parent)
    starts = "from argosy.isolation import cgroup; print(cgroup.find_delegated_parent())"
    if os.geteuid() == 0:
        apart = ["unshare", "--pid", "--fork", "--mount-proc"]
    else:
        apart = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    done = subprocess.run([*apart, sys.executable, "-c", starts], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(parent), done.stderr
    assert process.poll() is None and path.exists()
    process.kill()
    process.wait()
    wait_until(lambda: not path.exists())
