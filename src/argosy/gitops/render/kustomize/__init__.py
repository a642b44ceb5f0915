"""A native Kustomize build. In: a tree and the path of a kustomization in it. Out: the manifests of `kustomize build`.

Never: runs a program, uses the network, or reads outside the tree; remote bases and charts come from functions that
the caller passes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from argosy.errors import RenderError, UserError
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.kustomize.accumulator import Accumulator, open_kustomization
from argosy.gitops.render.kustomize.build_metadata import add_build_metadata
from argosy.gitops.render.kustomize.build_restrictions_and_cluster_versions import (
    RESTRICTED_SETTINGS,
    KustomizeSettings,
    set_cluster_versions,
)
from argosy.gitops.render.kustomize.gvk import FIRST_KINDS, LAST_KINDS
from argosy.gitops.render.kustomize.kustomization_build_state import (
    AccumulatedResources,
    BuildTracer,
    InflateChart,
    KustomizeBuild,
)
from argosy.gitops.render.kustomize.name_hashes import add_name_hashes
from argosy.gitops.render.kustomize.name_references import update_name_references
from argosy.gitops.render.kustomize.resource import KustomizeResource
from argosy.gitops.render.kustomize.source_and_remote_trees import BuildTrees, FetchRemoteTree
from argosy.gitops.render.kustomize.vars import resolve_vars
from argosy.kube.objects import Manifest

if TYPE_CHECKING:
    from argosy.gitops.application import KustomizeOptions
    from argosy.gitops.render.field_origins import OriginTrees
    from argosy.gitops.render.kustomize.kustomization_file import KustomizationFile

__all__ = ["build", "trace_origins"]
_LOCAL_CONFIG_ANNOTATION: Final = "config.kubernetes.io/local-config"


def build(
    tree: FileTree,
    path: str,
    *,
    order: str = "legacy",
    options: KustomizeOptions | None = None,
    environment: Mapping[str, str] | None = None,
    settings: KustomizeSettings = RESTRICTED_SETTINGS,
    fetch: FetchRemoteTree | None = None,
    inflate: InflateChart | None = None,
    tracer: BuildTracer | None = None,
) -> list[Manifest]:
    """Build the kustomization in a folder.

    `order` applies unless the kustomization sets sortOptions. `options` are the Application's overrides; only the build
    variables of `environment` that they use are looked up. Without `fetch`, remote bases are refused; without
    `inflate`,
    helmCharts are. A `tracer` follows every field.
    """
    trees = BuildTrees(tree, fetch)
    location = trees.source_tree.locate("", path, path)
    if location.kind != "folder" and location.path:
        raise RenderError("there is no such folder: correct the path", where=path)
    if options is not None:
        settings = set_cluster_versions(settings, options.kube_version, options.api_versions)
    kustomize_build = KustomizeBuild(trees, settings, inflate)
    kustomize_build.tracer = tracer
    level = open_kustomization(kustomize_build, location, path or ".", ())
    if options is not None:
        level.kustomization = _apply_options(level, options, environment or {})
    try:
        return _build_manifests(level, order)
    except UserError as error:
        level.set_error_location(error, trees.read_file)
        raise


def trace_origins(tree: FileTree, path: str, **build_arguments: Any) -> OriginTrees:
    """Trace every field to its origin, by running a build with the same arguments."""
    from argosy.gitops.render.kustomize.field_tracer import FieldTracer  # a plain build does not need it

    tracer = FieldTracer()
    build(tree, path, tracer=tracer, **build_arguments)
    return tracer.origin_trees


def _build_manifests(level: Accumulator, order: str) -> list[Manifest]:
    # k8s: unknown words are ignored.
    metadata_options = level.build.metadata = frozenset(level.kustomization.get_list("buildMetadata"))
    accumulated = level.accumulate(AccumulatedResources())
    resources = accumulated.resources
    level.current_path = ()
    add_name_hashes(resources.items)
    update_name_references(resources.items, accumulated.config)
    resolve_vars(resources, accumulated.variables, accumulated.config)
    output_resources = [
        resource
        for resource in resources.items
        if resource.get_metadata_strings("annotations").get(_LOCAL_CONFIG_ANNOTATION, "false") == "false"
    ]
    for resource in output_resources if metadata_options else ():
        add_build_metadata(resource, metadata_options, level.location.path)
    level.current_path = ("sortOptions", "order")
    sort_options = level.kustomization.fields.get("sortOptions", {"order": order})
    manifests = [
        _stringify_annotations(resource) for resource in sort_resources(output_resources, sort_options, level.file)
    ]
    if level.build.tracer is not None:
        level.build.tracer.finish(output_resources)
    return manifests


def _apply_options(level: Accumulator, options: KustomizeOptions, environment: Mapping[str, str]) -> KustomizationFile:
    from argosy.gitops.render.build_environment import substitute
    from argosy.gitops.render.kustomize.application_overrides import apply_kustomize_options

    return apply_kustomize_options(
        level.kustomization, options, level.location, lambda text: substitute(text, environment)
    )


def _stringify_annotations(resource: KustomizeResource) -> Manifest:
    metadata = resource.manifest.get("metadata")
    if isinstance(metadata, dict) and "annotations" in metadata:
        # k8s: kustomize reads annotations as strings, whatever their YAML type.
        if metadata["annotations"]:
            metadata["annotations"] = resource.get_metadata_strings("annotations")
        else:
            del metadata["annotations"]
    return resource.manifest


def sort_resources(resources: list[KustomizeResource], options: dict[str, Any], where: str) -> list[KustomizeResource]:
    """Sort the built resources by `sortOptions`."""
    order = options.get("order") or ""
    legacy = options.get("legacySortOptions")
    if order == "fifo":
        if legacy is not None:
            message = "sortOptions.legacySortOptions has no effect with order: fifo; remove it, or set order: legacy"
            raise RenderError(message, where=where)
        return resources
    if order != "legacy":
        raise RenderError(f"sortOptions.order is {order!r}: it must be legacy or fifo", where=where)
    first_kinds, last_kinds = (
        (legacy.get("orderFirst") or [], legacy.get("orderLast") or []) if legacy else (FIRST_KINDS, LAST_KINDS)
    )
    kind_order = {kind: index - len(first_kinds) for index, kind in enumerate(first_kinds)}
    kind_order |= {kind: index + 1 for index, kind in enumerate(last_kinds)}

    def key(resource: KustomizeResource) -> tuple[int, str, str]:
        gvk = resource.gvk
        group, version, kind = gvk.group or "~G", gvk.version or "~V", gvk.kind or "~K"
        # k8s: equal kinds are sorted by the text of the whole id.
        namespace, name = resource.namespace or "~X", resource.name or "~N"
        text = ".".join(part for part in (gvk.kind, gvk.version, gvk.group) if part)
        return kind_order.get(gvk.kind, 0), f"{group}_{version}_{kind}", f"{text}|{namespace}|{name}"

    return sorted(resources, key=key)
