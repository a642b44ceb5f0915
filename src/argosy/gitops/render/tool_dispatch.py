"""Runs the tool that renders a source. In: a RenderJob. Out: manifests within the limits, and origins.

Never: renders anything itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from argosy.errors import LimitError, RenderError
from argosy.gitops.application import Application, Source
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.application.step_results import FieldOrigins
from argosy.gitops.render.field_origins import NoOrigins
from argosy.gitops.render.manifest_lists import (
    describe_manifest_problem,
    describe_missing_name,
    flatten_lists,
    with_metadata,
)
from argosy.gitops.render.settings import BuildSettings, FetchCharts, FetchTree
from argosy.gitops.render.tool_detection import DIRECTORY, HELM, KUSTOMIZE, PLUGIN
from argosy.kube.objects import Manifest, key_of

if TYPE_CHECKING:
    from argosy.gitops.application import DirectoryOptions
    from argosy.gitops.render.kustomize.kustomization_build_state import InflateChart
    from argosy.gitops.render.sidecar_plugins.sidecar_session import FindGitEnvironment, SidecarSession


@dataclass(frozen=True, slots=True)
class RenderJob:
    """Everything that a tool may read. Trees and environment record every lookup as a render input."""

    tree: FileTree
    folder: str
    tool: str
    app: Application
    source: Source
    settings: BuildSettings
    environment: Mapping[str, str]
    refs: Mapping[str, FileTree] = field(default_factory=dict)
    fetch: FetchTree | None = None
    fetch_charts: FetchCharts | None = None
    sidecars: SidecarSession | None = None  # None: the installation has no plug-ins of this kind
    find_git_environment: FindGitEnvironment | None = None
    notes: list[str] = field(default_factory=list)  # tools append to it


ToolOutput = tuple[list[Manifest], FieldOrigins]


def run_tool(job: RenderJob) -> ToolOutput:
    output_manifests, origins = _TOOLS[job.tool](job)
    try:
        manifests = [with_metadata(manifest) for manifest in flatten_lists(output_manifests)]
    except RenderError as error:
        raise RenderError(f"the output of {job.tool} {error.message}", where=job.source.path or ".") from None
    _check_limits(manifests, job)
    if job.tool != DIRECTORY:  # which notes the file and line
        problems = dict.fromkeys(filter(None, map(describe_missing_name, manifests)))
        job.notes.extend(f"{job.source.path or '.'}: a manifest from {job.tool} {problem}" for problem in problems)
    return manifests, origins


def _run_kustomize(job: RenderJob) -> ToolOutput:
    from argosy.gitops.render import kustomize
    from argosy.gitops.render.field_origins import LazyOrigins

    job.settings.check_kustomize_options()
    if binary := _find_kustomize_binary(job):
        return _build_with_binary(binary, job), NoOrigins()
    build_arguments: dict[str, Any] = {
        "options": job.source.kustomize,
        "environment": job.environment,
        "settings": job.settings,
        "fetch": job.fetch,
        "inflate": _import_inflate() if job.settings.is_helm_enabled else None,
    }
    manifests = kustomize.build(job.tree, job.folder, **build_arguments)
    return manifests, LazyOrigins(partial(kustomize.trace_origins, job.tree, job.folder, **build_arguments))


def _find_kustomize_binary(job: RenderJob) -> str:
    version = job.source.kustomize.version if job.source.kustomize else ""
    if not version and not job.settings.kustomize_binaries:
        return ""
    from argosy.gitops.render.kustomize.external_binary_build import choose_binary

    return choose_binary(version, job.settings.kustomize_binaries)


def _build_with_binary(binary: str, job: RenderJob) -> list[Manifest]:
    from argosy.gitops.render.kustomize.external_binary_build import build_with_binary

    return build_with_binary(
        binary,
        job.tree,
        job.folder,
        options=job.source.kustomize,
        environment=job.environment,
        arguments=job.settings.kustomize_options,
    )


def _run_helm(job: RenderJob) -> ToolOutput:
    from argosy.gitops.render import helm
    from argosy.gitops.render.build_environment import substitute

    return helm.template(
        job.tree,
        job.folder,
        app=job.app,
        options=job.source.helm,
        kube_version=job.settings.kube_version,
        api_versions=job.settings.api_versions,
        substitute=lambda text: substitute(text, job.environment),
        refs=job.refs,
        fetch_charts=job.fetch_charts,
    )


def _import_inflate() -> InflateChart:
    from argosy.gitops.render.helm import inflate

    return inflate


def _run_directory(job: RenderJob) -> ToolOutput:
    from argosy.gitops.application import DirectoryOptions
    from argosy.gitops.render.directory import read_directory, trace_directory
    from argosy.gitops.render.field_origins import LazyOrigins

    options = job.source.directory or DirectoryOptions()
    evaluate = None if "Jsonnet" in job.settings.disabled_tools else partial(_evaluate_jsonnet, job, options)
    path_manifest_pairs = read_directory(job.tree, job.folder, options, job.settings.limits, evaluate, job.notes)
    jsonnet_paths = {
        key_of(manifest): path
        for path, manifest in path_manifest_pairs
        if path.endswith(".jsonnet") and manifest["metadata"].get("name")
    }
    trace = partial(trace_directory, job.tree, job.folder, options, job.settings.limits, jsonnet_paths)
    return [manifest for _, manifest in path_manifest_pairs], LazyOrigins(trace)


def _evaluate_jsonnet(job: RenderJob, options: DirectoryOptions, files: Sequence[str]) -> Mapping[str, list[Manifest]]:
    from argosy.gitops.render import jsonnet

    return jsonnet.evaluate_files(job.tree, job.folder, files, options.jsonnet, job.environment)


def _run_plugin(job: RenderJob) -> ToolOutput:
    from argosy.gitops.render import config_management_plugin

    options, plugins = job.source.plugin, job.settings.plugins
    if job.sidecars is not None and not config_management_plugin.find_declared_plugin(
        job.tree, job.folder, options, plugins
    ):
        sidecar = job.sidecars.find_plugin(options.name if options else "")
        if sidecar is not None:
            return job.sidecars.generate_manifests(sidecar, job.find_git_environment), NoOrigins()
    manifests = config_management_plugin.generate_manifests(job.tree, job.folder, options, plugins, job.environment)
    return manifests, NoOrigins()


_TOOLS: Mapping[str, Callable[[RenderJob], ToolOutput]] = {
    KUSTOMIZE: _run_kustomize,
    DIRECTORY: _run_directory,
    HELM: _run_helm,
    PLUGIN: _run_plugin,
}


def _check_limits(manifests: list[Manifest], job: RenderJob) -> None:
    limits = job.settings.limits
    where = job.source.path or "."
    if len(manifests) > limits.manifests:
        message = f"{len(manifests)} manifests exceed the limit of {limits.manifests}: split the application"
        raise LimitError(message, where=where)
    for manifest in manifests:
        if problem := describe_manifest_problem(manifest):
            raise RenderError(f"a manifest from {job.tool} {problem}", where=where)
    if sum(len(orjson.dumps(rendered_manifest)) for rendered_manifest in manifests) > limits.manifest_bytes:
        message = f"the manifests exceed {limits.manifest_bytes} bytes in total: split the application"
        raise LimitError(message, where=where)
