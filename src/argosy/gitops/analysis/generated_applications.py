"""Finds Applications that an ApplicationSet no longer generates, as far as Git alone can tell.

In: ApplicationSets and the folders of their repository. Out: names, or None if they cannot be known. Never: I/O;
guesses about generators and templates other than the plain ones handled here.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from argosy.gitops.analysis.repository import Item
from argosy.kube.names import ResourceKey

_HOLE: Final = re.compile(r"\{\{\s*\.?([\w.-]+)\s*\}\}")
_KEEPING: Final = ("create-only", "create-update")  # argo: policies that delete nothing
_LIST, _GIT = frozenset({"list"}), frozenset({"git"})


_Side = tuple[Item, Collection[str]]


class Lost(NamedTuple):
    """Applications that an ApplicationSet no longer generates."""

    item: Item  # the ApplicationSet after
    names: tuple[str, ...]
    with_objects: bool


def lost(before: Iterable[_Side], after: Iterable[_Side]) -> list[Lost]:
    """Compare ApplicationSets before and after; each comes with the folders of its repository on that side."""
    old_sets, new_sets = list(before), list(after)
    known = {_place(item): (item, folders) for item, folders in old_sets}
    found = []
    for item, folders in new_sets:
        same = known.get(_place(item)) or _only(item, old_sets, new_sets)
        if same is None or item.text("spec", "syncPolicy", "applicationsSync") in _KEEPING:
            continue
        old, new = names_of(*same), names_of(item, folders)
        if old is None or new is None or not old - new:
            continue
        keeps = item.value("spec", "syncPolicy", "preserveResourcesOnDeletion") is True
        found.append(Lost(item, tuple(sorted(old - new)), not keeps))
    return found


def _place(item: Item) -> tuple[ResourceKey, str]:
    return item.key, item.at().file


def _only(item: Item, before: list[_Side], after: list[_Side]) -> _Side | None:
    """Match an ApplicationSet that moved to another file, if its name is unique before and after."""
    old, new = ([each for each in side if each[0].key == item.key] for side in (before, after))
    return old[0] if len(old) == len(new) == 1 else None


def names_of(item: Item, folders: Collection[str]) -> set[str] | None:
    template = item.text("spec", "template", "metadata", "name")
    names: set[str] = set()
    for generator in item.all("spec", "generators"):
        for parameters in _parameters(generator, folders):
            name = _filled(template, parameters) if parameters is not None else ""
            if not name:
                return None
            names.add(name)
    return names if item.all("spec", "generators") else None


def _parameters(generator: Any, folders: Collection[str]) -> Iterator[Mapping[str, str] | None]:
    """Yield the generator's parameters; None if they cannot be known."""
    if not isinstance(generator, dict):
        yield None
        return
    if generator.keys() == _LIST and isinstance(generator["list"], dict) and generator["list"].keys() == {"elements"}:
        elements = generator["list"]["elements"]
        for each in elements if isinstance(elements, list) else [None]:
            yield dict(_flat(each)) if isinstance(each, dict) else None
    elif generator.keys() == _GIT and isinstance(generator["git"], dict) and "directories" in generator["git"]:
        yield from _directories(generator["git"], folders)
    else:
        yield None


def _directories(git: Mapping[str, Any], folders: Collection[str]) -> Iterator[Mapping[str, str] | None]:
    wanted = git["directories"]
    is_plain = not git.keys() - {"repoURL", "revision", "directories", "requeueAfterSeconds"}
    if not is_plain or not isinstance(wanted, list) or not all(_is_plain(each) for each in wanted):
        yield None
        return
    for folder in sorted(folders):
        if any(part.startswith(".") for part in folder.split("/")):
            continue  # argo: hidden folders are left out
        matching = [each for each in wanted if _matches(folder, each["path"])]
        if matching and not any(each.get("exclude") for each in matching):
            parts = {f"path[{number}]": part for number, part in enumerate(folder.split("/"))}
            name = posixpath.basename(folder)
            yield {"path": folder, "path.path": folder, "path.basename": name, **parts}


def _is_plain(each: Any) -> bool:
    path = each.get("path") if isinstance(each, dict) else None
    return isinstance(path, str) and not any(mark in path for mark in ("**", "[", "\\", "{"))


def _matches(folder: str, pattern: str) -> bool:
    """argo: `*` does not match a slash."""
    parts, wanted = folder.split("/"), pattern.strip("/").split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _flat(given: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{name}.")
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            yield f"{above}{name}", str(value)


def _filled(template: str, parameters: Mapping[str, str]) -> str:
    """Fill in the template; empty if a placeholder is left."""
    text = _HOLE.sub(lambda match: parameters.get(match[1], match[0]), template)
    return "" if "{{" in text else text
