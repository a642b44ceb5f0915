"""Builds the desired state of an Application: sources to manifests, with namespaces and tracking marks.

In: sources and refs. Out: DesiredState, or a UserError. Never: applies anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from argosy.errors import PolicyError, SignatureError, UserError
from argosy.fair_share import charge_work_to
from argosy.gitops.application import Application, Source
from argosy.gitops.application.project_spec import Project
from argosy.gitops.application.step_results import Checkout, RenderResult
from argosy.gitops.application.sync_annotations import is_hook, is_skipped, list_hook_phases
from argosy.gitops.application.unknown_fields import SPEC_FIELDS, list_unknown_fields
from argosy.gitops.live import add_tracking
from argosy.gitops.policy.projects import find_signature_keys, permits_source
from argosy.gitops.reconciler.app_memo import AppMemos, TrackedManifests
from argosy.gitops.reconciler.chart_dependencies import check_no_signature_required, fetch_dependencies
from argosy.gitops.reconciler.desired_state_values import DesiredState, DesiredStateRequest
from argosy.gitops.reconciler.destination_api_versions import DestinationBuildSettings
from argosy.gitops.reconciler.local_manifests import (
    LocalManifestsError,
    check_integrity_not_enforced,
    find_compared_manifests,
    render_local_manifests,
)
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.render_cache import FetchDependencies, OpenGitAccess, RenderCache, RenderRequest
from argosy.gitops.render import ChartRequest
from argosy.gitops.source.signatures import build_signature_rule
from argosy.gitops.source.submodules import add_submodules, find_checkout_without_submodules
from argosy.gitops.status.conditions import AppCondition, ConditionType
from argosy.kube.client import Catalog
from argosy.kube.controller.log_context import add_log_fields
from argosy.kube.objects import Manifest, key_of, key_of_desired
from argosy.kube.resource_key import ResourceKey, split_api_version

DEFAULT_REF: Final = "HEAD"
TARGET_STATE_ERROR: Final = "Failed to load target state"  # argo: the same message
CHARTS_OF_SENT_FILES: Final = "charts are not fetched for files that were sent; run `helm dependency build` before"
REMOTE_BASE_OF_SENT_FILES: Final = "remote bases are not fetched for files that were sent; send the base with them"
INTEGRITY_CHECK: Final = "GIT/GPG"  # argo: the name of the check in conditions


def format_load_error(error: UserError) -> str:
    """Format a source error for a condition or an operation: the error with its ref and path."""
    if isinstance(error, LocalManifestsError):
        return str(error)
    return f"{TARGET_STATE_ERROR}: {error}{f' ({error.source})' if error.source else ''}"


def _format_integrity_error(error: SignatureError, sources: Sequence[Source], number: int) -> str:
    """Format a failed verification for a condition. argo: of several sources it names the source."""
    name = sources[number].name
    source = f"source {name}: " if name else f"source {number + 1} of {len(sources)}: "
    return f"{INTEGRITY_CHECK}: {source if len(sources) > 1 else ''}{error.message}"


@contextmanager
def _add_source_to_errors(source: Source, ref: str) -> Iterator[None]:
    """Add the ref and path of the source to a UserError. Overwrites: Applications may share one error of a host."""
    try:
        yield
    except UserError as error:
        location = f"chart {source.chart}" if source.chart else f"path {source.path or '.'}"
        error.source = f"targetRevision {ref or DEFAULT_REF}, {location}"
        raise


def _passes_credentials(source: Source) -> bool:
    return source.helm is not None and source.helm.pass_credentials


class DesiredStateBuilder:
    """Builds desired states, and remembers the tracked manifests of the last render."""

    def __init__(self, renders: RenderCache, memos: AppMemos) -> None:
        self.renders, self._memos = renders, memos
        self._build_settings = DestinationBuildSettings()

    async def may_render_differently(self, app: Application, project: Project, settings: ReconcilerSettings) -> bool:
        """True if the sources may give other manifests than last time."""
        if find_compared_manifests(app):
            return False
        request = DesiredStateRequest(
            app.sources, tuple(source.ref for source in app.sources), settings.reconciliation_seconds
        )
        try:
            checkouts, _ = await self._fetch_checkouts(project, request, settings)
            aliases = {source.alias: item for source, item in zip(request.sources, checkouts) if source.alias}
            return any(
                self.renders.may_render_differently(
                    RenderRequest(app, source, checkout, settings.build, aliases), number
                )
                for number, (source, checkout) in enumerate(zip(request.sources, checkouts))
                if not (source.alias and not source.path and not source.chart)
            )
        except UserError:
            return True

    def is_unchanged_since(self, app: Application, revisions: Sequence[str]) -> bool:
        """True if the last render is known to be the same as that of these revisions."""
        if len(revisions) != len(app.sources) or any(source.alias for source in app.sources):
            return False
        return all(
            self.renders.is_unchanged_since(app.key, number, revision) for number, revision in enumerate(revisions)
        )

    async def build(
        self,
        app: Application,
        project: Project,
        request: DesiredStateRequest,
        settings: ReconcilerSettings,
        kinds: Catalog,
    ) -> DesiredState:
        """Load and render the sources. Raises SignatureError for a revision that is not signed as required.

        With `reports_unverified`, such a revision is rendered, and a ComparisonError names it: nothing may apply it.
        """
        if request.local_manifests:
            return self._build_from_local_manifests(app, project, request, settings, kinds)
        self._memos[app.key].local_render = None
        checkouts, integrity_errors = await self._fetch_checkouts(project, request, settings)
        add_log_fields(revision=",".join(item.revision for item in checkouts))
        aliases = {source.alias: item for source, item in zip(request.sources, checkouts) if source.alias}

        async def fetch(url: str, ref: str) -> Checkout:
            if request.sent_files is not None:  # whoever sends files must not read other repositories with them
                raise PolicyError(REMOTE_BASE_OF_SENT_FILES, where=url)
            if not permits_source(project, url):
                raise PolicyError(f"the remote base {url} is not permitted in project '{project.name}'", where=url)
            return await self._fetch_checkout(url, ref or DEFAULT_REF, "", project, request, settings)

        rendered, tools = [], [""] * len(request.sources)
        build = self._build_settings.find(settings.build, kinds)
        for number, (source, ref, checkout) in enumerate(zip(request.sources, request.refs, checkouts)):
            if source.alias and not source.path and not source.chart:
                continue
            git_access = None if request.sent_files is not None else _choose_git_access(source, project, settings)
            render_request = RenderRequest(app, source, checkout, build, aliases, git_access)
            with _add_source_to_errors(source, ref), charge_work_to(settings.build_tenant(app.project)):
                fetch_charts = _build_chart_fetch(source, project, request, settings)
                render = await self.renders.render(
                    render_request, number, fetch, fetch_charts, ignores_cache=request.ignores_cache
                )
            rendered.append(render)
            tools[number] = render.tool
        self._memos[app.key].drop_sources_from(max(len(app.sources), len(request.sources)))
        tracked = self._track_manifests(app, rendered, settings, kinds)
        return DesiredState(
            sources=request.sources,
            revisions=tuple(item.revision for item in checkouts),
            manifests=tracked.manifests,
            tools=tuple(tools),
            conditions=(*integrity_errors, *tracked.conditions, *_build_source_warnings(app, rendered)),
            rendered=rendered,
            keys=tracked.keys,
            is_verified=not integrity_errors,
        )

    def _build_from_local_manifests(
        self,
        app: Application,
        project: Project,
        request: DesiredStateRequest,
        settings: ReconcilerSettings,
        kinds: Catalog,
    ) -> DesiredState:
        check_integrity_not_enforced(project, (*app.sources, *request.sources))
        memo = self._memos[app.key]
        if memo.local_render is None or memo.local_render[0] != request.local_manifests:
            memo.local_render = request.local_manifests, render_local_manifests(request.local_manifests)
        rendered = [memo.local_render[1]]
        tracked = self._track_manifests(app, rendered, settings, kinds)
        return DesiredState(
            sources=request.sources,
            revisions=request.refs if any(request.refs) and not app.has_many_sources else (),
            manifests=tracked.manifests,
            conditions=tracked.conditions,
            rendered=rendered,
            keys=tracked.keys,
        )

    async def _fetch_checkouts(
        self, project: Project, request: DesiredStateRequest, settings: ReconcilerSettings
    ) -> tuple[list[Checkout], list[AppCondition]]:
        """Return a checkout per source, and a condition for each that is not signed as required."""
        if request.sent_files is not None:
            return [request.sent_files], []
        checkouts, integrity_errors = [], []
        for number, (source, ref) in enumerate(zip(request.sources, request.refs, strict=True)):
            with _add_source_to_errors(source, ref):
                if source.chart:
                    checkouts.append(await self._fetch_chart(source, ref, project, request, settings))
                    continue
                try:
                    checkout = await self._fetch_checkout(
                        source.repo_url, ref, source.tag_prefix, project, request, settings
                    )
                except SignatureError as error:
                    if not (request.reports_unverified and error.rejected_revision):
                        raise
                    checkout = await settings.repositories.checkout(
                        source.repo_url, error.rejected_revision, project=project.name
                    )
                    checkout = await add_permitted_submodules(checkout, source.repo_url, project, settings)
                    message = _format_integrity_error(error, request.sources, number)
                    integrity_errors.append(AppCondition(ConditionType.COMPARISON_ERROR, message))
                checkouts.append(checkout)
        return checkouts, integrity_errors

    async def _fetch_chart(
        self, source: Source, ref: str, project: Project, request: DesiredStateRequest, settings: ReconcilerSettings
    ) -> Checkout:
        check_no_signature_required(project, source.repo_url)
        return await settings.repositories.checkout_chart(
            source.repo_url,
            source.chart,
            ref,
            project=project.name,
            max_age=request.max_age,
            passes_credentials=_passes_credentials(source),
            ignores_cache=request.ignores_cache,
        )

    async def _fetch_checkout(
        self,
        url: str,
        ref: str,
        prefix: str,
        project: Project,
        request: DesiredStateRequest,
        settings: ReconcilerSettings,
    ) -> Checkout:
        checkout = await settings.repositories.checkout(
            url,
            ref or DEFAULT_REF,
            project=project.name,
            tag_prefix=prefix,
            max_age=request.max_age,
            signatures=build_signature_rule(find_signature_keys(project, url), settings.signature_keys),
        )
        return await add_permitted_submodules(checkout, url, project, settings)

    def _track_manifests(
        self, app: Application, rendered: Sequence[RenderResult], settings: ReconcilerSettings, kinds: Catalog
    ) -> TrackedManifests:
        # The same renders under the same settings give the same manifests: reuse them.
        inputs = (*rendered, settings.tracking, settings.exclusions, kinds)
        namespace = app.destination.namespace
        memo = self._memos[app.key]
        cached = memo.tracked
        if cached is not None and cached.is_valid_for(inputs, namespace):
            return cached
        desired, conditions = place_and_track(
            app, [manifest for part in rendered for manifest in part.manifests], settings, kinds
        )
        keys = [key_of(manifest) for manifest in desired if manifest["metadata"].get("name")]
        tracked = memo.tracked = TrackedManifests(inputs, namespace, desired, conditions, keys)
        return tracked


async def add_permitted_submodules(
    checkout: Checkout, url: str, project: Project, settings: ReconcilerSettings
) -> Checkout:
    """A signature of the revision covers its submodules too, because it names their commits."""

    async def fetch(submodule_url: str, commit: str) -> Checkout:
        if not permits_source(project, submodule_url):
            raise PolicyError(f"it is not permitted in project '{project.name}'", where=submodule_url)
        return await settings.repositories.checkout(submodule_url, commit, project=project.name, parent_url=url)

    if not settings.build.fetches_submodules:  # argo: their folders are empty then
        return checkout
    return find_checkout_without_submodules(checkout) or await add_submodules(checkout, url, fetch)


def _build_chart_fetch(
    source: Source, project: Project, request: DesiredStateRequest, settings: ReconcilerSettings
) -> FetchDependencies:
    """Files that were sent fetch no charts: their sender may not read other repositories with them."""
    if request.sent_files is not None:
        return _refuse_charts
    return partial(
        fetch_dependencies,
        project=project,
        settings=settings,
        max_age=request.max_age,
        passes_credentials=_passes_credentials(source),
        ignores_cache=request.ignores_cache,
    )


async def _refuse_charts(requests: Sequence[ChartRequest]) -> Sequence[Checkout]:
    raise PolicyError(CHARTS_OF_SENT_FILES, where=", ".join(chart.name for chart in requests))


def _choose_git_access(source: Source, project: Project, settings: ReconcilerSettings) -> OpenGitAccess | None:
    """Return how a plug-in that asks for it gets Git access to the source's repository."""
    folder = settings.build.sidecars.folder
    if source.chart or not folder:
        return None
    return partial(settings.repositories.open_plugin_access, source.repo_url, folder, project=project.name)


