"""Compares the head with the live state, for `argosy preview --live`.

In: a repository, names, a cluster. Out: Preview. Never: writes; reports fields that others set in the cluster as
changes of the head.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from argosy.errors import ArgosyError
from argosy.features.preview.applications_of_both_sides import SideApplication
from argosy.features.preview.comparison import RepositoryComparison, compare_sides
from argosy.features.preview.comparison_side_renderer import SideRender, SideRenderer
from argosy.features.preview.revision_range_trees import ComparisonSide, PreviewRepository, open_sides, split_arguments
from argosy.features.preview.service import Preview, assess_comparison, summarize_comparison
from argosy.gitops.analysis.object_changes import ApplicationChange, ObjectChange
from argosy.gitops.analysis.repository_view import LocateField, ManifestWithLocations, RenderFailure, RenderFailureKind
from argosy.gitops.analysis.rule_violation import FileLocation
from argosy.gitops.application import Application, read_application
from argosy.gitops.application.step_results import Checkout, Pair, RenderResult
from argosy.gitops.application_client.app_state_reader import ApplicationReader, open_reader
from argosy.gitops.application_client.application_service import ApplicationService, ServiceOpener
from argosy.gitops.diff import list_differences
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.workspace.command_file_tree_cache import CheckoutCache, ShowProgress, find_cache_folder
from argosy.kube.objects import Manifest, key_of_desired
from argosy.kube.resource_key import ResourceKey


class _HeadRepositories(Repositories):
    """Returns the head for sources in this repository, and fetches all others."""

    head_checkouts: Mapping[tuple[str, str], Checkout]

    async def checkout(self, url: str, ref: str, **options: object) -> Checkout:
        checkout = self.head_checkouts.get((url, ref))
        return checkout or await super().checkout(url, ref, **options)  # type: ignore[arg-type]


def preview_live(folder: str, words: Sequence[str], open_service: ServiceOpener, *, log: ShowProgress) -> Preview:
    """Compare the Applications that the head changes, or the given ones."""
    started = time.monotonic()
    repository = PreviewRepository(folder)
    try:
        word, names = split_arguments(repository, words)
        sides = open_sides(repository, word)
        comparison = compare_sides(repository, sides, names, log=log)
        changed = {item.name for item in comparison.touched if not item.is_folder}
        selected = [item for item in comparison.applications if item.app.name in (set(names) or changed)]
        removed = [item for item in comparison.touched if item.after is None and not item.is_folder]
        checkouts = CheckoutCache(show_progress=log)
        try:
            head_checkouts = _find_head_checkouts(SideRenderer(repository, checkouts), sides.head, selected)
        finally:
            checkouts.close()
        comparison.rendered = len(selected)
        comparison.touched = [
            *asyncio.run(_compare_with_live(selected, head_checkouts, open_service, comparison)),
            *removed,
        ]
        result = assess_comparison(comparison)
    finally:
        repository.close()
    return replace(summarize_comparison(comparison, result, time.monotonic() - started), is_live=True)


def _find_head_checkouts(
    renderer: SideRenderer, head: ComparisonSide, applications: Sequence[SideApplication]
) -> dict[tuple[str, str], Checkout]:
    checkouts = {}
    for application in applications:
        for source in application.app.sources:
            location = renderer.find_location(head, source, application.file, application.app.name, SideRender())
            if location is not None:
                checkouts[source.repo_url, source.ref] = location.checkout
    return checkouts


async def _compare_with_live(
    applications: Sequence[SideApplication],
    head_checkouts: Mapping[tuple[str, str], Checkout],
    open_service: ServiceOpener,
    comparison: RepositoryComparison,
) -> list[ApplicationChange]:
    repositories = _HeadRepositories(find_cache_folder(), SourceSettings())
    repositories.head_checkouts = head_checkouts
    environments = {item.name: item.environment for item in comparison.touched}
    async with open_service() as service, open_reader(service, repositories=repositories) as reader:
        changes = [await _compare_application(service, reader, item, comparison.notes) for item in applications]
    return [replace(item, environment=environments.get(item.name, "")) for item in changes]


async def _compare_application(
    service: ApplicationService, reader: ApplicationReader, application: SideApplication, notes: list[str]
) -> ApplicationChange:
    name = application.app.name
    live = await _fetch_live_application(service, application)
    if live is None:
        notes.append(f"{name}: Application not found in the cluster; all of its objects are new")
    app = _apply_head_spec(live, application.app, service.control_namespace)
    try:
        app_state = await reader.compare(app, from_git=True)
    except ArgosyError as error:
        fault = RenderFailure(
            RenderFailureKind.RENDER, str(error).partition("; ")[0], "correct what it names", application.place
        )
        return ApplicationChange(name, live, application.app, render_failure=fault)
    if not app_state.is_complete:
        message = next((condition.message for condition in app_state.conditions), "cannot be compared")
        return ApplicationChange(
            name,
            live,
            application.app,
            render_failure=RenderFailure(RenderFailureKind.RENDER, message, "argosy check", application.place),
        )
    return _build_application_change(name, live, application, app_state)


async def _fetch_live_application(service: ApplicationService, application: SideApplication) -> Application | None:
    key = application.key._replace(namespace=application.key.namespace or service.control_namespace)
    manifest = await service.get_manifest(key)
    if manifest is None and key.namespace != service.control_namespace:
        manifest = await service.get_manifest(key._replace(namespace=service.control_namespace))
    return read_application(manifest) if manifest is not None else None


def _apply_head_spec(live: Application | None, head: Application, control: str) -> Application:
    """Return the live Application with the spec of the head."""
    if live is None:
        return replace(head, namespace=head.namespace or control)
    return read_application({**live.wire, "spec": head.wire["spec"]})


def _build_application_change(
    name: str, live: Application | None, application: SideApplication, app_state: AppState
) -> ApplicationChange:
    rendered = app_state.desired.rendered
    changes = [
        _build_object_change(pair, rendered).with_locations() for pair in app_state.comparison.pairs if pair.differs
    ]
    unchanged = [
        _build_located_manifest(pair.desired, rendered)
        for pair in app_state.comparison.pairs
        if pair.desired and not pair.differs
    ]
    return ApplicationChange(name, live, application.app, tuple(changes), tuple(unchanged))


def _build_object_change(pair: Pair, rendered: Sequence[RenderResult]) -> ObjectChange:
    before = _build_located_manifest(pair.compared or pair.live, rendered) if pair.live is not None else None
    after = _build_located_manifest(pair.predicted or pair.desired, rendered) if pair.desired is not None else None
    is_both = before is not None and after is not None
    return ObjectChange(pair.key, before, after, tuple(list_differences(pair)) if is_both else ())


def _build_located_manifest(manifest: Manifest | None, rendered: Sequence[RenderResult]) -> ManifestWithLocations:
    manifest = manifest or {}
    key = key_of_desired(manifest)
    return ManifestWithLocations(manifest, key, _build_locator(key, rendered))


def _build_locator(key: ResourceKey, rendered: Sequence[RenderResult]) -> LocateField:
    def locate(pointer: str) -> FileLocation:
        for render_result in rendered:
            if (origin := render_result.origins.find(key, pointer)) is not None:
                return FileLocation(origin.file, origin.line)
        return FileLocation("")

    return locate
