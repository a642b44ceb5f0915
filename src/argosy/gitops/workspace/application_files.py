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
from argosy.gitops.application.unknown_fields import SPEC, Path, dotted, missing_field, unknown_fields
from argosy.kube.objects import load_all
from argosy.kube.objects.field_lines import Lines
from argosy.kube.objects.field_reader import WrongField

STDIN: Final = "-"
_GROUP = "argoproj.io/"


class Written(NamedTuple):
    """An Application in a file; `fault` is set if it cannot be read."""

    app: Application
    notes: tuple[str, ...] = ()
    fault: UserError | None = None
    missing: UserError | None = None  # a required field that is missing, unless a path is typed


def content_of(file: str) -> bytes:
    if file == STDIN:
        return sys.stdin.buffer.read() if sys.stdin else b""
    if os.path.isdir(file):
        raise UserError("is a folder; pass a file with an Application, or the folder without -f", where=file)
    if not os.path.exists(file):
        raise UserError("no such file; correct the path after -f", where=file)
    with open(file, "rb") as opened:
        return opened.read()


def read_applications(content: bytes, where: str) -> list[Written]:
    documents = [each for each in load_all(content, where=where) if each is not None]
    flat = [
        each
        for document in documents
        for each in (document.get("items") or [] if _is(document, "List", "v1") else [document])
    ]
    found = [(number, each) for number, each in enumerate(flat) if _is(each, "Application", _GROUP)]
    if not found:
        raise _none(flat, where)
    lines = Lines(content.decode("utf-8", "replace"))
    return [_written(each, number, where, lines) for number, each in found]


def _written(manifest: dict[str, Any], number: int, where: str, lines: Lines) -> Written:
    try:
        app = read_application(manifest, where)
    except WrongField as error:
        error.line = lines.of_field(number, error.path)
        metadata = manifest.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else ""
        return Written(Application(name=str(name or "")), fault=error)
    notes = tuple(_notes(manifest.get("spec"), number, where, lines))
    if not app.sources:
        message = f"the Application {app.name!r} has no source; add spec.source"
        return Written(app, notes, UserError(message, where=where, line=lines.of_field(number, ("spec",))))
    return Written(app, notes, None, next(_missing(app, number, where, lines), None))


def _missing(app: Application, number: int, where: str, lines: Lines) -> Iterator[UserError]:
    for place, source in enumerate(app.sources):
        path: Path = ("spec", "sources", place) if app.has_many_sources else ("spec", "source")
        if fault := missing_field(source):
            sentence = f"{dotted(path)}{'.' if fault.startswith('repoURL') else ' '}{fault}"
            named = f"{app.name}: {sentence}" if app.name else sentence
            field = "repoURL" if fault.startswith("repoURL") else ""
            yield UserError(named, where=where, line=lines.of_field(number, (*path, field) if field else path))


def _notes(spec: Any, number: int, where: str, lines: Lines) -> Iterator[str]:
    for each in unknown_fields(spec, SPEC, ("spec",)):
        yield f"{where}:{lines.of_field(number, each.path)}: {each.sentence}"


def _none(flat: list[Any], where: str) -> UserError:
    kinds = [str(each["kind"]) for each in flat if isinstance(each, dict) and isinstance(each.get("kind"), str)]
    if "ApplicationSet" in kinds:
        message = "contains an ApplicationSet, which is expanded only in a cluster; pass a file with an Application"
    elif os.path.basename(where).lower().startswith(("chart.yaml", "kustomization")):
        message = f"contains no Application; pass its folder, without -f: {os.path.dirname(where) or '.'}"
    elif flat and not kinds:
        message = f"contains no Application; if it contains Helm values: --values {where}, relative to the chart"
    else:
        what = f" ({', '.join(sorted(set(kinds)))})" if kinds else ""
        message = f"contains no Application{what}; pass a file with one, or a folder without -f"
    return UserError(message, where=where)


def _is(document: object, kind: str, api: str) -> bool:
    if not isinstance(document, dict):
        return False
    return document.get("kind") == kind and str(document.get("apiVersion") or "").startswith(api)
