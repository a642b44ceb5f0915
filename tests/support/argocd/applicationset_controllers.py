"""Argo CD's ApplicationSet controller on both sides of a pair: argosy runs no generators, and lives beside it.

In: a pair, a folder for logs. Out: running controllers. Never: leaves a process behind.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from support.argocd.pair import CONTROL, Pair
from support.argocd.programs import ArgoCD
from support.clusters import kubectl
from support.deadlines import wait_until

COMPONENT: Final = "applicationset-controller"
NAME: Final = f"argocd-{COMPONENT}"
DEPLOYMENT: Final = f"/apis/apps/v1/namespaces/{CONTROL}/deployments/{NAME}"


@contextlib.contextmanager
def run_applicationset_controllers(pair: Pair, folder: Path) -> Iterator[None]:
    """Run the program for both sides, and apply its objects, by which argosy knows that it runs."""
    manifests = pair.programs.installation.manifests / "base" / COMPONENT
    for side in pair.sides:
        done = kubectl(side.server.kubeconfig, "apply", "--server-side", "-n", CONTROL, "-k", str(manifests))
        assert done.code == 0, f"{side.name}: {done.err}"
        wait_until(
            lambda side=side: side.get(DEPLOYMENT).get("status", {}).get("readyReplicas"), f"{side.name} runs {NAME}"
        )
    ports = {name: pair.programs.ports[name] for name in ("redis", "repo-server")}
    folder.mkdir(parents=True)
    beside_argosy = ArgoCD(pair.programs.installation, pair.argosy.server.kubeconfig, folder, CONTROL, ports=ports)
    try:
        pair.programs.start_with_metrics(COMPONENT)
        beside_argosy.start_with_metrics(COMPONENT)
        yield
    finally:
        beside_argosy.stop()
        pair.delete(DEPLOYMENT)
    pair.programs.stop_component(COMPONENT)
