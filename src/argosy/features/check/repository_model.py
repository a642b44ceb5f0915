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
from argosy.features.check.extra_findings import told_by_others
from argosy.features.check.kubeconfigs import TrackedFiles, find_kubeconfigs
from argosy.features.check.rendering import Builder
from argosy.gitops.analysis.repository import Fault, Item, Planned, Rendering, Repository, Trouble, Written
from argosy.gitops.analysis.violation import Place
from argosy.gitops.application import Application, Source, read_application, read_source
from argosy.gitops.render.tool_detection import CHART_FILE
from argosy.gitops.workspace.kustomize_bases import root_with_bases
from argosy.gitops.workspace.manifest_files import File, files_of, shown, top_of
from argosy.gitops.workspace.paths import remotes
from argosy.gitops.workspace.render_request import is_of
from argosy.kube.objects import Manifest

_APPLICATION: Final = ("argoproj.io", "Application")
_DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
_PLACEHOLDER: Final = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\{\{.*?\}\}|\$[A-Z][A-Z0-9_]+|<[\w -]+>")
_MAX_CHART_NOTES: Final = 5  # more charts share one note
_REFERENCES: Final = ("resources", "bases", "components")


class Survey:
    """Reads and renders everything below the given paths, once."""

    def __init__(self, paths: Sequence[str], builder: Builder, *, is_typed: bool = False, boundary: str = "") -> None:
        self.files = list(files_of(paths))
        self._builder = builder
        self._paths = paths
        self._is_typed = is_typed
        self._boundary = boundary
        self._read: set[str] = set()  # files that renderings read
        self._notes: list[str] = []
        self._charts = {file.folder: _chart_type(file) for file in self.files if file.path.endswith(f"/{CHART_FILE}")}
        self._homes: dict[str, str] = {}  # repository URL → the local folder of that repository

    def repository(self, planned: Sequence[Planned] = ()) -> Repository:
        unnamed = [self._unnamed(folder) for folder in (*self._kustomizations(), *self._typed_charts())]
        applications = list(self._applications(unnamed))
        named = list(self._rendered(applications))
        folders = {each.folder for each in named}
        renderings = [*named, *(each for each in unnamed if each.folder not in folders)]
        loose = [item for file in self.files if file.path not in self._read for item in file.items()]
        if not renderings:
            renderings, loose = [Rendering(None, ".", tuple(loose))] if loose else [], []
        self._note_charts({each.folder for each in renderings})
        tracked = TrackedFiles()
        kubeconfigs = find_kubeconfigs(self._paths, self.files, tracked)
        everything = [*loose, *(item for each in renderings for item in each.items)]
        definitions = [item.manifest for item in everything if item.kind == _DEFINITION]
        return Repository(
            renderings=tuple(renderings),
            planned=tuple(planned),
            definitions=tuple(definitions),
            loose=tuple(loose),
            kustomizations=tuple(item for file in self.files if (item := file.kustomization())),
            patches=tuple(item for file in self.files if file.path in self._read and (item := file.patch())),
            values_files=tuple(item for file in self.files if self._is_values(file) and (item := file.values())),
            kubeconfigs=kubeconfigs.items,
            is_tracked=tracked.is_tracked,
            told=told_by_others(self.files, self._paths, self._read),
            has=self._has,
            notes=(*self._notes, *kubeconfigs.notes),
        )

    # -- kustomizations without an Application --

    def _kustomizations(self) -> list[str]:
        """List folders that no other kustomization uses as a base."""
        found = {file.folder: file for file in self.files if file.is_kustomization}
        used = {
            os.path.normpath(os.path.join(folder, str(each)))
            for folder, file in found.items()
            if (item := file.kustomization())
            for name in _REFERENCES
            for each in item.all(name)
        }
        return [folder for folder, file in found.items() if folder not in used and not _is_component(file)]

    def _unnamed(self, folder: str) -> Rendering:
        top = self._top_of(folder)
        root = root_with_bases(top, folder) if self._is_typed else top
        inner = os.path.relpath(folder, root)
        app = Application(name=_release_name(os.path.basename(folder)))
        built = self._builder.build(root, app, [read_source({"path": inner})], Place(shown(folder)))
        self._noted(built.note)
        self._read |= built.inputs
        return Rendering(None, shown(folder), tuple(built.items), built.fault, is_part=True)

    # -- charts --

    def _typed_charts(self) -> list[str]:
        """List chart folders among the given paths; a kustomization in the same folder wins, as in Argo CD."""
        folders = dict.fromkeys(os.path.realpath(path) for path in self._paths)
        return [folder for folder in folders if self._is_chart(folder)]

    def _is_chart(self, folder: str) -> bool:
        kind = self._charts.get(folder)
        if kind == "library":
            self._noted(f"{shown(folder)}: not rendered: a library chart creates no objects")
        return kind is not None and kind != "library"

    def _note_charts(self, rendered: set[str]) -> None:
        """Charts that nothing rendered; a subchart belongs to its parent."""
        folders: list[str] = []
        for folder, kind in self._charts.items():
            is_subchart = any(folder.startswith(f"{other}/charts/") for other in self._charts)
            is_rendered = shown(folder) in rendered or os.path.join(folder, CHART_FILE) in self._read
            if kind != "library" and not is_subchart and not is_rendered:
                folders.append(shown(folder))
        if len(folders) > _MAX_CHART_NOTES:
            self._noted(f"{', '.join(folders)}: no Application here uses these {len(folders)} charts, so they were not"
                        f" rendered; to check one with its own values: {_check_command(folders[0])}")  # fmt: skip
            return
        for folder in folders:
            self._noted(f"{folder}: no Application here uses this chart, so it was not rendered; to check it with its"
                        f" own values: {_check_command(folder)}")  # fmt: skip

    def _is_values(self, file: File) -> bool:
        return file.is_values_by_name or (file.path in self._read and not file.path.endswith(f"/{CHART_FILE}"))

    # -- Applications --

    def _applications(self, unnamed: Sequence[Rendering]) -> Iterator[tuple[Written, str]]:
        """Yield each Application with its file."""
        seen: set[tuple[str, str]] = set()
        written = (item for each in unnamed for item in each.items)
        raw = (item for file in self.files if file.path not in self._read for item in file.items())
        for item in (*written, *raw):
            name = item.key.namespace, item.key.name
            if item.kind == _APPLICATION and name not in seen and (found := self._written(item)):
                seen.add(name)
                yield found, os.path.realpath(item.at().file)

    def _written(self, item: Item) -> Written | None:
        try:
            app = read_application(item.manifest, item.at().file)
        except ArgosyError as error:
            self._noted(f"{item.at()}: {item.name} not checked: {error}")
            return None
        if held := _placeholder(app):
            told = f"{item.name} not checked: it has the placeholder {held}"
            self._noted(f"{item.at()}: {told}")
            return None
        return Written(app, item)

    def _rendered(self, applications: list[tuple[Written, str]]) -> Iterator[Rendering]:
        for written, file in applications:
            for source in written.app.sources:
                top = self._top_of(file)
                home = _home(source, file, top)
                if home and not _is_top(source) and _is_namesake(source, top):
                    self._homes.setdefault(source.repo_url, home)
        waiting, known = list(applications), {written.item.key for written, _ in applications}
        while waiting:
            written, file = waiting.pop(0)
            rendering = self._one(written, file)
            yield rendering
            for item in rendering.items:
                if item.kind == _APPLICATION and item.key not in known and (found := self._written(item)):
                    known.add(item.key)
                    waiting.append((found, os.path.realpath(item.at().file)))

    def _one(self, written: Written, file: str) -> Rendering:
        # argo: a source with a ref name and no path only provides files to the others.
        sources = [each for each in written.app.sources if each.path or each.chart or not each.alias]
        place, top = written.at("spec", "source"), self._top_of(file)
        roots: set[str] = set()
        for number, source in enumerate(sources):
            path = ("spec", "sources", number) if written.app.has_many_sources else ("spec", "source")
            if source.chart:
                self._noted(f"{written.name}: not checked: chart {source.chart} of {source.repo_url}")
                return Rendering(written, "")
            is_ours = source.repo_url in self._homes or is_of(source.repo_url, top)
            root = _home(source, file, top)
            if root is None or (_is_top(source) and not is_ours):
                return self._elsewhere(written, source, written.at(*path, "path"), top, is_ours)
            roots.add(root)
        if len(roots) != 1:
            told = f"{written.name}: not checked: its sources are in several repositories here"
            self._noted(told if roots else "")
            return Rendering(written, "")
        root = roots.pop()
        folder = shown(os.path.normpath(os.path.join(root, sources[0].path))) if sources else ""
        built = self._builder.build(root, written.app, sources, place)
        self._noted(f"{written.name}: {built.note}" if built.note else "")
        self._read |= built.inputs
        fault = built.fault or self._behind(written, sources, top)
        return Rendering(written, folder, tuple(built.items), fault)

    def _behind(self, written: Written, sources: Sequence[Source], top: str) -> Fault | None:
        """Return a fault if the sources render here but not at the branch that the Application tracks."""
        is_ours = len(sources) == 1 and (sources[0].repo_url in self._homes or is_of(sources[0].repo_url, top))
        why = self._builder.failing(top, written.app, sources[0]) if is_ours else ""
        if not why:
            return None
        ref = sources[0].ref
        message = f"{written.name}: cannot be rendered at {ref} (as fetched in this clone): {why}"
        place = written.at("spec", "source", "targetRevision")
        return Fault(Trouble.PATH, message, f"bring the files to {ref}, or track a branch that has them", place)

    def _elsewhere(self, written: Written, source: Source, place: Place, top: str, is_ours: bool) -> Rendering:
        if not is_ours:
            self._noted(f"{written.name}: not checked: {source.repo_url} is another repository")
            return Rendering(written, "")
        if self._builder.has(top, source.ref or "HEAD", source.path):
            self._noted(f"{written.name}: not checked: {source.path} exists only at {source.ref}")
            return Rendering(written, "")
        at = f", nor at {source.ref}" if source.ref not in ("", "HEAD") and remotes(top) else ""
        message = f"{written.name}: folder {source.path} not found in this repository{at}"
        return Rendering(written, "", fault=Fault(Trouble.PATH, message, "correct the path, or add the folder", place))

    def _has(self, url: str, ref: str, path: str) -> bool | None:
        tops = dict.fromkeys(self._top_of(os.path.realpath(each)) for each in self._paths)
        home = self._homes.get(url) or next((each for each in tops if is_of(url, each)), None)
        if home is None:
            return None
        return os.path.isfile(os.path.join(home, path)) or self._builder.has(home, ref or "HEAD", path)

    def _top_of(self, path: str) -> str:
        return self._boundary or top_of(path, self._paths)

    def _noted(self, text: str) -> None:
        if text and text not in self._notes:
            self._notes.append(text)


