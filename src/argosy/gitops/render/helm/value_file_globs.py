"""Matches globs in paths of value files: `*`, `?`, `[a-z]`, `{a,b}` within a name, `**` for any number of folders.

In: a tree and a glob. Out: the matching files, sorted. Never: a file that a link reaches outside the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from argosy.errors import RenderError
from argosy.gitops.application.file_tree_protocol import FileTree, TreeEntry
from argosy.gitops.render.kustomize.tree_paths import resolve_path

_MAX_FOLDERS = 5_000
_MAX_ALTERNATIVES = 100
_MAX_STARS_PER_NAME = 8  # matching time grows exponentially with them
_BRACES = re.compile(r"\{([^{}]*)\}")
_SET_SPECIAL_CHARACTERS = re.compile(r"[][\\^]")
_TOKEN = re.compile(
    r"\\(?P<literal>.)|(?P<stars>\*+)|(?P<any>\?)|\[(?P<not>[!^]?)(?P<set>\]?[^\]]*)\]|(?P<rest>.)", re.DOTALL
)


def is_glob(path: str) -> bool:
    return any(character in path for character in "*?[")


def list_matching_files(tree: FileTree, pattern: str, where: str) -> list[str]:
    walker = _GlobWalker(tree, where)
    return sorted(
        {
            path
            for alternative in _expand_braces(pattern, where)
            for path in walker.list_matches("", alternative.split("/"))
        }
    )


def _expand_braces(pattern: str, where: str) -> list[str]:
    """Expand `a{b,c/d}` to `ab` and `ac/d`, before the path is split."""
    expanded, pending = [], [pattern]
    while pending:
        candidate = pending.pop()
        match = _BRACES.search(candidate)
        if match is None:
            expanded.append(candidate)
            continue
        pending += [candidate[: match.start()] + choice + candidate[match.end() :] for choice in match[1].split(",")]
        if len(expanded) + len(pending) > _MAX_ALTERNATIVES:
            raise RenderError(f"{pattern!r} has too many alternatives; list the files", where=where)
    return expanded


class _GlobWalker:
    def __init__(self, tree: FileTree, where: str) -> None:
        self._tree, self._where, self._folder_count = tree, where, 0

    def list_matches(self, folder: str, name_globs: list[str]) -> Iterator[str]:
        first_glob, remaining_globs = name_globs[0], name_globs[1:]
        if first_glob == "**":
            yield from self._match_at_any_depth(folder, remaining_globs)
            return
        name_pattern = _compile_name_pattern(first_glob, self._where)
        for entry in self._list_folder(folder):
            if not name_pattern.fullmatch(entry.name):
                continue
            path = f"{folder}/{entry.name}" if folder else entry.name
            _, kind = resolve_path(self._tree, path, self._where)
            if not remaining_globs and kind == "file":
                yield path
            elif remaining_globs and kind == "folder":
                yield from self.list_matches(path, remaining_globs)

    def _match_at_any_depth(self, folder: str, remaining_globs: list[str]) -> Iterator[str]:
        yield from self.list_matches(folder, remaining_globs or ["*"])
        for entry in self._list_folder(folder):
            if entry.kind == "folder":  # links are not followed: they may form a cycle
                yield from self._match_at_any_depth(f"{folder}/{entry.name}" if folder else entry.name, remaining_globs)

    def _list_folder(self, folder: str) -> Sequence[TreeEntry]:
        self._folder_count += 1
        if self._folder_count > _MAX_FOLDERS:
            raise RenderError(f"the glob searches more than {_MAX_FOLDERS} folders; narrow it", where=self._where)
        return self._tree.list_folder(resolve_path(self._tree, folder, self._where)[0])


def _compile_name_pattern(pattern: str, where: str) -> re.Pattern[str]:
    if pattern.count("*") > _MAX_STARS_PER_NAME:
        raise RenderError(
            f"{pattern!r} has more than {_MAX_STARS_PER_NAME} stars in one name; name the file", where=where
        )
    try:
        return re.compile("".join(map(_token_to_regex, _TOKEN.finditer(pattern))))
    except re.error as error:
        raise RenderError(f"{pattern!r} is not a valid glob; close its brackets", where=where) from error


def _token_to_regex(token: re.Match[str]) -> str:
    if token["stars"]:
        return "[^/]*"
    if token["any"]:
        return "[^/]"
    if token["set"] is not None:
        return "[" + ("^" if token["not"] else "") + _SET_SPECIAL_CHARACTERS.sub(r"\\\g<0>", token["set"]) + "]"
    return "[" if token["rest"] == "[" else re.escape(token["literal"] or token["rest"])
