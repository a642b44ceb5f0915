"""How fast 1,000 Deployments of one replica become available on the embedded cluster, and that nothing is written then.

With `crowd` as its argument: 10 Deployments of 1,000 replicas, each behind a Service. Exits 1 where a limit is not
kept. Limits are of processor time, which a busy machine does not change much.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.well_known_kinds import DEPLOYMENT
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators import make

# Deployments, replicas of each, most seconds of processor, most writes for each Pod
SIZES = {"": (1_000, 1, 15.0, 10.0), "crowd": (10, 1_000, 120.0, 4.0)}
QUIET_SECONDS = 3.0


def service(number: int) -> dict[str, Any]:
    spec = {"selector": {"app": f"web-{number}"}, "ports": [{"port": 80}]}
    metadata = {"name": f"web-{number}", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def deployment(number: int, replicas: int = 1) -> dict[str, Any]:
    labels = {"app": f"web-{number}"}
    spec = {"containers": [{"name": "main", "image": "example:1"}]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    metadata = {"name": f"web-{number}", "namespace": "default"}
    deployment_spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": deployment_spec}


async def measured(deployments: int, replicas: int) -> dict[str, float]:
    async with EmbeddedCluster.open() as cluster, run_addons([make("")], cluster, on_failure=lambda: None):
        store = cluster.plane.store
        began, worked, before = time.monotonic(), time.process_time(), store.revision
        for number in range(deployments):
            await cluster.create(deployment(number, replicas))
            if replicas > 1:
                await cluster.create(service(number))
        while not all(is_whole(manifest, replicas) for manifest in (await cluster.list(DEPLOYMENT)).items):
            await asyncio.sleep(0.1)
        figures = {
            "seconds": time.monotonic() - began,
            "processor seconds": time.process_time() - worked,
            "writes for each": (store.revision - before) / (deployments * replicas),
        }
        await asyncio.sleep(4.0 if replicas > 1 else 1.0)  # what is about crowds is looked at less often
        quiet, worked = store.revision, time.process_time()
        await asyncio.sleep(QUIET_SECONDS)
        figures["writes when quiet"] = store.revision - quiet
        figures["processor share when quiet"] = (time.process_time() - worked) / QUIET_SECONDS
        return figures


def is_whole(live: dict[str, Any], replicas: int) -> bool:
    return bool((live.get("status") or {}).get("availableReplicas") == replicas)


def main() -> int:
    deployments, replicas, processor_most, writes_most = SIZES[sys.argv[1] if len(sys.argv) > 1 else ""]
    figures = asyncio.run(measured(deployments, replicas))
    for name, value in figures.items():
        print(f"{name:28} {value:8.2f}")
    limits = {"processor seconds": processor_most, "writes for each": writes_most, "writes when quiet": 0.0}
    missed = [name for name, most in limits.items() if figures[name] > most]
    for name in missed:
        print(f"{name}: {figures[name]:.2f} is more than {limits[name]:g}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
