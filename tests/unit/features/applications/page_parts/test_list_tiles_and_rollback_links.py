"""/apps: the tone of a tile, and the rollback link of rows and headers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.annotations import HOLD
from argosy.features.applications.list.page import ApplicationListRow
from argosy.features.applications.page_parts.header import build_header
from argosy.gitops.application import read_application
from argosy.gitops.application_client.filtered_app_list import build_row
from argosy.kube.objects import Manifest
from argosy.web import page_templates
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


def listed(manifest: Manifest, *, may_sync: bool = True) -> ApplicationListRow:
    row = build_row(manifest)
    return ApplicationListRow(
        row, f"a-{row.name}", f"/apps/{row.namespace}/{row.name}", "", "", False, may_sync, (), 0, 0, 0
    )


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
        (FAILED, "ok"),  # a later comparison has reported Synced
        ({"operationState": {"phase": "Running", "operation": {"sync": {}}}}, "busy"),
    ],
)
def test_tile_tone_is_that_of_the_worst_state(status: dict[str, Any], tone: str) -> None:
    tile = page_templates.render_macro("applications/parts_list.html", "tile", listed(application(**status)))
    assert f'<article class="tile is-{tone}"' in tile


def test_held_application_with_sync_error_is_shown_as_warning() -> None:
    held = application(sync={"status": "OutOfSync"}, **condition("SyncError"))
    held["metadata"]["annotations"] = {HOLD: '{"by": "ann"}'}
    assert listed(held).tone == "warn"


def deployed(*revisions: str) -> Manifest:
    history = [
        {"id": number, "revision": revision, "deployedAt": "2026-11-15T10:00:00Z", "source": REPOSITORY}
        for number, revision in enumerate(revisions)
    ]
    return application(history=history)


ROLLBACK_LINK = f'href="/apps/{CONTROL}/fraud/rollback"'


def test_list_row_links_to_the_rollback_plan() -> None:
    """Three clicks: open the row, ROLLBACK, confirm."""
    assert ROLLBACK_LINK in page_templates.render_macro(
        "applications/parts_list.html", "row", listed(deployed(*COMMITS))
    )


def test_application_header_links_to_the_rollback_plan() -> None:
    """Three clicks from a tile: the Application, ROLLBACK, confirm."""
    app = read_application(deployed(*COMMITS))
    head = build_header(app, None, datetime(2026, 11, 15, tzinfo=UTC), {"sync": True})
    assert ROLLBACK_LINK in page_templates.render_macro(
        "applications/parts_head.html", "app_tools", head, "token", "tree"
    )


@pytest.mark.parametrize(("revisions", "may_sync"), [((), True), (COMMITS[:1], True), (COMMITS, False)])
def test_rollback_link_is_hidden_without_history_or_permission(revisions: tuple[str, ...], may_sync: bool) -> None:
    manifest = deployed(*revisions)
    assert ROLLBACK_LINK not in page_templates.render_macro(
        "applications/parts_list.html", "row", listed(manifest, may_sync=may_sync)
    )
    head = build_header(read_application(manifest), None, datetime(2026, 11, 15, tzinfo=UTC), {"sync": may_sync})
    assert ROLLBACK_LINK not in page_templates.render_macro(
        "applications/parts_head.html", "app_tools", head, "token", "tree"
    )
