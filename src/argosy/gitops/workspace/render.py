"""Renders the parts of a request, one after another.

In: a part. Out: manifests or an error, and the duration. Never: lets one failure stop the others.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from argosy.errors import ArgosyError, UserError
from argosy.gitops.render import BuildSettings, render
from argosy.gitops.workspace.checkouts import Checkouts, Talk
from argosy.gitops.workspace.render_request import Part, Request, parts_of
from argosy.kube.objects import Manifest

if TYPE_CHECKING:
    from argosy.gitops.application import Source
    from argosy.gitops.application.step_results import Checkout
    from argosy.gitops.source.settings import SourceSettings


class Outcome(NamedTuple):
    path: str
    app: str
    file: str  # with the Application; empty if there is none
    manifests: list[Manifest]
    error: ArgosyError | None
    said: str  # the error, with paths relative to the current folder
    seconds: float


def outcomes(request: Request, talk: Talk) -> Iterator[Outcome]:
    build, allowed = _settings(request)
    checkouts = Checkouts(request.roots, allowed, talk=talk)
    try:
        for part in parts_of(request, checkouts, talk):
            yield _Work(request, checkouts, build, talk).outcome(part)
    finally:
        checkouts.close()


def _settings(request: Request) -> tuple[BuildSettings, SourceSettings | None]:
    if not request.settings:
        return BuildSettings(), None
    from argosy.gitops.workspace.settings import read_settings_files

    return read_settings_files(request.settings)


class _Work:
    """Renders one part of a request."""

    def __init__(self, request: Request, checkouts: Checkouts, build: BuildSettings, talk: Talk) -> None:
        self.request, self.checkouts, self.build, self._talk = request, checkouts, build, talk
        self._root = ""  # of the working tree being read
        self._folder = ""  # in it

    def outcome(self, part: Part) -> Outcome:
        start = time.perf_counter()
        manifests: list[Manifest] = []
        error: ArgosyError | None = None
        try:
            manifests = self._manifests(part)
        except ArgosyError as raised:
            error = raised
        except OSError as raised:
            error = UserError(f"{raised.strerror or raised}; check the path and its permissions", where=part.path)
        seconds = time.perf_counter() - start
        said = self._said(error, part) if error is not None else ""
        return Outcome(part.path, part.app.name, part.file, manifests, error, said, seconds)

    def _manifests(self, part: Part) -> list[Manifest]:
        opened = part.open()
        found: list[Manifest] = []
        for checkout, source in opened.sources:
            self._root = str(getattr(checkout.tree, "path", ""))
            self._folder = os.path.join(self._root, source.path) if self._root else ""
            rendered = render(checkout, part.app, source, self.build, refs=opened.refs, fetch=self.checkouts.fetch)
            found += rendered.manifests
            self._notice(part, checkout, source, rendered.notes)
        if not found:
            from argosy.gitops.workspace.notes import of_nothing

            self._note(part, *{of_nothing(checkout, source): 0 for checkout, source in opened.sources})
        return found

    def _notice(self, part: Part, checkout: Checkout, source: Source, notes: tuple[str, ...]) -> None:
        if source.helm or source.kustomize or source.directory or source.plugin:  # flags create such a block
            from argosy.gitops.workspace.notes import overruled

            notes = (*notes, *overruled(checkout, part.app, source, self.request.options))
        self._note(part, *notes)

    def _note(self, part: Part, *notes: str) -> None:
        for note in notes:
            self._talk(f"note: {part.lead}{note}")

    def _said(self, error: ArgosyError, part: Part) -> str:
        from argosy.gitops.workspace.hints import advised, seen_from_here, with_flags
        from argosy.gitops.workspace.paths import enclosing

        error = with_flags(error, self.request.options, self._folder)
        here = advised(error, in_git=not self._root or enclosing(self._root) is not None)
        said = seen_from_here(here, self._root)
        return said if part.file and said.startswith(part.file) else f"{part.lead}{said}"
