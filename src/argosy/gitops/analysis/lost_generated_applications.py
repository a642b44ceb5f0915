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

from argosy.gitops.analysis.repository_view import ManifestWithLocations
from argosy.kube.resource_key import ResourceKey

_PLACEHOLDER: Final = re.compile(r"\{\{\s*\.?([\w.-]+)\s*\}\}")
_NON_DELETING_POLICIES: Final = ("create-only", "create-update")  # argo: policies that delete nothing
_LIST, _GIT = frozenset({"list"}), frozenset({"git"})


_SetWithFolders = tuple[ManifestWithLocations, Collection[str]]


class LostApplications(NamedTuple):
    """Applications that an ApplicationSet no longer generates."""

    item: ManifestWithLocations  # the ApplicationSet after
    names: tuple[str, ...]
    deletes_objects: bool


def find_lost_applications(
    before: Iterable[_SetWithFolders], after: Iterable[_SetWithFolders]
) -> list[LostApplications]:
    """Compare ApplicationSets before and after; each comes with the folders of its repository on that side."""
    old_sets, new_sets = list(before), list(after)
    old_by_location = {_get_identity(item): (item, folders) for item, folders in old_sets}
    losses = []
    for item, folders in new_sets:
        old_set = old_by_location.get(_get_identity(item)) or _find_moved_set(item, old_sets, new_sets)
        if old_set is None or item.get_string("spec", "syncPolicy", "applicationsSync") in _NON_DELETING_POLICIES:
            continue
        old, new = generate_names(*old_set), generate_names(item, folders)
        if old is None or new is None or not old - new:
            continue
        keeps = item.get_value("spec", "syncPolicy", "preserveResourcesOnDeletion") is True
        losses.append(LostApplications(item, tuple(sorted(old - new)), not keeps))
    return losses


def _get_identity(item: ManifestWithLocations) -> tuple[ResourceKey, str]:
    return item.key, item.find_location().file


def _find_moved_set(
    item: ManifestWithLocations, before: list[_SetWithFolders], after: list[_SetWithFolders]
) -> _SetWithFolders | None:
    """Match an ApplicationSet that moved to another file, if its name is unique before and after."""
    old, new = ([candidate for candidate in side if candidate[0].key == item.key] for side in (before, after))
    return old[0] if len(old) == len(new) == 1 else None


def generate_names(item: ManifestWithLocations, folders: Collection[str]) -> set[str] | None:
    template = item.get_string("spec", "template", "metadata", "name")
    names: set[str] = set()
    for generator in item.get_list("spec", "generators"):
        for parameters in _list_parameters(generator, folders):
            name = _fill_template(template, parameters) if parameters is not None else ""
            if not name:
                return None
            names.add(name)
    return names if item.get_list("spec", "generators") else None


def _list_parameters(generator: Any, folders: Collection[str]) -> Iterator[Mapping[str, str] | None]:
    """Yield the generator's parameters; None if they cannot be known."""
    if not isinstance(generator, dict):
        yield None
        return
    if generator.keys() == _LIST and isinstance(generator["list"], dict) and generator["list"].keys() == {"elements"}:
        elements = generator["list"]["elements"]
        for element in elements if isinstance(elements, list) else [None]:
            yield dict(_flatten(element)) if isinstance(element, dict) else None
    elif generator.keys() == _GIT and isinstance(generator["git"], dict) and "directories" in generator["git"]:
        yield from _list_directory_parameters(generator["git"], folders)
    else:
        yield None


def _list_directory_parameters(git: Mapping[str, Any], folders: Collection[str]) -> Iterator[Mapping[str, str] | None]:
    directories = git["directories"]
    is_plain = not git.keys() - {"repoURL", "revision", "directories", "requeueAfterSeconds"}
    if (
        not is_plain
        or not isinstance(directories, list)
        or not all(_is_plain_directory(directory) for directory in directories)
    ):
        yield None
        return
    for folder in sorted(folders):
        if any(part.startswith(".") for part in folder.split("/")):
            continue  # argo: hidden folders are left out
        matching = [directory for directory in directories if _matches(folder, directory["path"])]
        if matching and not any(directory.get("exclude") for directory in matching):
            parts = {f"path[{index}]": part for index, part in enumerate(folder.split("/"))}
            name = posixpath.basename(folder)
            yield {"path": folder, "path.path": folder, "path.basename": name, **parts}


def _is_plain_directory(directory: Any) -> bool:
    path = directory.get("path") if isinstance(directory, dict) else None
    return isinstance(path, str) and not any(special in path for special in ("**", "[", "\\", "{"))


def _matches(folder: str, pattern: str) -> bool:
    """argo: `*` does not match a slash."""
    parts, pattern_parts = folder.split("/"), pattern.strip("/").split("/")
    return len(parts) == len(pattern_parts) and all(map(fnmatchcase, parts, pattern_parts))


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.")
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            yield f"{prefix}{name}", str(value)


def _fill_template(template: str, parameters: Mapping[str, str]) -> str:
    """Fill in the template; empty if a placeholder is left."""
    text = _PLACEHOLDER.sub(lambda match: parameters.get(match[1], match[0]), template)
    return "" if "{{" in text else text
