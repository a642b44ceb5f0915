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
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.application.step_results import Origin, Origins
from argosy.gitops.render.manifest_lists import fault_of, flattened
from argosy.gitops.render.settings import BuildSettings, Fetch
from argosy.gitops.render.tool_detection import DIRECTORY, HELM, KUSTOMIZE, PLUGIN
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

if TYPE_CHECKING:
    from argosy.gitops.application import DirectoryOptions
    from argosy.gitops.render.kustomize.build_level import Inflate


@dataclass(frozen=True, slots=True)
class Job:
    """Everything that a tool may read. Trees and environment record every lookup as a render input."""

    tree: Tree
    folder: str
    tool: str
    app: Application
    source: Source
    settings: BuildSettings
    environment: Mapping[str, str]
    refs: Mapping[str, Tree] = field(default_factory=dict)
    fetch: Fetch | None = None
    notes: list[str] = field(default_factory=list)  # tools append to it


Made = tuple[list[Manifest], Origins]


class Unknown:
    """Implements `Origins` for tools whose origins are not known."""

    def find(self, key: ResourceKey, pointer: str) -> Origin | None:
        return None


def run(job: Job) -> Made:
    made, origins = _TOOLS[job.tool](job)
    try:
        manifests = list(flattened(made))
    except RenderError as error:
        raise RenderError(f"the output of {job.tool} {error.message}", where=job.source.path or ".") from None
    _check(manifests, job)
    return manifests, origins


def _kustomize(job: Job) -> Made:
    from argosy.gitops.render import kustomize
    from argosy.gitops.render.origins import LazyOrigins

    job.settings.check_kustomize_options()
    if binary := _kustomize_binary(job):
        return _built_with(binary, job), Unknown()
    asked: dict[str, Any] = {
        "options": job.source.kustomize,
        "environment": job.environment,
        "settings": job.settings,
        "fetch": job.fetch,
        "inflate": _inflate() if job.settings.enables_helm else None,
    }
    manifests = kustomize.build(job.tree, job.folder, **asked)
    return manifests, LazyOrigins(partial(kustomize.trace, job.tree, job.folder, **asked))


def _kustomize_binary(job: Job) -> str:
    version = job.source.kustomize.version if job.source.kustomize else ""
    if not version and not job.settings.kustomize_binaries:
        return ""
    from argosy.gitops.render.kustomize.binary import chosen

    return chosen(version, job.settings.kustomize_binaries)


def _built_with(binary: str, job: Job) -> list[Manifest]:
    from argosy.gitops.render.kustomize.binary import build_with

    return build_with(
        binary,
        job.tree,
        job.folder,
        options=job.source.kustomize,
        environment=job.environment,
        arguments=job.settings.kustomize_options,
    )


def _helm(job: Job) -> Made:
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
    )


def _inflate() -> Inflate:
    from argosy.gitops.render.helm import inflate

    return inflate


def _directory(job: Job) -> Made:
    from argosy.gitops.application import DirectoryOptions
    from argosy.gitops.render.directory import directory_trace, read_directory
    from argosy.gitops.render.origins import LazyOrigins

    options = job.source.directory or DirectoryOptions()
    evaluate = None if "Jsonnet" in job.settings.disabled_tools else partial(_jsonnet, job, options)
    found = read_directory(job.tree, job.folder, options, job.settings.limits, evaluate, job.notes)
    made = {
        key_of(manifest): path
        for path, manifest in found
        if path.endswith(".jsonnet") and manifest["metadata"].get("name")
    }
    trace = partial(directory_trace, job.tree, job.folder, options, job.settings.limits, made)
    return [manifest for _, manifest in found], LazyOrigins(trace)


def _jsonnet(job: Job, options: DirectoryOptions, files: Sequence[str]) -> Mapping[str, list[Manifest]]:
    from argosy.gitops.render import jsonnet

    return jsonnet.evaluate(job.tree, job.folder, files, options.jsonnet, job.environment)


def _plugin(job: Job) -> Made:
    from argosy.gitops.render import config_management_plugin

    made = config_management_plugin.generate(
        job.tree, job.folder, job.source.plugin, job.settings.plugins, job.environment
    )
    return made, Unknown()


_TOOLS: Mapping[str, Callable[[Job], Made]] = {
    KUSTOMIZE: _kustomize,
    DIRECTORY: _directory,
    HELM: _helm,
    PLUGIN: _plugin,
}


def _check(manifests: list[Manifest], job: Job) -> None:
    limits = job.settings.limits
    where = job.source.path or "."
    if len(manifests) > limits.manifests:
        message = f"{len(manifests)} manifests exceed the limit of {limits.manifests}: split the application"
        raise LimitError(message, where=where)
    for manifest in manifests:
        if fault := fault_of(manifest):
            raise RenderError(f"a manifest from {job.tool} {fault}", where=where)
    if sum(len(orjson.dumps(each)) for each in manifests) > limits.manifest_bytes:
        message = f"the manifests exceed {limits.manifest_bytes} bytes in total: split the application"
        raise LimitError(message, where=where)
