"""Reads Applications from a file.

In: its content. Out: Applications in order, with notes about unknown fields. Never: other objects of the file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from argosy.errors import UserError
from argosy.gitops.application import Application, read_application
from argosy.gitops.application.unknown_fields import (
    SPEC_FIELDS,
    DocumentPath,
    find_missing_field,
    format_path,
    list_unknown_fields,
)
from argosy.kube.objects import read_yaml_documents
from argosy.kube.objects.field_lines import FieldLines
from argosy.kube.objects.strict_typed_field_reader import WrongFieldType

STDIN: Final = "-"
_API_GROUP_PREFIX = "argoproj.io/"


class ParsedApplicationFile(NamedTuple):
    """An Application in a file; `fault` is set if it cannot be read."""

    app: Application
    notes: tuple[str, ...] = ()
    fault: UserError | None = None
    missing: UserError | None = None  # a required field that is missing, unless a path is typed


def load_content(file: str) -> bytes:
    if file == STDIN:
        return sys.stdin.buffer.read() if sys.stdin else b""
    if os.path.isdir(file):
        raise UserError("is a folder; pass a file with an Application, or the folder without -f", where=file)
    if not os.path.exists(file):
        raise UserError("no such file; correct the path after -f", where=file)
    with open(file, "rb") as stream:
        return stream.read()


def read_applications(content: bytes, where: str) -> list[ParsedApplicationFile]:
    documents = [entry for entry in read_yaml_documents(content, where=where) if entry is not None]
    manifests = [
        entry
        for document in documents
        for entry in (document.get("items") or [] if _has_type(document, "List", "v1") else [document])
    ]
    applications = [
        (number, entry) for number, entry in enumerate(manifests) if _has_type(entry, "Application", _API_GROUP_PREFIX)
    ]
    if not applications:
        raise _build_no_application_error(manifests, where)
    lines = FieldLines(content.decode("utf-8", "replace"))
    return [_read_application_entry(entry, number, where, lines) for number, entry in applications]


def _read_application_entry(
    manifest: dict[str, Any], number: int, where: str, lines: FieldLines
) -> ParsedApplicationFile:
    try:
        app = read_application(manifest, where)
    except WrongFieldType as error:
        error.line = lines.find_field_line(number, error.path)
        metadata = manifest.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else ""
        return ParsedApplicationFile(Application(name=str(name or "")), fault=error)
    notes = tuple(_list_unknown_field_notes(manifest.get("spec"), number, where, lines))
    if not app.sources:
        message = f"the Application {app.name!r} has no source; add spec.source"
        return ParsedApplicationFile(
            app, notes, UserError(message, where=where, line=lines.find_field_line(number, ("spec",)))
        )
    return ParsedApplicationFile(app, notes, None, next(_find_missing_fields(app, number, where, lines), None))


def _find_missing_fields(app: Application, number: int, where: str, lines: FieldLines) -> Iterator[UserError]:
    for position, source in enumerate(app.sources):
        path: DocumentPath = ("spec", "sources", position) if app.has_many_sources else ("spec", "source")
        if problem := find_missing_field(source):
            sentence = f"{format_path(path)}{'.' if problem.startswith('repoURL') else ' '}{problem}"
            message = f"{app.name}: {sentence}" if app.name else sentence
            field = "repoURL" if problem.startswith("repoURL") else ""
            yield UserError(message, where=where, line=lines.find_field_line(number, (*path, field) if field else path))


def _list_unknown_field_notes(spec: Any, number: int, where: str, lines: FieldLines) -> Iterator[str]:
    for unknown in list_unknown_fields(spec, SPEC_FIELDS, ("spec",)):
        yield f"{where}:{lines.find_field_line(number, unknown.path)}: {unknown.message}"


def _build_no_application_error(manifests: list[Any], where: str) -> UserError:
    kinds = [
        str(manifest["kind"])
        for manifest in manifests
        if isinstance(manifest, dict) and isinstance(manifest.get("kind"), str)
    ]
    if "ApplicationSet" in kinds:
        message = "contains an ApplicationSet, which is expanded only in a cluster; pass a file with an Application"
    elif os.path.basename(where).lower().startswith(("chart.yaml", "kustomization")):
        message = f"contains no Application; pass its folder, without -f: {os.path.dirname(where) or '.'}"
    elif manifests and not kinds:
        message = f"contains no Application; if it contains Helm values: --values {where}, relative to the chart"
    else:
        kinds_text = f" ({', '.join(sorted(set(kinds)))})" if kinds else ""
        message = f"contains no Application{kinds_text}; pass a file with one, or a folder without -f"
    return UserError(message, where=where)


def _has_type(document: object, kind: str, api_prefix: str) -> bool:
    if not isinstance(document, dict):
        return False
    return document.get("kind") == kind and str(document.get("apiVersion") or "").startswith(api_prefix)
