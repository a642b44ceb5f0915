"""Renders charts with the real Helm, as Argo CD does. In: a tree and a chart's folder. Out: the chart's manifests.

Never: uses the network, a cluster, or a file outside the repository; Helm runs confined, on a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from argosy.errors import RenderError
from argosy.gitops.application import Application, HelmOptions
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.application.step_results import Origins
from argosy.gitops.render.helm.parameters import settings_of
from argosy.gitops.render.helm.release import Engine, Release, Setting, ValuesFile
from argosy.gitops.render.helm.value_files import ValueFiles
from argosy.kube.objects import Manifest, Profile

__all__ = ["Templated", "inflate", "template"]


class Templated(NamedTuple):
    manifests: list[Manifest]
    origins: Origins


def template(
    tree: Tree,
    path: str,
    *,
    app: Application,
    options: HelmOptions | None = None,
    kube_version: str = "",
    api_versions: Sequence[str] = (),
    substitute: Callable[[str], str] = str,
    refs: Mapping[str, Tree] | None = None,
    engine: Engine | None = None,
) -> Templated:
    """Render the chart in a folder of the tree, as `helm template` does.

    `substitute` replaces build variables; `refs` holds the other sources by alias, without the dollar sign.
    """
    from argosy.gitops.render.helm.helm_run import rendered
    from argosy.gitops.render.helm.origins import TemplateOrigins

    options = options or HelmOptions()
    if options.version not in ("", "v3"):  # argo: v3 is the only version left
        message = f"unsupported Helm version {options.version!r}; remove source.helm.version"
        raise RenderError(message, where=path or ".")
    files = ValueFiles(tree, path, substitute, refs or {}, app.has_many_sources)
    release = Release(
        name=options.release_name or app.name,
        namespace=options.namespace or app.destination.namespace,
        kube_version=_plain_version(options.kube_version or kube_version),
        api_versions=options.api_versions or tuple(api_versions),
        values=[*files.read(options.value_files, options.ignore_missing_value_files), *_inline(options)],
        settings=[*settings_of(options.parameters, substitute), *_from_files(options, files)],
        include_crds=not options.skip_crds,
        skip_tests=options.skip_tests,
        skip_schema_validation=options.skip_schema_validation,
    )
    made = rendered(tree, path, release, engine)
    return Templated([manifest for _, manifest in made], TemplateOrigins(tree, made))


def _inline(options: HelmOptions) -> list[ValuesFile]:
    if options.values_object is not None:  # argo: valuesObject wins, even if it is empty
        return [ValuesFile("source.helm.valuesObject", orjson.dumps(options.values_object))]
    return [ValuesFile("source.helm.values", options.values.encode())] if options.values else []


def _from_files(options: HelmOptions, files: ValueFiles) -> list[Setting]:
    found = {}
    for number, each in enumerate(options.file_parameters):
        file = files.read_one(f"fileParameters[{number}]", each.path)
        found[each.name] = Setting("set-file", each.name, file.content.decode("utf-8", "surrogateescape"))
    return list(found.values())


def _plain_version(version: str) -> str:
    """argo: a vendor's build suffix after a plus is dropped."""
    return version.partition("+")[0]


def inflate(
    tree: Tree,
    chart: str,
    *,
    release_name: str = "",
    namespace: str = "",
    values: Sequence[str | Mapping[str, Any]] = (),
    include_crds: bool = False,
    skip_hooks: bool = False,
    skip_tests: bool = False,
    kube_version: str = "",
    api_versions: Sequence[str] = (),
    engine: Engine | None = None,
) -> list[Manifest]:
    """Render a chart in a folder of the tree for a kustomization's helmCharts.

    `values` are paths in the tree, or mappings; later ones win. The chart's own values.yaml need not be listed.
    """
    from argosy.gitops.render.helm.helm_run import rendered

    files = ValueFiles(tree, "")
    release = Release(
        name=release_name or "release-name",  # Helm's default release name
        namespace=namespace,
        kube_version=kube_version,
        api_versions=tuple(api_versions),
        values=[
            files.read_one(f"values[{number}]", f"/{each}")
            if isinstance(each, str)
            else ValuesFile("valuesInline", orjson.dumps(each))
            for number, each in enumerate(values)
        ],
        include_crds=include_crds,
        skip_hooks=skip_hooks,
        skip_tests=skip_tests,
        profile=Profile.KUSTOMIZE,
    )
    return [manifest for _, manifest in rendered(tree, chart, release, engine)]
