"""What confinement costs, side by side: a call in this process, a confined one, a new worker, and a whole new Python.

Run: python bench/confine.py
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from argosy.isolation import CallLimits, WorkerPool
from argosy.kube.resource_key import split_api_version

CALL, PAYLOAD = "argosy.kube.resource_key:split_api_version", "serving.kserve.io/v1beta1"


def in_process(count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        split_api_version(PAYLOAD)
    return (time.perf_counter() - start) / count


async def confined(pool: WorkerPool, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        await pool.run(CALL, PAYLOAD)
    return (time.perf_counter() - start) / count


async def in_a_batch(pool: WorkerPool, count: int) -> float:
    start = time.perf_counter()
    await pool.run_batch(CALL, [PAYLOAD] * count)
    return (time.perf_counter() - start) / count


async def in_a_new_worker(pool: WorkerPool, count: int) -> float:
    """Other memory limits each time, so that no idle worker fits."""
    start = time.perf_counter()
    for number in range(count):
        await pool.run(CALL, PAYLOAD, limits=CallLimits(memory=(100 + number) << 20))
    return (time.perf_counter() - start) / count


def new_python(count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        subprocess.run([sys.executable, "-c", "pass"], check=True)
    return (time.perf_counter() - start) / count


async def main() -> None:
    pool = WorkerPool(workers=1)
    start = time.perf_counter()
    await pool.start()
    rows = {"fork server and first worker": time.perf_counter() - start}
    await confined(pool, 50)
    rows["call in this process"] = plain = in_process(20_000)
    rows["confined, in a batch of 5000"] = await in_a_batch(pool, 5000)
    rows["confined, one by one"] = await confined(pool, 900)
    rows["confined, each in a new worker"] = await in_a_new_worker(pool, 50)
    await pool.close()
    rows["python -c pass"] = python = new_python(10)
    print(f"{'':32}{'ms':>10}{'x in-process':>14}{'x python':>10}")
    for name, seconds in rows.items():
        print(f"{name:32}{seconds * 1000:10.4f}{seconds / plain:14.0f}{seconds / python:10.4f}")


if __name__ == "__main__":
    asyncio.run(main())
