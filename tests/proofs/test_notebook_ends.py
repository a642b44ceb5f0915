"""However a run ends, nothing is left of it: no process, no file, no descriptor.

Cancelled before it begins, while its kernel starts, or in the midst of a cell; at its deadline; or because argosy was
killed. Each notebook starts a process in a session of its own, which would stay if it could.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.addons.notebooks.job import Job
from argosy.addons.notebooks.local import LocalRuns
from argosy.addons.notebooks.runs import RunKey, Standing
from support.notebook_jobs import NAMESPACE, URL, Desk, desk, marked, notebook

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytestmark = [
    pytest.mark.tier("test", "prove"),
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="folders are mounted on Linux alone"),
]
MARKER = os.environ.get("NB_MARKER") or str(random.randrange(10**8, 10**9))
HIDES = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        os.execvp('sleep', ['sleep', MARKER])
"""
FILES = {
    "busy.ipynb": notebook(f"MARKER = '{MARKER}'", HIDES, "open('/tmp/file', 'w').write('x')", "time.sleep(300)"),
    "spins.ipynb": notebook(f"MARKER = '{MARKER}'", HIDES, "while True: pass"),
}
LEARNING = {"level": "learning"}
MOMENTS: tuple[Callable[[Standing], bool], ...] = (
    lambda standing: True,
    lambda standing: standing.state == "running",
    lambda standing: bool(standing.revision),
    lambda standing: standing.total > 0,
    lambda standing: len(standing.cells) >= 1,
    lambda standing: len(standing.cells) >= 2,
)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def files(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if not path.is_dir()]


async def one(at: Desk, number: int, rng: random.Random) -> None:
    """Cancel it at some moment, or let it meet its deadline."""
    path = rng.choice(sorted(FILES))
    is_cancelled = rng.random() < 0.7
    spec = {"validationConfig": LEARNING, "timeout": "100s" if is_cancelled else f"{rng.randint(50, 3000)}ms"}
    job = at.job(path, f"job-{number}", **spec)
    run = await at.begin(job)
    if is_cancelled:
        await at.becomes(job, run, rng.choice(MOMENTS))
        await asyncio.sleep(rng.random() ** 3)  # the moment itself is what is drawn
    else:
        ended = await at.becomes(job, run, lambda standing: standing.outcome is not None)
        assert ended.outcome is not None and not ended.outcome.passed
    await at.end(job, rng.choice([run, None]))


async def test_what_is_cancelled_or_late_leaves_nothing(
    size: Callable[[int], int], rng: random.Random, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Path(tempfile.mkdtemp(prefix="nb-ends-"))
    place.chmod(0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    async with desk(tmp_path, FILES, parallel="3") as at:
        numbers = iter(range(size(200)))

        async def some() -> None:
            for number in numbers:
                await one(at, number, rng)

        first = at.job("busy.ipynb", "first", validationConfig=LEARNING)
        await at.becomes(first, await at.begin(first), lambda standing: bool(standing.cells))
        await at.end(first)
        before = descriptors()
        await asyncio.gather(*(some() for _ in range(4)))
        assert files(at.folder / "runs") == []
        assert list((at.folder / "runs").glob("*/*/*")) == []
        await soon(lambda: descriptors() <= before)  # a pipe of an ended process closes a moment after it
    assert list(place.iterdir()) == []
    assert marked(MARKER) == []
    place.rmdir()


VICTIM = """
import asyncio, sys
from pathlib import Path
sys.path[:0] = sys.argv[2].split(':')
from support.notebook_jobs import desk
import test_notebook_ends as ends

async def main():
    async with desk(Path(sys.argv[1]), ends.FILES, parallel='2') as at:
        jobs = [at.job(path, path.partition('.')[0], validationConfig=ends.LEARNING) for path in ends.FILES]
        runs = [await at.begin(job) for job in jobs]
        for job, run in zip(jobs, runs):
            await at.becomes(job, run, lambda standing: len(standing.cells) >= 2)
        print('busy', flush=True)
        await asyncio.sleep(300)

asyncio.run(main())
"""


async def test_a_killed_argosy_leaves_nothing_and_knows_afterwards_what_it_lost(
    size: Callable[[int], int], tmp_path: Path
) -> None:
    place = Path(tempfile.mkdtemp(prefix="nb-ends-"))
    place.chmod(0o755)
    for number in range(size(20)):
        folder = tmp_path / str(number)
        env = {**os.environ, "TMPDIR": str(place), "NB_MARKER": MARKER}
        roads = f"{Path(__file__).parents[1]}:{Path(__file__).parent}"
        command = [sys.executable, "-c", VICTIM, str(folder), roads]
        victim = subprocess.Popen(command, env=env, stdout=subprocess.PIPE)
        assert victim.stdout is not None
        try:
            assert await asyncio.to_thread(victim.stdout.readline) == b"busy\n"
            await soon(lambda: len(marked(MARKER)) == 3 * len(FILES))
        finally:
            victim.send_signal(signal.SIGKILL)
            victim.wait()
        victim.stdout.close()
        await soon(lambda folder=folder: not (marked(MARKER) or working(folder) or list(place.iterdir())))
        await look_again(folder / "data")
    place.rmdir()


async def look_again(folder: Path) -> None:
    runs = LocalRuns()
    async with runs.beside(folder):
        for path in FILES:
            job = _job(path)
            found = await runs.look(job, RunKey(job.uid, 1, 1), Any)  # type: ignore[arg-type]
            assert found.state == "lost" and len(found.cells) >= 2
            assert len(found.revision) == 40
            await runs.end(job.key, None, Any)  # type: ignore[arg-type]
    assert files(folder / "runs") == []


def _job(path: str) -> Job:
    from argosy.addons.notebooks.job import API_VERSION, read_job

    name = path.partition(".")[0]
    metadata = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "generation": 1}
    spec = {"notebook": {"git": {"url": URL, "ref": "main"}, "path": path}}
    return read_job({"apiVersion": API_VERSION, "kind": "NotebookValidationJob", "metadata": metadata, "spec": spec})


def working(folder: Path) -> list[Path]:
    return list((folder / "data" / "runs").glob("*/*/*/work"))


async def soon(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):  # only what hangs: kernels of many jobs share two cores
        while not is_so():
            await asyncio.sleep(0.05)