def _check_command(folder: str) -> str:
    """Return the shell command; `./` keeps a name such as -x from being parsed as a flag."""
    return f"argosy check {shlex.quote(f'./{folder}' if folder.startswith('-') else folder)}"


def _is_namesake(source: Source, top: str) -> bool:
    """True if the URL may be this repository: the clone has no remote, or a remote of the same name."""
    # A local copy may have any name.
    names = {_last(each) for each in remotes(top).values() if not each.startswith(("/", ".", "file:"))}
    return not names or _last(source.repo_url) in names


def _last(address: str) -> str:
    return address.rstrip("/").removesuffix(".git").rpartition("/")[2].rpartition(":")[2].lower()


def _placeholder(app: Application) -> str:
    """Find a placeholder such as `${NAME}` in an Application, which is replaced before it is applied."""
    destination = app.destination
    words = [app.name, destination.name, destination.namespace, destination.server]
    words += [word for source in app.sources for word in (source.repo_url, source.path, source.ref)]
    return next((found[0] for word in words if (found := _PLACEHOLDER.search(word))), "")


def _release_name(folder: str) -> str:
    """Build a valid Helm release name."""
    return re.sub(r"[^a-z0-9-]+", "-", folder.lower()).strip("-")[:53].strip("-") or "release"


def _chart_type(file: File) -> str:
    first: Manifest = next((each for each in file.documents if isinstance(each, dict)), {})
    return str(first.get("type") or "application")


def _is_component(file: File) -> bool:
    first: Manifest = next((each for each in file.documents if isinstance(each, dict)), {})
    return first.get("kind") == "Component"


def _is_top(source: Source) -> bool:
    return os.path.normpath(source.path or ".") == "."


def _home(source: Source, file: str, top: str) -> str | None:
    """Find the parent folder of the Application's file in which its path exists; the repository root is tried first."""
    above = [os.path.dirname(file)]
    while above[-1] != top and os.path.dirname(above[-1]) != above[-1]:
        above.append(os.path.dirname(above[-1]))
    return next((each for each in reversed(above) if os.path.isdir(os.path.join(each, source.path or "."))), None)