def place_and_track(
    app: Application, manifests: Iterable[Manifest], settings: ReconcilerSettings, kinds: Catalog
) -> tuple[list[Manifest], tuple[AppCondition, ...]]:
    """Set namespaces and tracking marks, keep the last of duplicate keys, and collect warnings."""
    by_key: dict[ResourceKey, Manifest] = {}
    unnamed: list[Manifest] = []
    counts: dict[ResourceKey, int] = {}
    excluded: dict[str, None] = {}
    for manifest in manifests:
        manifest_in_namespace = set_namespace(manifest, app.destination.namespace, kinds)
        if (
            is_hook(manifest_in_namespace)
            and not list_hook_phases(manifest_in_namespace)
            and not is_skipped(manifest_in_namespace)
        ):
            continue  # argo: hooks of unknown types are ignored
        if not manifest_in_namespace["metadata"].get("name"):
            if settings.exclusions.excludes(key_of_desired(manifest_in_namespace).group_kind):
                excluded[_format_excluded(key_of_desired(manifest_in_namespace))] = None
                continue
            unnamed.append(add_tracking(manifest_in_namespace, app, settings.tracking))
            continue
        key = key_of(manifest_in_namespace)
        if settings.exclusions.excludes(key.group_kind):
            excluded[_format_excluded(key)] = None
            continue
        if key in by_key:
            counts[key] = counts.get(key, 1) + 1
            del by_key[key]  # argo: the last one wins
        by_key[key] = add_tracking(manifest_in_namespace, app, settings.tracking)
    conditions = [AppCondition(ConditionType.EXCLUDED_RESOURCE_WARNING, text) for text in excluded]
    conditions += [
        AppCondition(
            ConditionType.REPEATED_RESOURCE_WARNING,
            f"Resource {key.group}/{key.kind}/{key.namespace}/{key.name} appeared {count} times among application "
            "resources.",
        )
        for key, count in counts.items()
    ]
    conditions += _build_namespace_errors(by_key.values(), kinds)
    return [*by_key.values(), *unnamed], tuple(conditions)


