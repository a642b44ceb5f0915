"""Runs Helm on a copy of a chart. In: a tree, a folder, a HelmRelease. Out: manifests, each with its template.

Never: gives Helm a path that a user wrote, a link, or a file outside the chart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from argosy.errors import LimitError, ManifestError, RenderError, SourceError
from argosy.gitops.application.file_tree_protocol import FileTree, TreeEntry
from argosy.gitops.render.helm.chart_dependency_check import read_chart
from argosy.gitops.render.helm.engine_choice import choose_engine
from argosy.gitops.render.helm.engine_interface import HelmDocument, HelmEngine, HelmFailure, HelmRelease
from argosy.gitops.render.helm.helm_binary_engine import build_work_files
from argosy.gitops.render.helm.helm_stderr_error_parser import NOT_A_MANIFEST_MESSAGE, ChartLocation, build_helm_error
from argosy.gitops.render.helm.schema_reference_cycles import reject_cyclic_schemas
from argosy.gitops.render.helm.symlinks import LinkResolvingTree
from argosy.gitops.render.kustomize.tree_paths import resolve_path
from argosy.gitops.render.settings import FetchCharts
from argosy.gitops.render.tree_export import export_tree
from argosy.isolation.errors import LimitExceeded, RefusedError
from argosy.kube.objects import Manifest

_RELEASE_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_KUBE_VERSION: Final = re.compile(r"v?\d+\.\d+(\.\d+)?(-[0-9A-Za-z.-]+)?")
_MAX_RELEASE_NAME_LENGTH: Final = 53


def run_helm(
    tree: FileTree,
    path: str,
    release: HelmRelease,
    engine: HelmEngine | None = None,
    fetch_charts: FetchCharts | None = None,
) -> list[tuple[str, Manifest]]:
    """Return every manifest with the path of the template that rendered it."""
    _check_release(release, path)
    folder, kind = resolve_path(tree, path, path or ".")
    if kind != "folder":
        raise RenderError("there is no such folder; correct the source's path", where=path or ".")
    chart = read_chart(LinkResolvingTree(tree), folder, fetch_charts)
    chart_tree = LinkResolvingTree(tree, chart.mounts, chart.fetched)
    if not release.skip_schema_validation:
        reject_cyclic_schemas(chart_tree, folder)
    engine = engine or choose_engine(path or ".")
    with (
        export_tree(chart_tree, (folder, *chart.mounts, *chart.fetched)) as exported_folder,
        export_tree(_EmptyTree(), (), extra=build_work_files(release)) as work,
    ):
        location = ChartLocation(
            chart_tree, folder, chart.name, (str(exported_folder / folder), str(work)), chart.folder_by_chart_name
        )
        try:
            documents = engine.run(exported_folder / folder, work, release)
        except HelmFailure as error:
            raise build_helm_error(str(error), location, release) from None
        except LimitExceeded as error:
            limit_error = LimitError(f"rendering the chart {error.message}; make it smaller", where=path or ".")
            limit_error.exhaustion_reason = error.exhaustion_reason
            raise limit_error from error
        except RefusedError as error:
            raise RenderError(f"Helm cannot be run: {error}", where=path or ".") from error
        except ManifestError as error:
            raise _build_yaml_error(error, location) from error
    return [(location.resolve_source(document.source), _check_manifest(document, location)) for document in documents]


def _build_yaml_error(error: ManifestError, location: ChartLocation) -> RenderError:
    file = location.resolve_source(error.where)
    if "/crds/" in error.where:  # Helm passes CRDs through unchanged
        return RenderError(error.message, where=file, line=error.line)
    line_text = f"line {error.line} of its output: " if error.line else ""
    return RenderError(f"renders invalid YAML: {line_text}{error.message}", where=file)


def _check_manifest(document: HelmDocument, location: ChartLocation) -> Manifest:
    value: Any = document.value
    if isinstance(value, dict) and isinstance(value.get("kind"), str) and isinstance(value.get("apiVersion"), str):
        return value
    raise RenderError(NOT_A_MANIFEST_MESSAGE, where=location.resolve_source(document.source))


def _check_release(release: HelmRelease, path: str) -> None:
    name, version = release.name, release.kube_version
    if not _RELEASE_NAME.fullmatch(name) or len(name) > _MAX_RELEASE_NAME_LENGTH:
        message = (
            f"invalid release name {name!r}: use at most {_MAX_RELEASE_NAME_LENGTH} lower-case letters, digits "
            "and dashes"
        )
        raise RenderError(f"{message}; set source.helm.releaseName", where=path or ".")
    if version and not _KUBE_VERSION.fullmatch(version):
        raise RenderError(f"invalid Kubernetes version {version!r}; write kubeVersion as 1.32.0", where=path or ".")


class _EmptyTree:
    """A tree without files, to export `extra` files only."""

    def find_entry(self, path: str) -> TreeEntry | None:
        return None

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        return ()

    def read_file(self, path: str) -> bytes:
        raise SourceError("no such file", where=path)
