"""Soak test: half an hour of ordinary work against an API server with injected faults; no resource usage grows.

Two controllers share Applications that are pushed to, changed by hand, refreshed, created and deleted, while one of
twenty requests is refused or executed without a response, and watches are cut.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.deadlines import HANG_SECONDS, wait_until
from support.engine import config_map
from support.proof_scale import is_full
from support.sharded_controllers import APPS, CONTROL, Controller, SharedWork, shared_work

TROUBLE = 0.05
DRIFT = 0.02  # allowed memory growth after the warm-up
# For a full run; `make prove` stops a proof after an hour, unless ARGOSY_TEST_PATIENCE is set.
MINUTES, APPLICATIONS = float(os.environ.get("ARGOSY_SOAK_MINUTES", "30")), 100
SAMPLES, FEW_APPLICATIONS = 8, 5  # for a short run; fewer samples cannot show growth
WARM_UP = 0.3  # fraction of all samples
WARM_UP_DEEDS = 600  # before a full run, in quick succession: more load than the run itself ever has
BETWEEN_DEEDS = 2.0 if is_full() else 0.5  # seconds
DEEDS_A_SAMPLE = 3
FEW = 0 if is_full() else 10  # allowed growth in a short run, where it may be chance
PAGE = os.sysconf("SC_PAGE_SIZE")
MERGE = "application/merge-patch+json"
HISTORY = 2


class Counted(Controller):
    """A controller that reports its task count; it does its own imports, so all its memory is its own."""

    def _started(self, words: Sequence[object], env: Mapping[str, str], errors: int, source: str) -> Any:
        self.told = Path(env["HOME"]) / "tasks"
        self.told.touch()
        command = [sys.executable, str(Path(__file__).parents[1] / "support" / "task_counter.py"), *map(str, words)]
        env = {**env, "ARGOSY_TASKS": str(self.told), "ARGOSY_LEAKED_TASKS": str(self.leaked_tasks())}
        return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)

    def leaked_tasks(self) -> int:
        """Number of tasks leaked per request: a seeded bug."""
        return 0

    def sample(self) -> Sample:
        proc = Path(f"/proc/{self.process.pid}")
        line_count = len(self.told.read_text().splitlines())
        os.kill(self.process.pid, signal.SIGUSR1)
        wait_until(lambda: len(self.told.read_text().splitlines()) > line_count, f"an answer of {self.name}")
        tasks = self.told.read_text().splitlines()[-1]
        threads = next(line for line in (proc / "status").read_text().splitlines() if line.startswith("Threads:"))
        memory = int((proc / "statm").read_text().split()[1]) * PAGE
        return Sample(memory, len(list((proc / "fd").iterdir())), int(threads.split()[1]), int(tasks))


class Sample(NamedTuple):
    memory: float
    descriptors: float
    threads: float
    tasks: float


class Deeds:
    """User actions, one after another, always on the same Applications, so that nothing should accumulate."""

    def __init__(self, work: SharedWork, rng: random.Random) -> None:
        self._work, self._rng = work, rng
        self._number = 0

    def one(self) -> None:
        self._number += 1
        app = self._rng.choice(self._work.apps)
        (self._push, self._change, self._refresh, self._sync, self._replace)[self._number % 5](app)

    def _ask(self, method: str, path: str, body: Any = None, media: str = MERGE) -> None:
        self._work.running.request(method, path, body, media)

    def _push(self, app: str) -> None:
        settings = config_map(app, value=f"of push {self._number}")
        self._work.repository.push({f"{app}/settings.yaml": settings})

    def _change(self, app: str) -> None:
        self._ask("PATCH", f"/api/v1/namespaces/ml/configmaps/{app}", {"data": {"value": "by hand"}})

    def _refresh(self, app: str) -> None:
        patch = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": self._rng.choice(("hard", "normal"))}}}
        self._ask("PATCH", f"{APPS}/{app}", patch)

    def _sync(self, app: str) -> None:
        self._work.sync(app)

    def _replace(self, app: str) -> None:
        """Delete the Application and create it again."""
        application = self._work.running.request("GET", f"{APPS}/{app}").json()
        self._ask("DELETE", f"{APPS}/{app}", None)
        anew = {**application, "metadata": {"name": app, "namespace": CONTROL}}
        for name in ("status", "operation"):
            anew.pop(name, None)
        self._ask("POST", APPS, anew, "application/json")


def fill(work: SharedWork) -> None:
    """Fill bounded data such as the history, so that it is full from the first sample on."""
    for app in work.apps:
        work.running.request("PATCH", f"{APPS}/{app}", {"spec": {"revisionHistoryLimit": HISTORY}}, MERGE)
    for number in range(HISTORY + 1):
        head = work.push(f"to fill {number}")
        work.until(HANG_SECONDS + len(work.apps), partial(work.are_synced, head), "all are delivered again")


def warm_up(deeds: Deeds, count: int) -> None:
    """Run actions until a process without leaks has reached its peak memory."""
    for _ in range(count):
        deeds.one()
        time.sleep(0.2)


def soak(work: SharedWork, rng: random.Random, minutes: float) -> dict[str, list[Sample]]:
    """Run for that many minutes, and at least until there are enough samples to compare."""
    deeds, samples_by_name = Deeds(work, rng), {controller.name: list[Sample]() for controller in work.controllers}
    if is_full():
        warm_up(deeds, WARM_UP_DEEDS)
    ends, count = time.monotonic() + minutes * 60, 0
    while time.monotonic() < ends or count < SAMPLES:
        count += 1
        for _ in range(DEEDS_A_SAMPLE):
            deeds.one()
            time.sleep(BETWEEN_DEEDS)
        for controller in work.controllers:
            assert isinstance(controller, Counted)
            samples_by_name[controller.name].append(controller.sample())
    return samples_by_name


def grown(samples: Sequence[Sample]) -> Iterator[str]:
    """Yield what is higher at the end than after the warm-up."""
    assert len(samples) >= SAMPLES, f"{len(samples)} samples show nothing"
    calm = samples[int(len(samples) * WARM_UP) :]
    third = max(1, len(calm) // 3)
    for index, field in enumerate(Sample._fields):
        first, last = ([sample[index] for sample in part] for part in (calm[:third], calm[-third:]))
        before, after = statistics.median(first), statistics.median(last)
        print(f"  {field}: {before:,.0f} → {after:,.0f} ({after / before - 1:+.2%}), at most {max(first + last):,.0f}")
        if field == "memory" and is_full() and after > before * (1 + DRIFT):
            yield f"memory grew by {after / before - 1:.1%}"
        if field != "memory" and after > max(first) + FEW:
            yield f"{field} grew from {before:.0f} to {after:.0f}"


@pytest.mark.tier("all", "prove")
def test_memory_descriptors_threads_and_tasks_do_not_grow(rng: random.Random, memory_path: Path) -> None:
    applications, minutes = (APPLICATIONS, MINUTES) if is_full() else (FEW_APPLICATIONS, 0.0)
    with shared_work(memory_path, applications, controllers=2, made_by=Counted) as work:
        fill(work)
        work.proxy.trouble = TROUBLE
        began = time.monotonic()
        samples_by_name = soak(work, rng, minutes)
        work.proxy.trouble = 0.0
        print(f"{time.monotonic() - began:.0f} s, faults {dict(work.proxy.struck)}, {len(work.proxy.changes)} changes")
        faults = []
        for name, samples in samples_by_name.items():
            print(f"{name}: {len(samples)} samples")
            faults += [f"{name}: {finding}" for finding in grown(samples)]
        assert not faults
        with contextlib.suppress(FileNotFoundError):
            print(f"the API server: {work.running.memory() / 1e6:.0f} MB")
        head = work.push("last")
        work.until(HANG_SECONDS + applications, lambda: work.are_synced(head), "every application converges")


class OneLeaks(Counted):
    """The second of two controllers leaks tasks with each request."""

    def leaked_tasks(self) -> int:
        return 10 if self.name == "c1" else 0


@pytest.mark.tier("test")
def test_short_soak_detects_the_leaking_one_of_two_controllers(rng: random.Random, memory_path: Path) -> None:
    with shared_work(memory_path, FEW_APPLICATIONS, controllers=2, made_by=OneLeaks) as work:
        work.proxy.trouble = TROUBLE
        findings = {name: list(grown(samples)) for name, samples in soak(work, rng, 0.0).items()}
    assert not findings["c0"]
    assert [finding.split()[0] for finding in findings["c1"]] == ["tasks"]


CALM = Sample(memory=100e6, descriptors=30, threads=12, tasks=40)
GROWTH = Sample(memory=0.1e6, descriptors=0.1, threads=0.1, tasks=0.1)  # per sample


@pytest.mark.tier("test", "prove")
@pytest.mark.parametrize("field", Sample._fields)
def test_full_run_detects_slow_growth(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One field grows slightly in every sample while all fields fluctuate; judged as in a full run."""
    monkeypatch.setattr(sys.modules[__name__], "is_full", lambda: True)
    monkeypatch.setattr(sys.modules[__name__], "FEW", 0)
    steady = [Sample(*(most * (1 - number % 5 / 1000) for most in CALM)) for number in range(90)]
    assert not list(grown(steady))
    more = getattr(GROWTH, field)
    leaking = [sample._replace(**{field: getattr(sample, field) + more * n}) for n, sample in enumerate(steady)]
    assert [finding.split()[0] for finding in grown(leaking)] == [field]


@pytest.mark.tier("test", "prove")
@pytest.mark.parametrize("field", ["descriptors", "threads", "tasks"])
def test_short_run_detects_growth_per_request(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One field grows by three with each action, over as many samples as a short run takes."""
    monkeypatch.setattr(sys.modules[__name__], "is_full", lambda: False)
    monkeypatch.setattr(sys.modules[__name__], "FEW", 10)
    steady = [CALM] * SAMPLES
    assert not list(grown(steady))
    leaking = [CALM._replace(**{field: getattr(CALM, field) + 3 * DEEDS_A_SAMPLE * n}) for n in range(SAMPLES)]
    assert [finding.split()[0] for finding in grown(leaking)] == [field]
    with pytest.raises(AssertionError, match="2 samples show nothing"):
        list(grown(leaking[:2]))
