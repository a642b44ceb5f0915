"""Renders the parts of a request, one after another.

In: a part. Out: Outcome: manifests or an error, and how long it took. Never: lets one failure end the others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from argosy.app.rendering.checkouts import Checkouts, Talk
from argosy.app.rendering.requesting import Part, Request, parts_of
from argosy.model.errors import ArgosyError, UserError
from argosy.model.manifest import Manifest
from argosy.render.kustomize import build


class Outcome(NamedTuple):
    path: str
    app: str
    manifests: list[Manifest]
    error: ArgosyError | None
    seconds: float


def outcomes(request: Request, talk: Talk) -> Iterator[Outcome]:
    checkouts = Checkouts(request.roots, talk=talk)
    try:
        for part in parts_of(request, checkouts, talk):
            yield _outcome(part, checkouts)
    finally:
        checkouts.close()


def _outcome(part: Part, checkouts: Checkouts) -> Outcome:
    start = time.perf_counter()
    manifests: list[Manifest] = []
    error: ArgosyError | None = None
    try:
        manifests = _manifests(part, checkouts)
    except ArgosyError as raised:
        error = raised
    except OSError as raised:
        error = UserError(f"{raised.strerror or raised}; check the path and its permissions", where=part.path)
    return Outcome(part.path, part.app.name, manifests, error, time.perf_counter() - start)


def _manifests(part: Part, checkouts: Checkouts) -> list[Manifest]:
    opened = part.open()
    found: list[Manifest] = []
    for checkout, source in opened.sources:
        found += build(checkout.tree, source.path)
    return found
