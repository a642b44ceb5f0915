"""Attaches file locations to rendered manifests.

In: rendered manifests, and the folder of their files. Out: manifests with locations. Never: reads a file.
"""

from __future__ import annotations

import os

from argosy.gitops.analysis.repository import Item, Locate
from argosy.gitops.analysis.violation import Place
from argosy.gitops.application.step_results import Origins, Rendered
from argosy.gitops.workspace.manifest_files import shown
from argosy.kube.names import ResourceKey
from argosy.kube.objects import key_of_source


def located(rendered: Rendered, home: str) -> list[Item]:
    return [
        Item(manifest, (key := key_of_source(manifest)), _locator(rendered.origins, key, home))
        for manifest in rendered.manifests
    ]


def _locator(origins: Origins, key: ResourceKey, home: str) -> Locate:
    def locate(pointer: str) -> Place:
        origin = origins.find(key, pointer)
        if origin is None:
            return Place(shown(home))
        if origin.repository:
            return Place(f"{origin.repository}//{origin.file}", origin.line)
        return Place(shown(os.path.join(home, origin.file)), origin.line)

    return locate
