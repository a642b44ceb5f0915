"""What was named on the command line.

In: paths. Out: rule trees, objects to judge and manifests with settings. Never: guesses at a file that cannot be read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from argosy.health.facts import facts_from
from argosy.health.installation import holds_settings
from argosy.health.settings import Customizations, from_manifests
from argosy.model.errors import UserError
from argosy.model.manifest import Manifest, load, read_manifests

STDIN: Final = Path("-")
MANIFESTS: Final = (".yaml", ".yml", ".json")
RULE_FILES: Final = ("health.lua", "health.yaml", "health_test.yaml", "action_test.yaml", "discovery.lua", "action.lua")


class Located(NamedTuple):
    """A manifest, and the file that it stands in."""

    manifest: Manifest
    file: str


@dataclass(frozen=True)
class Inputs:
    trees: tuple[Path, ...]
    objects: tuple[Located, ...]
    settings: tuple[Located, ...]
    files: tuple[Path, ...]  # everything that was read, but for the trees

    def customizations(self) -> Customizations:
        return from_manifests(each.manifest for each in self.settings)

    def facts(self) -> dict[str, Any]:
        return facts_from(each.manifest for each in self.objects)


def read_inputs(paths: Sequence[Path], settings: Sequence[Path] = ()) -> Inputs:
    """Sort what was named. Settings among the paths count as settings, wherever they stand."""
    trees: list[Path] = []
    files: list[Path] = list(settings)
    found: list[Located] = list(_all_settings(settings))
    for path in paths:
        if path != STDIN and path.is_dir():
            if is_tree(path):
                trees.append(path)
                continue
            inside = sorted(file for file in path.rglob("*") if file.suffix in MANIFESTS and file.is_file())
            if not inside:
                raise UserError("there is neither a rule nor an object in it; name a folder with some", where=str(path))
            files += inside
            found += [each for file in inside for each in read_located(file)]
        else:
            files.append(path)
            found += read_located(path)
    objects = tuple(each for each in found if not holds_settings(each.manifest))
    return Inputs(tuple(trees), objects, tuple(each for each in found if holds_settings(each.manifest)), tuple(files))


def read_settings(files: Sequence[Path]) -> Customizations:
    """The settings in files of which each must hold some."""
    return from_manifests(each.manifest for each in _all_settings(files))


def _all_settings(files: Iterable[Path]) -> Iterator[Located]:
    for file in files:
        found = [each for each in read_located(file) if holds_settings(each.manifest)]
        if not found:
            what = "holds no settings; name a file with ConfigMap argocd-cm or argosy-cm, or an ArgoCD resource"
            raise UserError(what, where=named(file))
        yield from found


def is_tree(folder: Path) -> bool:
    return any(file.name in RULE_FILES for file in folder.rglob("*"))


def read_located(file: Path) -> list[Located]:
    """The manifests of a file, at least one."""
    if file.suffix == ".lua":
        raise UserError("is a script, not an object; use --script for it, and name the objects", where=str(file))
    found = read_manifests(read_text(file), where=named(file))
    if not found:
        raise UserError("there is no object in it; name a file with a Kubernetes object", where=named(file))
    return [Located(manifest, named(file)) for manifest in found]


def read_text(file: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if file == STDIN else file.read_bytes()
    except FileNotFoundError:
        raise UserError("does not exist; name a file or a folder that does", where=str(file)) from None
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); check the file", where=str(file)) from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UserError("is not UTF-8 text; save it as UTF-8", where=named(file)) from error


def read_facts(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    found = load(read_text(file), where=named(file))
    if not isinstance(found, dict):
        raise UserError(
            "facts must be a mapping; write for example storageClasses: {gp3: Immediate}", where=named(file)
        )
    return found


def named(file: Path) -> str:
    return "standard input" if file == STDIN else str(file)
