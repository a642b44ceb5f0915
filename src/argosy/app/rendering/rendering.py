"""Renders the parts of a request, one after another.

In: a part. Out: Outcome: manifests or an error, and how long it took. Never: lets one failure end the others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from argosy.app.rendering.checkouts import Checkouts, Talk
from argosy.app.rendering.requesting import Part, Request, parts_of
from argosy.model.errors import ArgosyError, UserError
from argosy.model.manifest import Manifest
from argosy.render import BuildSettings, render

if TYPE_CHECKING:
    from argosy.source.settings import SourceSettings


class Outcome(NamedTuple):
    path: str
    app: str
    manifests: list[Manifest]
    error: ArgosyError | None
    seconds: float


def outcomes(request: Request, talk: Talk) -> Iterator[Outcome]:
    build, allowed = _settings(request)
    checkouts = Checkouts(request.roots, allowed, talk=talk)
    try:
        for part in parts_of(request, checkouts, talk):
            yield _outcome(part, checkouts, build)
    finally:
        checkouts.close()


def _settings(request: Request) -> tuple[BuildSettings, SourceSettings | None]:
    if not request.settings:
        return BuildSettings(), None
    from argosy.app.rendering.settings import read_settings_files

    return read_settings_files(request.settings)


def _outcome(part: Part, checkouts: Checkouts, build: BuildSettings) -> Outcome:
    start = time.perf_counter()
    manifests: list[Manifest] = []
    error: ArgosyError | None = None
    try:
        manifests = _manifests(part, checkouts, build)
    except ArgosyError as raised:
        error = raised
    except OSError as raised:
        error = UserError(f"{raised.strerror or raised}; check the path and its permissions", where=part.path)
    return Outcome(part.path, part.app.name, manifests, error, time.perf_counter() - start)


def _manifests(part: Part, checkouts: Checkouts, build: BuildSettings) -> list[Manifest]:
    opened = part.open()
    found: list[Manifest] = []
    for checkout, source in opened.sources:
        found += render(checkout, part.app, source, build, refs=opened.refs, fetch=checkouts.fetch).manifests
    return found
