"""One run of Helm on a copy of a chart. In: a tree, a folder, a release. Out: manifests, each with its template.

Never: gives Helm a path that a user wrote, a link, or a file that is not the chart's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from argosy.confine.refusals import OverLimit
from argosy.model.errors import LimitError, ManifestError, RenderError, SourceError
from argosy.model.manifest import Manifest
from argosy.model.tree import Tree, TreeEntry
from argosy.render.exporting import exported
from argosy.render.helm.dependencies import check_chart
from argosy.render.helm.engines import find_engine
from argosy.render.helm.faults import Place, fault
from argosy.render.helm.followed import FollowedTree
from argosy.render.helm.program import files_for
from argosy.render.helm.release import Document, Engine, HelmFailed, Release
from argosy.render.kustomize.places import located

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 53


def rendered(tree: Tree, path: str, release: Release, engine: Engine | None = None) -> list[tuple[str, Manifest]]:
    """Every manifest, with the path of the template that made it."""
    _check_name(release.name, path)
    folder, kind = located(tree, path, path or ".")
    if kind != "folder":
        raise RenderError("there is no such folder; correct the source's path", where=path or ".")
    followed = FollowedTree(tree)
    name = check_chart(followed, folder)
    engine = engine or find_engine(path or ".")
    with exported(followed, folder) as copy, exported(_Nothing(), (), extra=files_for(release)) as work:
        place = Place(followed, folder, name, (str(copy / folder) if folder else str(copy), str(work)))
        try:
            documents = engine.run(copy / folder, work, release)
        except HelmFailed as error:
            raise fault(str(error), place, release) from None
        except OverLimit as error:
            raise LimitError(f"Helm was stopped: {error}", where=path or ".") from error
        except ManifestError as error:
            message = f"renders to YAML that cannot be read: {error.message}"
            raise RenderError(message, where=place.file(error.where)) from error
    return [(place.file(each.source), _manifest(each, place)) for each in documents]


def _manifest(document: Document, place: Place) -> Manifest:
    value: Any = document.value
    if isinstance(value, dict) and isinstance(value.get("kind"), str) and isinstance(value.get("apiVersion"), str):
        return value
    message = "renders to something that is no manifest; every document needs apiVersion and kind"
    raise RenderError(message, where=place.file(document.source))


def _check_name(name: str, path: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        message = f"{name!r} cannot be a release's name: small letters, digits and dashes, at most {_LONGEST_NAME}"
        raise RenderError(f"{message}; set source.helm.releaseName", where=path or ".")


class _Nothing:
    """A tree without files: what is exported with it are the files that are added."""

    def entry(self, path: str) -> TreeEntry | None:
        return None

    def listing(self, path: str) -> Sequence[TreeEntry]:
        return ()

    def read(self, path: str) -> bytes:
        raise SourceError("there is no such file", where=path)
