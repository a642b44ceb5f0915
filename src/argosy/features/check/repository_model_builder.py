"""Builds the repository model that rules check, from files.

In: the files below some paths. Out: RepositoryFacts: rendered Applications, kustomizations without an Application,
remaining manifests, and notes about what was not checked. Never: skips anything silently.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from argosy.errors import ArgosyError
from argosy.features.check.committed_kubeconfigs import TrackedFiles, find_kubeconfigs
from argosy.features.check.folder_renderer import FolderRenderer
from argosy.features.check.lua_notebook_and_yaml_lint import list_other_linter_violations
from argosy.gitops.analysis.repository_view import (
    ApplicationDeclaration,
    DeclaredEnvironment,
    ManifestWithLocations,
    RenderedSource,
    RenderFailure,
    RenderFailureKind,
    RepositoryView,
)
from argosy.gitops.analysis.rule_violation import FileLocation
from argosy.gitops.application import Application, Source, read_application, read_source
from argosy.gitops.render.tool_detection import CHART_FILE
from argosy.gitops.workspace.enclosing_repository_lookup import load_remotes
from argosy.gitops.workspace.kustomize_root_folder import find_root_with_bases
from argosy.gitops.workspace.manifest_files import YamlFile, find_top_folder, load_manifest_files, relative_path
from argosy.gitops.workspace.render_target_resolver import is_url_of_repository
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import APPLICATION, CRD

_PLACEHOLDER: Final = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\{\{.*?\}\}|\$[A-Z][A-Z0-9_]+|<[\w -]+>")
_MAX_CHART_NOTES: Final = 5  # more charts share one note
_REFERENCES: Final = ("resources", "bases", "components")


class RepositoryScanner:
    """Reads and renders everything below the given paths, once."""

    def __init__(
        self, paths: Sequence[str], renderer: FolderRenderer, *, is_typed: bool = False, boundary: str = ""
    ) -> None:
        self.files = list(load_manifest_files(paths))
        self._renderer = renderer
        self._paths = paths
        self._is_interactive = is_typed
        self._boundary = boundary
        self._rendered_files: set[str] = set()  # files that renderings read
        self._notes: list[str] = []
        self._charts = {
            file.folder: _read_chart_type(file) for file in self.files if file.path.endswith(f"/{CHART_FILE}")
        }
        self._root_by_url: dict[str, str] = {}  # repository URL → the local folder of that repository

    def build_repository(self, declared_environments: Sequence[DeclaredEnvironment] = ()) -> RepositoryView:
        unnamed = [
            self._render_without_application(folder)
            for folder in (*self._list_root_kustomizations(), *self._list_given_charts())
        ]
        applications = list(self._iterate_applications(unnamed))
        rendered = list(self._iterate_renderings(applications))
        folders = {rendering.folder for rendering in rendered}
        renderings = [*rendered, *(rendering for rendering in unnamed if rendering.folder not in folders)]
        loose = [item for file in self.files if file.path not in self._rendered_files for item in file.list_items()]
        if not renderings:
            renderings, loose = [RenderedSource(None, ".", tuple(loose))] if loose else [], []
        self._note_unrendered_charts({rendering.folder for rendering in renderings})
        tracked = TrackedFiles()
        kubeconfigs = find_kubeconfigs(self._paths, self.files, tracked)
        all_items = [*loose, *(item for rendering in renderings for item in rendering.items)]
        definitions = [item.manifest for item in all_items if item.group_kind == CRD]
        return RepositoryView(
            renderings=tuple(renderings),
            environments=tuple(declared_environments),
            definitions=tuple(definitions),
            unrendered_manifests=tuple(loose),
            kustomizations=tuple(item for file in self.files if (item := file.find_kustomization())),
            patches=tuple(
                item for file in self.files if file.path in self._rendered_files and (item := file.find_patch())
            ),
            values_files=tuple(
                item for file in self.files if self._is_values_file(file) and (item := file.find_values())
            ),
            kubeconfigs=kubeconfigs.items,
            is_tracked=tracked.is_tracked,
            external_violations=list_other_linter_violations(self.files, self._paths, self._rendered_files),
            has_path=self._has_file,
            notes=(*self._notes, *kubeconfigs.notes),
        )

    # -- kustomizations without an Application --

    def _list_root_kustomizations(self) -> list[str]:
        """List folders that no other kustomization uses as a base."""
        file_by_folder = {file.folder: file for file in self.files if file.is_kustomization}
        used = {
            os.path.normpath(os.path.join(folder, str(reference)))
            for folder, file in file_by_folder.items()
            if (item := file.find_kustomization())
            for name in _REFERENCES
            for reference in item.get_list(name)
        }
        return [folder for folder, file in file_by_folder.items() if folder not in used and not _is_component(file)]

    def _render_without_application(self, folder: str) -> RenderedSource:
        top = self._find_top_folder(folder)
        root = find_root_with_bases(top, folder) if self._is_interactive else top
        inner = os.path.relpath(folder, root)
        app = Application(name=_build_release_name(os.path.basename(folder)))
        folder_render = self._renderer.render_sources(
            root, app, [read_source({"path": inner})], FileLocation(relative_path(folder))
        )
        self._add_note(folder_render.note)
        self._rendered_files |= folder_render.inputs
        return RenderedSource(
            None, relative_path(folder), tuple(folder_render.items), folder_render.fault, is_partial=True
        )

    # -- charts --

    def _list_given_charts(self) -> list[str]:
        """List chart folders among the given paths; a kustomization in the same folder wins, as in Argo CD."""
        folders = dict.fromkeys(os.path.realpath(path) for path in self._paths)
        return [folder for folder in folders if self._is_chart(folder)]

    def _is_chart(self, folder: str) -> bool:
        kind = self._charts.get(folder)
        if kind == "library":
            self._add_note(f"{relative_path(folder)}: not rendered: a library chart creates no objects")
        return kind is not None and kind != "library"

    def _note_unrendered_charts(self, rendered: set[str]) -> None:
        """Charts that nothing rendered; a subchart belongs to its parent."""
        folders: list[str] = []
        for folder, kind in self._charts.items():
            is_subchart = any(folder.startswith(f"{other_folder}/charts/") for other_folder in self._charts)
            is_rendered = relative_path(folder) in rendered or os.path.join(folder, CHART_FILE) in self._rendered_files
            if kind != "library" and not is_subchart and not is_rendered:
                folders.append(relative_path(folder))
        if len(folders) > _MAX_CHART_NOTES:
            self._add_note(
                f"{', '.join(folders)}: no Application here uses these {len(folders)} charts, so they were not"
                f" rendered; to check one with its own values: {_build_check_command(folders[0])}"
            )
            return
        for folder in folders:
            self._add_note(
                f"{folder}: no Application here uses this chart, so it was not rendered; to check it with its"
                f" own values: {_build_check_command(folder)}"
            )

    def _is_values_file(self, file: YamlFile) -> bool:
        return file.is_values_by_name or (
            file.path in self._rendered_files and not file.path.endswith(f"/{CHART_FILE}")
        )

    # -- Applications --

    def _iterate_applications(self, unnamed: Sequence[RenderedSource]) -> Iterator[tuple[ApplicationDeclaration, str]]:
        """Yield each Application with its file."""
        seen_names: set[tuple[str, str]] = set()
        written = (item for rendering in unnamed for item in rendering.items)
        raw = (item for file in self.files if file.path not in self._rendered_files for item in file.list_items())
        for item in (*written, *raw):
            name = item.key.namespace, item.key.name
            if (
                item.group_kind == APPLICATION
                and name not in seen_names
                and (declaration := self._read_declaration(item))
            ):
                seen_names.add(name)
                yield declaration, os.path.realpath(item.find_location().file)

    def _read_declaration(self, item: ManifestWithLocations) -> ApplicationDeclaration | None:
        try:
            app = read_application(item.manifest, item.find_location().file)
        except ArgosyError as error:
            self._add_note(f"{item.find_location()}: {item.name} not checked: {error}")
            return None
        if placeholder := _find_placeholder(app):
            problem = f"{item.name} not checked: it has the placeholder {placeholder}"
            self._add_note(f"{item.find_location()}: {problem}")
            return None
        return ApplicationDeclaration(app, item)

    def _iterate_renderings(self, applications: list[tuple[ApplicationDeclaration, str]]) -> Iterator[RenderedSource]:
        for written, file in applications:
            for source in written.app.sources:
                top = self._find_top_folder(file)
                home = _find_root_folder(source, file, top)
                if home and not _is_repository_root(source) and _may_be_this_repository(source, top):
                    self._root_by_url.setdefault(source.repo_url, home)
        queue, known_keys = list(applications), {written.item.key for written, _ in applications}
        while queue:
            written, file = queue.pop(0)
            rendering = self._render_application(written, file)
            yield rendering
            for item in rendering.items:
                if (
                    item.group_kind == APPLICATION
                    and item.key not in known_keys
                    and (child := self._read_declaration(item))
                ):
                    known_keys.add(item.key)
                    queue.append((child, os.path.realpath(item.find_location().file)))

    def _render_application(self, declaration: ApplicationDeclaration, file: str) -> RenderedSource:
        # argo: a source with a ref name and no path only provides files to the others.
        sources = [
            candidate
            for candidate in declaration.app.sources
            if candidate.path or candidate.chart or not candidate.alias
        ]
        location, top = declaration.find_location("spec", "source"), self._find_top_folder(file)
        roots: set[str] = set()
        for number, source in enumerate(sources):
            path = ("spec", "sources", number) if declaration.app.has_many_sources else ("spec", "source")
            if source.chart:
                self._add_note(f"{declaration.name}: not checked: chart {source.chart} of {source.repo_url}")
                return RenderedSource(declaration, "")
            is_own = source.repo_url in self._root_by_url or is_url_of_repository(source.repo_url, top)
            root = _find_root_folder(source, file, top)
            if root is None or (_is_repository_root(source) and not is_own):
                return self._report_missing_path(
                    declaration, source, declaration.find_location(*path, "path"), top, is_own
                )
            roots.add(root)
        if len(roots) != 1:
            problem = f"{declaration.name}: not checked: its sources are in several repositories here"
            self._add_note(problem if roots else "")
            return RenderedSource(declaration, "")
        root = roots.pop()
        folder = relative_path(os.path.normpath(os.path.join(root, sources[0].path))) if sources else ""
        folder_render = self._renderer.render_sources(root, declaration.app, sources, location)
        self._add_note(f"{declaration.name}: {folder_render.note}" if folder_render.note else "")
        self._rendered_files |= folder_render.inputs
        fault = folder_render.fault or self._find_tracked_branch_fault(declaration, sources, top)
        return RenderedSource(declaration, folder, tuple(folder_render.items), fault)

    def _find_tracked_branch_fault(
        self, declaration: ApplicationDeclaration, sources: Sequence[Source], top: str
    ) -> RenderFailure | None:
        """Return a fault if the sources render here but not at the branch that the Application tracks."""
        is_own = len(sources) == 1 and (
            sources[0].repo_url in self._root_by_url or is_url_of_repository(sources[0].repo_url, top)
        )
        reason = self._renderer.find_tracked_branch_error(top, declaration.app, sources[0]) if is_own else ""
        if not reason:
            return None
        ref = sources[0].ref
        message = f"{declaration.name}: cannot be rendered at {ref} (as fetched in this clone): {reason}"
        location = declaration.find_location("spec", "source", "targetRevision")
        return RenderFailure(
            RenderFailureKind.PATH, message, f"bring the files to {ref}, or track a branch that has them", location
        )

    def _report_missing_path(
        self, declaration: ApplicationDeclaration, source: Source, place: FileLocation, top: str, is_own: bool
    ) -> RenderedSource:
        if not is_own:
            self._add_note(f"{declaration.name}: not checked: {source.repo_url} is another repository")
            return RenderedSource(declaration, "")
        if self._renderer.has_path_at_ref(top, source.ref or "HEAD", source.path):
            self._add_note(f"{declaration.name}: not checked: {source.path} exists only at {source.ref}")
            return RenderedSource(declaration, "")
        ref_text = f", nor at {source.ref}" if source.ref not in ("", "HEAD") and load_remotes(top) else ""
        message = f"{declaration.name}: folder {source.path} not found in this repository{ref_text}"
        return RenderedSource(
            declaration,
            "",
            failure=RenderFailure(RenderFailureKind.PATH, message, "correct the path, or add the folder", place),
        )

    def _has_file(self, url: str, ref: str, path: str) -> bool | None:
        tops = dict.fromkeys(self._find_top_folder(os.path.realpath(candidate)) for candidate in self._paths)
        root = self._root_by_url.get(url) or next(
            (candidate for candidate in tops if is_url_of_repository(url, candidate)), None
        )
        if root is None:
            return None
        return os.path.isfile(os.path.join(root, path)) or self._renderer.has_path_at_ref(root, ref or "HEAD", path)

    def _find_top_folder(self, path: str) -> str:
        return self._boundary or find_top_folder(path, self._paths)

    def _add_note(self, text: str) -> None:
        if text and text not in self._notes:
            self._notes.append(text)


def _build_check_command(folder: str) -> str:
    """Return the shell command; `./` keeps a name such as -x from being parsed as a flag."""
    return f"argosy check {shlex.quote(f'./{folder}' if folder.startswith('-') else folder)}"


def _may_be_this_repository(source: Source, top: str) -> bool:
    """True if the URL may be this repository: the clone has no remote, or a remote of the same name."""
    # A local copy may have any name.
    names = {
        _get_repository_name(address)
        for address in load_remotes(top).values()
        if not address.startswith(("/", ".", "file:"))
    }
    return not names or _get_repository_name(source.repo_url) in names


def _get_repository_name(address: str) -> str:
    return address.rstrip("/").removesuffix(".git").rpartition("/")[2].rpartition(":")[2].lower()


def _find_placeholder(app: Application) -> str:
    """Find a placeholder such as `${NAME}` in an Application, which is replaced before it is applied."""
    destination = app.destination
    texts = [app.name, destination.name, destination.namespace, destination.server]
    texts += [word for source in app.sources for word in (source.repo_url, source.path, source.ref)]
    return next((match[0] for word in texts if (match := _PLACEHOLDER.search(word))), "")


def _build_release_name(folder: str) -> str:
    """Build a valid Helm release name."""
    return re.sub(r"[^a-z0-9-]+", "-", folder.lower()).strip("-")[:53].strip("-") or "release"


def _read_chart_type(file: YamlFile) -> str:
    first: Manifest = next((document for document in file.documents if isinstance(document, dict)), {})
    return str(first.get("type") or "application")


def _is_component(file: YamlFile) -> bool:
    first: Manifest = next((document for document in file.documents if isinstance(document, dict)), {})
    return first.get("kind") == "Component"


def _is_repository_root(source: Source) -> bool:
    return os.path.normpath(source.path or ".") == "."


def _find_root_folder(source: Source, file: str, top: str) -> str | None:
    """Find the parent folder of the Application's file in which its path exists; the repository root is tried first."""
    parents = [os.path.dirname(file)]
    while parents[-1] != top and os.path.dirname(parents[-1]) != parents[-1]:
        parents.append(os.path.dirname(parents[-1]))
    return next(
        (folder for folder in reversed(parents) if os.path.isdir(os.path.join(folder, source.path or "."))), None
    )
