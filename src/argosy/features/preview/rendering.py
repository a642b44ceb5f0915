"""Renders an Application, or a folder without an Application, at one side of a comparison.

In: a side, an Application and its file. Out: manifests with their locations, or a fault or note. Never: lets one
failure stop the others; reads the other side.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from argosy.errors import ArgosyError, LimitError, SourceError, TransientError, UserError
from argosy.features.preview.revisions import Repository, Side
from argosy.gitops.analysis.repository import Fault, Item, Trouble
from argosy.gitops.analysis.violation import Place
from argosy.gitops.application import Application, Source
from argosy.gitops.application.file_tree import Tree, TreeEntry
from argosy.gitops.application.step_results import Checkout, Rendered
from argosy.gitops.render import BuildSettings, are_current, build_environment, render
from argosy.gitops.render.generate_paths import PATHS
from argosy.gitops.workspace.checkouts import Checkouts
from argosy.gitops.workspace.manifest_files import shown
from argosy.gitops.workspace.manifest_lines import located
from argosy.gitops.workspace.render_request import is_of

_SETTINGS = BuildSettings()


class Below:
    """A folder of a file tree as the root of its own tree. Implements `FileTree`."""

    def __init__(self, tree: Tree, folder: str) -> None:
        self.tree, self.folder = tree, folder

    def entry(self, path: str) -> TreeEntry | None:
        return self.tree.entry(f"{self.folder}/{path}".strip("/"))

    def listing(self, path: str) -> Sequence[TreeEntry]:
        return self.tree.listing(f"{self.folder}/{path}".strip("/"))

    def read(self, path: str) -> bytes:
        return self.tree.read(f"{self.folder}/{path}")


@dataclass(frozen=True)
class Spot:
    """Location of a source: a tree, and the folder in it that acts as the repository root."""

    tree: Tree
    revision: str
    home: str = ""
    ref: str = ""  # another branch or tag that this change does not affect

    @property
    def checkout(self) -> Checkout:
        return Checkout(Below(self.tree, self.home) if self.home else self.tree, self.revision)


@dataclass
class Drawn:
    items: list[Item] = field(default_factory=list)
    fault: Fault | None = None
    note: str = ""  # why it was not rendered, if that is not the repository's fault
    renders: list[tuple[Source, Spot, Rendered]] = field(default_factory=list)
    is_elsewhere: bool = False  # the source is another repository or a Helm chart repository


class Drawer:
    def __init__(self, repository: Repository, checkouts: Checkouts) -> None:
        self._repository, self._checkouts = repository, checkouts
        self._root = repository.root
        self._refs: dict[str, tuple[str, Tree] | None] = {}
        self._ours: dict[str, bool] = {}

    def draw(self, side: Side, app: Application, file: str, place: Place) -> Drawn:
        """Render all sources; `file` is the path of the Application's file in the repository."""
        # argo: a source with a ref name and no path only provides files to the others.
        sources = [each for each in app.sources if each.path or each.chart or not each.alias]
        drawn = Drawn()
        spots = [(source, self.spot(side, source, file, app.name, drawn)) for source in sources]
        here = [(source, spot) for source, spot in spots if spot is not None]
        if drawn.fault or drawn.note or len(here) < len(spots):
            drawn.fault = drawn.fault and replace(drawn.fault, place=place)
            return drawn
        served = {source.repo_url: spot for source, spot in here}
        refs: dict[str, Checkout] = {}
        for source in app.sources:
            if source.alias and (spot := served.get(source.repo_url) or self._served(side, source)) is None:
                drawn.note = f"{app.name}: not compared: {source.repo_url} is another repository"
                drawn.is_elsewhere = True
                return drawn
            elif source.alias and spot is not None:
                refs[source.alias] = spot.checkout
        for source, spot in here:
            self._render(drawn, app, source, spot, refs, place)
        return drawn

    def _served(self, side: Side, source: Source) -> Spot | None:
        return Spot(side.tree, side.revision) if self.is_ours(source.repo_url) else None

    def _render(
        self, drawn: Drawn, app: Application, source: Source, spot: Spot, refs: dict[str, Checkout], place: Place
    ) -> None:
        try:
            rendered = render(spot.checkout, app, source, refs=refs, fetch=self._checkouts.fetch)
        except (LimitError, SourceError, TransientError) as error:
            drawn.note = f"{app.name}: not rendered: {error}"
        except ArgosyError as error:
            drawn.fault = _fault(error, self._home(spot), place)
        else:
            drawn.items += located(rendered, self._home(spot))
            drawn.renders.append((source, spot, rendered))

    def _home(self, spot: Spot) -> str:
        return os.path.join(self._root, spot.home) if spot.home else self._root

    def is_current(self, drawn: Drawn, app: Application, side: Side, file: str) -> bool:
        """True if all files that the render read are equal on the other side."""
        if drawn.fault or drawn.note or drawn.is_elsewhere:
            return False
        for source, spot, rendered in drawn.renders:
            other = self.spot(side, source, file, app.name, Drawn())
            if other is None or other.home != spot.home:
                return False
            tree = other.checkout.tree
            trees = {"": tree, **{f"${each.alias}": tree for each in app.sources if each.alias}}
            # argo: changes outside manifest-generate-paths are rendered later, but they are rendered.
            inputs = {each: id for each, id in rendered.inputs.items() if each.place != PATHS}
            if not are_current(inputs, trees, build_environment(app, source, other.revision, _SETTINGS)):
                return False
        return True

    def is_ours(self, url: str) -> bool:
        if url not in self._ours:
            self._ours[url] = is_of(url, self._root)
        return self._ours[url]

    def spot(self, side: Side, source: Source, file: str, name: str, drawn: Drawn) -> Spot | None:
        """Find the source's location; None if it is not in this repository, with the reason in `side_render`."""
        if source.chart:
            drawn.is_elsewhere = True
            drawn.note = f"{name}: not compared: chart {source.chart} of {source.repo_url}"
            return None
        is_ours, path = self.is_ours(source.repo_url), posixpath.normpath(source.path or ".")
        if is_ours and source.ref not in ("", "HEAD", *side.branches) and (found := self._at(source.ref)) is not None:
            return Spot(found[1], found[0], "", source.ref)
        home = home_of(side.tree, file, path)
        if home is not None and (path != "." or is_ours or not source.repo_url):
            return Spot(side.tree, side.revision, home)
        if is_ours:
            message = f"{name}: folder {source.path} not found in this repository"
            drawn.fault = Fault(Trouble.PATH, message, "correct the path, or add the folder", Place(file))
        else:
            drawn.is_elsewhere = True
            drawn.note = f"{name}: not compared: {source.repo_url} is another repository"
        return None

    def _at(self, ref: str) -> tuple[str, Tree] | None:
        if ref not in self._refs:
            self._refs[ref] = self._repository.at(ref)
        return self._refs[ref]


def home_of(tree: Tree, file: str, path: str) -> str | None:
    """Find the parent folder of the Application's file in which its path exists; the repository root is tried first."""
    if path.startswith(".."):
        return None
    parts = posixpath.dirname(file).split("/") if "/" in file else []
    for count in range(len(parts) + 1):
        home = "/".join(parts[:count])
        inner = posixpath.normpath(posixpath.join(home, path))
        entry = tree.entry("" if inner == "." else inner)
        if entry is not None and entry.kind != "file":
            return home
    return None


def _fault(error: ArgosyError, home: str, place: Place) -> Fault:
    from argosy.gitops.workspace.hints import advised

    error = advised(error, in_git=True)
    if not isinstance(error, UserError):
        return Fault(Trouble.RENDER, str(error), "correct what it names", place)
    message, _, fix = error.message.partition("; ")
    if error.where:
        place = Place(shown(os.path.join(home, error.where)), error.line)
    return Fault(Trouble.RENDER, message, fix or "correct this file", place)
