"""Adds the annotations of `buildMetadata`: origin and transformations. In: records. Out: annotations and labels.

Never: adds them unless the kustomization that is built requests them.
"""

from __future__ import annotations

import posixpath
from typing import Any, Final, NamedTuple

from argosy.gitops.render.kustomize.build_trees import parted
from argosy.gitops.render.kustomize.resource import Resource

ORIGIN: Final = "originAnnotations"
CHANGES: Final = "transformerAnnotations"
MANAGED: Final = "managedByLabel"
_VERSION: Final = "kustomize-(devel)"  # k8s: how kubectl's built-in kustomize names itself


class Step(NamedTuple):
    """A generator or a transformer, and the file that configures it."""

    file: str
    kind: str
    name: str = ""
    namespace: str = ""

    def lines(self, root: str) -> list[str]:
        name = [f"  name: {self.name}"] if self.name else []
        name += [f"  namespace: {self.namespace}"] if self.namespace else []
        return [
            *_located("configuredIn", self.file, root),
            "configuredBy:",
            "  apiVersion: builtin",
            f"  kind: {self.kind}",
            *name,
        ]


def annotate(resource: Resource, wanted: frozenset[str], root: str) -> None:
    if ORIGIN in wanted:
        made: Step | None = resource.notes.get("made")
        lines = made.lines(root) if made else _located("path", resource.file, root)
        _note(resource, "config.kubernetes.io/origin", lines)
    if CHANGES in wanted and (steps := resource.notes.get("changes")):
        lines = [line for step in steps for line in _entry(step.lines(root))]
        _note(resource, "alpha.config.kubernetes.io/transformations", lines)
    if MANAGED in wanted:
        _map(resource, "labels")["app.kubernetes.io/managed-by"] = _VERSION


def _note(resource: Resource, name: str, lines: list[str]) -> None:
    _map(resource, "annotations")[name] = "".join(f"{line}\n" for line in lines)


def _map(resource: Resource, name: str) -> dict[str, Any]:
    found = resource.metadata.get(name)
    if not isinstance(found, dict):
        found = resource.metadata[name] = {}
    return found


def _entry(lines: list[str]) -> list[str]:
    return [f"{'- ' if at == 0 else '  '}{line}" for at, line in enumerate(lines)]


def _located(field: str, file: str, root: str) -> list[str]:
    url, ref, path = parted(file)
    # k8s: in a remote base the path is relative to its repository.
    place = f"{field}: {path if url else _relative(path, root)}"
    if not url:
        return [place]
    repository = [f"repo: {url}", *([f"ref: {ref}"] if ref != "HEAD" else [])]
    return [place, *repository] if field == "path" else [*repository, place]


def _relative(file: str, root: str) -> str:
    return posixpath.relpath(file or ".", root or ".")
