"""A tree of rules: finds its folders, and the script for a kind.

In: a folder. Out: its rule folders; scripts. Never: follows a link to a folder, or descends deeper than `MAX_DEPTH`.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Final

from argosy.errors import LimitError, UserError
from argosy.gitops.health.kind_keys import key_text
from argosy.gitops.health.table_rules import to_lua
from argosy.gitops.health.test_suite.files import MOST_SCRIPT_BYTES, Files, first_document, shown

HEALTH, TABLE, HEALTH_TEST = "health.lua", "health.yaml", "health_test.yaml"
DISCOVERY, ACTION, ACTION_TEST = "discovery.lua", "action.lua", "action_test.yaml"
ACTIONS, TESTDATA = "actions", "testdata"
KNOWN: Final = frozenset((HEALTH, TABLE, HEALTH_TEST, DISCOVERY, ACTION_TEST))

MOST_ENTRIES: Final = 200_000
MOST_DEPTH: Final = 12
_LONGEST_KEY: Final = 200
_SAFE: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with a rule or tests; its path is relative to the tree."""

    path: str
    files: frozenset[str]

    @property
    def has_rule(self) -> bool:
        # Test data may also be named `health.yaml`, so it is a rule only next to its tests.
        return HEALTH in self.files or (TABLE in self.files and HEALTH_TEST in self.files and not self.is_data)

    @property
    def is_data(self) -> bool:
        return TESTDATA in self.path.split("/")


def walk(top: Path) -> Iterator[Folder]:
    """Yield the folders that contain files of a rule, sorted by path."""
    left = MOST_ENTRIES
    waiting = [(top, "", 0)]
    while waiting:
        folder, path, depth = waiting.pop()
        entries = sorted(_entries(folder, path), key=lambda entry: entry.name, reverse=True)
        left -= len(entries)
        if left < 0:
            raise LimitError(f"more than {MOST_ENTRIES} files and folders; name a smaller folder", where=str(top))
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                if depth >= MOST_DEPTH:
                    raise LimitError(f"folders are nested more than {MOST_DEPTH} deep; flatten them", where=path)
                waiting.append((Path(entry.path), f"{path}/{entry.name}".lstrip("/"), depth + 1))
        if files := frozenset(
            entry.name for entry in entries if entry.name in KNOWN and not entry.is_dir(follow_symlinks=False)
        ):
            if not path.isprintable():
                raise UserError("the name of a folder has non-printable characters; rename it", where=ascii(path))
            yield Folder(path, files)


def _entries(folder: Path, path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError as error:
        what = f"the folder cannot be read ({error.strerror}); correct its permissions"
        raise UserError(what, where=path or str(folder)) from error


class Tree:
    """The scripts of a tree, by kind.

    The given folder may be a part of a tree: one rule, or one group. `levels` is the number of folders above it that
    belong to the tree; from those, only scripts for objects of the given folder are read.
    """

    def __init__(self, files: Files, folders: list[Folder], levels: int = 0) -> None:
        self._files = files
        self._around = Files(files.folder.parents[levels - 1]) if levels else None
        self._above = above(files.folder, levels)
        self._folders = {self.key_of(folder.path): folder for folder in folders if folder.has_rule}
        if self._around:
            self._folders = _wild_beside(self._around.folder) | self._folders
        self._texts: dict[tuple[str, str], str] = {}

    def key_of(self, path: str) -> str:
        """Return the kind of a folder, as `group/Kind`."""
        return f"{self._above}/{path}".strip("/").removesuffix(f"/{ACTIONS}")

    def health(self, group: str, kind: str) -> str:
        key = key_text(group, kind)
        folder = self._folders.get(key) or self._beside(key)
        if folder is None:
            wild = next((each for each in self._wild if is_for(each, key)), None)
            if wild is None:
                raise UserError(_no_script(key) if kind else "an object without a kind has no health script: add it")
            key, folder = wild, self._folders[wild]
        return self._script(key, HEALTH) if HEALTH in folder.files else self._table(key, kind)

    def discovery(self, group: str, kind: str) -> str:
        return self._of_actions(key_text(group, kind), DISCOVERY)

    def action(self, group: str, kind: str, name: str) -> str:
        return self._of_actions(key_text(group, kind), f"{name}/{ACTION}")

    @cached_property
    def _wild(self) -> list[str]:
        """argo: folders with `_` in their path match kinds without a folder of their own; the first match wins."""
        return sorted(key for key in self._folders if "_" in key)

    def _beside(self, key: str) -> Folder | None:
        """Return the folder of another kind in the tree around the given folder."""
        if self._around is None or not _is_safe(key):
            return None
        folder = self._around.folder / key
        found = Folder(key, frozenset(name for name in (HEALTH, TABLE, HEALTH_TEST) if (folder / name).is_file()))
        return found if found.has_rule else None

    def _of_actions(self, key: str, file: str) -> str:
        """argo: actions are read from the kind's own folder only, without wildcards."""
        path = f"{ACTIONS}/{file}"
        if _is_safe(f"{key}/{file}"):
            try:
                return self._script(key, path)
            except UserError as error:
                if not isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
                    raise
        raise UserError(f"no {shown(key, path)} in this tree: add it, or correct the name")

    def _script(self, key: str, file: str) -> str:
        if (key, file) not in self._texts:
            self._texts[key, file] = self._read(key, file).decode(errors="replace")
        return self._texts[key, file]

    def _table(self, key: str, kind: str) -> str:
        """Translate a table for the kind of the object, which its messages name: a wildcard folder has many kinds."""
        if (key, f"{TABLE} {kind}") not in self._texts:
            where = shown(key, TABLE)
            table = first_document(self._read(key, TABLE), where=where)
            if not isinstance(table, dict):
                raise UserError("the table is not a map; write conditions, phases and otherwise", where=where)
            try:
                self._texts[key, f"{TABLE} {kind}"] = to_lua(kind, table)
            except UserError as error:
                raise UserError(str(error), where=where) from error
        return self._texts[key, f"{TABLE} {kind}"]

    def _read(self, key: str, file: str) -> bytes:
        if self._around is None or key == self._above:
            return self._files.read("" if self._above else key, file, most=MOST_SCRIPT_BYTES)
        if key.startswith(f"{self._above}/"):
            return self._files.read(key[len(self._above) + 1 :], file, most=MOST_SCRIPT_BYTES)
        return self._around.read(key, file, most=MOST_SCRIPT_BYTES)


def _wild_beside(top: Path) -> dict[str, Folder]:
    """Return the wildcard folders, which are one or two levels below the top."""
    found: dict[str, Folder] = {}
    for file in (*top.glob(f"*_*/{HEALTH}"), *top.glob(f"*_*/*/{HEALTH}")):
        key = file.parent.relative_to(top).as_posix()
        found[key] = Folder(key, frozenset((HEALTH,)))
    return found


def _no_script(key: str) -> str:
    key = key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]} …"
    return f"no health script in this tree for {key}: put its rule into the folder {key}"


def _is_safe(path: str) -> bool:
    return all(_SAFE.fullmatch(name) for name in path.split("/"))


def is_for(path: str, key: str) -> bool:
    """True if the folder is for this kind; `_` in its path matches any text without a slash."""
    names, parts = path.split("/"), key.split("/")
    return len(names) == len(parts) and all(
        part == name or ("_" in name and fnmatchcase(part, glob.escape(name).replace("_", "*")))
        for name, part in zip(names, parts)
    )


def above(folder: Path, levels: int) -> str:
    """Return the last names of the folder's path: the prefix of its paths if the tree starts `levels` higher."""
    return "/".join(folder.parts[-levels:]) if levels else ""
