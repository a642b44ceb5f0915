"""Attaches file locations to rendered manifests.

In: rendered manifests, and the folder of their files. Out: manifests with locations. Never: reads a file.
"""

from __future__ import annotations

import os

from argosy.gitops.analysis.repository_view import LocateField, ManifestWithLocations
from argosy.gitops.analysis.rule_violation import FileLocation
from argosy.gitops.application.step_results import FieldOrigins, RenderResult
from argosy.gitops.workspace.manifest_files import relative_path
from argosy.kube.objects import key_of_desired
from argosy.kube.resource_key import ResourceKey


def locate_manifests(rendered: RenderResult, folder: str) -> list[ManifestWithLocations]:
    return [
        ManifestWithLocations(
            manifest, (key := key_of_desired(manifest)), _build_locator(rendered.origins, key, folder)
        )
        for manifest in rendered.manifests
    ]


def _build_locator(origins: FieldOrigins, key: ResourceKey, folder: str) -> LocateField:
    def locate(pointer: str) -> FileLocation:
        origin = origins.find(key, pointer)
        if origin is None:
            return FileLocation(relative_path(folder))
        if origin.repository:
            return FileLocation(f"{origin.repository}//{origin.file}", origin.line)
        return FileLocation(relative_path(os.path.join(folder, origin.file)), origin.line)

    return locate
