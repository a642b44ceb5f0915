"""Jobs with triggers, and their target objects, on the embedded cluster."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from argosy.features.notebooks.addon import STATUS_MUTATORS, list_result_hooks, list_start_hooks
from argosy.features.notebooks.controller_prometheus_metrics import NotebookMetrics
from argosy.kube.objects import Manifest, dump_yaml
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import NOTEBOOK_JOB
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS
from support.notebook_controller import ToldRuns, World, job, leaping, world
from support.simulators import DEPLOYMENT, build_manifest

TRIGGERS = "mlops.dev/on-success-trigger"
RESTARTED = "kubectl.kubernetes.io/restartedAt"
WEB = ResourceKey(*DEPLOYMENT, "default", "web")


def entry(kind: str = "Deployment", action: str = "restart", name: str = "web", **more: Any) -> dict[str, Any]:
    versions = {"InferenceService": "serving.kserve.io/v1beta1", "Application": "argoproj.io/v1alpha1"}
    version = versions.get(kind, "v1" if kind == "ConfigMap" else "apps/v1")
    return {"apiVersion": version, "kind": kind, "name": name, "action": action, **more}


def training(*entries: Any, name: str = "train", **spec: Any) -> Manifest:
    return job(name, annotations={TRIGGERS: dump_yaml(list(entries))}, **spec)


def workload(kind: str = "Deployment", replicas: int = 2, **spec: Any) -> Manifest:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    whole = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return build_manifest("apps/v1", kind, whole if kind == "DaemonSet" else {"replicas": replicas, **whole})


def application(namespace: str = "argocd", **more: Any) -> Manifest:
    source = {"repoURL": "https://git.example.com/a.git", "path": "a", "targetRevision": "main"}
    spec = {"project": "default", "source": source, "destination": {"namespace": "default", "name": "in-cluster"}}
    manifest = build_manifest("argoproj.io/v1alpha1", "Application", {**spec, **more}, "serving")
    return {**manifest, "metadata": {"name": "serving", "namespace": namespace}}


def following() -> dict[str, Any]:
    metrics = NotebookMetrics()
    parts = {
        "start_hooks": list_start_hooks(metrics),
        "result_hooks": list_result_hooks(metrics),
        "status_mutators": STATUS_MUTATORS,
    }
    return {"metrics": metrics, **parts}


@contextlib.asynccontextmanager
async def at_work(cluster: EmbeddedCluster, runs: ToldRuns | None = None) -> AsyncIterator[World]:
    async with world(cluster, runs, **following()) as at:
        yield at


@contextlib.asynccontextmanager
async def too_late(cluster: EmbeddedCluster, said: str) -> AsyncIterator[World]:
    """Move the clock past the trigger's timeout, once the trigger has reported the message `said`."""
    async with leaping(cluster, **following()) as (at, clock):
        yield at
        await at.becomes(lambda status: said in status["triggers"][0].get("message", ""))
        clock.leap(3600)
        await all_done(at)


def states(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(trigger["status"], trigger.get("message", "")) for trigger in status.get("triggers") or ()]


async def all_done(at: World, name: str = "train") -> Mapping[str, Any]:
    done = ("Succeeded", "Failed", "Skipped")
    return await at.becomes(lambda status: all(trigger["status"] in done for trigger in status["triggers"]), name)


async def until(is_so: Callable[[], Any]) -> Any:
    async with asyncio.timeout(HANG_SECONDS):
        while not (result := await is_so()):
            await asyncio.sleep(0.02)
    return result


async def get(cluster: EmbeddedCluster, key: ResourceKey) -> Manifest:
    live = await cluster.get(key)
    assert live is not None
    return live


def summary_of(cluster: EmbeddedCluster) -> Callable[[], Any]:
    async def find() -> str | None:
        live = await get(cluster, ResourceKey(*NOTEBOOK_JOB, "default", "train"))
        summary: str | None = live["metadata"]["annotations"].get("mlops.dev/trigger-status")
        return summary

    return find


def restarted(live: Manifest) -> str | None:
    timestamp: str | None = (live["spec"]["template"]["metadata"].get("annotations") or {}).get(RESTARTED)
    return timestamp
