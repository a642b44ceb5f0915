"""Builds folders of a repository, for an Application or for nobody.

In: a folder, and who wants it. Out: its manifests with their places, a fault, or a note. Never: lets one failure end
the others; holds a host that does not answer against the repository.
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
    """What came of it; a note where nobody is to blame."""

    items: list[Item] = field(default_factory=list)
    fault: Fault | None = None
    note: str = ""
    inputs: set[str] = field(default_factory=set)  # real paths of the files that were read


class Builder:
    def __init__(self, checkouts: Checkouts) -> None:
        self._checkouts = checkouts

    def build(self, root: str, app: Application, sources: Iterable[Source], place: Place) -> Built:
        """All sources from one working tree; `place` is told where nothing better is known."""
        built = Built()
        checkout = self._checkouts.working(root)
        refs = {source.alias: checkout for source in app.sources if source.alias}
        for source in sources:
            try:
                rendered = render(checkout, app, source, refs=refs, fetch=self._checkouts.fetch)
                built.items += located(rendered, root)
                built.inputs |= {os.path.join(root, each.path) for each in rendered.inputs if not each.place}
            except (LimitError, SourceError, TransientError) as error:
                built.note = f"{place.file}: was not built: {error}"
            except ArgosyError as error:
                built.fault = _fault(error, root, place)
        return built

    def failing(self, root: str, app: Application, source: Source) -> str:
        """Why it cannot be rendered at the branch that it follows, as this clone knows it; empty where it can, or where
        the working tree stands for that branch, or the branch is not known here."""
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
        """Whether a branch, tag or commit that is known here holds the path."""
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