def _build_namespace_errors(manifests: Iterable[Manifest], kinds: Catalog) -> list[AppCondition]:
    """argo: an object of a namespaced kind needs a namespace, its own or the destination's. Hooks are not checked."""
    errors = []
    for manifest in manifests:
        info, metadata = kinds.get(key_of(manifest).group_kind), manifest["metadata"]
        if info is not None and info.namespaced and not metadata.get("namespace") and not is_hook(manifest):
            group, version = split_api_version(str(manifest.get("apiVersion") or ""))
            message = f"Namespace for {metadata['name']} {group}/{version}, Kind={manifest['kind']} is missing."
            errors.append(AppCondition(ConditionType.INVALID_SPEC_ERROR, message))
    return errors


def _build_source_warnings(app: Application, rendered: Sequence[RenderResult]) -> list[AppCondition]:
    """Return warnings about likely mistakes in Git and in the Application."""
    messages = [note for entry in rendered for note in entry.warnings]
    messages += [entry.message for entry in list_unknown_fields(app.wire.get("spec"), SPEC_FIELDS, ("spec",))]
    return [AppCondition(ConditionType.SOURCE_WARNING, text) for text in dict.fromkeys(messages)]


def set_namespace(manifest: Manifest, namespace: str, kinds: Mapping[Any, Any]) -> Manifest:
    """argo: a manifest without a namespace gets the destination's; cluster-scoped manifests get none."""
    group, _ = split_api_version(str(manifest.get("apiVersion") or ""))
    info = kinds.get((group, manifest.get("kind")))
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        raise UserError(f"a {manifest.get('kind')} has no metadata; add its name")
    is_namespaced = info is None or info.namespaced
    if is_namespaced and not metadata.get("namespace") and namespace:
        return {**manifest, "metadata": {**metadata, "namespace": namespace}}
    if not is_namespaced and "namespace" in metadata:
        return {**manifest, "metadata": {name: value for name, value in metadata.items() if name != "namespace"}}
    return manifest


def _format_excluded(key: ResourceKey) -> str:
    return f"Resource {key.group}/{key.kind} {key.name} is excluded in the settings"
