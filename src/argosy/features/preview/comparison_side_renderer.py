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
from argosy.features.preview.revision_range_trees import ComparisonSide, PreviewRepository
from argosy.gitops.analysis.repository_view import ManifestWithLocations, RenderFailure, RenderFailureKind
from argosy.gitops.analysis.rule_violation import FileLocation
from argosy.gitops.application import Application, Source
from argosy.gitops.application.file_tree_protocol import FileTree, TreeEntry
from argosy.gitops.application.step_results import Checkout, RenderResult
from argosy.gitops.render import BuildSettings, are_inputs_unchanged, build_environment, render
from argosy.gitops.render.manifest_generate_paths import GENERATE_PATHS_SCOPE
from argosy.gitops.workspace.command_file_tree_cache import CheckoutCache
from argosy.gitops.workspace.manifest_files import relative_path
from argosy.gitops.workspace.render_target_resolver import is_url_of_repository
from argosy.gitops.workspace.rendered_manifest_locations import locate_manifests

_SETTINGS = BuildSettings()


class Subtree:
    """A folder of a file tree as the root of its own tree. Implements `FileTree`."""

    def __init__(self, tree: FileTree, folder: str) -> None:
        self.tree, self.folder = tree, folder

    def find_entry(self, path: str) -> TreeEntry | None:
        return self.tree.find_entry(f"{self.folder}/{path}".strip("/"))

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        return self.tree.list_folder(f"{self.folder}/{path}".strip("/"))

    def read_file(self, path: str) -> bytes:
        return self.tree.read_file(f"{self.folder}/{path}")


@dataclass(frozen=True)
class SourceLocation:
    """Location of a source: a tree, and the folder in it that acts as the repository root."""

    tree: FileTree
    revision: str
    root_folder: str = ""
    ref: str = ""  # another branch or tag that this change does not affect

    @property
    def checkout(self) -> Checkout:
        return Checkout(Subtree(self.tree, self.root_folder) if self.root_folder else self.tree, self.revision)


@dataclass
class SideRender:
    items: list[ManifestWithLocations] = field(default_factory=list)
    fault: RenderFailure | None = None
    note: str = ""  # why it was not rendered, if that is not the repository's fault
    renders: list[tuple[Source, SourceLocation, RenderResult]] = field(default_factory=list)
    is_external: bool = False  # the source is another repository or a Helm chart repository


