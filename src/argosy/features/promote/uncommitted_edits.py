"""Describes uncommitted edits of argosy.yaml, which promotions ignore.

In: a RepositorySnapshot. Out: notes for people. Never: uses uncommitted content.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from argosy.errors import ArgosyError, UserError
from argosy.features.promote.environment_states import NoEnvironments, Survey
from argosy.features.promote.environments import BY_CONVENTION, Way, declared
from argosy.gitops.delivery_file.values import FILE, Gate, Role
from argosy.gitops.workspace.git_repository import Place

_DO_NOT_COUNT = "uncommitted edits are ignored: commit them first"


def find_delivery_file(place: Place) -> str:
    """Return the path of the nearest argosy.yaml at or above the folder in the working tree; empty if none exists."""
    if place.top is None:
        return ""
    folder = PurePosixPath(place.inner)
    paths = [str(each / FILE) for each in (folder, *folder.parents)]
    return next((path for path in dict.fromkeys(paths) if (place.top / path).is_file()), "")


def describe_uncommitted_gates(survey: Survey) -> list[str]:
    """List environments, gates and roles that differ between the working tree and the commit.

    Raises UserError if only the working tree defines environments.
    """
    place = survey.repository.place
    path = find_delivery_file(place)
    if not path or place.top is None or not survey.repository.dirty([path]):
        return []
    try:
        committed = survey.way
    except NoEnvironments:
        raise only_in_working_tree(path) from None
    except UserError:
        return []  # the command itself reports the error in the commit
    if committed.told_by == BY_CONVENTION:
        return [f"{path} is not committed: its environments and gates are ignored"]
    from argosy.gitops.delivery_file.reader import read_delivery

    try:
        edited = declared(read_delivery((place.top / path).read_bytes(), path), path)
    except (ArgosyError, OSError) as error:
        return [f"{path} in the working tree cannot be read, so the committed file is used: {error}"]
    if path != committed.told_by:
        return [f"{path} is not committed, so {committed.told_by} is used: {_DO_NOT_COUNT}"]
    return [f"{path}: {difference}; {_DO_NOT_COUNT}" for difference in _differences(committed, edited)]


def only_in_working_tree(path: str) -> UserError:
    return UserError("not committed, and uncommitted files are ignored; commit it, then promote", where=path)


def _differences(committed: Way, edited: Way) -> list[str]:
    before = {environment.name: environment for environment in committed.environments}
    after = {environment.name: environment for environment in edited.environments}
    found = [f"the environment {name} is only in the working tree" for name in after if name not in before]
    found += [f"the environment {name} is only in the commit" for name in before if name not in after]
    for name, environment in before.items():
        if name not in after:
            continue
        if environment.gates != after[name].gates:
            old, new = _gates(environment.gates), _gates(after[name].gates)
            found.append(f"gates of {name} are {old} in the commit, and {new} in the working tree")
        if environment.after != after[name].after:
            old, new = environment.after or "nothing", after[name].after or "nothing"
            found.append(f"{name} is after {old} in the commit, and after {new} in the working tree")
    roles = {role.name: role for role in committed.roles}, {role.name: role for role in edited.roles}
    return found + [f"the role {name} differs from the commit" for name in _differing_roles(*roles)]


def _gates(gates: Sequence[Gate]) -> str:
    return ", ".join(f"{gate.kind} {gate.value}".strip() for gate in gates) or "none"


def _differing_roles(before: dict[str, Role], after: dict[str, Role]) -> list[str]:
    """List roles that differ, because they decide who may approve."""
    return [name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name)]
