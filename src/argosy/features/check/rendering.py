"""Renders folders of a repository, for an Application or without one.

In: a folder and an Application. Out: manifests with their locations, a fault, or a note. Never: lets one failure stop
the others; reports an unreachable host as a fault of the repository.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from argosy.errors import ArgosyError, LimitError, SourceError, TransientError, UserError
from argosy.gitops.analysis.repository import Fault, Item, Trouble
from argosy.gitops.analysis.violation import Place
from argosy.gitops.application import Application, Source
from argosy.gitops.render import render
from argosy.gitops.workspace.checkouts import Checkouts
from argosy.gitops.workspace.git_heads import is_checked_out, is_merged_into
from argosy.gitops.workspace.manifest_files import shown
from argosy.gitops.workspace.manifest_lines import located


@dataclass
class Built:
    """The result of a render; `note` says why it was not rendered, if that is not the repository's fault."""

    items: list[Item] = field(default_factory=list)
    fault: Fault | None = None
    note: str = ""
    inputs: set[str] = field(default_factory=set)  # real paths of the files that were read


class Builder:
    def __init__(self, checkouts: Checkouts) -> None:
        self._checkouts = checkouts

    def build(self, root: str, app: Application, sources: Iterable[Source], place: Place) -> Built:
        """Render all sources from one working tree; `place` is the location of faults without a better one."""
        built = Built()
        checkout = self._checkouts.working(root)
        refs = {source.alias: checkout for source in app.sources if source.alias}
        for source in sources:
            try:
                rendered = render(checkout, app, source, refs=refs, fetch=self._checkouts.fetch)
                built.items += located(rendered, root)
                built.inputs |= {os.path.join(root, each.path) for each in rendered.inputs if not each.place}
            except (LimitError, SourceError, TransientError) as error:
                built.note = f"{place.file}: not rendered: {error}"
            except ArgosyError as error:
                built.fault = _fault(error, root, place)
        return built

    def failing(self, root: str, app: Application, source: Source) -> str:
        """Return why rendering fails at the branch that the source tracks, as fetched in this clone.

        Empty if it succeeds, if the working tree is that branch, or if the branch is not in this clone.
        """
        ref = source.ref.removeprefix("refs/heads/")
        if is_checked_out(root, ref) or is_merged_into(root, ref):
            return ""
        try:
            checkout = self._checkouts.within(root, f"refs/remotes/origin/{ref}")
        except ArgosyError:
            return ""
        try:
            render(checkout, app, source, refs={}, fetch=self._checkouts.fetch)
        except (LimitError, SourceError, TransientError):
            return ""
        except ArgosyError as error:
            return str(error).partition("; ")[0]
        return ""

    def has(self, root: str, ref: str, path: str) -> bool:
        """True if a branch, tag or commit in this clone has the path."""
        for name in (ref, f"origin/{ref}") if os.path.exists(os.path.join(root, ".git")) else ():
            try:
                if self._checkouts.within(root, name).tree.entry(path) is not None:
                    return True
            except ArgosyError:
                continue
        return False


def _fault(error: ArgosyError, root: str, place: Place) -> Fault:
    from argosy.gitops.workspace.hints import advised
    from argosy.gitops.workspace.paths import enclosing

    error = advised(error, in_git=enclosing(root) is not None)
    if isinstance(error, UserError):
        message, _, fix = error.message.partition("; ")
        named = os.path.join(root, error.where) if error.where else ""
        if named and os.path.exists(named):
            return Fault(Trouble.RENDER, message, fix or "correct this file", Place(shown(named), error.line))
        message = f"{error.where}: {message}" if error.where else message
    else:
        message, fix = str(error), ""
    return Fault(Trouble.RENDER, message, fix or "correct what it names", place)
