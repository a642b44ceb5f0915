"""Loads the installation's settings from files.

In: files with the ConfigMaps argocd-cm and argosy-cm. Out: build settings and source settings. Never: other objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.gitops.render import BuildSettings
    from argosy.gitops.source.settings import SourceSettings


class Settings(NamedTuple):
    build: BuildSettings
    source: SourceSettings


def read_settings_files(files: Iterable[Path]) -> Settings:
    from argosy.gitops.render import read_build_settings
    from argosy.gitops.source import settings as source_settings
    from argosy.kube.objects import load_all

    data: dict[str, dict[str, str]] = {"argocd-cm": {}, "argosy-cm": {}}
    for file in files:
        if not file.is_file():
            raise UserError("no such file; correct the path", where=f"--settings {file}")
        held = [each for each in load_all(file.read_bytes(), where=str(file)) if isinstance(each, dict)]
        named = {(each.get("metadata") or {}).get("name"): each for each in held if each.get("kind") == "ConfigMap"}
        if not named.keys() & data.keys():
            raise UserError("contains neither argocd-cm nor argosy-cm; pass a file with one of them", where=str(file))
        for name, known in data.items():
            given = named.get(name, {}).get("data") or {}
            known |= {key: value for key, value in given.items() if isinstance(value, str)}
    build = read_build_settings(data["argocd-cm"], data["argosy-cm"])
    return Settings(build, source_settings.read_settings(data["argosy-cm"]))
