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
from argosy.gitops.health.setting_kind_names import render_kind
from argosy.gitops.health.table_rule_compiler import table_to_lua
from argosy.gitops.health.test_suite.untrusted_rule_tree_files import (
    MAX_SCRIPT_BYTES,
    RuleTreeFiles,
    join_path,
    read_first_document,
)

HEALTH_FILE, TABLE_FILE, HEALTH_TEST_FILE = "health.lua", "health.yaml", "health_test.yaml"
DISCOVERY_FILE, ACTION_FILE, ACTION_TEST_FILE = "discovery.lua", "action.lua", "action_test.yaml"
ACTIONS_FOLDER, TESTDATA_FOLDER = "actions", "testdata"
RULE_FILES: Final = frozenset((HEALTH_FILE, TABLE_FILE, HEALTH_TEST_FILE, DISCOVERY_FILE, ACTION_TEST_FILE))

MAX_ENTRIES: Final = 200_000
MAX_DEPTH: Final = 12
_MAX_SHOWN_KEY_LENGTH: Final = 200
_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class RuleFolder:
    """A folder with a rule or tests; its path is relative to the tree."""

    path: str
    files: frozenset[str]

    @property
    def has_rule(self) -> bool:
        # Test data may also be named `health.yaml`, so it is a rule only next to its tests.
        return HEALTH_FILE in self.files or (
            TABLE_FILE in self.files and HEALTH_TEST_FILE in self.files and not self.is_test_data
        )

    @property
    def is_test_data(self) -> bool:
        return TESTDATA_FOLDER in self.path.split("/")


def walk_rule_folders(top: Path) -> Iterator[RuleFolder]:
    """Yield the folders that contain files of a rule, sorted by path."""
    remaining = MAX_ENTRIES
    pending = [(top, "", 0)]
    while pending:
        folder, path, depth = pending.pop()
        entries = sorted(_list_entries(folder, path), key=lambda entry: entry.name, reverse=True)
        remaining -= len(entries)
        if remaining < 0:
            raise LimitError(f"more than {MAX_ENTRIES} files and folders; name a smaller folder", where=str(top))
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                if depth >= MAX_DEPTH:
                    raise LimitError(f"folders are nested more than {MAX_DEPTH} deep; flatten them", where=path)
                pending.append((Path(entry.path), f"{path}/{entry.name}".lstrip("/"), depth + 1))
        if files := frozenset(
            entry.name for entry in entries if entry.name in RULE_FILES and not entry.is_dir(follow_symlinks=False)
        ):
            if not path.isprintable():
                raise UserError("the name of a folder has non-printable characters; rename it", where=ascii(path))
            yield RuleFolder(path, files)


