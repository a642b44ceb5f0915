"""Print an Application as the argocd command does, after loading what the output needs.

In: an ApplicationService, an Application. Out: text on stdout. Never: changes anything.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from argosy.cli.tables import aligned
from argosy.features.applications.read import argocd_output, text_output
from argosy.gitops.application_client import summary
from argosy.gitops.application_client.reader import Reader, fares, health_words, open_reader
from argosy.gitops.application_client.sync_windows import assigned, window_text
from argosy.gitops.reconciler.settings_watch import ARGOCD_CM
from argosy.kube.names import ResourceKey

if TYPE_CHECKING:
    from argosy.gitops.application import Application
    from argosy.gitops.application_client.client import Desk

ALLOWED = "Sync Allowed"


async def print_get(desk: Desk, app: Application, chosen: argparse.Namespace) -> None:
    """argo: Summary, conditions, last operation and parameters if requested, then the objects."""
    async with open_reader(desk) as reader:
        project = reader.rules.projects.get(app.project)
        placed = reader.rules.clusters.placed(app)
        windows = assigned(placed, project)
        window = window_text(placed, project).partition(" (")[0]
        lines = argocd_output.block(app, window, url=url_of(reader, app), windows=windows)
        lines += argocd_output.conditions(app)
        if chosen.show_operation and app.state is not None:
            lines += ["", *text_output.operation_lines(app.state)]
        if chosen.show_params:
            lines += argocd_output.parameters(app, chosen.source_position, chosen.source_name)
        lines += await _objects(reader, app, chosen.output)
    _print(lines)


async def print_ending(desk: Desk, app: Application, how: str, *, shows_operation: bool) -> None:
    """argo: The output at the end of a sync or wait, without sync windows and conditions."""
    async with open_reader(desk) as reader:
        lines = ["", *argocd_output.block(app, ALLOWED, url=url_of(reader, app)), ""]
        if shows_operation and app.state is not None:
            lines += text_output.operation_lines(app.state)
        lines += await _objects(reader, app, how)
    _print(lines)


async def print_resources(desk: Desk, app: Application, how: str, *, only_orphans: bool) -> None:
    """argo: Managed objects, then orphans if the project monitors them."""
    async with open_reader(desk) as reader:
        looks = reader.project(app).orphans is not None
        there = reader.at(app)
        orphans = await there.orphans(app) if looks else []
        if how.startswith("tree"):
            nodes = [] if only_orphans else await there.tree(app)
            _print(argocd_output.resource_tree(nodes, orphans, is_detailed=how != "tree"))
            return
    managed = [] if only_orphans else [row.key for row in summary.rows(app) if not row.hook]
    rows = [(*key, "No") for key in managed] + [(*key, "Yes") for key in orphans]
    _print(aligned([argocd_output.RESOURCES, *rows]))


async def _objects(reader: Reader, app: Application, how: str) -> list[str]:
    if how in ("tree", "tree=detailed"):
        found = argocd_output.tree(app, await reader.at(app).tree(app), is_detailed=how != "tree")
    else:
        health = health_words((await fares(reader, app))[1])
        found = text_output.object_lines(argocd_output.states(app, health))
    return ["", *found] if found else []


def url_of(reader: Reader, app: Application) -> str:
    """argo: The page of the Application, if argocd-cm has a url; argosy's CLI has no server address."""
    settings = reader.cache.get(ResourceKey("", "ConfigMap", reader.desk.control, ARGOCD_CM)) or {}
    url = str((settings.get("data") or {}).get("url") or "").rstrip("/")
    return f"{url}/applications/{app.name}" if url else summary.NONE


def _print(lines: Sequence[str]) -> None:
    print("\n".join(lines))
