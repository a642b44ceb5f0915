"""Notes about renders that succeeded but may not be intended.

In: a rendered source. Out: sentences for stderr. Never: an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from argosy.gitops.application import Application, Source
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.workspace.helm_kustomize_render_flags import FLAGS, FlagValues

_KUSTOMIZATION_NAMES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_MAX_DEPTH: Final = 3
_MAX_FOLDERS: Final = 200
_MAX_NAMED_FOLDERS: Final = 4


def render_no_manifests_note(checkout: Checkout, source: Source) -> str:
    """Suggest where manifests may be if the source has none."""
    folder = "" if source.path in ("", ".") else source.path.strip("/")
    prefix = f"no manifests in {source.path or '.'}"
    kustomization_folders = list(_find_kustomization_folders(checkout.tree, folder))
    if kustomization_folders:
        named_folders = (
            kustomization_folders[:_MAX_NAMED_FOLDERS]
            if len(kustomization_folders) > _MAX_NAMED_FOLDERS + 1
            else kustomization_folders
        )
        more = (
            f" and {len(kustomization_folders) - len(named_folders)} more"
            if len(named_folders) < len(kustomization_folders)
            else ""
        )
        listed = (
            ", ".join(named_folders)
            if more or len(named_folders) < 2
            else f"{', '.join(named_folders[:-1])} and {named_folders[-1]}"
        )
        return f"{prefix}; {listed}{more} {'has' if len(kustomization_folders) == 1 else 'have'} a kustomization"
    has_subfolders = any(entry.kind == "folder" for entry in checkout.tree.list_folder(folder))
    recurses = source.directory is not None and source.directory.recurse
    return f"{prefix}; for folders below: --directory-recurse" if has_subfolders and not recurses else prefix


def _find_kustomization_folders(tree: FileTree, folder: str) -> Iterator[str]:
    pending, visited_count = [(folder, 0)], 0
    while pending and visited_count < _MAX_FOLDERS:
        current_folder, depth = pending.pop(0)
        visited_count += 1
        entries = tree.list_folder(current_folder)
        if depth and any(entry.name in _KUSTOMIZATION_NAMES for entry in entries):
            yield current_folder
        elif depth < _MAX_DEPTH:
            prefix = f"{current_folder}/" if current_folder else ""
            pending += [(prefix + entry.name, depth + 1) for entry in entries if entry.kind == "folder"]


def list_overridden_flags(
    checkout: Checkout, app: Application, source: Source, flag_values: FlagValues
) -> Iterator[str]:
    """Yield notes about flags whose fields .argocd-source.yaml replaces."""
    from argosy.gitops.render.source_override_files import apply_source_overrides
    from argosy.gitops.render.tool_detection import resolve_source_folder

    typed = [flag for flag in FLAGS if flag_values.get(flag.name) not in (None, False, [])]
    if not typed:
        return
    overridden_source = apply_source_overrides(
        checkout.tree, resolve_source_folder(checkout.tree, source.path), source, app.name
    )
    for flag in typed:
        if _get_value(source.wire, flag.field) != _get_value(overridden_source.wire, flag.field):
            yield f"{flag.name} is overridden by .argocd-source.yaml in {source.path or '.'}, which is applied last"


def _get_value(wire: Any, field: str) -> Any:
    for step in field.split("."):
        wire = wire.get(step) if isinstance(wire, Mapping) else None
    return wire