def _list_entries(folder: Path, path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        problem = f"the folder cannot be read ({error.strerror}); correct its permissions"
        raise UserError(problem, where=path or str(folder)) from error


class RuleTree:
    """The scripts of a tree, by kind.

    The given folder may be a part of a tree: one rule, or one group. `levels` is the number of folders above it that
    belong to the tree; from those, only scripts for objects of the given folder are read.
    """

    def __init__(self, files: RuleTreeFiles, folders: list[RuleFolder], levels: int = 0) -> None:
        self._files = files
        self._outer_files = RuleTreeFiles(files.folder.parents[levels - 1]) if levels else None
        self._prefix = tree_prefix(files.folder, levels)
        self._folders = {self.kind_of_folder(folder.path): folder for folder in folders if folder.has_rule}
        if self._outer_files:
            self._folders = _find_wildcard_folders(self._outer_files.folder) | self._folders
        self._scripts: dict[tuple[str, str], str] = {}

    def kind_of_folder(self, path: str) -> str:
        """Return the kind of a folder, as `group/Kind`."""
        return f"{self._prefix}/{path}".strip("/").removesuffix(f"/{ACTIONS_FOLDER}")

    def find_health_script(self, group: str, kind: str) -> str:
        key = render_kind(group, kind)
        folder = self._folders.get(key) or self._find_outer_folder(key)
        if folder is None:
            wildcard_key = next((candidate for candidate in self._wildcard_keys if matches_kind(candidate, key)), None)
            if wildcard_key is None:
                raise UserError(
                    _no_script_message(key) if kind else "an object without a kind has no health script: add it"
                )
            key, folder = wildcard_key, self._folders[wildcard_key]
        return (
            self._load_script(key, HEALTH_FILE) if HEALTH_FILE in folder.files else self._load_table_as_lua(key, kind)
        )

    def find_discovery_script(self, group: str, kind: str) -> str:
        return self._load_action_file(render_kind(group, kind), DISCOVERY_FILE)

    def find_action_script(self, group: str, kind: str, name: str) -> str:
        return self._load_action_file(render_kind(group, kind), f"{name}/{ACTION_FILE}")

    @cached_property
    def _wildcard_keys(self) -> list[str]:
        """argo: folders with `_` in their path match kinds without a folder of their own; the first match wins."""
        return sorted(key for key in self._folders if "_" in key)

    def _find_outer_folder(self, key: str) -> RuleFolder | None:
        """Return the folder of another kind in the tree around the given folder."""
        if self._outer_files is None or not _is_safe_path(key):
            return None
        folder = self._outer_files.folder / key
        rule_folder = RuleFolder(
            key, frozenset(name for name in (HEALTH_FILE, TABLE_FILE, HEALTH_TEST_FILE) if (folder / name).is_file())
        )
        return rule_folder if rule_folder.has_rule else None

    def _load_action_file(self, key: str, file: str) -> str:
        """argo: actions are read from the kind's own folder only, without wildcards."""
        path = f"{ACTIONS_FOLDER}/{file}"
        if _is_safe_path(f"{key}/{file}"):
            try:
                return self._load_script(key, path)
            except UserError as error:
                if not isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
                    raise
        raise UserError(f"no {join_path(key, path)} in this tree: add it, or correct the name")

    def _load_script(self, key: str, file: str) -> str:
        if (key, file) not in self._scripts:
            self._scripts[key, file] = self._read_file(key, file).decode(errors="replace")
        return self._scripts[key, file]

    def _load_table_as_lua(self, key: str, kind: str) -> str:
        """Translate a table for the kind of the object, which its messages name: a wildcard folder has many kinds."""
        if (key, f"{TABLE_FILE} {kind}") not in self._scripts:
            where = join_path(key, TABLE_FILE)
            table = read_first_document(self._read_file(key, TABLE_FILE), where=where)
            if not isinstance(table, dict):
                raise UserError("the table is not a map; write conditions, phases and otherwise", where=where)
            try:
                self._scripts[key, f"{TABLE_FILE} {kind}"] = table_to_lua(kind, table)
            except UserError as error:
                raise UserError(str(error), where=where) from error
        return self._scripts[key, f"{TABLE_FILE} {kind}"]

    def _read_file(self, key: str, file: str) -> bytes:
        if self._outer_files is None or key == self._prefix:
            return self._files.read("" if self._prefix else key, file, max_bytes=MAX_SCRIPT_BYTES)
        if key.startswith(f"{self._prefix}/"):
            return self._files.read(key[len(self._prefix) + 1 :], file, max_bytes=MAX_SCRIPT_BYTES)
        return self._outer_files.read(key, file, max_bytes=MAX_SCRIPT_BYTES)


def _find_wildcard_folders(top: Path) -> dict[str, RuleFolder]:
    """Return the wildcard folders, which are one or two levels below the top."""
    folders: dict[str, RuleFolder] = {}
    for file in (*top.glob(f"*_*/{HEALTH_FILE}"), *top.glob(f"*_*/*/{HEALTH_FILE}")):
        key = file.parent.relative_to(top).as_posix()
        folders[key] = RuleFolder(key, frozenset((HEALTH_FILE,)))
    return folders


def _no_script_message(key: str) -> str:
    key = key if len(key) <= _MAX_SHOWN_KEY_LENGTH else f"{key[:_MAX_SHOWN_KEY_LENGTH]} …"
    return f"no health script in this tree for {key}: put its rule into the folder {key}"


def _is_safe_path(path: str) -> bool:
    return all(_SAFE_NAME.fullmatch(name) for name in path.split("/"))


def matches_kind(path: str, key: str) -> bool:
    """True if the folder is for this kind; `_` in its path matches any text without a slash."""
    names, parts = path.split("/"), key.split("/")
    return len(names) == len(parts) and all(
        part == name or ("_" in name and fnmatchcase(part, glob.escape(name).replace("_", "*")))
        for name, part in zip(names, parts)
    )


def tree_prefix(folder: Path, levels: int) -> str:
    """Return the last names of the folder's path: the prefix of its paths if the tree starts `levels` higher."""
    return "/".join(folder.parts[-levels:]) if levels else ""
