"""Notebooks cannot escape their isolation: files, environment, processes, network, disk, memory, their own results.

Every attack is a cell. The test creates the targets: files, a process of the same user, listeners. Each notebook of
quiet attacks ends in an error, so a notebook that is reported as passed has forged its results.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import random
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.features.notebooks.local_runs import run
from argosy.features.notebooks.runner import cell_execution
from argosy.features.notebooks.runner.event_stream import EventWriter
from argosy.features.notebooks.runner.run_request import RunRequest
from argosy.isolation.process_confinement import NOBODY_ID
from support.deadlines import HANG_SECONDS
from support.notebook_attacks import OPENING, QUIET, VIOLENT, cell
from support.notebook_jobs import NAMESPACE, Desk, desk, marked, notebook

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
nbformat = pytest.importorskip("nbformat")
pytestmark = [
    pytest.mark.tier("test", "prove"),
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="folders are mounted on Linux alone"),
]
TOGETHER = 25  # quiet attacks per notebook
SHARED = 0x41524759
MOST_KEPT = 16 << 20
ENOUGH = f"{HANG_SECONDS:.0f}s"
VALIDATION = {"level": "learning", "detectSilentFailures": False}
POD = {
    "volumes": [
        {"name": "models", "persistentVolumeClaim": {"claimName": "models"}},
        {"name": "frozen", "persistentVolumeClaim": {"claimName": "frozen", "readOnly": True}},
        {"name": "keys", "secret": {"secretName": "keys"}},
    ],
    "volumeMounts": [
        {"name": "models", "mountPath": "/models"},
        {"name": "frozen", "mountPath": "/frozen"},
        {"name": "keys", "mountPath": "/keys"},
    ],
}
PASSING = {"a daemon", "a flood of output", "folders too deep and closed"}
# Attacks that must succeed without isolation; otherwise their failure would prove nothing.
REAL = (
    "read a file of argosy that all may read", "list the folder of argosy", "climb out of the repository",
    "read the claim of another job", "read the users of the machine", "see processes", "follow a link of its own",
    "call a port of this machine", "call an abstract socket",
    "call a socket in a folder", "find a variable of argosy", "signal a process of the same user",
)  # fmt: skip


class Machine:
    """Everything a notebook must not reach."""

    def __init__(self, data: Path) -> None:
        self.data, self.canary, self.marker = data, secrets.token_hex(16), str(random.randrange(10**8, 10**9))
        self.reached: list[str] = []
        os.environ["ARGOSY_TEST_CANARY"] = self.canary
        for name in ("secret.key", "open.txt", "volumes/other/claim/weights", "runs/other/job/1-1/work/note"):
            (data / name).parent.mkdir(parents=True, exist_ok=True)
            (data / name).write_text(self.canary)
        (data / "secret.key").chmod(0o600)
        frozen = data / "volumes" / NAMESPACE / "frozen"
        frozen.mkdir(parents=True)
        (frozen / "weights").write_text("1")
        if os.geteuid() == 0:
            for path in (frozen, frozen / "weights"):
                os.chown(path, NOBODY_ID, NOBODY_ID)
        data.chmod(0o755)
        user = {"user": NOBODY_ID} if os.geteuid() == 0 else {}
        self.sleeper = subprocess.Popen(["sleep", "3600"], **user)  # type: ignore[call-overload]
        self._sockets = [self._listen(socket.AF_INET, ("0.0.0.0", 0)), self._listen(socket.AF_UNIX, self._abstract)]
        self._sockets.append(self._listen(socket.AF_UNIX, str(data / "door")))
        self._packets = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._packets.bind(("127.0.0.1", 0))
        self._packets.setblocking(False)
        self._kept_free = socket.socket()  # reserves the port, without listening on it
        self._kept_free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._kept_free.bind(("127.0.0.1", 0))
        self._listens = self._kept_free.getsockname()[1]
        self._stop = threading.Event()
        self._caller = threading.Thread(target=self._call)
        self._caller.start()

    @property
    def _abstract(self) -> str:
        return f"\0argosy-{self.canary}"

    def _listen(self, family: int, address: Any) -> socket.socket:
        door = socket.socket(family)
        door.bind(address)
        door.listen()
        door.setblocking(False)
        return door

    def _call(self) -> None:
        """Connect from outside to the port that a notebook tries to listen on."""
        while not self._stop.wait(0.1):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self._listens)).close()
                self.reached.append("a notebook was called from outside")

    def facts(self) -> dict[str, Any]:
        return {
            "data": str(self.data), "canary": self.canary, "marker": self.marker, "pid": os.getpid(),
            "sleeper": self.sleeper.pid, "tcp": self._sockets[0].getsockname()[1], "address": _address(),
            "udp": self._packets.getsockname()[1], "abstract": self._abstract[1:], "listens": self._listens,
            "shared": SHARED,
        }  # fmt: skip

    def check(self) -> None:
        """Raise AssertionError if anything was reached."""
        for door in self._sockets:
            with contextlib.suppress(BlockingIOError):
                door.accept()
                self.reached.append(f"{door.getsockname()} was called")
        with contextlib.suppress(BlockingIOError):
            self.reached.append(f"a packet came: {self._packets.recv(100)!r}")
        assert self.reached == []
        assert self.sleeper.poll() is None, "a process of the same user was ended"
        assert (self.data / "volumes" / NAMESPACE / "frozen" / "weights").read_text() == "1"
        assert not (self.data / "written").exists()
        assert marked(self.marker) == [], "a process is left"

    def close(self) -> None:
        self._stop.set()
        self._caller.join()
        del os.environ["ARGOSY_TEST_CANARY"]
        self.sleeper.kill()
        self.sleeper.wait()
        for door in (*self._sockets, self._packets, self._kept_free):
            door.close()


def _address() -> str:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return "127.0.0.2"


def sheet(attacks: list[str], *, ends: str) -> str:
    code_by_attack = {**QUIET, **VIOLENT}
    tags = ["raises-exception"]
    first = [("HOST = {}", ["parameters"]), OPENING]
    return notebook(*first, *((cell(code_by_attack[name]), tags) for name in attacks), ends)


@contextlib.asynccontextmanager
async def at_desk(folder: Path, files: dict[str, str]) -> AsyncIterator[tuple[Desk, Machine]]:
    async with desk(folder, files, parallel="1", memory="400Mi", storage="96Mi") as at:
        data = {"token": base64.b64encode(b"mine").decode()}
        metadata = {"name": "keys", "namespace": NAMESPACE}
        await at.cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
        machine = Machine(at.folder)
        try:
            yield at, machine
        finally:
            machine.close()


def list_run_files(at: Desk) -> Iterator[Path]:
    return (path for path in (at.folder / "runs" / NAMESPACE).rglob("*") if path.is_file())


async def test_quiet_attacks_do_not_escape(size: Callable[[int], int], rng: random.Random, tmp_path: Path) -> None:
    chosen = rng.sample(sorted(QUIET), min(len(QUIET), size(8 * len(QUIET))))
    sheets = [chosen[at : at + TOGETHER] for at in range(0, len(chosen), TOGETHER)]
    files = {f"{number}.ipynb": sheet(names, ends="raise ValueError('the end')") for number, names in enumerate(sheets)}
    code = _code()
    async with at_desk(tmp_path, files) as (at, machine):
        for number, names in enumerate(sheets):
            job = at.job(f"{number}.ipynb", f"quiet-{number}", podConfig=POD, timeout=ENOUGH,
                         validationConfig=VALIDATION, parameters={"HOST": machine.facts()})  # fmt: skip
            outcome = await at.outcome(job)
            cells = outcome.results["cells"]
            outputs = [cell_result["output"].splitlines() for cell_result in cells[2:]]
            got_out = [name for name, lines in zip(names, outputs, strict=False) if any(map(is_out, lines))]
            assert got_out == [], [line for lines in outputs for line in lines if is_out(line)]
            assert outcome.message == f"cell {len(names) + 2}: ValueError: the end", f"after {names}"
            machine.check()
        event_log = "".join(
            path.read_text(errors="replace") for path in list_run_files(at) if path.name == "events.jsonl"
        )
        assert "<script>" not in event_log
        assert {path.name for path in list_run_files(at)} <= {
            "run.json", "events.jsonl", "results.json", "output.ipynb", "outcome.json"}  # fmt: skip
    assert _code() == code, "argosy was changed"


@pytest.mark.tier("all", "prove")
async def test_violent_attacks_leave_no_processes_or_files_after_the_run(
    size: Callable[[int], int], rng: random.Random, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "TIMEOUT_GRACE_SECONDS", 3.0)
    monkeypatch.setattr(run, "MAX_PROCESSES", 64)  # per user; parallel tests run programs as the same user
    chosen = rng.sample(sorted(VIOLENT), size(len(VIOLENT)))
    files = {f"{number}.ipynb": sheet([name], ends="print('on')") for number, name in enumerate(chosen)}
    async with at_desk(tmp_path, files) as (at, machine):
        for number, name in enumerate(chosen):
            fills = name.startswith(("a disk", "memory", "one endless"))
            job = at.job(f"{number}.ipynb", f"violent-{number}", podConfig=POD, timeout=ENOUGH if fills else "15s",
                         validationConfig=VALIDATION, parameters={"HOST": machine.facts()})  # fmt: skip
            outcome = await at.outcome(job)
            print(f"{name}: {outcome.message}")
            assert name in PASSING or not outcome.passed or _was_refused(outcome.results), f"{name}: it passed"
            assert not (fills and "longer" in outcome.message), f"{name}: nobody noticed"
            machine.check()
            assert sum(path.stat().st_size for path in list_run_files(at)) < MOST_KEPT, f"{name}: too much is kept"
            assert not list((at.folder / "runs" / NAMESPACE).glob("*/*/work")), f"{name}: files are left"
            await at.end(job)
            await asyncio.to_thread(_empty, at.folder / "volumes" / NAMESPACE / "models")


def is_out(line: str) -> bool:
    return line.startswith("ESCAPED")


def _was_refused(results: dict[str, Any]) -> bool:
    """True if the attack cell raised an error; the cell may raise, so the notebook continues."""
    return "Error" in results["cells"][2]["output"]


def _empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def _code() -> list[tuple[str, int]]:
    import argosy

    home = Path(argosy.__file__).parent
    return sorted((str(path), path.stat().st_mtime_ns) for path in home.rglob("*.py"))


@pytest.mark.tier("all", "prove")
async def test_attacks_succeed_without_isolation(tmp_path: Path) -> None:
    tmp_path.joinpath("data").mkdir()
    machine = Machine(tmp_path / "data")
    try:
        text = sheet(list(REAL), ends="1")
        file = tmp_path / "free.ipynb"
        file.write_text(text)
        book = nbformat.reads(text, as_version=4)
        ran = await cell_execution.execute(
            book, RunRequest(str(file), parameters={"HOST": machine.facts()}), EventWriter(None)
        )
        assert ran.failure is None
        held = [
            name for name, cell_result in zip(REAL, ran.cells[2:], strict=False) if "ESCAPED" not in cell_result.output
        ]
        assert held == []
    finally:
        machine.close()
