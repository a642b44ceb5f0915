"""What delivering costs: many applications from one repository, on the embedded cluster, all in one process.

Argo CD with default settings syncs about 244 applications of one object a minute and controller, measured elsewhere.
Limits: ten times that; a push that changes one of many is Synced within a second (median); a pass over all of them that
finds nothing to do takes at most 2 s for 1,000, and a refresh of 1,000 by annotation 5 s of processor time.

Run: python bench/engine.py [applications] [objects of each]
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION
from support.engine import CONTROL, Room, config_map, engine_room

ARGO_CD_A_MINUTE = 244
PUSH_SECONDS, PASS_SECONDS, REFRESH_CPU_SECONDS = 1.0, 2.0, 5.0  # the last two for 1,000 applications
AUTOMATED = {"automated": {"prune": True, "selfHeal": True}}
FOLDER = "apps/app-{}/"


def key(number: int) -> ResourceKey:
    return ResourceKey(*APPLICATION, CONTROL, f"app-{number}")


def is_synced(room: Room, number: int, revision: str) -> bool:
    application = room.engine.cache.get(key(number)) or {}
    sync = (application.get("status") or {}).get("sync") or {}
    return sync.get("status") == "Synced" and sync.get("revision") == revision and "operation" not in application


async def deliver_all(room: Room, applications: int, objects: int) -> float:
    """Seconds from the first Application to the last one Synced."""
    room.repository.push(
        {
            f"{FOLDER.format(number)}{index}.yaml": config_map(f"app-{number}-{index}", x="old")
            for number in range(applications)
            for index in range(objects)
        }
    )
    revision, start = room.repository.head, time.perf_counter()
    for number in range(applications):
        await room.deliver(f"app-{number}", FOLDER.format(number), syncPolicy=AUTOMATED)
    waiting = set(range(applications))
    while waiting:
        await asyncio.sleep(0.02)
        waiting = {number for number in waiting if not is_synced(room, number, revision)}
    return time.perf_counter() - start


async def rest(room: Room) -> None:
    """Until nobody has anything to do for a while."""
    quiet = 0
    while quiet < 20:
        await asyncio.sleep(0.05)
        quiet = quiet + 1 if room.engine.queue.is_idle else 0


async def push_to_synced(room: Room, applications: int, times: int) -> list[float]:
    took = []
    for turn in range(times):
        number = applications * (turn + 1) // (times + 1)
        changed = config_map(f"app-{number}-0", x=f"new {turn}")
        revision = room.repository.push({f"{FOLDER.format(number)}0.yaml": changed})
        start = time.perf_counter()  # a commit in a large work tree takes its own time
        while not is_synced(room, number, revision):
            await asyncio.sleep(0.005)
        took.append(time.perf_counter() - start)
        await rest(room)
    return took


async def pass_over_all(room: Room, applications: int) -> float:
    start = time.perf_counter()
    for number in range(applications):
        room.engine.queue.add(key(number))
    while not room.engine.queue.is_idle:
        await asyncio.sleep(0.001)
    return time.perf_counter() - start


async def refresh_all(room: Room, applications: int) -> float:
    """As `kubectl annotate application --all` asks for it, and taken up."""
    start = time.perf_counter()
    for number in range(applications):
        await room.patch_app({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}, f"app-{number}")
    while any(
        "argocd.argoproj.io/refresh" in (manifest["metadata"].get("annotations") or {})
        for manifest in room.engine.cache.list(APPLICATION)
    ):
        await asyncio.sleep(0.01)
    return time.perf_counter() - start


async def busy_share(seconds: float = 5.0) -> float:
    cpu, start = time.process_time(), time.perf_counter()
    await asyncio.sleep(seconds)
    return (time.process_time() - cpu) / (time.perf_counter() - start)


def print_verdict(text: str, is_within: bool) -> bool:
    print(f"{text}: {'within' if is_within else 'OVER'}")
    return is_within


async def one_object_each(applications: int = 500) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        async with engine_room(Path(folder)) as room:
            rate = applications / await deliver_all(room, applications, 1) * 60
    times = rate / ARGO_CD_A_MINUTE
    text = f"{applications:,} of one object: {rate:,.0f} a minute, {times:.0f} times Argo CD's 244 (at least 10)"
    return print_verdict(text, times >= 10)


async def many(applications: int, objects: int) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        async with engine_room(Path(folder)) as room:
            cpu, seconds = time.process_time(), await deliver_all(room, applications, objects)
            cpu, count = time.process_time() - cpu, applications * objects
            print(
                f"{applications:,} applications of {objects}: first sync {seconds:.1f} s, {count / seconds:,.0f} "
                f"objects/s, {count / cpu:,.0f} in a second of processor time"
            )
            await rest(room)
            share, memory = await busy_share(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"at rest: {share:.1%} of a core; at most {memory:,.0f} MB, the cluster included")
            pushes = await push_to_synced(room, applications, 7)
            median = statistics.median(pushes)
            text = f"push to Synced: median {median:.2f} s of {PUSH_SECONDS:.2f} s, longest {max(pushes):.2f} s"
            is_within = print_verdict(text, median <= PUSH_SECONDS)
            took = min([await pass_over_all(room, applications) for _ in range(3)])
            allowed = PASS_SECONDS * applications / 1000
            is_within &= print_verdict(
                f"a pass over all that finds nothing: {took:.2f} s of {allowed:.2f} s", took <= allowed
            )
            await rest(room)
            cpu, took = time.process_time(), await refresh_all(room, applications)
            cpu, allowed = time.process_time() - cpu, REFRESH_CPU_SECONDS * applications / 1000
            text = f"a refresh of all by annotation: {took:.2f} s, {cpu:.2f} s of processor time of {allowed:.2f} s"
            is_within &= print_verdict(text, cpu <= allowed)
    return is_within


async def main() -> int:
    arguments = [int(text) for text in sys.argv[1:3]]
    applications, objects = [*arguments, *(1000, 20)[len(arguments) :]]
    are_within = [await one_object_each(min(500, applications)), await many(applications, objects)]
    return 0 if all(are_within) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
