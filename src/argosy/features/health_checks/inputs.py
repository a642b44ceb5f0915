"""Input files of `argosy health`, sorted into rule trees, objects and settings.

In: paths. Out: rule trees, objects to assess, and manifests with settings. Never: guesses the content of an unreadable
file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.health_checks.sources import Located, Source
from argosy.gitops.health.cluster_facts import facts_from
from argosy.gitops.health.settings import Customizations, from_manifests
from argosy.gitops.health.settings_location import holds_settings
from argosy.kube.objects import load

STDIN: Final = Path("-")
MANIFESTS: Final = (".yaml", ".yml", ".json")
RULE_FILES: Final = ("health.lua", "health_test.yaml", "action_test.yaml", "discovery.lua", "action.lua")
KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml")
MOST_BYTES: Final = 32 << 20


@dataclass(frozen=True)
class Inputs:
    trees: tuple[Path, ...]
    objects: tuple[Located, ...]
    settings: tuple[Located, ...]
    problems: tuple[UserError, ...] = ()  # unreadable files; the other files are still used

    def customizations(self) -> Customizations:
        return from_manifests([each.manifest for each in self.settings])

    def facts(self) -> dict[str, Any]:
        return facts_from(each.manifest for each in self.objects)


def read_inputs(paths: Sequence[Path], settings: Sequence[Path] = ()) -> Inputs:
    """Read the paths and sort their content; settings among the paths count as settings."""
    trees: list[Path] = []
    problems: list[UserError] = []
    found: list[Located] = list(_all_settings(settings))
    for file in _files_of(paths, trees, problems):
        try:
            found += read_located(file)
        except UserError as error:
            problems.append(error)
    if len(problems) == 1 and not (trees or found):
        raise problems[0]
    objects = tuple(each for each in found if not holds_settings(each.manifest))
    held = tuple(each for each in found if holds_settings(each.manifest))
    return Inputs(tuple(trees), objects, held, tuple(problems))


def _files_of(paths: Iterable[Path], trees: list[Path], problems: list[UserError]) -> Iterator[Path]:
    """Yield files with manifests, and collect rule trees in `trees`."""
    for path in paths:
        if path == STDIN or not path.is_dir():
            yield path
        elif is_tree(path):
            trees.append(path)
        elif inside := manifest_files(path):
            yield from inside
        else:
            what = "contains no health rules and no objects; name another folder"
            problems.append(UserError(what, where=str(path)))


def manifest_files(folder: Path) -> list[Path]:
    """List the files of a folder that may contain objects; kustomizations are excluded."""
    files = (file for file in folder.rglob("*") if file.suffix in MANIFESTS and file.is_file())
    return sorted(file for file in files if file.name not in KUSTOMIZATIONS)


def read_settings(files: Sequence[Path]) -> Customizations:
    """Read the settings in the files; each file must contain settings."""
    return from_manifests([each.manifest for each in _all_settings(files)])


def _all_settings(files: Iterable[Path]) -> Iterator[Located]:
    for file in files:
        found = [each for each in read_located(file) if holds_settings(each.manifest)]
        if not found:
            what = "contains no settings; name a file with ConfigMap argocd-cm or argosy-cm, or an ArgoCD resource"
            raise UserError(what, where=named(file))
        yield from found


def is_tree(folder: Path) -> bool:
    """Return True if the folder contains health rules or their tests; `health.yaml` alone is not enough."""
    return any(file.name in RULE_FILES for file in folder.rglob("*"))


def read_located(file: Path) -> list[Located]:
    """Read the manifests of a file, and raise UserError if it has none."""
    if file.suffix == ".lua":
        raise UserError("is a script, not an object; use --script for it, and name the objects", where=str(file))
    found = Source(named(file), read_text(file)).located()
    if not found:
        raise UserError("contains no object; name a file with a Kubernetes object", where=named(file))
    return found


def read_text(file: Path) -> str:
    try:
        data = _standard_input() if file == STDIN else _some_of(file)
    except FileNotFoundError:
        raise UserError("does not exist; check the path", where=str(file)) from None
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); check the file", where=str(file)) from error
    if len(data) > MOST_BYTES:
        raise UserError(f"is larger than {MOST_BYTES >> 20} MiB; name a smaller file", where=named(file))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UserError("is not UTF-8 text; save it as UTF-8", where=named(file)) from error


def _some_of(file: Path) -> bytes:
    with file.open("rb") as stream:  # a device or a pipe may never end
        return stream.read(MOST_BYTES + 1)


def _standard_input() -> bytes:
    if sys.stdin is None:  # Python sets None if standard input was closed before the start
        raise UserError("is closed; name a file instead", where=named(STDIN))
    return sys.stdin.buffer.read(MOST_BYTES + 1)


def read_facts(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    found = load(read_text(file), where=named(file))
    if not isinstance(found, dict):
        raise UserError("facts must be a map; write for example storageClasses: {gp3: Immediate}", where=named(file))
    return found


def named(file: Path) -> str:
    return "standard input" if file == STDIN else str(file)
