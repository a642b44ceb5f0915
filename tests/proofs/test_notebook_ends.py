"""However a local notebook run ends, no process, file or file descriptor remains.

Runs are cancelled before the start, during kernel start or within a cell; or hit their deadline; or argosy is killed.
Each notebook starts processes in their own sessions, which would remain without cleanup.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.features.notebooks.local_runs import LocalRuns
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.run_backend import NotebookRunState, RunKey
from support.deadlines import HANG_SECONDS, wait_until_async
from support.failure_report import record_log
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
    "busy.ipynb": notebook(f"MARKER = '{MARKER}'", HIDES, "open('/tmp/file', 'w').write('x')", "time.sleep(3600)"),
    "spins.ipynb": notebook(f"MARKER = '{MARKER}'", HIDES, "while True: pass"),
}
LEARNING = {"level": "learning"}
ENOUGH = f"{2 * HANG_SECONDS:.0f}s"
MOMENTS: tuple[Callable[[NotebookRunState], bool], ...] = (
    lambda standing: True,
    lambda standing: standing.state == "running",
    lambda standing: bool(standing.revision),
    lambda standing: standing.cell_count > 0,
    lambda standing: len(standing.cells) >= 1,
    lambda standing: len(standing.cells) >= 2,
)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def files(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if not path.is_dir()]


async def one(at: Desk, number: int, rng: random.Random) -> None:
    """Cancel a run at a random moment, or let it hit its deadline."""
    path = rng.choice(sorted(FILES))
    is_cancelled = rng.random() < 0.7
    spec = {"validationConfig": LEARNING, "timeout": ENOUGH if is_cancelled else f"{rng.randint(50, 3000)}ms"}
    job = at.job(path, f"job-{number}", **spec)
    run = await at.begin(job)
    if is_cancelled:
        await at.becomes(job, run, rng.choice(MOMENTS))
        await asyncio.sleep(rng.random() ** 3)  # a random moment
    else:
        ended = await at.becomes(job, run, lambda standing: standing.outcome is not None)
        assert ended.outcome is not None and not ended.outcome.passed
    await at.end(job, rng.choice([run, None]))


async def cancel_many(folder: Path, seed: int, count: int) -> None:
    """Runs in a separate process, so that no other code opens or closes its descriptors."""
    async with desk(folder, FILES, parallel="3") as at:
        numbers = iter(range(count))

        async def some() -> None:
            for number in numbers:
                await one(at, number, random.Random(seed + number))

        first = at.job("busy.ipynb", "first", validationConfig=LEARNING, timeout=ENOUGH)
        await at.becomes(first, await at.begin(first), lambda standing: bool(standing.cells))
        await at.end(first)
        before = descriptors()
        await asyncio.gather(*(some() for _ in range(4)))
        assert not (leftovers := files(at.folder / "runs")), f"files are left: {leftovers}"
        assert not (leftovers := list((at.folder / "runs").glob("*/*/*"))), f"folders are left: {leftovers}"
        # the pipe of an ended process is closed slightly later
        await wait_until_async(lambda: descriptors() <= before, "all descriptors are closed")


async def victim(folder: Path) -> None:
    """The process that is killed while it runs two notebooks."""
    async with desk(folder, FILES, parallel="2") as at:
        jobs = [at.job(path, path.partition(".")[0], validationConfig=LEARNING, timeout=ENOUGH) for path in FILES]
        runs = [await at.begin(job) for job in jobs]
        for job, run in zip(jobs, runs):
            await at.becomes(job, run, lambda standing: len(standing.cells) >= 2)
        print("busy", flush=True)
        await asyncio.Event().wait()


def started(
    function: Callable[..., Awaitable[None]], place: Path, *arguments: object, bug: str = ""
) -> subprocess.Popen[bytes]:
    """A process that runs one of these functions, with its own temporary folder. A `bug` breaks it on purpose."""
    words = [repr(str(argument)) if isinstance(argument, Path) else repr(argument) for argument in arguments]
    script = f"""
import asyncio, sys
from pathlib import Path
sys.path[:0] = {[str(Path(__file__).parents[1]), str(Path(__file__).parent)]!r}
import test_notebook_ends as ends
{bug}
asyncio.run(ends.{function.__name__}(Path({words[0]}), {", ".join(words[1:])}))
"""
    env = {**os.environ, "TMPDIR": str(place), "NB_MARKER": MARKER}
    with (place.parent / f"{place.name}.log").open("wb") as errors:
        return subprocess.Popen([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE, stderr=errors)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder for temporary files, which must be empty at the end; other users may read it."""
    folder = Path(tempfile.mkdtemp(prefix="nb-ends-"))
    folder.chmod(0o755)
    log = record_log(folder.parent / f"{folder.name}.log")
    yield folder
    shutil.rmtree(folder)
    log.unlink(missing_ok=True)


