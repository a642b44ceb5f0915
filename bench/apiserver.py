"""The embedded API server beside a real one, in one run: start, memory, rates, latencies, kubectl.

Run: python bench/apiserver.py [rounds]. Where no real server is built (by tests/realcluster/build.sh), the figures are
put beside those of a real server that docs/reference/performance.md records. Both servers run, only one is loaded at a
time, and they take turns; of all rounds the best counts, for each. Exit code 1: a figure is over its limit, beside a
real server of this run.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from side_by_side.servers import ARGOSY, LOAD, ROOT, embedded, load_client, real_is_built, real_one
from side_by_side.workload import Run, Sample

RECORDED = ROOT / "docs" / "reference" / "performance.md"
SETTLE_SECONDS = 5.0
FRESH_LIMIT = 50.0


class Figure(NamedTuple):
    """A limit is the largest ratio to the real server; of rates, which are better when larger, the smallest."""

    name: str
    unit: str
    limit: float
    is_rate: bool = False


FIGURES = [
    Figure("cold start to /readyz", "ms", 0.3),
    Figure("memory, idle", "MiB", 0.35),
    Figure("memory, 10,000 objects", "MiB", 0.5),
    Figure("creates a second, 16 clients", "/s", 0.8, is_rate=True),
    Figure("gets a second, 16 clients", "/s", 0.8, is_rate=True),
    Figure("list of 5,000, p50", "ms", 1.2),
    Figure("list of 5,000, gzip, p50", "ms", 1.2),
    Figure("create to watch event, p50", "ms", 1.0),
    Figure("kubectl apply of 200", "ms", 0.2),
]


class Best(NamedTuple):
    value: float
    cpu: float | None
    client_cpu: float | None
    protocol: str


def best_of(figure: Figure, runs: Sequence[Run]) -> Best | None:
    """Over all rounds, and over the protocols that the server speaks."""
    candidates: list[tuple[Sample, str]] = []
    for run in runs:
        for name, samples in run.samples.items():
            if name == figure.name or name.startswith(f"{figure.name} HTTP/"):
                candidates += [(sample, name.removeprefix(figure.name).strip()) for sample in samples]
    if not candidates:
        return None
    sample, protocol = (max if figure.is_rate else min)(candidates, key=lambda candidate: candidate[0].value)
    cpus = [
        measured_sample.cpu
        for measured_sample, spoken in candidates
        if measured_sample.cpu is not None and spoken == protocol
    ]
    return Best(sample.value, min(cpus, default=None), sample.client_cpu, protocol)


def recorded() -> dict[str, float]:
    """The real server's figures of the run that the reference page shows."""
    rows = re.findall(r"^\| ([^|]+?) \| [\d,.]+ \| ([\d,.]+) \|", RECORDED.read_text(), re.MULTILINE)
    return {name: float(value.replace(",", "")) for name, value in rows}


def measure(rounds: int) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {"embedded": [], "real": []}
    load = load_client()
    for number in range(rounds):
        with contextlib.ExitStack() as stack:
            # The embedded one first: a real one is busy for seconds after it is ready, and would slow its start.
            servers = [stack.enter_context(embedded())]
            if real_is_built():
                servers.append(stack.enter_context(real_one()))
            now = [Run(server, load) for server in servers]
            time.sleep(SETTLE_SECONDS)
            for steps in zip(*(run.steps() for run in now), strict=True):
                for step in steps:
                    print(f"\rround {number + 1} of {rounds}: {step.__name__:16}", end="", file=sys.stderr, flush=True)
                    step()
            for run in now:
                runs[run.server.name].append(run)
    print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
    return runs


def table(runs: dict[str, list[Run]]) -> bool:
    """Prints it. Whether every figure is within its limit."""
    anchors = {} if runs["real"] else recorded()
    print(f"{'':30}{'embedded':>10}{'real':>10}{'ratio':>7}{'limit':>8}{'':6}{'CPU ms/op':>11}{'real CPU':>10}")
    fine = True
    for figure in FIGURES:
        ours, real = best_of(figure, runs["embedded"]), best_of(figure, runs["real"])
        if real is None and figure.name in anchors:
            real = Best(anchors[figure.name], None, None, "")
        if ours is None or real is None:
            print(f"{figure.name:30} not taken")
            continue
        ratio = ours.value / real.value
        ok = ratio >= figure.limit if figure.is_rate else ratio <= figure.limit
        fine = fine and ok
        sign = "≥" if figure.is_rate else "≤"
        print(
            f"{figure.name:30}{_shown(ours.value, figure.unit):>10}{_shown(real.value, figure.unit):>10}{ratio:7.2f}"
            f"{sign + f' {figure.limit:g}':>8}{'ok' if ok else 'over':>6}{_cpu(ours.cpu):>11}{_cpu(real.cpu):>10}"
            f"  {real.protocol}"
        )
    return fine


def _shown(value: float, unit: str) -> str:
    number = f"{value:.1f}" if value < 100 else f"{value:.0f}"
    return f"{number}{unit if unit.startswith('/') else ' ' + unit}"


def _cpu(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def best_wall(command: Sequence[str], times: int = 10) -> float:
    best = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - began)
    return best * 1000


FRESH = """
import asyncio, time
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

async def main():
    best = 1e9
    for _ in range(5):
        began = time.perf_counter()
        async with EmbeddedCluster.open():
            best = min(best, time.perf_counter() - began)
    print(best * 1000)

asyncio.run(main())
"""


def commands() -> None:
    """What is not compared with a server: commands that only start and end, and the cluster inside a test."""
    python = sys.executable
    nothing = best_wall([python, "-c", "pass"])
    for name, command in {"argosy --help": [str(ARGOSY), "--help"], "argosy version": [str(ARGOSY), "version"]}.items():
        took = best_wall(command)
        print(f"{name:30}{took:7.0f} ms   {took / nothing:.1f}x python -c pass ({nothing:.0f} ms)")
    fresh = subprocess.run([python, "-c", FRESH], check=True, capture_output=True, text=True).stdout
    verdict = "ok" if float(fresh) < FRESH_LIMIT else "over"
    print(f"{'a fresh EmbeddedCluster':30}{float(fresh):7.1f} ms   {verdict} (limit {FRESH_LIMIT:g} ms)")


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    before = os.getloadavg()[0]
    runs = measure(rounds)
    fine = table(runs)
    if not runs["real"]:
        page = RECORDED.relative_to(ROOT)
        print(f"no real server here: its figures are those that {page} records; tests/realcluster/build.sh builds one")
    if not LOAD.exists():
        print("no Go here, so the load client is one in Python, which is itself the limit of rates")
    clients = [best.client_cpu for figure in FIGURES if figure.is_rate and (best := best_of(figure, runs["embedded"]))]
    print(f"the load client's own CPU: {max(filter(None, clients)):.2f} ms for a create or get")
    commands()
    after = os.getloadavg()[0]
    print(f"best of {rounds} rounds; {os.cpu_count()} cores, load average {before:.1f} before, {after:.1f} after")
    return 0 if fine or not runs["real"] else 1  # beside recorded figures of another machine, limits are a hint


if __name__ == "__main__":
    raise SystemExit(main())
