"""Long-running confined programs: passed sockets, stdin, limits, exit report and cleanup."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.long_running_program import (
    NO_WALL_LIMIT_SECONDS,
    LongRunningProgram,
    ProgramAccess,
    start_program,
)
from argosy.isolation.untrusted_program_runner import list_python_paths
from support.deadlines import HANG_SECONDS, wait_until_async
from support.own_process import run_in_own_process
from support.processes import children, descriptors, is_running

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines more than by rlimits"),
]
LIMITS = ProgramLimits(cpu=NO_WALL_LIMIT_SECONDS, memory=128 << 20)
SERVING = """
import os, socket, sys
door = socket.socket(fileno=int(sys.argv[1]))
print("here", flush=True)
for line in sys.stdin:
    other, _ = door.accept()
    other.sendall(line.encode() + str(os.getuid()).encode())
    other.close()
"""


async def begin(folder: Path, script: str, *sockets: socket.socket) -> LongRunningProgram:
    argv = (sys.executable, "-I", "-S", "-c", script, *(str(listener.fileno()) for listener in sockets))
    return await start_program(argv, folder=folder, readable=list_python_paths(), sockets=sockets, limits=LIMITS)


async def test_program_serves_the_socket_passed_to_it(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        resident = await begin(folder, SERVING, door)
        try:
            await resident.write_line(b"told")
            reader, writer = await asyncio.open_connection(*door.getsockname())
            answer, _, user = (await asyncio.wait_for(reader.read(), HANG_SECONDS)).partition(b"\n")
            writer.close()
            assert answer == b"told" and int(user) == (65534 if os.getuid() == 0 else os.getuid())
            assert resident.is_running and resident.read_output_tail() == "here\n"
        finally:
            await resident.kill()
        assert not resident.is_running


async def test_exit_code_and_last_output_are_reported(folder: Path) -> None:
    resident = await begin(folder, "print('the end'); raise SystemExit(7)")
    ended = await asyncio.wait_for(resident.exit_task, HANG_SECONDS)
    assert (ended.code, ended.limit, resident.read_output_tail()) == (7, "", "the end\n")
    await resident.write_line(b"too late")
    await resident.kill()


async def test_program_that_exceeds_its_memory_limit_ends(folder: Path) -> None:
    resident = await begin(folder, "import time\nheld = [bytes(1 << 20) for _ in range(4096)]\ntime.sleep(60)")
    ended = await asyncio.wait_for(resident.exit_task, HANG_SECONDS)
    assert ended.limit == "memory" or "MemoryError" in resident.read_output_tail()


async def test_kill_ends_the_launcher_of_a_program_that_forked(folder: Path) -> None:
    script = "import os, time\nif os.fork(): print('there', flush=True)\ntime.sleep(600)"
    resident = await begin(folder, script)
    await wait_until_async(lambda: "there" in resident.read_output_tail(), "it has forked")
    launcher = resident._process.pid
    await resident.kill()
    assert not is_running(launcher)


def give_up_while_it_starts(folder: str) -> None:
    async def give_up(passes: int) -> None:
        beginning = asyncio.create_task(begin(Path(folder), "import time\ntime.sleep(600)"))
        for _ in range(passes):  # of the loop: before the process exists, while it exists, before it got its command
            await asyncio.sleep(0)
        beginning.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await beginning).kill()

    async def scene() -> None:
        await (await begin(Path(folder), "pass")).kill()  # opens the descriptors that stay open
        before = descriptors()
        for passes in (1, 2, 3, 5, 8, 40):
            await give_up(passes)
            assert children(os.getpid()) == [], f"a process is left after {passes} passes"
            await wait_until_async(lambda: descriptors() <= before, f"as few descriptors, after {passes} passes")

    asyncio.run(scene())


def test_cancelled_start_leaves_no_process_or_descriptor(folder: Path) -> None:
    run_in_own_process(give_up_while_it_starts, str(folder))


FILLS = """
import os, time
held = []
for number in range(400):
    held.append(open(f"/data/{number}", "wb"))
    if {unlinks}:
        os.unlink(f"/data/{number}")
    held[-1].write(b"x" * (1 << 20))
    held[-1].flush()
    time.sleep(0.01)
"""


@pytest.mark.parametrize("unlinks", [False, True])
async def test_scratch_limit_counts_named_and_unlinked_files_in_a_mounted_folder(folder: Path, unlinks: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        (Path(name) / "before").write_bytes(b"x" * (40 << 20))
        around = ProgramAccess(mounts=[(name, "/data", False)], counted=[Path(name)])
        limits = ProgramLimits(cpu=NO_WALL_LIMIT_SECONDS, memory=512 << 20, scratch=32 << 20)
        argv = (sys.executable, "-I", "-S", "-c", FILLS.replace("{unlinks}", str(unlinks)))
        resident = await start_program(argv, folder=folder, readable=list_python_paths(), limits=limits, access=around)
        try:
            ended = await asyncio.wait_for(asyncio.shield(resident.exit_task), HANG_SECONDS)
        finally:
            await resident.kill()
        if ended.refused:
            pytest.skip(ended.refused)
        assert ended.limit == "scratch"


async def test_mount_over_the_parent_folder_does_not_hide_the_program_folder(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        above = str(folder.parent)
        (folder / "script.py").write_text("import os\nprint(os.listdir(os.path.dirname(__file__)))\n")
        around = ProgramAccess(mounts=[(name, above, False)])
        argv = (sys.executable, "-I", "-S", str(folder / "script.py"))
        resident = await start_program(argv, folder=folder, readable=list_python_paths(), limits=LIMITS, access=around)
        ended = await asyncio.wait_for(asyncio.shield(resident.exit_task), HANG_SECONDS)
        await resident.kill()
        if ended.refused:
            pytest.skip(ended.refused)
        assert (ended.code, resident.read_output_tail()) == (0, "['script.py']\n")
