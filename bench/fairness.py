"""What a hostile project costs its neighbours: refreshes of one project, alone and beside 50 Applications of another.

The hostile Applications render without end (Helm, Jsonnet), and their objects make jq expressions and a Lua health
check loop. Each refresh of the other project is hard: it renders, compares with jq and runs a Lua check.
Limit: the 95th percentile beside them is at most 5 times that of the same run alone.

Run: python bench/fairness.py [refreshes] [hostile Applications] [seconds for each of the two measurements]
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from argosy.isolation.trusted_process_pool import ProcessPool
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION
from support.engine import CONTROL, Room, config_map, engine_room

MAX_RATIO = 5.0
PAUSE_SECONDS = 0.4
WARM_UP = 5  # refreshes that are not counted
REFRESH = "argocd.argoproj.io/refresh"
AUTOMATED = {"automated": {"prune": True, "selfHeal": True}}
LOOPING_CHART = "{{ range $i := until 100000 }}{{ range $j := until 100000 }}{{ end }}{{ end }}"
LOOPING_JSONNET = "local loop(n) = if n < 0 then n else loop(n + 1) tailstrict; { kind: loop(0) }"
LOOPING_JQ = "[recurse(.)] | .[0]"
HEALTH = """
if obj.metadata.labels ~= nil and obj.metadata.labels.loop == "yes" then
  while true do end
end
local _ = os.time()
return {status = "Healthy", message = "ok"}
"""
SETTINGS = {
    "resource.customizations.health.ConfigMap": HEALTH,
    "resource.customizations.useOpenLibs.ConfigMap": "true",
    "timeout.reconciliation": "5s",
    "timeout.reconciliation.jitter": "1s",
}


def chart(name: str) -> dict[str, str]:
    return {
        f"{name}/Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: 0.1.0\n",
        f"{name}/templates/loop.yaml": LOOPING_CHART,
    }


def ignoring(expression: str) -> list[dict[str, object]]:
    return [{"group": "", "kind": "ConfigMap", "jqPathExpressions": [expression]}]


def labelled(name: str, **data: str) -> dict[str, object]:
    manifest = config_map(name, **data)
    return {**manifest, "metadata": {"name": name, "labels": {"loop": "yes"}}}


async def invade(room: Room, count: int) -> None:
    """Create the hostile Applications: two of five loop in Jsonnet, one each in Helm, jq and Lua."""
    for number in range(count):
        name = f"hostile-{number}"
        match number % 5:
            case 0:
                await room.deliver(name, f"chart-{number}", project="hostile")
            case 1 | 2:
                await room.deliver(name, f"jsonnet-{number}", project="hostile")
            case 3:
                expression = ignoring(f"{LOOPING_JQ} | .data.x{number}")
                await room.deliver(
                    name, f"plain-{number}", project="hostile", ignoreDifferences=expression, syncPolicy=AUTOMATED
                )
            case _:
                await room.deliver(name, f"labelled-{number}", project="hostile", syncPolicy=AUTOMATED)


def hostile_files(count: int) -> dict[str, str | dict[str, object]]:
    files: dict[str, str | dict[str, object]] = {}
    for number in range(count):
        match number % 5:
            case 0:
                files |= chart(f"chart-{number}")
            case 1 | 2:
                files[f"jsonnet-{number}/main.jsonnet"] = LOOPING_JSONNET
            case 3:
                files |= {f"plain-{number}/{index}.yaml": config_map(f"plain-{number}-{index}") for index in range(5)}
            case _:
                files |= {f"labelled-{number}/{index}.yaml": labelled(f"lua-{number}-{index}") for index in range(5)}
    return files


async def refresh_seconds(room: Room, name: str, limit: float) -> float:
    """Seconds from asking for a hard refresh until it is done; at most `limit`."""
    start = time.perf_counter()
    await room.patch_app({"metadata": {"annotations": {REFRESH: "hard"}}}, name)
    key = ResourceKey(*APPLICATION, CONTROL, name)
    while time.perf_counter() - start < limit:
        application = await room.cluster.get(key) or {}
        if REFRESH not in (application["metadata"].get("annotations") or {}):
            break
        await asyncio.sleep(0.005)
    return time.perf_counter() - start


async def measure(room: Room, refreshes: int, seconds: float) -> list[float]:
    """Durations of up to so many refreshes, one after another, within `seconds`; with pauses, so that they meet
    renders at their beginning, in the middle and at their time-out."""
    end, taken = time.perf_counter() + seconds, list[float]()
    while len(taken) < refreshes and time.perf_counter() < end:
        taken.append(await refresh_seconds(room, "tenant", end - time.perf_counter()))
        await asyncio.sleep(PAUSE_SECONDS)
    return taken


def percentile_95(taken: list[float]) -> float:
    return statistics.quantiles(taken, n=20)[-1] if len(taken) > 1 else taken[0]


def describe(where: str, taken: list[float]) -> None:
    print(
        f"{where}: {len(taken)} refreshes, median {statistics.median(taken):.3f} s, "
        f"p95 {percentile_95(taken):.3f} s, longest {max(taken):.3f} s",
        flush=True,
    )


async def compare(refreshes: int, hostile: int, seconds: float) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        crew = ProcessPool(workers=2)  # as an engine has by itself
        async with engine_room(Path(folder), SETTINGS, crew=crew) as room:
            for project in ("hostile", "tenant"):
                await room.project(project)
            kustomization = {"tenant/kustomization.yaml": "resources: [settings.yaml]"}
            room.repository.push({"tenant/settings.yaml": config_map(x="1"), **kustomization, **hostile_files(hostile)})
            ignored = ignoring('.data | to_entries | .[] | select(.key == "y") | .value')
            await room.deliver("tenant", "tenant", project="tenant", syncPolicy=AUTOMATED, ignoreDifferences=ignored)
            await room.until_synced(name="tenant")
            await measure(room, WARM_UP, seconds)
            alone = await measure(room, refreshes, seconds)
            describe("alone", alone)
            await invade(room, hostile)
            await asyncio.sleep(5.0)  # all of them have begun
            beside = await measure(room, refreshes, seconds)
            describe(f"beside {hostile} hostile Applications", beside)
        await crew.close()
    ratio = percentile_95(beside) / percentile_95(alone)
    is_within = ratio <= MAX_RATIO and len(beside) == refreshes
    print(f"p95 beside / alone: {ratio:.1f} (at most {MAX_RATIO:g}): {'within' if is_within else 'OVER'}")
    return is_within


def main() -> None:
    arguments = sys.argv[1:]
    refreshes, hostile = (
        int(arguments[index]) if len(arguments) > index else usual for index, usual in ((0, 100), (1, 50))
    )
    seconds = float(arguments[2]) if len(arguments) > 2 else 240.0
    sys.exit(0 if asyncio.run(compare(refreshes, hostile, seconds)) else 1)


if __name__ == "__main__":
    main()
