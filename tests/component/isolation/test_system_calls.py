"""System calls that confined code cannot make, as root and as another user. Outside, each has another result."""

from __future__ import annotations

import errno
import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from argosy.isolation import CallLimits, seccomp
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.untrusted_program_runner import list_python_paths
from support import syscall_attacks
from support.deadlines import HANG_SECONDS
from support.file_pools import FilePool
from support.unprivileged_user import run_as

HOSTILE = "support.hostile_functions"
POOL = FilePool(workers=1, preload=[HOSTILE], limits=CallLimits(wall=HANG_SECONDS))
close_pool = POOL.fixture()
SCRIPT = Path(syscall_attacks.__file__).read_text()
SHORT = ProgramLimits(wall=HANG_SECONDS)
ABSENT = {errno.ENOSYS, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT, errno.EOPNOTSUPP}
REFUSED = {errno.EPERM, errno.ENOSYS}

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
everyone = pytest.mark.parametrize("who", ["self", pytest.param("ordinary", marks=only_root)])
pytestmark = pytest.mark.skipif(not seccomp.is_supported(), reason="the filter is not built for this system")


@functools.cache
def outside() -> dict[str, int]:
    done = subprocess.run([sys.executable, "-I", "-c", SCRIPT], capture_output=True, check=True, timeout=HANG_SECONDS)
    return json.loads(done.stdout)


@functools.cache
def inside(who: str) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        command = (sys.executable, "-I", "-c", SCRIPT)
        done = run_as(who, command, folder=Path(name), readable=list_python_paths(), limits=SHORT)
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


def skip_unless_the_kernel_has(name: str) -> None:
    number = outside()[name]
    if name == "a call newer than the filter" and number == errno.ENOSYS:
        pytest.skip("this kernel has no call that is newer than the filter")
    if number in ABSENT:
        pytest.skip(f"{name}: this kernel does not have it ({errno.errorcode[number]})")
    if number == errno.EPERM:
        pytest.skip(f"{name}: the kernel refuses it to this user without a filter, too")


@everyone
@pytest.mark.parametrize("name", [*syscall_attacks.CALLS, *syscall_attacks.IN_SUBPROCESS])
def test_program_cannot_make_the_system_call(who, name):
    skip_unless_the_kernel_has(name)
    assert inside(who)[name] in REFUSED
    assert outside()[name] not in REFUSED


@everyone
@pytest.mark.parametrize("name", syscall_attacks.ALLOWED)
def test_program_can_make_allowed_system_calls(who, name):
    assert inside(who)[name] == 0


@everyone
def test_program_can_open_a_unix_socket_only_in_its_own_root(who):
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        has_own_root = run_as(who, ("true",), folder=Path(name), limits=SHORT).confinement.own_root
    assert inside(who)["socket of Unix"] == (0 if has_own_root else errno.EPERM)


@pytest.mark.parametrize("name", [*syscall_attacks.CALLS, *syscall_attacks.UNIX_SOCKET])
def test_worker_cannot_make_the_system_call(name):
    skip_unless_the_kernel_has(name)
    assert POOL.run(lambda pool: pool.run(f"{HOSTILE}:make_call", name)) in REFUSED


def test_confinement_report_says_that_seccomp_is_active():
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        done = run_as("self", ("true",), folder=Path(name), limits=SHORT)
    assert done.confinement.seccomp

    async def scene(pool):
        return await pool.start()

    assert POOL.run(scene).seccomp
