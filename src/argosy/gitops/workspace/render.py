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
from argosy.gitops.workspace.command_file_tree_cache import CheckoutCache, ShowProgress
from argosy.gitops.workspace.render_target_resolver import RenderPart, WorkspaceRenderRequest, list_parts
from argosy.kube.objects import Manifest

if TYPE_CHECKING:
    from argosy.gitops.application import Source
    from argosy.gitops.application.step_results import Checkout
    from argosy.gitops.source.repository_access_settings import SourceSettings


class RenderOutcome(NamedTuple):
    path: str
    app: str
    file: str  # with the Application; empty if there is none
    manifests: list[Manifest]
    error: ArgosyError | None
    error_text: str  # the error, with paths relative to the current folder
    seconds: float


def render_parts(request: WorkspaceRenderRequest, show_progress: ShowProgress) -> Iterator[RenderOutcome]:
    build, source_settings = _load_settings(request)
    checkouts = CheckoutCache(request.roots, source_settings, show_progress=show_progress)
    try:
        for part in list_parts(request, checkouts, show_progress):
            yield _PartRenderer(request, checkouts, build, show_progress).render_part(part)
    finally:
        checkouts.close()


def _load_settings(request: WorkspaceRenderRequest) -> tuple[BuildSettings, SourceSettings | None]:
    if not request.settings:
        return BuildSettings(), None
    from argosy.gitops.workspace.settings_files import load_settings_files

    return load_settings_files(request.settings)


class _PartRenderer:
    """Renders one part of a request."""

    def __init__(
        self,
        request: WorkspaceRenderRequest,
        checkouts: CheckoutCache,
        build: BuildSettings,
        show_progress: ShowProgress,
    ) -> None:
        self.request, self.checkouts, self.build, self._show_progress = request, checkouts, build, show_progress
        self._root = ""  # of the working tree being read
        self._folder = ""  # in it

    def render_part(self, part: RenderPart) -> RenderOutcome:
        start = time.perf_counter()
        manifests: list[Manifest] = []
        error: ArgosyError | None = None
        try:
            manifests = self._render_manifests(part)
        except ArgosyError as raised:
            error = raised
        except OSError as raised:
            error = UserError(f"{raised.strerror or raised}; check the path and its permissions", where=part.path)
        seconds = time.perf_counter() - start
        error_text = self._render_error(error, part) if error is not None else ""
        return RenderOutcome(part.path, part.app.name, part.file, manifests, error, error_text, seconds)

    def _render_manifests(self, part: RenderPart) -> list[Manifest]:
        open_part = part.open()
        manifests: list[Manifest] = []
        for checkout, source in open_part.sources:
            self._root = str(getattr(checkout.tree, "path", ""))
            self._folder = os.path.join(self._root, source.path) if self._root else ""
            rendered = render(
                checkout,
                part.app,
                source,
                self.build,
                refs=open_part.refs,
                fetch=self.checkouts.fetch_tree,
                fetch_charts=self.checkouts.fetch_charts,
            )
            manifests += rendered.manifests
            self._show_source_notes(part, checkout, source, rendered.warnings)
        if not manifests:
            from argosy.gitops.workspace.no_manifests_and_override_notes import render_no_manifests_note

            self._show_notes(
                part, *{render_no_manifests_note(checkout, source): 0 for checkout, source in open_part.sources}
            )
        return manifests

    def _show_source_notes(self, part: RenderPart, checkout: Checkout, source: Source, notes: tuple[str, ...]) -> None:
        if source.helm or source.kustomize or source.directory or source.plugin:  # flags create such a block
            from argosy.gitops.workspace.no_manifests_and_override_notes import list_overridden_flags

            notes = (*notes, *list_overridden_flags(checkout, part.app, source, self.request.options))
        self._show_notes(part, *notes)

    def _show_notes(self, part: RenderPart, *notes: str) -> None:
        for note in notes:
            self._show_progress(f"note: {part.message_prefix}{note}")

    def _render_error(self, error: ArgosyError, part: RenderPart) -> str:
        from argosy.gitops.workspace.cli_error_advice_adaptation import (
            adapt_advice_to_cli,
            add_flag_hints,
            render_cwd_relative_error,
        )
        from argosy.gitops.workspace.enclosing_repository_lookup import find_enclosing_repository

        error = add_flag_hints(error, self.request.options, self._folder)
        adapted = adapt_advice_to_cli(error, in_git=not self._root or find_enclosing_repository(self._root) is not None)
        text = render_cwd_relative_error(adapted, self._root)
        return text if part.file and text.startswith(part.file) else f"{part.message_prefix}{text}"