async def check_cancelled(folder: Path, place: Path, seed: int, count: int, bug: str = "") -> None:
    with started(cancel_many, place, folder, seed, count, bug=bug) as process:
        await asyncio.to_thread(process.communicate)
    assert process.returncode == 0, (place.parent / f"{place.name}.log").read_text()
    assert list(place.iterdir()) == []
    assert marked(MARKER) == []


@pytest.mark.tier("all", "prove")
async def test_cancelled_or_late_run_leaves_no_process_or_file(
    size: Callable[..., int], rng: random.Random, tmp_path: Path, place: Path
) -> None:
    await check_cancelled(tmp_path, place, rng.getrandbits(32), size(200, test=2))


@pytest.mark.tier("all", "prove")
async def test_proof_detects_files_left_after_a_cancelled_run(tmp_path: Path, place: Path) -> None:
    bug = "from argosy.features.notebooks import local_runs; local_runs.remove_folder = lambda folder: None"
    with pytest.raises(AssertionError, match=r"AssertionError: files are left: .*run\.json"):
        await check_cancelled(tmp_path, place, 0, 0, bug)


async def check_killed(folder: Path, place: Path, bug: str = "") -> None:
    """Kill argosy while two notebooks run; once their processes have ended, nothing else remains."""
    with started(victim, place, folder, bug=bug) as process:
        assert process.stdout is not None
        try:
            assert await asyncio.to_thread(process.stdout.readline) == b"busy\n"
            await wait_until_async(lambda: len(marked(MARKER)) == 3 * len(FILES), "all processes have begun")
            launchers = children(process.pid)
            assert launchers
        finally:
            process.send_signal(signal.SIGKILL)
    await wait_until_async(lambda: not marked(MARKER) and not any(map(is_alive, launchers)), "all processes have ended")
    assert not (leftovers := list_leftovers(folder, place)), f"it is left after the kill: {leftovers}"


async def test_killed_argosy_leaves_nothing_and_reports_its_runs_as_lost(
    size: Callable[..., int], tmp_path: Path, place: Path
) -> None:
    for number in range(size(20)):
        folder = tmp_path / str(number)
        await check_killed(folder, place)
        await look_again(folder / "data")


KEEPS_FILES = """
from argosy.features.notebooks.local_runs import run
made = run.ProgramAccess
run.ProgramAccess = lambda **given: made(**{**given, "disposable": []})
"""


@pytest.mark.tier("all", "prove")
async def test_proof_detects_files_left_after_a_kill(tmp_path: Path, place: Path) -> None:
    """Without the list of folders that a notebook's launcher removes if argosy cannot."""
    with pytest.raises(AssertionError, match=r"it is left after the kill: .*work"):
        await check_killed(tmp_path / "0", place, KEEPS_FILES)


def children(parent: int) -> list[int]:
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _stat(pid)[1:2] == [str(parent)]]


def is_alive(pid: int) -> bool:
    return _stat(pid)[:1] not in ([], ["Z"], ["X"])


def _stat(pid: int) -> list[str]:
    """The process state, parent and further fields; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def list_leftovers(folder: Path, place: Path) -> list[object]:
    return [*marked(MARKER), *(folder / "data" / "runs").glob("*/*/*/work"), *place.iterdir()]


async def look_again(folder: Path) -> None:
    runs = LocalRuns()
    async with runs.open_backend(folder):
        for path in FILES:
            job = _job(path)
            observation = await runs.observe(job, RunKey(job.uid, 1, 1), Any)  # type: ignore[arg-type]
            assert observation.state == "lost" and len(observation.cells) >= 2
            assert len(observation.revision) == 40
            await runs.stop(job.key, None, Any)  # type: ignore[arg-type]
    assert files(folder / "runs") == []


def _job(path: str) -> NotebookJob:
    from argosy.features.notebooks.notebook_validation_job_parser import API_VERSION, read_job

    name = path.partition(".")[0]
    metadata = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "generation": 1}
    spec = {"notebook": {"git": {"url": URL, "ref": "main"}, "path": path}}
    return read_job({"apiVersion": API_VERSION, "kind": "NotebookValidationJob", "metadata": metadata, "spec": spec})
