"""/apps: the tone of a tile, and what a row offers."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.desk.applications.listing import row_of
from argosy.model.annotations import HOLD
from argosy.model.manifest import Manifest
from argosy.server.pages import rendering
from argosy.server.pages.application.list_page import Shown
from support.page_site import CONTROL

REPOSITORY = {"repoURL": "https://git.example/ml.git", "path": "overlays/dev"}
COMMITS = ("1" * 40, "2" * 40)


def application(name: str = "fraud", **status: Any) -> Manifest:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": CONTROL, "uid": name, "resourceVersion": "1"},
        "spec": {"project": "default", "source": REPOSITORY, "destination": {"name": "in-cluster", "namespace": "ml"}},
        "status": {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}, **status},
    }


def listed(manifest: Manifest, *, may_sync: bool = True) -> Shown:
    row = row_of(manifest)
    return Shown(row, f"a-{row.name}", f"/apps/{row.namespace}/{row.name}", "", "", False, may_sync, (), 0, 0, 0)


def condition(kind: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "message": "kustomization.yaml is missing"}]}


FAILED = {"operationState": {"phase": "Failed", "operation": {"sync": {}}, "message": "one or more objects failed"}}


@pytest.mark.parametrize(
    ("status", "tone"),
    [
        ({}, "ok"),
        ({"sync": {"status": "OutOfSync"}}, "warn"),
        ({"sync": {"status": "Unknown"}}, "unknown"),
        ({"sync": {"status": "OutOfSync"}, "health": {"status": "Progressing"}}, "warn"),
        ({"sync": {"status": "OutOfSync"}, "health": {"status": "Missing"}}, "missing"),
        ({"sync": {"status": "OutOfSync"}, "health": {"status": "Degraded"}}, "bad"),
        ({"health": {"status": "Suspended"}}, "paused"),
        ({"sync": {"status": "Unknown"}, **condition("ComparisonError")}, "bad"),
        (condition("OrphanedResourceWarning"), "ok"),
        ({"sync": {"status": "OutOfSync"}, **FAILED}, "bad"),
        (FAILED, "ok"),  # a later comparison found it Synced
        ({"operationState": {"phase": "Running", "operation": {"sync": {}}}}, "busy"),
    ],
)
def test_a_tile_has_the_tone_of_its_worst_state(status: dict[str, Any], tone: str) -> None:
    tile = rendering.part("app_list.html", "tile", listed(application(**status)))
    assert f'<article class="tile is-{tone}"' in tile


def test_a_held_application_is_not_shown_as_an_error() -> None:
    held = application(sync={"status": "OutOfSync"}, **condition("SyncError"))
    held["metadata"]["annotations"] = {HOLD: '{"by": "ann"}'}
    assert listed(held).tone == "warn"
