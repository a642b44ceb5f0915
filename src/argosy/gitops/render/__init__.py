"""Renders one source of an Application to manifests. In: a checkout, an Application, one of its sources. Out: Rendered.

Never: reads a cluster, the network, or a file outside the given trees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argosy.errors import RenderError
from argosy.gitops.application import Application, Source
from argosy.gitops.application.step_results import Checkout, Input, Rendered
from argosy.gitops.render.build_environment import build_environment
from argosy.gitops.render.generate_paths import ANNOTATION, generate_path_inputs
from argosy.gitops.render.render_inputs import (
    RecordingEnvironment,
    RecordingFetch,
    RecordingTree,
    are_current,
    knows_ids,
    whole_folders,
)
from argosy.gitops.render.settings import BuildSettings, Fetch, RenderLimits, read_build_settings
from argosy.gitops.render.source_overrides import overridden
from argosy.gitops.render.submodules import find_submodule, submodule_text
from argosy.gitops.render.tool_detection import detect, source_folder
from argosy.gitops.render.tool_dispatch import Job, run

__all__ = [
    "BuildSettings",
    "Fetch",
    "RecordingTree",
    "RenderLimits",
    "are_current",
    "build_environment",
    "chart_error",
    "read_build_settings",
    "render",
    "render_application",
]
_SETTINGS = BuildSettings()


def render(
    checkout: Checkout,
    app: Application,
    source: Source,
    settings: BuildSettings = _SETTINGS,
    *,
    refs: Mapping[str, Checkout] | None = None,
    fetch: Fetch | None = None,
) -> Rendered:
    """Render one source. `refs` holds the checkouts that `$alias/` paths refer to; `fetch` fetches remote bases."""
    if source.chart:
        raise chart_error(source)
    inputs: dict[Input, str] = {}
    tree = RecordingTree(checkout.tree, "", inputs)
    folder = source_folder(tree, source.path)
    if submodule := find_submodule(checkout.tree, folder):  # an empty submodule folder must not prune everything
        raise RenderError(submodule_text(submodule), where=source.path)
    notes: list[str] = []
    source = overridden(tree, folder, source, app.name, notes)
    job = Job(
        tree=tree,
        folder=folder,
        tool=detect(tree, folder, source, settings),
        app=app,
        source=source,
        settings=settings,
        environment=RecordingEnvironment(build_environment(app, source, checkout.revision, settings), inputs),
        refs={alias: RecordingTree(each.tree, f"${alias}", inputs) for alias, each in (refs or {}).items()},
        fetch=RecordingFetch(fetch, inputs) if fetch else None,
        notes=notes,
    )
    manifests, origins = run(job)
    paths = app.annotations.get(ANNOTATION, "")
    if paths and knows_ids(checkout.tree):
        inputs.update(generate_path_inputs(checkout.tree, paths, source.path))
    # Copy: inputs that origins read later do not belong to the render.
    read = {**whole_folders(checkout.tree, "", inputs), **inputs}
    return Rendered(manifests, origins, read, job.tool, tuple(notes))


def render_application(
    app: Application,
    checkouts: Sequence[Checkout],
    settings: BuildSettings = _SETTINGS,
    *,
    fetch: Fetch | None = None,
) -> list[Rendered]:
    """Render every source that has manifests, in order; `checkouts` has one checkout per source, in the same order."""
    if len(checkouts) != len(app.sources):
        raise ValueError("checkouts must have one entry per source")
    refs = {source.alias: each for source, each in zip(app.sources, checkouts) if source.alias}
    return [
        render(checkout, app, source, settings, refs=refs, fetch=fetch)
        for source, checkout in zip(app.sources, checkouts)
        if not _is_only_named(source)
    ]


def _is_only_named(source: Source) -> bool:
    # argo: a source with a ref and neither path nor chart only provides files to other sources.
    return bool(source.alias) and not source.path and not source.chart


def chart_error(source: Source) -> RenderError:
    return RenderError(
        f"chart {source.chart} is in a chart repository, and chart repositories are not supported: copy it into a"
        " Git repository (`helm pull --untar`) and set the source's path to its folder",
        where=source.repo_url,
    )
