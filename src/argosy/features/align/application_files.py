"""The files that Applications are written in, and what proposals make of them.

In: the folder of a repository, proposals. Out: texts before and after. Never: writes; picks one of two definitions.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from argosy.errors import ArgosyError, UserError
from argosy.features.align.trial import Trial, edited_file
from argosy.gitops.analysis.alignment.manifest_edits import edits_of
from argosy.gitops.analysis.alignment.proposal import Proposal
from argosy.gitops.application import Application
from argosy.gitops.application.repository_url import parse_url
from argosy.gitops.source.settings import SourceSettings
from argosy.gitops.workspace.manifest_files import File, files_of
from argosy.gitops.workspace.paths import enclosing
from argosy.gitops.workspace.render_request import is_of
from argosy.kube.objects.yaml_edits import edited

_NO_NEWLINE: Final = "\\ No newline at end of file\n"


@dataclass(frozen=True)
class Written:
    """An Application in a file; `document` is its number among those that hold something."""

    path: str  # from the top of the repository
    document: int
    manifest: Mapping[str, Any]


@dataclass
class Files:
    """A working tree, with changes that are not written yet."""

    root: str
    applications: dict[str, list[Written]] = field(default_factory=dict)  # by name
    old: dict[str, str] = field(default_factory=dict)  # what is on the disk, of those that change
    new: dict[str, str] = field(default_factory=dict)

    @classmethod
    def below(cls, folder: str) -> Files:
        """The whole repository that the folder is in; the folder itself where it is in none."""
        if not os.path.isdir(folder):
            raise UserError("there is no such folder; name the working tree of your repository", where=folder)
        root = enclosing(os.path.realpath(folder)) or os.path.realpath(folder)
        made = cls(root)
        for file in files_of([root]):
            for written in _applications(file, root):
                name = str(written.manifest["metadata"]["name"])
                made.applications.setdefault(name, []).append(written)
        return made

    def is_read_by(self, apps: Iterable[Application], settings: SourceSettings) -> bool:
        """Whether it is the repository of one of them, by any of its addresses, or a clone of what stands in for it."""
        urls = {each.repo_url for app in apps for each in app.sources}
        return any(is_of(each, self.root) for url in urls for each in (url, _place_of(url, settings)))

    @property
    def changed(self) -> dict[str, tuple[str, str]]:
        """Texts before and after, by path."""
        return {path: (self.old[path], text) for path, text in self.new.items() if text != self.old[path]}

    def reset(self) -> None:
        """Without any change again."""
        self.old.clear()
        self.new.clear()

    def find(self, app: Application) -> Written:
        """The one place where it is written; a UserError where there is none, or are two."""
        found = [each for each in self.applications.get(app.name, ()) if _is(each.manifest, app)]
        if not found:
            owner = owner_of(app)
            made = f"made by {owner}: change its template" if owner else "in another repository: name it with --repo"
            raise UserError(f"{app.name} is not written in {os.path.basename(self.root)}; perhaps it is {made}")
        if len(found) > 1:
            places = " and ".join(each.path for each in found)
            raise UserError(f"{app.name} is defined twice, in {places}; keep one of them")
        return found[0]

    def text(self, path: str) -> str:
        """As it would be; raises UserError where there is no such file here."""
        if path not in self.new:
            place = os.path.join(self.root, path)
            try:
                if os.path.realpath(place) != place:
                    raise OSError
                with open(place, encoding="utf-8", newline="") as opened:
                    self.old[path] = self.new[path] = opened.read()
            except (OSError, UnicodeDecodeError):
                told = "is no file of this working tree; name that of its repository with --repo"
                raise UserError(told, where=path) from None
        return self.new[path]

    def change(self, trial: Trial, proposals: Iterable[Proposal]) -> tuple[list[str], list[str]]:
        """Which files were changed, and what is to be done by hand, each with the reason."""
        chosen = [each for each in proposals if each.kind.changes]
        paths: list[str] = []
        faults: list[str] = []
        for edit in (*(partial(self._in_source, trial, each) for each in chosen if each.file),
                     partial(self._in_application, trial.app, [each for each in chosen if not each.file])):  # fmt: skip
            try:
                paths += edit()
            except UserError as error:
                faults.append(str(error))
        return list(dict.fromkeys(paths)), faults

    def _in_source(self, trial: Trial, proposal: Proposal) -> list[str]:
        """A file that manifests are rendered from: here it must be what it is at the ref."""
        text = self.text(proposal.file)
        if self.old[proposal.file].encode() != trial.bases.get(proposal.file):
            ref = trial.app.sources[0].ref or "HEAD"
            raise UserError(f"is not here what it is at {ref}; check that out, or pull", where=proposal.file)
        return self._put(proposal.file, edited_file(text, proposal))

    def _in_application(self, app: Application, proposals: list[Proposal]) -> list[str]:
        if not proposals:
            return []
        written = self.find(app)
        edits = edits_of(written.manifest, proposals)
        text = self.text(written.path)
        return self._put(written.path, edited(text, edits, document=written.document, where=written.path))

    def _put(self, path: str, text: str) -> list[str]:
        is_new = self.new[path] != text
        self.new[path] = text
        return [path] if is_new else []

    def patch(self) -> str:
        """All changes, as `git apply` takes them."""
        return "".join(_difference(path, *texts) for path, texts in sorted(self.changed.items()))

    def write(self) -> list[str]:
        """Into the working tree; each file at once or not at all."""
        for path, (_, text) in self.changed.items():
            place = os.path.join(self.root, path)
            beside = f"{place}.argosy"
            with open(beside, "w", encoding="utf-8", newline="") as opened:
                opened.write(text)
            os.chmod(beside, os.stat(place).st_mode)
            os.replace(beside, place)
        return sorted(self.changed)


def _place_of(url: str, settings: SourceSettings) -> str:
    try:
        return str(settings.locate(parse_url(url)))
    except ArgosyError:  # nobody may read it from here
        return url


def _applications(file: File, root: str) -> Iterator[Written]:
    for number, manifest in enumerate(file.documents):
        if not isinstance(manifest, dict) or manifest.get("kind") != "Application":
            continue
        metadata, spec = manifest.get("metadata"), manifest.get("spec")
        is_whole = isinstance(spec, dict) and ("source" in spec or "sources" in spec)  # else it is a patch of one
        is_ours = str(manifest.get("apiVersion") or "").startswith("argoproj.io/")
        if is_ours and is_whole and isinstance(metadata, dict) and metadata.get("name"):
            yield Written(os.path.relpath(file.path, root).replace(os.sep, "/"), number, manifest)


def _is(manifest: Mapping[str, Any], app: Application) -> bool:
    namespace = manifest["metadata"].get("namespace")
    return not namespace or namespace == app.namespace


def owner_of(app: Application) -> str:
    """`ApplicationSet/NAME`, where a controller makes it; empty where none does."""
    metadata = app.wire.get("metadata") or {}
    owners = metadata.get("ownerReferences") or []
    return next((f"{each.get('kind')}/{each.get('name')}" for each in owners if isinstance(each, dict)), "")


def _difference(path: str, old: str, new: str) -> str:
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    lines = difflib.unified_diff(before, after, f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines)
