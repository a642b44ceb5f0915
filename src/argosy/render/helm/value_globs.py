"""Patterns of paths: `*`, `?`, `[a-z]`, `{a,b}` within a name, `**` for any number of folders.

In: a tree and a pattern. Out: the files that match, by name. Never: a file that a link finds outside of the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from argosy.model.errors import RenderError
from argosy.model.tree import Tree, TreeEntry
from argosy.render.kustomize.places import located

_MOST_FOLDERS = 5_000


def is_glob(path: str) -> bool:
    return any(sign in path for sign in "*?[")


def matches(tree: Tree, pattern: str, where: str) -> list[str]:
    steps = pattern.split("/")
    return sorted(set(_Walk(tree, where).below("", steps)))


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
            if entry.kind == "folder":  # links are not walked: they may form a ring
                yield from self._anywhere(f"{folder}/{entry.name}" if folder else entry.name, rest)

    def _listed(self, folder: str) -> Sequence[TreeEntry]:
        self._folders += 1
        if self._folders > _MOST_FOLDERS:
            raise RenderError(f"more than {_MOST_FOLDERS} folders are looked through; narrow it", where=self._where)
        return self._tree.listing(located(self._tree, folder, self._where)[0])


def _name(pattern: str, where: str) -> re.Pattern[str]:
    try:
        return re.compile("".join(_pieces(pattern)))
    except (re.error, StopIteration) as error:
        raise RenderError(f"{pattern!r} is not a pattern; close its brackets", where=where) from error


_IN_SET = re.compile(r"[][\\^]")
_TOKEN = re.compile(
    r"\\(?P<literal>.)|(?P<stars>\*+)|(?P<any>\?)|\[(?P<not>[!^]?)(?P<set>\]?[^\]]*)\]|(?P<brace>[{},])|(?P<rest>.)",
    re.DOTALL,
)


def _pieces(pattern: str) -> Iterator[str]:
    depth = 0
    for token in _TOKEN.finditer(pattern):
        if token["stars"]:
            yield "[^/]*"
        elif token["any"]:
            yield "[^/]"
        elif token["set"] is not None:
            yield "[" + ("^" if token["not"] else "") + _IN_SET.sub(r"\\\g<0>", token["set"]) + "]"
        elif token["brace"]:
            depth += {"{": 1, "}": -1}.get(token["brace"], 0)
            yield {"{": "(?:", "}": ")", ",": "|" if depth else ","}[token["brace"]]
        else:
            yield re.escape(token["literal"] or token["rest"])
