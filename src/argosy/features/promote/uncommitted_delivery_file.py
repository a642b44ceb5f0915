"""Describes uncommitted edits of argosy.yaml, which promotions ignore.

In: a RepositorySnapshot. Out: notes for people. Never: uses uncommitted content.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from argosy.errors import ArgosyError, UserError
from argosy.features.promote.environments_at_commit import NoEnvironments, RepositorySnapshot
from argosy.features.promote.promotion_pipeline import BY_CONVENTION, PromotionPipeline, build_declared_pipeline
from argosy.gitops.delivery_file.delivery_value_types import FILE_NAME, DeliveryRole, PromotionGate
from argosy.gitops.workspace.git_repository import RepositoryPaths

_UNCOMMITTED_NOTE = "uncommitted edits are ignored: commit them first"


def find_delivery_file(clone_location: RepositoryPaths) -> str:
    """Return the path of the nearest argosy.yaml at or above the folder in the working tree; empty if none exists."""
    if clone_location.top is None:
        return ""
    folder = PurePosixPath(clone_location.current_path)
    paths = [str(parent / FILE_NAME) for parent in (folder, *folder.parents)]
    return next((path for path in dict.fromkeys(paths) if (clone_location.top / path).is_file()), "")


def describe_uncommitted_changes(snapshot: RepositorySnapshot) -> list[str]:
    """List environments, gates and roles that differ between the working tree and the commit.

    Raises UserError if only the working tree defines environments.
    """
    clone_location = snapshot.repository.paths
    path = find_delivery_file(clone_location)
    if not path or clone_location.top is None or not snapshot.repository.list_uncommitted([path]):
        return []
    try:
        committed = snapshot.pipeline
    except NoEnvironments:
        raise build_uncommitted_file_error(path) from None
    except UserError:
        return []  # the command itself reports the error in the commit
    if committed.defined_in == BY_CONVENTION:
        return [f"{path} is not committed: its environments and gates are ignored"]
    from argosy.gitops.delivery_file.reader import read_delivery_file

    try:
        edited = build_declared_pipeline(read_delivery_file((clone_location.top / path).read_bytes(), path), path)
    except (ArgosyError, OSError) as error:
        return [f"{path} in the working tree cannot be read, so the committed file is used: {error}"]
    if path != committed.defined_in:
        return [f"{path} is not committed, so {committed.defined_in} is used: {_UNCOMMITTED_NOTE}"]
    return [f"{path}: {difference}; {_UNCOMMITTED_NOTE}" for difference in _list_differences(committed, edited)]


def build_uncommitted_file_error(path: str) -> UserError:
    return UserError("not committed, and uncommitted files are ignored; commit it, then promote", where=path)


def _list_differences(committed: PromotionPipeline, edited: PromotionPipeline) -> list[str]:
    before = {environment.name: environment for environment in committed.environments}
    after = {environment.name: environment for environment in edited.environments}
    differences = [f"the environment {name} is only in the working tree" for name in after if name not in before]
    differences += [f"the environment {name} is only in the commit" for name in before if name not in after]
    for name, environment in before.items():
        if name not in after:
            continue
        if environment.gates != after[name].gates:
            old, new = _render_gates(environment.gates), _render_gates(after[name].gates)
            differences.append(f"gates of {name} are {old} in the commit, and {new} in the working tree")
        if environment.after != after[name].after:
            old, new = environment.after or "nothing", after[name].after or "nothing"
            differences.append(f"{name} is after {old} in the commit, and after {new} in the working tree")
    roles = {role.name: role for role in committed.roles}, {role.name: role for role in edited.roles}
    return differences + [f"the role {name} differs from the commit" for name in _differing_roles(*roles)]


def _render_gates(gates: Sequence[PromotionGate]) -> str:
    return ", ".join(f"{gate.kind} {gate.value}".strip() for gate in gates) or "none"


def _differing_roles(before: dict[str, DeliveryRole], after: dict[str, DeliveryRole]) -> list[str]:
    """List roles that differ, because they decide who may approve."""
    return [name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name)]
