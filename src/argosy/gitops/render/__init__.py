"""Renders one source of an Application to manifests. In: a checkout, an Application, one of its sources. Out: Rendered.

Never: reads a cluster, the network, or a file outside the given trees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from argosy.errors import RenderError
from argosy.gitops.application import Application, Source
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.application.step_results import Checkout, RenderInput, RenderResult
from argosy.gitops.render.build_environment import build_environment
from argosy.gitops.render.input_fingerprints import (
    RecordingEnvironment,
    RecordingFetch,
    RecordingTree,
    SerializedRenderInputs,
    are_inputs_unchanged,
    build_folder_inputs,
    has_folder_ids,
)
from argosy.gitops.render.manifest_generate_paths import GENERATE_PATHS_ANNOTATION, build_generate_path_inputs
from argosy.gitops.render.settings import (
    BuildSettings,
    ChartRequest,
    FetchCharts,
    FetchTree,
    RenderLimits,
    read_build_settings,
    read_sidecar_settings,
)
from argosy.gitops.render.source_override_files import apply_source_overrides
from argosy.gitops.render.submodule_detection import find_submodule, format_submodule_error
from argosy.gitops.render.tool_detection import detect_tool, resolve_source_folder
from argosy.gitops.render.tool_dispatch import RenderJob, ToolOutput, run_tool

if TYPE_CHECKING:
    from argosy.gitops.render.sidecar_plugins.sidecar_session import FindGitEnvironment, SidecarSession

__all__ = [
    "BuildSettings",
    "ChartRequest",
    "FetchCharts",
    "FetchTree",
    "RecordingTree",
    "RenderLimits",
    "are_inputs_unchanged",
    "build_environment",
    "read_build_settings",
    "read_sidecar_settings",
    "render",
    "render_application",
]
_DEFAULT_SETTINGS = BuildSettings()


def render(
    checkout: Checkout,
    app: Application,
    source: Source,
    settings: BuildSettings = _DEFAULT_SETTINGS,
    *,
    refs: Mapping[str, Checkout] | None = None,
    fetch: FetchTree | None = None,
    fetch_charts: FetchCharts | None = None,
    find_git_environment: FindGitEnvironment | None = None,
) -> RenderResult:
    """Render one source. `refs` holds the checkouts that `$alias/` paths refer to.

    `fetch` fetches remote bases, `fetch_charts` the dependencies of a chart that are not in the repository.
    `find_git_environment` is called for a plug-in that wants credentials.
    """
    inputs: dict[RenderInput, str] = {}
    tree = RecordingTree(checkout.tree, "", inputs)
    # argo: the tree of a chart is the chart's folder, and the path of its source has no meaning
    folder = "" if source.chart else resolve_source_folder(tree, source.path)
    if submodule := find_submodule(checkout.tree, folder):  # an empty submodule folder must not prune everything
        raise RenderError(format_submodule_error(submodule), where=source.path)
    notes: list[str] = []
    source = apply_source_overrides(tree, folder, source, app.name, notes)
    job = RenderJob(
        tree=tree,
        folder=folder,
        tool="",
        app=app,
        source=source,
        settings=settings,
        environment=RecordingEnvironment(build_environment(app, source, checkout.revision, settings), inputs),
        refs={
            alias: RecordingTree(ref_checkout.tree, f"${alias}", inputs) for alias, ref_checkout in (refs or {}).items()
        },
        fetch=RecordingFetch(fetch, inputs) if fetch else None,
        fetch_charts=fetch_charts,
        find_git_environment=find_git_environment,
        notes=notes,
    )
    tool, (manifests, origins) = _detect_and_run_tool(job, checkout.tree)
    paths = app.annotations.get(GENERATE_PATHS_ANNOTATION, "")
    if paths and not source.chart and has_folder_ids(checkout.tree):
        inputs.update(build_generate_path_inputs(checkout.tree, paths, source.path))
    # A copy: inputs that origins read later do not belong to the render.
    all_inputs = SerializedRenderInputs({**build_folder_inputs(checkout.tree, "", inputs), **inputs})
    return RenderResult(manifests, origins, all_inputs, tool, tuple(notes))


def _detect_and_run_tool(job: RenderJob, tree: FileTree) -> tuple[str, ToolOutput]:
    with _open_sidecars(job, tree) as sidecars:
        has_sidecar = None if sidecars is None else lambda: sidecars.find_plugin() is not None
        tool = detect_tool(job.tree, job.folder, job.source, job.settings, job.notes, has_sidecar)
        return tool, run_tool(replace(job, tool=tool, sidecars=sidecars))


@contextmanager
def _open_sidecars(job: RenderJob, tree: FileTree) -> Iterator[SidecarSession | None]:
    """`tree` is not a RecordingTree: plug-ins get all files, so their output counts for one commit only."""
    if not job.settings.sidecars.folder:
        yield None
        return
    from argosy.gitops.render.sidecar_plugins.sidecar_session import SidecarSource, open_sidecar_session

    generate_paths = job.app.annotations.get(GENERATE_PATHS_ANNOTATION, "")
    source = SidecarSource(tree, job.folder, job.source.plugin, job.environment, generate_paths)
    with open_sidecar_session(source, job.settings.sidecars) as session:
        yield session


def render_application(
    app: Application,
    checkouts: Sequence[Checkout],
    settings: BuildSettings = _DEFAULT_SETTINGS,
    *,
    fetch: FetchTree | None = None,
) -> list[RenderResult]:
    """Render every source that has manifests, in order; `checkouts` has one checkout per source, in the same order."""
    if len(checkouts) != len(app.sources):
        raise ValueError("checkouts must have one entry per source")
    refs = {source.alias: ref_checkout for source, ref_checkout in zip(app.sources, checkouts) if source.alias}
    return [
        render(checkout, app, source, settings, refs=refs, fetch=fetch)
        for source, checkout in zip(app.sources, checkouts)
        if not _is_ref_only(source)
    ]


def _is_ref_only(source: Source) -> bool:
    # argo: a source with a ref and neither path nor chart only provides files to other sources.
    return bool(source.alias) and not source.path and not source.chart
