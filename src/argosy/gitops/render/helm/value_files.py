"""Finds and reads the value files of an Application, as Argo CD does.

In: a tree, a chart's folder, and paths as users wrote them. Out: the files' contents, later files win.
Never: reads a file outside the repository that a path names, whether by `..`, by a link or by a URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from argosy.errors import NoMatchingFile, RenderError
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.helm.engine_interface import ValuesFile
from argosy.gitops.render.helm.value_file_globs import is_glob, list_matching_files
from argosy.gitops.render.kustomize.tree_paths import join_path, resolve_path
from argosy.gitops.render.lfs_check import reject_lfs_pointer

_URL_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")  # matches what Go's URL parser accepts as a scheme
_URL_HOST = re.compile(r"(?:.*@)?([^/?#]*)")


class _ValueFilePath(NamedTuple):
    alias: str  # of another source; empty for the Application's own source
    path: str


@dataclass(frozen=True, slots=True)
class ValueFileReader:
    tree: FileTree
    folder: str  # the chart's folder
    substitute: Callable[[str], str] = str
    refs: Mapping[str, FileTree] | None = None
    has_many_sources: bool = False

    def read(self, names: Sequence[str], ignore_missing: bool = False) -> list[ValuesFile]:
        """argo: a file that is listed literally keeps the position where it is listed, not where a glob matches it."""
        field_paths = [(f"valueFiles[{i}]", self._resolve(f"valueFiles[{i}]", name)) for i, name in enumerate(names)]
        literal_paths = {file_path for _, file_path in field_paths if not is_glob(file_path.path)}
        files: dict[_ValueFilePath, ValuesFile] = {}
        for name, (field, file_path) in zip(names, field_paths, strict=True):
            if is_glob(file_path.path):
                matching = self._match_glob(field, file_path)
                if not matching and not ignore_missing:
                    message = f'values file glob "{name}" matched no files; {_MISSING_FILE_ADVICE}'  # argo: its words
                    raise NoMatchingFile(message, where=self._describe_field(field))
                candidates = [candidate for candidate in matching if candidate not in literal_paths]
            else:
                candidates = [file_path]
            for candidate in candidates:
                if candidate not in files and (file := self._load_file(field, candidate, ignore_missing)):
                    files[candidate] = file
        return list(files.values())

    def read_one(self, field: str, name: str) -> ValuesFile:
        file_path = self._resolve(field, name)
        file = self._load_file(field, file_path, False)
        assert file is not None
        return file

    def _resolve(self, field: str, name: str) -> _ValueFilePath:
        alias, slash, path_in_ref = name.removeprefix("$").partition("/")
        if slash and name.startswith("$") and alias in (self.refs or {}):
            return _ValueFilePath(
                alias, join_path("", self.substitute(path_in_ref).lstrip("/"), self._describe_field(field))
            )
        if name.startswith("$") and not name.startswith("$$"):
            self._check_reference(field, f"${alias}")
        path = self.substitute(name)
        if scheme := _URL_SCHEME.match(path):
            raise RenderError(_format_url_error(path, scheme[0]), where=self._describe_field(field))
        folder = "" if path.startswith("/") else self.folder
        return _ValueFilePath("", join_path(folder, path.lstrip("/"), self._describe_field(field)))

    def _check_reference(self, field: str, reference: str) -> None:
        """Reject an unknown reference: if it became empty, the path would name another file, from the repository's
        root.
        """
        # argo: with several sources, a name after a dollar sign can only be a source's ref.
        if self.substitute(reference) and not self.has_many_sources:
            return
        ref_names = ", ".join(f"${alias}" for alias in self.refs or {})
        refs_text = f"known refs: {ref_names}" if ref_names else "no source has a ref"
        variable_text = "" if self.has_many_sources else ", and not a build variable with a value"
        message = (
            f"{reference} is not the ref of a source ({refs_text}){variable_text}; correct it, or add `ref` to "
            "the source"
        )
        raise RenderError(message, where=self._describe_field(field))

    def _match_glob(self, field: str, file_path: _ValueFilePath) -> list[_ValueFilePath]:
        tree = self._select_tree(file_path)
        return [
            _ValueFilePath(file_path.alias, path)
            for path in list_matching_files(tree, file_path.path, self._describe_field(field))
        ]

    def _load_file(self, field: str, file_path: _ValueFilePath, ignore_missing: bool) -> ValuesFile | None:
        tree, where = (
            self._select_tree(file_path),
            f"${file_path.alias}/{file_path.path}" if file_path.alias else file_path.path,
        )
        path, kind = resolve_path(tree, file_path.path, self._describe_field(field))
        if kind == "file":
            return ValuesFile(where, reject_lfs_pointer(tree.read_file(path), where))
        if kind == "folder":
            raise RenderError(f"{field} is a folder; use a file in it", where=where)
        if ignore_missing:
            return None
        message = f"Error: open {where}: no such file or directory; {_MISSING_FILE_ADVICE}"  # Helm's words
        raise RenderError(message, where=self._describe_field(field))

    def _select_tree(self, file_path: _ValueFilePath) -> FileTree:
        return (self.refs or {})[file_path.alias] if file_path.alias else self.tree

    def _describe_field(self, field: str) -> str:
        return f"{self.folder or '.'}: {field}"


_MISSING_FILE_ADVICE = "add it, correct the name, or set ignoreMissingValueFiles"


def _format_url_error(url: str, scheme: str) -> str:
    address = url[len(scheme) :].removeprefix("//")
    host = match[1] if (match := _URL_HOST.match(address)) else ""
    return f"{scheme}//{host} is not in the repository, and rendering does not fetch files: copy the file into Git"
