"""Finds the imports of Jsonnet files without evaluating them: an import is always a string literal.

In: a tree and some of its files. Out: all files that they can import, and how each import resolves.
Never: leaves the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from argosy.errors import LimitError, RenderError
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.render.kustomize.tree_paths import joined, located
from argosy.gitops.render.lfs_check import refuse_pointer

_MOST_FILES, _MOST_BYTES = 5_000, 32 << 20
_TOKEN = re.compile(
    r"""
      (?P<comment> //[^\n]* | \#[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<block> \|\|\|-?[ \t\r]*\n .*? (?:^[ \t]*\|\|\||\Z) )
    | (?P<verbatim> @"(?:[^"]|"")*" | @'(?:[^']|'')*' )
    | (?P<text> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' )
    | (?P<word> [A-Za-z_][A-Za-z0-9_]* )
    | (?P<space> \s+ )
    | .
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def imports_of(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each imported name, and True if it is imported as Jsonnet (False: as text or bytes)."""
    wanted = ""
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind in ("comment", "space"):
            continue
        if kind in ("text", "verbatim") and wanted:
            yield _value(token.group(), kind == "verbatim"), wanted == "import"
        word = token.group() if kind == "word" else ""
        wanted = word if word in ("import", "importstr", "importbin") else ""


def _value(literal: str, is_verbatim: bool) -> str:
    if is_verbatim:
        quote = literal[1]
        return literal[2:-1].replace(quote * 2, quote)
    return _ESCAPE.sub(lambda found: _unescaped(found[1]), literal[1:-1])


def _unescaped(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _ESCAPES.get(escape, escape)


class Closure:
    """Files with all their imports. `imports` maps a file's folder and an imported name to the resolved path."""

    def __init__(self, tree: Tree, folder: str, libs: Sequence[str]) -> None:
        self._tree = tree
        # argo: libs are relative to the repository; the last is searched first, and the source's folder last.
        libs = [joined("", each.lstrip("/"), "directory.jsonnet.libs") for each in libs]
        self._libs = [*reversed(libs), folder]
        self.contents: dict[str, bytes] = {}
        self.imports: dict[tuple[str, str], str] = {}
        self._size = 0
        self._scanned: set[str] = set()

    def add_file(self, path: str) -> None:
        left = [path]
        while left:
            at = left.pop()
            self._read(at)
            if at in self._scanned:
                continue
            self._scanned.add(at)
            folder = at.rpartition("/")[0]
            left += self._follow(f"{folder}/" if folder else "", self.contents[at].decode("utf-8", "replace"))

    def add_code(self, code: str) -> None:
        """Add the imports of a variable's code, which has no folder of its own."""
        for path in self._follow("", code):
            self.add_file(path)

    def _follow(self, folder: str, text: str) -> list[str]:
        """Return the files that are imported as Jsonnet; load the others."""
        found = []
        for name, is_code in imports_of(text):
            path = self.imports.get((folder, name)) or self._find(folder, name)
            if path is None:
                continue  # an error only if it is evaluated
            self.imports[folder, name] = path
            if is_code:
                found.append(path)
            else:
                self._read(path)
        return found

    def _find(self, folder: str, name: str) -> str | None:
        for place in (folder.rstrip("/"), *self._libs):
            try:
                path = joined(place, name, name)
                if located(self._tree, path, name)[1] == "file":
                    return path
            except RenderError:
                continue  # it would leave the repository
        return None

    def _read(self, path: str) -> None:
        if path in self.contents:
            return
        data = refuse_pointer(self._tree.read(located(self._tree, path, path)[0]), path)
        self._size += len(data)
        if len(self.contents) >= _MOST_FILES or self._size > _MOST_BYTES:
            message = f"the imports exceed {_MOST_FILES} files or {_MOST_BYTES >> 20} MiB; import less"
            raise LimitError(message, where=path)
        self.contents[path] = data
