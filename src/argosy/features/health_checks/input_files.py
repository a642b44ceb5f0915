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
from argosy.features.health_checks.located_manifests import LocatedManifest, ManifestText
from argosy.gitops.health.argocd_cm_entries_with_locations import has_settings
from argosy.gitops.health.settings import Customizations, read_manifests
from argosy.gitops.health.storage_class_facts import read_cluster_facts
from argosy.kube.objects import read_yaml

STDIN_PATH: Final = Path("-")
MANIFEST_SUFFIXES: Final = (".yaml", ".yml", ".json")
RULE_FILE_NAMES: Final = ("health.lua", "health_test.yaml", "action_test.yaml", "discovery.lua", "action.lua")
KUSTOMIZATION_FILE_NAMES: Final = ("kustomization.yaml", "kustomization.yml")
MAX_FILE_BYTES: Final = 32 << 20


@dataclass(frozen=True)
class HealthInputs:
    trees: tuple[Path, ...]
    objects: tuple[LocatedManifest, ...]
    settings: tuple[LocatedManifest, ...]
    problems: tuple[UserError, ...] = ()  # unreadable files; the other files are still used

    def customizations(self) -> Customizations:
        return read_manifests([located.manifest for located in self.settings])

    def facts(self) -> dict[str, Any]:
        return read_cluster_facts(located.manifest for located in self.objects)


def load_inputs(paths: Sequence[Path], settings: Sequence[Path] = ()) -> HealthInputs:
    """Read the paths and sort their content; settings among the paths count as settings."""
    trees: list[Path] = []
    problems: list[UserError] = []
    located_manifests: list[LocatedManifest] = list(_load_settings_manifests(settings))
    for file in _list_files(paths, trees, problems):
        try:
            located_manifests += load_located_manifests(file)
        except UserError as error:
            problems.append(error)
    if len(problems) == 1 and not (trees or located_manifests):
        raise problems[0]
    objects = tuple(located for located in located_manifests if not has_settings(located.manifest))
    settings_manifests = tuple(located for located in located_manifests if has_settings(located.manifest))
    return HealthInputs(tuple(trees), objects, settings_manifests, tuple(problems))


def _list_files(paths: Iterable[Path], trees: list[Path], problems: list[UserError]) -> Iterator[Path]:
    """Yield files with manifests, and collect rule trees in `trees`."""
    for path in paths:
        if path == STDIN_PATH or not path.is_dir():
            yield path
        elif is_rule_tree(path):
            trees.append(path)
        elif folder_files := list_manifest_files(path):
            yield from folder_files
        else:
            problem = "contains no health rules and no objects; name another folder"
            problems.append(UserError(problem, where=str(path)))


def list_manifest_files(folder: Path) -> list[Path]:
    """List the files of a folder that may contain objects; kustomizations are excluded."""
    files = (file for file in folder.rglob("*") if file.suffix in MANIFEST_SUFFIXES and file.is_file())
    return sorted(file for file in files if file.name not in KUSTOMIZATION_FILE_NAMES)


def load_settings(files: Sequence[Path]) -> Customizations:
    """Read the settings in the files; each file must contain settings."""
    return read_manifests([located.manifest for located in _load_settings_manifests(files)])


def _load_settings_manifests(files: Iterable[Path]) -> Iterator[LocatedManifest]:
    for file in files:
        settings_manifests = [located for located in load_located_manifests(file) if has_settings(located.manifest)]
        if not settings_manifests:
            problem = "contains no settings; name a file with ConfigMap argocd-cm or argosy-cm, or an ArgoCD resource"
            raise UserError(problem, where=render_file_name(file))
        yield from settings_manifests


def is_rule_tree(folder: Path) -> bool:
    """Return True if the folder contains health rules or their tests; `health.yaml` alone is not enough."""
    return any(file.name in RULE_FILE_NAMES for file in folder.rglob("*"))


def load_located_manifests(file: Path) -> list[LocatedManifest]:
    """Read the manifests of a file, and raise UserError if it has none."""
    if file.suffix == ".lua":
        raise UserError("is a script, not an object; use --script for it, and name the objects", where=str(file))
    located_manifests = ManifestText(render_file_name(file), load_text(file)).list_manifests()
    if not located_manifests:
        raise UserError("contains no object; name a file with a Kubernetes object", where=render_file_name(file))
    return located_manifests


def load_text(file: Path) -> str:
    try:
        data = _read_stdin() if file == STDIN_PATH else _load_limited(file)
    except FileNotFoundError:
        raise UserError("does not exist; check the path", where=str(file)) from None
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); check the file", where=str(file)) from error
    if len(data) > MAX_FILE_BYTES:
        raise UserError(f"is larger than {MAX_FILE_BYTES >> 20} MiB; name a smaller file", where=render_file_name(file))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UserError("is not UTF-8 text; save it as UTF-8", where=render_file_name(file)) from error


def _load_limited(file: Path) -> bytes:
    with file.open("rb") as stream:  # a device or a pipe may never end
        return stream.read(MAX_FILE_BYTES + 1)


def _read_stdin() -> bytes:
    if sys.stdin is None:  # Python sets None if standard input was closed before the start
        raise UserError("is closed; name a file instead", where=render_file_name(STDIN_PATH))
    return sys.stdin.buffer.read(MAX_FILE_BYTES + 1)


def load_facts(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    facts = read_yaml(load_text(file), where=render_file_name(file))
    if not isinstance(facts, dict):
        raise UserError(
            "facts must be a map; write for example storageClasses: {gp3: Immediate}", where=render_file_name(file)
        )
    return facts


def render_file_name(file: Path) -> str:
    return "standard input" if file == STDIN_PATH else str(file)