class SideRenderer:
    def __init__(self, repository: PreviewRepository, checkouts: CheckoutCache) -> None:
        self._repository, self._checkouts = repository, checkouts
        self._root = repository.root
        self._refs: dict[str, tuple[str, FileTree] | None] = {}
        self._is_own_by_url: dict[str, bool] = {}

    def render_application(self, side: ComparisonSide, app: Application, file: str, place: FileLocation) -> SideRender:
        """Render all sources; `file` is the path of the Application's file in the repository."""
        # argo: a source with a ref name and no path only provides files to the others.
        sources = [candidate for candidate in app.sources if candidate.path or candidate.chart or not candidate.alias]
        side_render = SideRender()
        locations = [(source, self.find_location(side, source, file, app.name, side_render)) for source in sources]
        local = [(source, location) for source, location in locations if location is not None]
        if side_render.fault or side_render.note or len(local) < len(locations):
            side_render.fault = side_render.fault and replace(side_render.fault, location=place)
            return side_render
        served = {source.repo_url: location for source, location in local}
        refs: dict[str, Checkout] = {}
        for source in app.sources:
            if (
                source.alias
                and (location := served.get(source.repo_url) or self._find_alias_location(side, source)) is None
            ):
                side_render.note = f"{app.name}: not compared: {source.repo_url} is another repository"
                side_render.is_external = True
                return side_render
            elif source.alias and location is not None:
                refs[source.alias] = location.checkout
        for source, location in local:
            self._render_source(side_render, app, source, location, refs, place)
        return side_render

    def _find_alias_location(self, side: ComparisonSide, source: Source) -> SourceLocation | None:
        return SourceLocation(side.tree, side.revision) if self.is_own_repository(source.repo_url) else None

    def _render_source(
        self,
        side_render: SideRender,
        app: Application,
        source: Source,
        location: SourceLocation,
        refs: dict[str, Checkout],
        place: FileLocation,
    ) -> None:
        try:
            rendered = render(
                location.checkout,
                app,
                source,
                refs=refs,
                fetch=self._checkouts.fetch_tree,
                fetch_charts=self._checkouts.fetch_charts,
            )
        except (LimitError, SourceError, TransientError) as error:
            side_render.note = f"{app.name}: not rendered: {error}"
        except ArgosyError as error:
            side_render.fault = _build_fault(error, self._get_root_path(location), place)
        else:
            side_render.items += locate_manifests(rendered, self._get_root_path(location))
            side_render.renders.append((source, location, rendered))

    def _get_root_path(self, location: SourceLocation) -> str:
        return os.path.join(self._root, location.root_folder) if location.root_folder else self._root

    def has_same_inputs_on_side(
        self, side_render: SideRender, app: Application, side: ComparisonSide, file: str
    ) -> bool:
        """True if all files that the render read are equal on the other side."""
        if side_render.fault or side_render.note or side_render.is_external:
            return False
        for source, location, rendered in side_render.renders:
            other_location = self.find_location(side, source, file, app.name, SideRender())
            if other_location is None or other_location.root_folder != location.root_folder:
                return False
            tree = other_location.checkout.tree
            trees = {"": tree, **{f"${item.alias}": tree for item in app.sources if item.alias}}
            # argo: changes outside manifest-generate-paths are rendered later, but they are rendered.
            inputs = {item: id for item, id in rendered.inputs.items() if item.scope != GENERATE_PATHS_SCOPE}
            if not are_inputs_unchanged(
                inputs, trees, build_environment(app, source, other_location.revision, _SETTINGS)
            ):
                return False
        return True

    def is_own_repository(self, url: str) -> bool:
        if url not in self._is_own_by_url:
            self._is_own_by_url[url] = is_url_of_repository(url, self._root)
        return self._is_own_by_url[url]

    def find_location(
        self, side: ComparisonSide, source: Source, file: str, name: str, side_render: SideRender
    ) -> SourceLocation | None:
        """Find the source's location; None if it is not in this repository, with the reason in `side_render`."""
        if source.chart:
            side_render.is_external = True
            side_render.note = f"{name}: not compared: chart {source.chart} of {source.repo_url}"
            return None
        is_own, path = self.is_own_repository(source.repo_url), posixpath.normpath(source.path or ".")
        if (
            is_own
            and source.ref not in ("", "HEAD", *side.branches)
            and (resolved := self._resolve_ref(source.ref)) is not None
        ):
            return SourceLocation(resolved[1], resolved[0], "", source.ref)
        home = find_folder_that_has_path(side.tree, file, path)
        if home is not None and (path != "." or is_own or not source.repo_url):
            return SourceLocation(side.tree, side.revision, home)
        if is_own:
            message = f"{name}: folder {source.path} not found in this repository"
            side_render.fault = RenderFailure(
                RenderFailureKind.PATH, message, "correct the path, or add the folder", FileLocation(file)
            )
        else:
            side_render.is_external = True
            side_render.note = f"{name}: not compared: {source.repo_url} is another repository"
        return None

    def _resolve_ref(self, ref: str) -> tuple[str, FileTree] | None:
        if ref not in self._refs:
            self._refs[ref] = self._repository.resolve_ref(ref)
        return self._refs[ref]


def find_folder_that_has_path(tree: FileTree, file: str, path: str) -> str | None:
    """Find the parent folder of the Application's file in which its path exists; the repository root is tried first."""
    if path.startswith(".."):
        return None
    parts = posixpath.dirname(file).split("/") if "/" in file else []
    for count in range(len(parts) + 1):
        home = "/".join(parts[:count])
        inner = posixpath.normpath(posixpath.join(home, path))
        entry = tree.find_entry("" if inner == "." else inner)
        if entry is not None and entry.kind != "file":
            return home
    return None


def _build_fault(error: ArgosyError, home: str, place: FileLocation) -> RenderFailure:
    from argosy.gitops.workspace.cli_error_advice_adaptation import adapt_advice_to_cli

    error = adapt_advice_to_cli(error, in_git=True)
    if not isinstance(error, UserError):
        return RenderFailure(RenderFailureKind.RENDER, str(error), "correct what it names", place)
    message, _, fix = error.message.partition("; ")
    if error.where:
        place = FileLocation(relative_path(os.path.join(home, error.where)), error.line)
    return RenderFailure(RenderFailureKind.RENDER, message, fix or "correct this file", place)
