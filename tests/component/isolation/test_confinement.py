"""Confinement of a worker: no access to files, network, other processes or the parent's secrets."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from argosy.isolation import CallLimits, ConfinedError, Confinement, WorkerPool, landlock, seccomp
from support.deadlines import HANG_SECONDS
from support.file_pools import FilePool
from support.paths import TESTS

HOSTILE = "support.hostile_functions"
POOL = FilePool(workers=1, preload=[HOSTILE], limits=CallLimits(wall=HANG_SECONDS))
close_pool = POOL.fixture()

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give its workers another user and network")
needs_landlock = pytest.mark.skipif(landlock.find_abi_version() == 0, reason="this kernel has no Landlock")
needs_landlock_tcp = pytest.mark.skipif(
    landlock.find_abi_version() < 4, reason="this kernel's Landlock cannot refuse TCP"
)
needs_filter = pytest.mark.skipif(not seccomp.is_supported(), reason="the filter is not built for this system")
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines more than by rlimits")


def ask(function, payload=None):
    return POOL.run(lambda pool: pool.run(f"{HOSTILE}:{function}", payload))


def report() -> Confinement:
    async def scene(pool):
        assert await pool.start() == pool.get_confinement()
        return pool.get_confinement()

    return POOL.run(scene)


def test_confinement_report_matches_the_active_protections():
    confinement_report = report()
    assert confinement_report.started
    assert confinement_report.uid == (65534 if os.geteuid() == 0 else os.getuid())
    assert confinement_report.landlock == landlock.find_abi_version()
    assert (
        confinement_report.rlimits["fsize"]
        == confinement_report.rlimits["core"]
        == confinement_report.rlimits["nproc"]
        == 0
    )


def test_confinement_report_is_empty_before_the_first_worker():
    assert WorkerPool().get_confinement() == Confinement()
    assert not WorkerPool().get_confinement().started and WorkerPool().get_confinement().missing


@needs_linux
def test_worker_has_no_new_privs_set():
    assert report().no_new_privs


@needs_root
def test_worker_of_root_runs_as_nobody_without_groups():
    identity = ask("identity")
    assert (identity["uid"], identity["groups"]) == (65534, [])


@needs_landlock
def test_world_readable_file_cannot_be_read():
    with pytest.raises(ConfinedError, match=r"PermissionError.*/etc/passwd"):
        ask("read", "/etc/passwd")


@needs_landlock
def test_environment_of_the_parent_cannot_be_read_from_proc():
    with pytest.raises(ConfinedError, match="PermissionError"):
        ask("read", f"/proc/{os.getpid()}/environ")


def test_private_key_file_cannot_be_read(tmp_path):
    if os.geteuid() != 0 and landlock.find_abi_version() == 0:
        pytest.skip("without Landlock and without root, a worker has its parent's files")
    key = tmp_path / "secret.key"
    key.write_text("secret")
    key.chmod(0o600)
    with pytest.raises(ConfinedError, match="PermissionError"):
        ask("read", str(key))


@needs_landlock
def test_preloaded_package_gives_no_access_to_files_next_to_it():
    with pytest.raises(ConfinedError, match="PermissionError"):
        ask("read", str(TESTS / "conftest.py"))


@needs_landlock
def test_preloaded_single_file_module_gives_access_to_that_file_only(monkeypatch):
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        module, beside = Path(name, "lone_hostile_module.py"), Path(name, "beside.txt")
        module.write_text("def read(path):\n    return open(path).read()\n")
        beside.write_text("secret")
        monkeypatch.syspath_prepend(name)

        async def scene():
            pool = WorkerPool(workers=1, preload=["lone_hostile_module"])
            try:
                assert "def read" in await pool.run("lone_hostile_module:read", str(module))
                with pytest.raises(ConfinedError, match="PermissionError"):
                    await pool.run("lone_hostile_module:read", str(beside))
            finally:
                await pool.close()

        asyncio.run(scene())


@needs_landlock
def test_worker_cannot_create_files(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(ConfinedError, match="PermissionError"):
        ask("write", str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


@needs_linux
def test_memory_file_cannot_grow():
    with pytest.raises(ConfinedError, match="File too large"):
        ask("fill_memory_file")


@needs_landlock
def test_worker_cannot_execute_programs():
    # Landlock refuses it; the nproc rlimit refuses first if the worker's user has another process.
    with pytest.raises(ConfinedError, match=r"PermissionError|BlockingIOError"):
        ask("execute", sys.executable)


def test_worker_cannot_fork():
    with pytest.raises(ConfinedError, match="BlockingIOError"):
        ask("fork")


@needs_linux
def test_worker_cannot_start_a_thread():
    with pytest.raises(ConfinedError, match="can't start new thread"):
        ask("thread")


@needs_landlock_tcp
def test_worker_cannot_open_tcp_connections():
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(ConfinedError, match="PermissionError"):
        ask("connect", list(server.getsockname()))


@needs_filter
def test_worker_cannot_send_datagrams():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        with pytest.raises(ConfinedError, match="PermissionError"):
            ask("send_datagram", list(receiver.getsockname()))


def test_worker_environment_is_empty():
    assert ask("environment") == {}


def test_worker_has_root_cwd_and_only_the_socket_to_its_parent():
    anew = CallLimits(wall=HANG_SECONDS, memory=100 << 20)  # differs from other tests: a new worker
    worker_state = POOL.run(lambda pool: pool.run(f"{HOSTILE}:places", None, limits=anew))
    assert worker_state["cwd"] == "/"
    assert worker_state["stdin"] == ""
    assert len(worker_state["descriptors"]) == 1


def test_worker_cannot_kill_its_parent():
    if os.geteuid() != 0 and landlock.find_abi_version() < 6:
        pytest.skip("without root and Landlock ABI 6, a worker may signal processes of its user")
    with pytest.raises(ConfinedError, match="PermissionError"):
        ask("kill", os.getpid())
