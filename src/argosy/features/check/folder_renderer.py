"""Renders folders of a repository, for an Application or without one.

In: a folder and an Application. Out: manifests with their locations, a fault, or a note. Never: lets one failure stop
the others; reports an unreachable host as a fault of the repository.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from argosy.errors import ArgosyError, LimitError, SourceError, TransientError, UserError
from argosy.gitops.analysis.repository_view import ManifestWithLocations, RenderFailure, RenderFailureKind
from argosy.gitops.analysis.rule_violation import FileLocation
from argosy.gitops.application import Application, Source
from argosy.gitops.render import render
from argosy.gitops.workspace.checked_out_head import is_checked_out, is_default_branch
from argosy.gitops.workspace.command_file_tree_cache import CheckoutCache
from argosy.gitops.workspace.manifest_files import relative_path
from argosy.gitops.workspace.rendered_manifest_locations import locate_manifests


@dataclass
class FolderRender:
    """The result of a render; `note` says why it was not rendered, if that is not the repository's fault."""

    items: list[ManifestWithLocations] = field(default_factory=list)
    fault: RenderFailure | None = None
    note: str = ""
    inputs: set[str] = field(default_factory=set)  # real paths of the files that were read


class FolderRenderer:
    def __init__(self, checkouts: CheckoutCache) -> None:
        self._checkouts = checkouts

    def render_sources(
        self, root: str, app: Application, sources: Iterable[Source], place: FileLocation
    ) -> FolderRender:
        """Render all sources from one working tree; `place` is the location of faults without a better one."""
        folder_render = FolderRender()
        checkout = self._checkouts.open_working_tree(root)
        refs = {source.alias: checkout for source in app.sources if source.alias}
        for source in sources:
            try:
                rendered = render(
                    checkout,
                    app,
                    source,
                    refs=refs,
                    fetch=self._checkouts.fetch_tree,
                    fetch_charts=self._checkouts.fetch_charts,
                )
                folder_render.items += locate_manifests(rendered, root)
                folder_render.inputs |= {
                    os.path.join(root, render_input.path) for render_input in rendered.inputs if not render_input.scope
                }
            except (LimitError, SourceError, TransientError) as error:
                folder_render.note = f"{place.file}: not rendered: {error}"
            except ArgosyError as error:
                folder_render.fault = _build_fault(error, root, place)
        return folder_render

    def find_tracked_branch_error(self, root: str, app: Application, source: Source) -> str:
        """Return why rendering fails at the branch that the source tracks, as fetched in this clone.

        Empty if it succeeds, if the working tree is that branch, or if the branch is not in this clone.
        """
        ref = source.ref.removeprefix("refs/heads/")
        if is_checked_out(root, ref) or is_default_branch(root, ref):
            return ""
        try:
            checkout = self._checkouts.open_local_revision(root, f"refs/remotes/origin/{ref}")
        except ArgosyError:
            return ""
        try:
            render(
                checkout,
                app,
                source,
                refs={},
                fetch=self._checkouts.fetch_tree,
                fetch_charts=self._checkouts.fetch_charts,
            )
        except (LimitError, SourceError, TransientError):
            return ""
        except ArgosyError as error:
            return str(error).partition("; ")[0]
        return ""

    def has_path_at_ref(self, root: str, ref: str, path: str) -> bool:
        """True if a branch, tag or commit in this clone has the path."""
        for name in (ref, f"origin/{ref}") if os.path.exists(os.path.join(root, ".git")) else ():
            try:
                if self._checkouts.open_local_revision(root, name).tree.find_entry(path) is not None:
                    return True
            except ArgosyError:
                continue
        return False


def _build_fault(error: ArgosyError, root: str, place: FileLocation) -> RenderFailure:
    from argosy.gitops.workspace.cli_error_advice_adaptation import adapt_advice_to_cli
    from argosy.gitops.workspace.enclosing_repository_lookup import find_enclosing_repository

    error = adapt_advice_to_cli(error, in_git=find_enclosing_repository(root) is not None)
    if isinstance(error, UserError):
        message, _, fix = error.message.partition("; ")
        file_path = os.path.join(root, error.where) if error.where else ""
        if file_path and os.path.exists(file_path):
            return RenderFailure(
                RenderFailureKind.RENDER,
                message,
                fix or "correct this file",
                FileLocation(relative_path(file_path), error.line),
            )
        message = f"{error.where}: {message}" if error.where else message
    else:
        message, fix = str(error), ""
    return RenderFailure(RenderFailureKind.RENDER, message, fix or "correct what it names", place)
