"""A gallery of all components of the web page with example values, for tests and page authors.

In: nothing. Out: one HTML page with all components. Never: served by argosy.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace as Thing
from typing import Any

from argosy.web.page_templates import Frame, build_environment, unescape_slashes

NOW = datetime(2026, 11, 15, 12, 3, 7, tzinfo=UTC)
COMMIT = "4f2c19ab3c4d5e6f708192a3b4c5d6e7f8091a2b"
TEMPLATE = Path(__file__).with_name("component_gallery.html")


def page(is_live: bool = False, **frame: Any) -> str:
    """The gallery in the requested page layout."""
    values = {"path": "/gallery", "caller": "amy", "csrf": "token", "version": "0.1.0", "where": "demo", "now": NOW}
    values |= {"query": (("sync", "OutOfSync"), ("env", "production")), "is_simulated": True}
    template_environment = build_environment(lambda: NOW)
    return unescape_slashes(
        template_environment.render_str(
            TEMPLATE.read_text(), **content(), is_live=is_live, frame=Frame(**values | frame)
        )
    )


def before(**amount: float) -> str:
    return (NOW - timedelta(**amount)).strftime("%Y-%m-%dT%H:%M:%SZ")


def content() -> dict[str, Any]:
    return {
        "title": "fraud · Degraded",
        "state": "bad",
        "section": "apps",
        "crumbs": [("Apps", "/apps"), ("argocd", "/apps?ns=argocd"), ("fraud", "/apps/argocd/fraud")],
        "apps": APPS,
        "tiles": APPS[:4],
        "roots": ROOTS,
        "waves": WAVES,
        "differences": DIFFERENCES,
        "beside": BESIDE,
        "text": MANIFEST.splitlines(),
        "events": EVENTS,
        "log": LOG,
        "history": HISTORY,
        "cells": CELLS,
        "stages": STAGES,
    }


def app(name: str, environment: str, sync: str, health: str, why: str = "", **more: Any) -> Thing:
    fields = {
        "namespace": "argocd",
        "project": "mlops",
        "destination": "in-cluster/mlops",
        "hold": "",
        "window": "",
        "phase": "",
        "wave_count": 0,
    }
    fields |= {
        "revision": COMMIT,
        "subject": "raise the limits of the predictor (amy)",
        "synced_at": before(minutes=4),
        "is_favourite": False,
    }
    fields |= {
        "name": name,
        "environment": environment,
        "sync": sync,
        "health": health,
        "why": why,
        "url": f"/apps/argocd/{name}",
    }
    return Thing(**fields | more)


APPS = [
    app(
        "fraud",
        "production",
        "OutOfSync",
        "Degraded",
        "Deployment fraud-predictor: image registry.example/fraud:1.5 cannot be pulled",
        is_favourite=True,
    ),
    app(
        "fraud-staging",
        "staging",
        "Synced",
        "Progressing",
        "InferenceService fraud waits for its first Pod",
        phase="Running",
        wave_count=5,
        wave_done=3,
    ),
    app(
        "churn",
        "production",
        "OutOfSync",
        "Healthy",
        "3 fields differ; 2 were changed by hand",
        hold="held by amy since 2 hours",
    ),
    app("churn-staging", "staging", "Synced", "Healthy"),
    app("feature-store", "production", "Synced", "Healthy", window="sync blocked until 06:00"),
    app("notebooks-nightly", "dev", "Synced", "Suspended", "Job train is suspended"),
    app(
        "payments-gateway-with-a-rather-long-name",
        "dev",
        "OutOfSync",
        "Missing",
        "12 objects are not there yet",
        synced_at=None,
        revision="",
    ),
    app("tiny-llm", "dev", "Unknown", "Unknown", "https://git.example/llm.git: cannot be read; check the deploy key"),
]


def node(kind: str, name: str, children: tuple[Thing, ...] = (), **more: Any) -> Thing:
    fields = {
        "sync": "",
        "health": "",
        "is_hook": False,
        "is_orphan": False,
        "wave": 0,
        "note": "",
        "age": before(hours=3),
        "message": "",
    }
    fields |= {
        "id": f"r--{kind}-mlops-{name}",
        "url": f"/apps/argocd/fraud/r/-/{kind}/mlops/{name}",
        "kind": kind,
        "name": name,
        "children": children,
    }
    return Thing(**fields | more)


POD = node(
    "Pod",
    "fraud-predictor-7c9f-x2x",
    health="Degraded",
    note="0/1 · 4 restarts",
    message="ErrImagePull: registry.example/fraud:1.5 not found",
)
ROOTS = (
    node(
        "Deployment",
        "fraud-predictor",
        (node("ReplicaSet", "fraud-predictor-7c9f", (POD,), health="Degraded"),),
        sync="OutOfSync",
        health="Degraded",
        wave=2,
    ),
    node("Service", "fraud", (node("EndpointSlice", "fraud-x8k2"),), sync="Synced", health="Healthy"),
    node("ConfigMap", "fraud-config", sync="Synced"),
    node(
        "Job",
        "train",
        tuple(node("Pod", f"train-{number}", health="Healthy") for number in range(24)),
        health="Healthy",
        is_hook=True,
        sync="Synced",
    ),
    node("Secret", "left-over", is_orphan=True),
)
WAVES = [
    Thing(
        id="w-pre",
        title="PreSync",
        phase="Succeeded",
        start=0,
        length=18,
        lasted=12.4,
        waits_for="",
        count=1,
        is_blocker=False,
    ),
    Thing(
        id="w-0",
        title="Wave 0",
        phase="Succeeded",
        start=18,
        length=8,
        lasted=3.1,
        waits_for="",
        count=6,
        is_blocker=False,
    ),
    Thing(
        id="w-2",
        title="Wave 2",
        phase="Running",
        start=26,
        length=60,
        lasted=184,
        waits_for="Deployment fraud-predictor to be healthy",
        count=2,
        is_blocker=True,
    ),
    Thing(
        id="w-5",
        title="Wave 5",
        phase="Pending",
        start=86,
        length=0,
        lasted=None,
        waits_for="wave 2",
        count=3,
        is_blocker=False,
    ),
]
DIFFERENCES = [
    Thing(
        path="spec.replicas",
        before="3",
        after="1",
        cause="another controller",
        cause_about="HorizontalPodAutoscaler fraud",
        tone="busy",
    ),
    Thing(
        path="spec.template.spec.containers[name=predictor].image",
        before="registry.example/fraud:1.4",
        after="registry.example/fraud:1.5",
        cause="new commit",
        cause_about="",
        tone="ok",
    ),
    Thing(
        path="metadata.labels.team",
        before="risk",
        after=None,
        cause="changed by hand",
        cause_about="kubectl edit, 10:12",
        tone="warn",
    ),
]
BESIDE = [
    (1, "apiVersion: apps/v1", 1, "apiVersion: apps/v1", "same"),
    (2, "kind: Deployment", 2, "kind: Deployment", "same"),
    (3, "  replicas: 3", 3, "  replicas: 1", "changed"),
    (4, "    team: risk", None, "", "removed"),
    (None, "", 4, "  paused: false", "added"),
]
MANIFEST = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: fraud-predictor
spec:
  replicas: 3
  selector:
    matchLabels: {app: fraud}
"""
EVENTS = [
    Thing(
        id="ev-1",
        at=before(seconds=40),
        kind="Warning",
        reason="Failed",
        text="Failed to pull image registry.example/fraud:1.5",
        about="Pod fraud-predictor-7c9f-x2x",
        url="/apps",
        count=4,
        source="kubelet",
    ),
    Thing(
        id="ev-2",
        at=before(minutes=3),
        kind="Normal",
        reason="OperationStarted",
        text="amy started a sync to 4f2c19a",
        about="",
        url="",
        count=1,
        source="argosy",
    ),
    Thing(
        id="ev-3",
        at=before(days=2),
        kind="Normal",
        reason="ResourceUpdated",
        text="Updated health status: Progressing -> Degraded",
        about="",
        url="",
        count=1,
        source="argosy",
    ),
]
LOG = [
    Thing(
        at=before(seconds=60 - number),
        pod="x2x" if number % 3 else "k7p",
        text=f"INFO request {number} answered in {number * 3 % 17} ms",
        tone="bad" if number == 7 else "",
    )
    for number in range(40)
]
HISTORY = [
    Thing(
        id="h-12",
        number=12,
        revision=COMMIT,
        at=before(minutes=4),
        subject="raise the limits of the predictor",
        author="amy <amy@example>",
        lasted=31.2,
        by="amy",
        phase="Failed",
        url="/x",
        is_current=True,
    ),
    Thing(
        id="h-11",
        number=11,
        revision=COMMIT[::-1],
        at=before(days=1),
        subject="model 1.4",
        author="bob <bob@example>",
        lasted=12,
        by="automatic",
        phase="Succeeded",
        url="/x",
        is_current=False,
    ),
]
CELLS = [
    Thing(state=state, title=f"cell {number}: {state}", url=f"#cell-{number}")
    for number, state in enumerate(["ok"] * 22 + ["noted", "ok", "failed", "running"] + ["waiting"] * 8, 1)
]
GATES = [
    Thing(name="health", state="ok", text="Healthy for 12 min"),
    Thing(name="approval", state="warning", text="one of two given"),
]
STAGES = [
    Thing(
        id="",
        name="dev",
        release="r-41",
        health="Healthy",
        version="fraud 1.6",
        since=before(minutes=20),
        gates=[],
        url="/releases/r-41",
    ),
    Thing(
        id="",
        name="staging",
        release="r-40",
        health="Progressing",
        version="fraud 1.5",
        since=before(hours=2),
        gates=GATES[:1],
        url="/releases/r-40",
    ),
    Thing(
        id="",
        name="production",
        release="r-38",
        health="Degraded",
        version="fraud 1.4",
        since=before(days=6),
        gates=GATES,
        url="/releases/r-38",
    ),
]
