"""Finds and reads the value files of an Application, as Argo CD does.

In: a tree, a chart's folder, and paths as users wrote them. Out: the files' contents, later files win.
Never: reads a file outside the repository that a path names, whether by `..`, by a link or by a URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from argosy.errors import RenderError
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.render.helm.release import ValuesFile
from argosy.gitops.render.helm.value_globs import is_glob, matches
from argosy.gitops.render.kustomize.tree_paths import joined, located
from argosy.gitops.render.lfs_check import refuse_pointer

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")  # matches what Go's URL parser accepts as a scheme
_URL = re.compile(r"(?:.*@)?([^/?#]*)")


class _Place(NamedTuple):
    alias: str  # of another source; empty for the Application's own source
    path: str


@dataclass(frozen=True, slots=True)
class ValueFiles:
    tree: Tree
    folder: str  # the chart's folder
    substitute: Callable[[str], str] = str
    refs: Mapping[str, Tree] | None = None
    has_many_sources: bool = False

    def read(self, names: Sequence[str], ignore_missing: bool = False) -> list[ValuesFile]:
        """argo: a file that is listed literally keeps the position where it is listed, not where a glob matches it."""
        places = [
            (f"valueFiles[{number}]", self._place(f"valueFiles[{number}]", name)) for number, name in enumerate(names)
        ]
        outright = {place for _, place in places if not is_glob(place.path)}
        found: dict[_Place, ValuesFile] = {}
        for field, place in places:
            if is_glob(place.path):
                matching = self._matching(field, place)
                if not matching and not ignore_missing:
                    raise RenderError(f"no file matches {place.path!r}; {_MISSING}", where=self._where(field))
                some = [each for each in matching if each not in outright]
            else:
                some = [place]
            for each in some:
                if each not in found and (file := self._file(field, each, ignore_missing)):
                    found[each] = file
        return list(found.values())

    def read_one(self, field: str, name: str) -> ValuesFile:
        place = self._place(field, name)
        file = self._file(field, place, False)
        assert file is not None
        return file

    def _place(self, field: str, name: str) -> _Place:
        alias, slash, rest = name.removeprefix("$").partition("/")
        if slash and name.startswith("$") and alias in (self.refs or {}):
            return _Place(alias, joined("", self.substitute(rest).lstrip("/"), self._where(field)))
        if name.startswith("$") and not name.startswith("$$"):
            self._check_variable(field, f"${alias}")
        path = self.substitute(name)
        if scheme := _SCHEME.match(path):
            raise RenderError(_refused_url(path, scheme[0]), where=self._where(field))
        folder = "" if path.startswith("/") else self.folder
        return _Place("", joined(folder, path.lstrip("/"), self._where(field)))

    def _check_variable(self, field: str, lead: str) -> None:
        """Reject an unknown reference: if it became empty, the path would name another file, from the repository's
        root.
        """
        # argo: with several sources, a name after a dollar sign can only be a source's ref.
        if self.substitute(lead) and not self.has_many_sources:
            return
        known = ", ".join(f"${each}" for each in self.refs or {})
        there = f"known refs: {known}" if known else "no source has a ref"
        also = "" if self.has_many_sources else ", and not a build variable with a value"
        message = f"{lead} is not the ref of a source ({there}){also}; correct it, or add `ref` to the source"
        raise RenderError(message, where=self._where(field))

    def _matching(self, field: str, place: _Place) -> list[_Place]:
        tree = self._tree(place)
        return [_Place(place.alias, path) for path in matches(tree, place.path, self._where(field))]

    def _file(self, field: str, place: _Place, ignore_missing: bool) -> ValuesFile | None:
        tree, where = self._tree(place), f"${place.alias}/{place.path}" if place.alias else place.path
        path, kind = located(tree, place.path, self._where(field))
        if kind == "file":
            return ValuesFile(where, refuse_pointer(tree.read(path), where))
        if kind == "folder":
            raise RenderError(f"{field} is a folder; use a file in it", where=where)
        if ignore_missing:
            return None
        raise RenderError(f"{field} names it, but there is no such file; {_MISSING}", where=where)

    def _tree(self, place: _Place) -> Tree:
        return (self.refs or {})[place.alias] if place.alias else self.tree

    def _where(self, field: str) -> str:
        return f"{self.folder or '.'}: {field}"


_MISSING = "add it, correct the name, or set ignoreMissingValueFiles"


def _refused_url(url: str, scheme: str) -> str:
    after = url[len(scheme) :].removeprefix("//")
    host = found[1] if (found := _URL.match(after)) else ""
    return f"{scheme}//{host} is not in the repository, and rendering does not fetch files: copy the file into Git"
