"""Charts, rendered by the real Helm as Argo CD has it done. In: a tree and a chart's folder. Out: its manifests.

Never: the network, a cluster, or a file outside of the repository; Helm runs confined, on a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from argosy.model.application import Application, HelmOptions
from argosy.model.flow import Origins
from argosy.model.manifest import Manifest
from argosy.model.tree import Tree
from argosy.render.helm.release import Engine

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
    """What the chart in a folder of the tree asks for.

    `substitute` replaces build variables; `refs` are the other sources by alias, without the dollar sign.
    """
    raise NotImplementedError


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
    """What a chart in a folder of the tree gives a kustomization.

    `values` are paths in the tree, or maps; the later wins. The chart's own values.yaml need not be named.
    """
    raise NotImplementedError
