"""Print an Application as the argocd command does, after loading what the output needs.

In: an ApplicationService, an Application. Out: text on stdout. Never: changes anything.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from argosy.cli.tables import format_aligned_columns
from argosy.features.applications.read import argocd_text_output, text_output
from argosy.gitops.application_client import status_summary
from argosy.gitops.application_client.app_state_reader import (
    ApplicationReader,
    assess_or_empty,
    open_reader,
)
from argosy.gitops.application_client.sync_window_description import describe_sync_windows, list_assigned_windows
from argosy.gitops.reconciler.settings_watch import ARGOCD_CM
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP

if TYPE_CHECKING:
    from argosy.gitops.application import Application
    from argosy.gitops.application_client.application_service import ApplicationService

SYNC_ALLOWED = "Sync Allowed"


async def print_get(service: ApplicationService, app: Application, args: argparse.Namespace) -> None:
    """argo: Summary, conditions, last operation and parameters if requested, then the objects."""
    async with open_reader(service) as reader:
        project = reader.reconciler_settings.projects.get(app.project)
        resolved_app = reader.reconciler_settings.clusters.resolve_destination(app)
        windows = list_assigned_windows(resolved_app, project)
        window = describe_sync_windows(resolved_app, project).partition(" (")[0]
        lines = argocd_text_output.render_summary(app, window, url=get_page_url(reader, app), windows=windows)
        lines += argocd_text_output.conditions(app)
        if args.show_operation and app.state is not None:
            lines += ["", *text_output.render_operation(app.state)]
        if args.show_params:
            lines += argocd_text_output.render_parameters(app, args.source_position, args.source_name)
        lines += await _render_objects(reader, app, args.output)
    _print(lines)


async def print_after_sync_or_wait(
    service: ApplicationService, app: Application, output: str, *, shows_operation: bool
) -> None:
    """argo: The output at the end of a sync or wait, without sync windows and conditions."""
    async with open_reader(service) as reader:
        lines = ["", *argocd_text_output.render_summary(app, SYNC_ALLOWED, url=get_page_url(reader, app)), ""]
        if shows_operation and app.state is not None:
            lines += text_output.render_operation(app.state)
        lines += await _render_objects(reader, app, output)
    _print(lines)


async def print_resources(service: ApplicationService, app: Application, output: str, *, only_orphans: bool) -> None:
    """argo: Managed objects, then orphans if the project monitors them."""
    async with open_reader(service) as reader:
        watches_orphans = reader.get_project(app).orphans is not None
        destination_reader = reader.for_destination(app)
        orphans = await destination_reader.list_orphans(app) if watches_orphans else []
        if output.startswith("tree"):
            nodes = [] if only_orphans else await destination_reader.build_tree(app)
            _print(argocd_text_output.render_resource_tree(nodes, orphans, is_detailed=output != "tree"))
            return
    managed = [] if only_orphans else [row.key for row in status_summary.list_rows(app) if not row.hook]
    rows = [(*key, "No") for key in managed] + [(*key, "Yes") for key in orphans]
    _print(format_aligned_columns([argocd_text_output.RESOURCE_COLUMNS, *rows]))


async def _render_objects(reader: ApplicationReader, app: Application, output: str) -> list[str]:
    if output in ("tree", "tree=detailed"):
        lines = argocd_text_output.render_tree(
            app, await reader.for_destination(app).build_tree(app), is_detailed=output != "tree"
        )
    else:
        health = status_summary.list_health_words((await assess_or_empty(reader, app))[1])
        lines = text_output.render_objects(argocd_text_output.list_managed_object_rows(app, health))
    return ["", *lines] if lines else []


def get_page_url(reader: ApplicationReader, app: Application) -> str:
    """argo: The page of the Application, if argocd-cm has a url; argosy's CLI has no server address."""
    settings = reader.cache.get(ResourceKey(*CONFIG_MAP, reader.service.control_namespace, ARGOCD_CM)) or {}
    url = str((settings.get("data") or {}).get("url") or "").rstrip("/")
    return f"{url}/applications/{app.name}" if url else status_summary.NONE_TEXT


def _print(lines: Sequence[str]) -> None:
    print("\n".join(lines))
