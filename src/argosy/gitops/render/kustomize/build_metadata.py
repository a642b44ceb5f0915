"""Adds the annotations of `buildMetadata`: origin and transformations. In: records. Out: annotations and labels.

Never: adds them unless the kustomization that is built requests them.
"""

from __future__ import annotations

import posixpath
from typing import Any, Final, NamedTuple

from argosy.gitops.render.kustomize.resource import KustomizeResource
from argosy.gitops.render.kustomize.source_and_remote_trees import split_display_path

ORIGIN_ANNOTATIONS: Final = "originAnnotations"
TRANSFORMER_ANNOTATIONS: Final = "transformerAnnotations"
MANAGED_BY_LABEL: Final = "managedByLabel"
_MANAGED_BY_VALUE: Final = "kustomize-(devel)"  # k8s: how kubectl's built-in kustomize names itself


class TransformationRecord(NamedTuple):
    """A generator or a transformer, and the file that configures it."""

    file: str
    kind: str
    name: str = ""
    namespace: str = ""

    def to_yaml_lines(self, root: str) -> list[str]:
        name_lines = [f"  name: {self.name}"] if self.name else []
        name_lines += [f"  namespace: {self.namespace}"] if self.namespace else []
        return [
            *_format_location("configuredIn", self.file, root),
            "configuredBy:",
            "  apiVersion: builtin",
            f"  kind: {self.kind}",
            *name_lines,
        ]


def add_build_metadata(resource: KustomizeResource, options: frozenset[str], root: str) -> None:
    if ORIGIN_ANNOTATIONS in options:
        generator: TransformationRecord | None = resource.notes.get("made")
        lines = generator.to_yaml_lines(root) if generator else _format_location("path", resource.file, root)
        _set_annotation(resource, "config.kubernetes.io/origin", lines)
    if TRANSFORMER_ANNOTATIONS in options and (records := resource.notes.get("changes")):
        lines = [line for record in records for line in _format_list_item(record.to_yaml_lines(root))]
        _set_annotation(resource, "alpha.config.kubernetes.io/transformations", lines)
    if MANAGED_BY_LABEL in options:
        _ensure_metadata_map(resource, "labels")["app.kubernetes.io/managed-by"] = _MANAGED_BY_VALUE


def _set_annotation(resource: KustomizeResource, name: str, lines: list[str]) -> None:
    _ensure_metadata_map(resource, "annotations")[name] = "".join(f"{line}\n" for line in lines)


def _ensure_metadata_map(resource: KustomizeResource, name: str) -> dict[str, Any]:
    mapping = resource.metadata.get(name)
    if not isinstance(mapping, dict):
        mapping = resource.metadata[name] = {}
    return mapping


def _format_list_item(lines: list[str]) -> list[str]:
    return [f"{'- ' if i == 0 else '  '}{line}" for i, line in enumerate(lines)]


def _format_location(field: str, file: str, root: str) -> list[str]:
    url, ref, path = split_display_path(file)
    # k8s: in a remote base the path is relative to its repository.
    path_line = f"{field}: {path if url else _relative_path(path, root)}"
    if not url:
        return [path_line]
    repository = [f"repo: {url}", *([f"ref: {ref}"] if ref != "HEAD" else [])]
    return [path_line, *repository] if field == "path" else [*repository, path_line]


def _relative_path(file: str, root: str) -> str:
    return posixpath.relpath(file or ".", root or ".")
