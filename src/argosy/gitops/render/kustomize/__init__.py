"""A native Kustomize build. In: a tree and the path of a kustomization in it. Out: the manifests of `kustomize build`.

Never: runs a program, uses the network, or reads outside the tree; remote bases and charts come from functions that
the caller passes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from argosy.errors import RenderError, UserError
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.render.kustomize.accumulator import Accumulator, open_folder
from argosy.gitops.render.kustomize.build_level import Accumulated, Build, Inflate, Tracer
from argosy.gitops.render.kustomize.build_metadata import annotate
from argosy.gitops.render.kustomize.build_trees import Fetch, Grounds
from argosy.gitops.render.kustomize.name_hashes import add_hashes
from argosy.gitops.render.kustomize.name_references import fix_references
from argosy.gitops.render.kustomize.output_order import in_order
from argosy.gitops.render.kustomize.permissions import NOTHING, Permits, for_cluster
from argosy.gitops.render.kustomize.resource import Resource
from argosy.gitops.render.kustomize.vars import resolve
from argosy.kube.objects import Manifest

if TYPE_CHECKING:
    from argosy.gitops.application import KustomizeOptions
    from argosy.gitops.render.kustomize.kustomization_file import Kustomization
    from argosy.gitops.render.origins import Trace

__all__ = ["build", "trace"]
_LOCAL: Final = "config.kubernetes.io/local-config"


def build(
    tree: Tree,
    path: str,
    *,
    order: str = "legacy",
    options: KustomizeOptions | None = None,
    environment: Mapping[str, str] | None = None,
    settings: Permits = NOTHING,
    fetch: Fetch | None = None,
    inflate: Inflate | None = None,
    tracer: Tracer | None = None,
) -> list[Manifest]:
    """Build the kustomization in a folder.

    `order` applies unless the kustomization sets sortOptions. `options` are the Application's overrides; only the build
    variables of `environment` that they use are looked up. Without `fetch`, remote bases are refused; without
    `inflate`,
    helmCharts are. A `tracer` follows every field.
    """
    grounds = Grounds(tree, fetch)
    spot = grounds.own.find("", path, path)
    if spot.kind != "folder" and spot.path:
        raise RenderError("there is no such folder: correct the path", where=path)
    if options is not None:
        settings = for_cluster(settings, options.kube_version, options.api_versions)
    run = Build(grounds, settings, inflate)
    run.tracer = tracer
    level = open_folder(run, spot, path or ".", ())
    if options is not None:
        level.kustomization = _overridden(level, options, environment or {})
    try:
        return _built(level, order)
    except UserError as error:
        level.locate(error, grounds.read)
        raise


def trace(tree: Tree, path: str, **asked: Any) -> Trace:
    """Trace every field to its origin, by running a build with the same arguments."""
    from argosy.gitops.render.kustomize.field_tracing import FieldTracer  # a plain build does not need it

    tracer = FieldTracer()
    build(tree, path, tracer=tracer, **asked)
    return tracer.found


def _built(level: Accumulator, order: str) -> list[Manifest]:
    # k8s: unknown words are ignored.
    wanted = level.build.metadata = frozenset(level.kustomization.listed("buildMetadata"))
    found = level.accumulate(Accumulated())
    resources = found.resources
    level.at = ()
    add_hashes(resources.listed)
    fix_references(resources.listed, found.config)
    resolve(resources, found.variables, found.config)
    kept = [each for each in resources.listed if each.texts("annotations").get(_LOCAL, "false") == "false"]
    for each in kept if wanted else ():
        annotate(each, wanted, level.spot.path)
    level.at = ("sortOptions", "order")
    sorting = level.kustomization.fields.get("sortOptions", {"order": order})
    manifests = [_finished(each) for each in in_order(kept, sorting, level.file)]
    if level.build.tracer is not None:
        level.build.tracer.finish(kept)
    return manifests


def _overridden(level: Accumulator, options: KustomizeOptions, environment: Mapping[str, str]) -> Kustomization:
    from argosy.gitops.render.build_environment import substitute
    from argosy.gitops.render.kustomize.options import overridden

    return overridden(level.kustomization, options, level.spot, lambda text: substitute(text, environment))


def _finished(resource: Resource) -> Manifest:
    metadata = resource.manifest.get("metadata")
    if isinstance(metadata, dict) and "annotations" in metadata:
        # k8s: kustomize reads annotations as strings, whatever their YAML type.
        if metadata["annotations"]:
            metadata["annotations"] = resource.texts("annotations")
        else:
            del metadata["annotations"]
    return resource.manifest
