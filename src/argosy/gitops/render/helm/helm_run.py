"""Runs Helm on a copy of a chart. In: a tree, a folder, a HelmRelease. Out: manifests, each with its template.

Never: gives Helm a path that a user wrote, a link, or a file outside the chart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from argosy.errors import LimitError, ManifestError, RenderError, SourceError
from argosy.gitops.application.file_tree import Tree, TreeEntry
from argosy.gitops.render.helm.dependencies import read_chart
from argosy.gitops.render.helm.engine_choice import find_engine
from argosy.gitops.render.helm.helm_errors import NO_MANIFEST, Place, fault
from argosy.gitops.render.helm.helm_program import files_for
from argosy.gitops.render.helm.release import Document, Engine, HelmFailed, Release
from argosy.gitops.render.helm.symlinks import FollowedTree
from argosy.gitops.render.helm.values_schema import check_schemas
from argosy.gitops.render.kustomize.tree_paths import located
from argosy.gitops.render.tree_export import exported
from argosy.isolation.errors import OverLimit, RefusedError
from argosy.kube.objects import Manifest

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_VERSION: Final = re.compile(r"v?\d+\.\d+(\.\d+)?(-[0-9A-Za-z.-]+)?")
_LONGEST_NAME: Final = 53


def rendered(tree: Tree, path: str, release: Release, engine: Engine | None = None) -> list[tuple[str, Manifest]]:
    """Return every manifest with the path of the template that rendered it."""
    _check(release, path)
    folder, kind = located(tree, path, path or ".")
    if kind != "folder":
        raise RenderError("there is no such folder; correct the source's path", where=path or ".")
    chart = read_chart(FollowedTree(tree), folder)
    followed = FollowedTree(tree, chart.mounts)
    if not release.skip_schema_validation:
        check_schemas(followed, folder)
    engine = engine or find_engine(path or ".")
    with (
        exported(followed, (folder, *chart.mounts)) as copy,
        exported(_Nothing(), (), extra=files_for(release)) as work,
    ):
        place = Place(followed, folder, chart.name, (str(copy / folder), str(work)), chart.folders)
        try:
            documents = engine.run(copy / folder, work, release)
        except HelmFailed as error:
            raise fault(str(error), place, release) from None
        except OverLimit as error:
            limit = LimitError(f"rendering the chart {error.message}; make it smaller", where=path or ".")
            limit.exhausted = error.exhausted
            raise limit from error
        except RefusedError as error:
            raise RenderError(f"Helm cannot be run: {error}", where=path or ".") from error
        except ManifestError as error:
            raise _unreadable(error, place) from error
    return [(place.file(each.source), _manifest(each, place)) for each in documents]


def _unreadable(error: ManifestError, place: Place) -> RenderError:
    file = place.file(error.where)
    if "/crds/" in error.where:  # Helm passes CRDs through unchanged
        return RenderError(error.message, where=file, line=error.line)
    at = f"line {error.line} of its output: " if error.line else ""
    return RenderError(f"renders invalid YAML: {at}{error.message}", where=file)


def _manifest(document: Document, place: Place) -> Manifest:
    value: Any = document.value
    if isinstance(value, dict) and isinstance(value.get("kind"), str) and isinstance(value.get("apiVersion"), str):
        return value
    raise RenderError(NO_MANIFEST, where=place.file(document.source))


def _check(release: Release, path: str) -> None:
    name, version = release.name, release.kube_version
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        message = f"invalid release name {name!r}: use at most {_LONGEST_NAME} lower-case letters, digits and dashes"
        raise RenderError(f"{message}; set source.helm.releaseName", where=path or ".")
    if version and not _VERSION.fullmatch(version):
        raise RenderError(f"invalid Kubernetes version {version!r}; write kubeVersion as 1.32.0", where=path or ".")


class _Nothing:
    """A tree without files, to export `extra` files only."""

    def entry(self, path: str) -> TreeEntry | None:
        return None

    def listing(self, path: str) -> Sequence[TreeEntry]:
        return ()

    def read(self, path: str) -> bytes:
        raise SourceError("no such file", where=path)
