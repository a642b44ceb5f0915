"""What many applications cost, of one to five objects each, from one repository, on one API server.

API server and controllers are processes of their own; two and three controllers share the work by `--shards auto`.
Growth must be linear: what an application costs among many, over what it costs among few, is at most 1.3. Memory is
what is resident of a controller and its children, less that of one with a few applications. In full, with 1,000, 3,000
and 10,000 applications and one, two and three controllers, it takes half an hour; without flags it is short.

Run: python bench/scale.py [--apps 1000,3000,10000] [--shards 1,2,3] [--steady SECONDS] [--record]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from at_scale.plot import Panel, picture
from at_scale.world import objects_of, world

HERE: Final = Path(__file__).parent
GROWTH: Final = 1.3  # of what one application costs, among many over among few
MIB: Final = 1024.0 * 1024.0
RECORD, PLOT = HERE / "at_scale" / "recorded.json", HERE.parent / "docs" / "images" / "scale.svg"
FIRST: Final = 20  # applications that are there before anything is measured: renderers have started then
GROWING: Final = {
    "memory_app": "memory of an application", "first_cpu_app": "CPU of its first sync",
    "refresh_cpu_app": "CPU of its refresh",
}  # fmt: skip
Figures = dict[str, Any]


def measure(folder: Path, apps: int, shards: int, steady: float) -> Figures:
    objects = sum(objects_of(number) for number in range(apps))
    figures: Figures = {"apps": apps, "shards": shards, "objects": objects, "load": os.getloadavg()[0]}
    with world(folder, apps) as one:
        for _ in range(shards):
            one.start(*(("--shards", "auto") if shards > 1 else ()))
        if shards > 1:
            one.until(lambda: one.members() == shards, "all controllers are members", 60)
        one.declare(0, FIRST)
        one.until(lambda: len(one.onlooker.synced) == FIRST, "the first applications are Synced", 120)
        one.rest()
        empty, cpu = one.memory, one.cpu
        began = time.monotonic()
        one.declare(FIRST, apps)
        one.until(lambda: len(one.onlooker.synced) == apps, "every application is Synced", 120 + apps)
        seconds, first = time.monotonic() - began, one.cpu - cpu
        one.rest()
        figures |= {"first_seconds": seconds, "first_a_minute": (apps - FIRST) / seconds * 60}
        figures |= {"first_cpu_app": first / (apps - FIRST)}
        cpu, began = one.cpu, time.monotonic()
        time.sleep(steady)
        figures |= {"steady_cores": (one.cpu - cpu) / (time.monotonic() - began), "steady_seconds": steady}
        one.rest()
        cpu, began = one.cpu, time.monotonic()
        one.refresh()
        one.until(lambda: not one.onlooker.waiting, "every application is refreshed", 120 + apps)
        seconds, refresh = time.monotonic() - began, one.cpu - cpu
        one.rest()
        memory = one.memory
        figures |= {"refresh_seconds": seconds, "refresh_cpu_app": refresh / apps}
        figures |= {
            "memory_app": (memory - empty) / (apps - FIRST) / 1024,
            "memory_shard": memory / shards / MIB,
            "peak_shard": max(controller.peak for controller in one.controllers) / MIB,
            "empty_shard": empty / shards / MIB,
        }
    return figures


def configmap(number: int) -> dict[str, Any]:
    metadata = {"name": f"stranger-{number}", "namespace": "default", "labels": {"app": "stranger"}}
    data = {f"key-{index}": "some value of a setting that is as long as such values are" for index in range(8)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def replica_set(number: int) -> dict[str, Any]:
    name = f"stranger-{number}"
    container = {
        "name": "server",
        "image": f"registry.example/{name}:1",
        "ports": [{"containerPort": 8080, "name": "http"}],
        "env": [{"name": f"SETTING_{index}", "value": "some value"} for index in range(4)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
    }
    pod = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": pod}
    metadata = {"name": name, "namespace": "default", "labels": {"app": name}}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


def pod(number: int) -> dict[str, Any]:
    owner = replica_set(number)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": owner["metadata"], "spec": owner["spec"]["template"]["spec"]}


STRANGERS: Final[dict[str, tuple[str, Callable[[int], dict[str, Any]]]]] = {
    "of a kind that applications have (ConfigMap)": ("/api/v1/namespaces/default/configmaps", configmap),
    "that a workload made (Pod)": ("/api/v1/namespaces/default/pods", pod),
    "of a kind that none has (ReplicaSet)": ("/apis/apps/v1/namespaces/default/replicasets", replica_set),
}


def watched(folder: Path, path: str, build_manifest: Callable[[int], dict[str, Any]], count: int) -> Figures:
    """KiB of a controller for each object that it watches and no application has."""
    with world(folder, 10) as one:
        one.start()
        one.declare(0, 10)
        one.until(lambda: len(one.onlooker.synced) == 10, "every application is Synced", 120)
        one.rest()
        before = one.memory
        one.all_of(("POST", path, build_manifest(number), "application/json") for number in range(count))
        one.rest()
        size = len(one.ask("GET", f"{path}/stranger-1").body)
        return {"kib": (one.memory - before) / count / 1024, "wire": size}


def tell(figures: Figures) -> None:
    print(f"\n{figures['apps']:,} applications, {figures['objects']:,} objects, {figures['shards']} controller(s)")
    print(f"  first sync of all         {figures['first_seconds']:9.1f} s   {figures['first_a_minute']:,.0f} a minute")
    print(f"  CPU of a first sync       {figures['first_cpu_app'] * 1000:9.1f} ms of an application")
    refresh = figures["refresh_cpu_app"] * 1000
    print(f"  hard refresh of all       {figures['refresh_seconds']:9.1f} s   {refresh:.1f} ms of CPU each")
    print(f"  nothing changes           {figures['steady_cores']:9.3f} cores, over {figures['steady_seconds']:.0f} s")
    print(f"  memory of an application  {figures['memory_app']:9.1f} KiB, of all controllers together")
    peak, empty = figures["peak_shard"], figures["empty_shard"]
    shard = figures["memory_shard"]
    print(f"  memory of a controller    {shard:9.0f} MiB, at most {peak:.0f}, with {FIRST} {empty:.0f}", flush=True)


def growths(rows: list[Figures]) -> Iterator[tuple[str, float]]:
    """What each cost grows by, from the fewest applications to the most, for each number of controllers."""
    for shards in sorted({row["shards"] for row in rows}):
        those = sorted((row for row in rows if row["shards"] == shards), key=lambda row: row["apps"])
        few, many = those[0], those[-1]
        for name, text in GROWING.items() if many["apps"] > few["apps"] else ():
            yield f"{text}, {many['apps']:,} over {few['apps']:,}, {shards} shard(s)", many[name] / few[name]


def draw(rows: list[Figures]) -> str:
    panels = [
        Panel(title, {
            f"{shards} controller{'s' * (shards > 1)}": [
                (row["apps"], scale * row[name]) for row in rows if row["shards"] == shards
            ]
            for shards in sorted({row["shards"] for row in rows})
        })
        for title, name, scale in (
            ("first sync of all, minutes", "first_seconds", 1 / 60),
            ("hard refresh of all, seconds", "refresh_seconds", 1.0),
            ("most memory of one controller, MiB", "peak_shard", 1.0),
            ("cores while nothing changes", "steady_cores", 1.0),
        )
    ]  # fmt: skip
    return picture("What applications cost, by how many there are (2 cores, API server included)", panels)


def record(rows: list[Figures], objects: Figures) -> list[Figures]:
    """Beside what other runs have recorded; the plot is of all of them."""
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {"runs": [], "watched": {}}
    by_place = {(row["apps"], row["shards"]): row for row in [*recorded["runs"], *rows]}
    every = [by_place[key] for key in sorted(by_place)]
    RECORD.write_text(json.dumps({"runs": every, "watched": objects or recorded["watched"]}, indent=1) + "\n")
    PLOT.write_text(draw(every))
    return every


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--apps", type=numbers, default=[300, 1000], help="how many, by commas")
    parser.add_argument("--shards", type=numbers, default=[1, 2], help="how many controllers, by commas")
    parser.add_argument("--steady", type=float, default=30.0, help="seconds in which nothing changes")
    parser.add_argument("--strangers", type=int, default=5000, help="objects that are nobody's; 0: not measured")
    parser.add_argument("--record", action="store_true", help="write figures beside the recorded ones, and the plot")
    args = parser.parse_args()
    rows: list[Figures] = []
    objects: Figures = {}
    for apps in args.apps:
        for shards in args.shards:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(measure(Path(folder), apps, shards, args.steady))
            tell(rows[-1])
            if args.record:
                record(rows, {})
    for name, (path, build_manifest) in STRANGERS.items() if args.strangers else ():
        with tempfile.TemporaryDirectory() as folder:
            object_figures = objects[name] = watched(Path(folder), path, build_manifest, args.strangers)
        print(
            f"an object {name}: {object_figures['kib']:.1f} KiB, {object_figures['wire']:,} bytes on the wire",
            flush=True,
        )
    if args.record:
        rows = record(rows, objects)
    over = 0
    for description, ratio in growths(rows):
        over += ratio > GROWTH
        print(f"{description:<66} {ratio:5.2f}  of {GROWTH}{'  TOO MUCH' if ratio > GROWTH else ''}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
