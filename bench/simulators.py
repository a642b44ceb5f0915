"""How fast 1,000 Deployments of one replica become available on the embedded cluster, and that nothing is written then.

Exits 1 where a limit is not kept. Limits are of processor time, which a busy machine does not change much.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from argosy.addons.simulators import make
from argosy.apiserver.embedded import EmbeddedCluster
from argosy.app.addons import running
from argosy.model.names import GroupKind

DEPLOYMENTS = 1_000
PROCESSOR_MOST = 15.0
WRITES_MOST = 10.0
QUIET_SECONDS = 3.0
KIND = GroupKind("apps", "Deployment")


def deployment(number: int) -> dict[str, Any]:
    labels = {"app": f"web-{number}"}
    spec = {"containers": [{"name": "main", "image": "example:1"}]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    metadata = {"name": f"web-{number}", "namespace": "default"}
    wanted = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": wanted}


async def measured() -> dict[str, float]:
    async with EmbeddedCluster.open() as cluster, running([make("")], cluster, on_failure=lambda: None):
        store = cluster.plane.store
        began, worked, before = time.monotonic(), time.process_time(), store.revision
        for number in range(DEPLOYMENTS):
            await cluster.create(deployment(number))
        while not all((each.get("status") or {}).get("availableReplicas") for each in (await cluster.list(KIND)).items):
            await asyncio.sleep(0.1)
        found = {
            "seconds": time.monotonic() - began,
            "processor seconds": time.process_time() - worked,
            "writes for each": (store.revision - before) / DEPLOYMENTS,
        }
        await asyncio.sleep(1.0)
        quiet, worked = store.revision, time.process_time()
        await asyncio.sleep(QUIET_SECONDS)
        found["writes when quiet"] = store.revision - quiet
        found["processor share when quiet"] = (time.process_time() - worked) / QUIET_SECONDS
        return found


def main() -> int:
    found = asyncio.run(measured())
    for name, value in found.items():
        print(f"{name:28} {value:8.2f}")
    limits = {"processor seconds": PROCESSOR_MOST, "writes for each": WRITES_MOST, "writes when quiet": 0.0}
    missed = [name for name, most in limits.items() if found[name] > most]
    for name in missed:
        print(f"{name}: {found[name]:.2f} is more than {limits[name]:g}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
