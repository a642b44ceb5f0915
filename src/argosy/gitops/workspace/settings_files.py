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
    from argosy.gitops.source.repository_access_settings import SourceSettings


class WorkspaceSettings(NamedTuple):
    build: BuildSettings
    source: SourceSettings


def load_settings_files(files: Iterable[Path]) -> WorkspaceSettings:
    from argosy.gitops.render import read_build_settings
    from argosy.gitops.source import repository_access_settings as source_settings
    from argosy.kube.objects import read_yaml_documents

    data: dict[str, dict[str, str]] = {"argocd-cm": {}, "argosy-cm": {}}
    for file in files:
        if not file.is_file():
            raise UserError("no such file; correct the path", where=f"--settings {file}")
        documents = [
            document
            for document in read_yaml_documents(file.read_bytes(), where=str(file))
            if isinstance(document, dict)
        ]
        configmaps = {
            (document.get("metadata") or {}).get("name"): document
            for document in documents
            if document.get("kind") == "ConfigMap"
        }
        if not configmaps.keys() & data.keys():
            raise UserError("contains neither argocd-cm nor argosy-cm; pass a file with one of them", where=str(file))
        for name, values in data.items():
            configmap_data = configmaps.get(name, {}).get("data") or {}
            values |= {key: value for key, value in configmap_data.items() if isinstance(value, str)}
    build = read_build_settings(data["argocd-cm"], data["argosy-cm"])
    return WorkspaceSettings(build, source_settings.read_source_settings(data["argosy-cm"]))
