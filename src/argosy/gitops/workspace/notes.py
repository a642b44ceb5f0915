"""Notes about renders that succeeded but may not be intended.

In: a rendered source. Out: sentences for stderr. Never: an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from argosy.gitops.application import Application, Source
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.workspace.source_flags import FLAGS, Given

_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_DEEPEST: Final = 3
_MOST_FOLDERS: Final = 200
_MOST_SHOWN: Final = 4


def of_nothing(checkout: Checkout, source: Source) -> str:
    """Suggest where manifests may be if the source has none."""
    folder = "" if source.path in ("", ".") else source.path.strip("/")
    where = f"no manifests in {source.path or '.'}"
    found = list(_kustomizations(checkout.tree, folder))
    if found:
        some = found[:_MOST_SHOWN] if len(found) > _MOST_SHOWN + 1 else found
        more = f" and {len(found) - len(some)} more" if len(some) < len(found) else ""
        listed = ", ".join(some) if more or len(some) < 2 else f"{', '.join(some[:-1])} and {some[-1]}"
        return f"{where}; {listed}{more} {'has' if len(found) == 1 else 'have'} a kustomization"
    below = any(each.kind == "folder" for each in checkout.tree.listing(folder))
    recurses = source.directory is not None and source.directory.recurse
    return f"{where}; for folders below: --directory-recurse" if below and not recurses else where


def _kustomizations(tree: Tree, folder: str) -> Iterator[str]:
    open_ones, seen = [(folder, 0)], 0
    while open_ones and seen < _MOST_FOLDERS:
        here, depth = open_ones.pop(0)
        seen += 1
        entries = tree.listing(here)
        if depth and any(each.name in _KUSTOMIZATIONS for each in entries):
            yield here
        elif depth < _DEEPEST:
            lead = f"{here}/" if here else ""
            open_ones += [(lead + each.name, depth + 1) for each in entries if each.kind == "folder"]


def overruled(checkout: Checkout, app: Application, source: Source, given: Given) -> Iterator[str]:
    """Yield notes about flags whose fields .argocd-source.yaml replaces."""
    from argosy.gitops.render.source_overrides import overridden
    from argosy.gitops.render.tool_detection import source_folder

    typed = [flag for flag in FLAGS if given.get(flag.name) not in (None, False, [])]
    if not typed:
        return
    after = overridden(checkout.tree, source_folder(checkout.tree, source.path), source, app.name)
    for flag in typed:
        if _at(source.wire, flag.field) != _at(after.wire, flag.field):
            yield f"{flag.name} is overridden by .argocd-source.yaml in {source.path or '.'}, which is applied last"


def _at(wire: Any, field: str) -> Any:
    for step in field.split("."):
        wire = wire.get(step) if isinstance(wire, Mapping) else None
    return wire
