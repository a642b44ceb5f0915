"""Matches globs in paths of value files: `*`, `?`, `[a-z]`, `{a,b}` within a name, `**` for any number of folders.

In: a tree and a glob. Out: the matching files, sorted. Never: a file that a link reaches outside the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from argosy.errors import RenderError
from argosy.gitops.application.file_tree import Tree, TreeEntry
from argosy.gitops.render.kustomize.tree_paths import located

_MOST_FOLDERS = 5_000
_MOST_ALTERNATIVES = 100
_MOST_STARS = 8  # matching time grows exponentially with them
_BRACES = re.compile(r"\{([^{}]*)\}")
_IN_SET = re.compile(r"[][\\^]")
_TOKEN = re.compile(
    r"\\(?P<literal>.)|(?P<stars>\*+)|(?P<any>\?)|\[(?P<not>[!^]?)(?P<set>\]?[^\]]*)\]|(?P<rest>.)", re.DOTALL
)


def is_glob(path: str) -> bool:
    return any(sign in path for sign in "*?[")


def matches(tree: Tree, pattern: str, where: str) -> list[str]:
    walk = _Walk(tree, where)
    return sorted({path for each in _alternatives(pattern, where) for path in walk.below("", each.split("/"))})


def _alternatives(pattern: str, where: str) -> list[str]:
    """Expand `a{b,c/d}` to `ab` and `ac/d`, before the path is split."""
    done, open_ones = [], [pattern]
    while open_ones:
        each = open_ones.pop()
        found = _BRACES.search(each)
        if found is None:
            done.append(each)
            continue
        open_ones += [each[: found.start()] + choice + each[found.end() :] for choice in found[1].split(",")]
        if len(done) + len(open_ones) > _MOST_ALTERNATIVES:
            raise RenderError(f"{pattern!r} has too many alternatives; list the files", where=where)
    return done


class _Walk:
    def __init__(self, tree: Tree, where: str) -> None:
        self._tree, self._where, self._folders = tree, where, 0

    def below(self, folder: str, steps: list[str]) -> Iterator[str]:
        first, rest = steps[0], steps[1:]
        if first == "**":
            yield from self._anywhere(folder, rest)
            return
        name = _name(first, self._where)
        for entry in self._listed(folder):
            if not name.fullmatch(entry.name):
                continue
            path = f"{folder}/{entry.name}" if folder else entry.name
            _, kind = located(self._tree, path, self._where)
            if not rest and kind == "file":
                yield path
            elif rest and kind == "folder":
                yield from self.below(path, rest)

    def _anywhere(self, folder: str, rest: list[str]) -> Iterator[str]:
        yield from self.below(folder, rest or ["*"])
        for entry in self._listed(folder):
            if entry.kind == "folder":  # links are not followed: they may form a cycle
                yield from self._anywhere(f"{folder}/{entry.name}" if folder else entry.name, rest)

    def _listed(self, folder: str) -> Sequence[TreeEntry]:
        self._folders += 1
        if self._folders > _MOST_FOLDERS:
            raise RenderError(f"the glob searches more than {_MOST_FOLDERS} folders; narrow it", where=self._where)
        return self._tree.listing(located(self._tree, folder, self._where)[0])


def _name(pattern: str, where: str) -> re.Pattern[str]:
    if pattern.count("*") > _MOST_STARS:
        raise RenderError(f"{pattern!r} has more than {_MOST_STARS} stars in one name; name the file", where=where)
    try:
        return re.compile("".join(map(_expression, _TOKEN.finditer(pattern))))
    except re.error as error:
        raise RenderError(f"{pattern!r} is not a valid glob; close its brackets", where=where) from error


def _expression(token: re.Match[str]) -> str:
    if token["stars"]:
        return "[^/]*"
    if token["any"]:
        return "[^/]"
    if token["set"] is not None:
        return "[" + ("^" if token["not"] else "") + _IN_SET.sub(r"\\\g<0>", token["set"]) + "]"
    return "[" if token["rest"] == "[" else re.escape(token["literal"] or token["rest"])
