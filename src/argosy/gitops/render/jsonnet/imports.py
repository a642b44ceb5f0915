"""Finds the imports of Jsonnet files without evaluating them: an import is always a string literal.

In: a tree and some of its files. Out: all files that they can import, and how each import resolves.
Never: leaves the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from argosy.errors import LimitError, RenderError
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.kustomize.tree_paths import join_path, resolve_path
from argosy.gitops.render.lfs_check import reject_lfs_pointer

_MAX_FILES, _MAX_BYTES = 5_000, 32 << 20
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


def list_imports(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each imported name, and True if it is imported as Jsonnet (False: as text or bytes)."""
    import_keyword = ""
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind in ("comment", "space"):
            continue
        if kind in ("text", "verbatim") and import_keyword:
            yield _read_literal(token.group(), kind == "verbatim"), import_keyword == "import"
        word = token.group() if kind == "word" else ""
        import_keyword = word if word in ("import", "importstr", "importbin") else ""


def _read_literal(literal: str, is_verbatim: bool) -> str:
    if is_verbatim:
        quote = literal[1]
        return literal[2:-1].replace(quote * 2, quote)
    return _ESCAPE.sub(lambda match: _unescape(match[1]), literal[1:-1])


def _unescape(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _ESCAPES.get(escape, escape)


class ImportClosure:
    """Files with all their imports. `imports` maps a file's folder and an imported name to the resolved path."""

    def __init__(self, tree: FileTree, folder: str, libs: Sequence[str]) -> None:
        self._tree = tree
        # argo: libs are relative to the repository; the last is searched first, and the source's folder last.
        libs = [join_path("", lib.lstrip("/"), "directory.jsonnet.libs") for lib in libs]
        self._libs = [*reversed(libs), folder]
        self.contents: dict[str, bytes] = {}
        self.imports: dict[tuple[str, str], str] = {}
        self._total_bytes = 0
        self._scanned: set[str] = set()

    def add_file(self, path: str) -> None:
        pending = [path]
        while pending:
            current = pending.pop()
            self._load_file(current)
            if current in self._scanned:
                continue
            self._scanned.add(current)
            folder = current.rpartition("/")[0]
            pending += self._resolve_imports(
                f"{folder}/" if folder else "", self.contents[current].decode("utf-8", "replace")
            )

    def add_code(self, code: str) -> None:
        """Add the imports of a variable's code, which has no folder of its own."""
        for path in self._resolve_imports("", code):
            self.add_file(path)

    def _resolve_imports(self, folder: str, text: str) -> list[str]:
        """Return the files that are imported as Jsonnet; load the others."""
        code_paths = []
        for name, is_code in list_imports(text):
            path = self.imports.get((folder, name)) or self._find_import(folder, name)
            if path is None:
                continue  # an error only if it is evaluated
            self.imports[folder, name] = path
            if is_code:
                code_paths.append(path)
            else:
                self._load_file(path)
        return code_paths

    def _find_import(self, folder: str, name: str) -> str | None:
        for base_folder in (folder.rstrip("/"), *self._libs):
            try:
                path = join_path(base_folder, name, name)
                if resolve_path(self._tree, path, name)[1] == "file":
                    return path
            except RenderError:
                continue  # it would leave the repository
        return None

    def _load_file(self, path: str) -> None:
        if path in self.contents:
            return
        data = reject_lfs_pointer(self._tree.read_file(resolve_path(self._tree, path, path)[0]), path)
        self._total_bytes += len(data)
        if len(self.contents) >= _MAX_FILES or self._total_bytes > _MAX_BYTES:
            message = f"the imports exceed {_MAX_FILES} files or {_MAX_BYTES >> 20} MiB; import less"
            raise LimitError(message, where=path)
        self.contents[path] = data
