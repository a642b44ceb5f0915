"""Validates tasks before they run: does the cluster serve their kinds, does the project permit them. Pure.

In: tasks, the kinds that the cluster serves. Out: the reason for each task that cannot run. Never: asks a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from argosy.gitops.sync.operation_terms import Terms
from argosy.gitops.sync.task_order import defined_by
from argosy.gitops.sync.task_states import Board, Turn
from argosy.kube.names import GroupKind, ResourceKey, split_api_version

Permitted = Callable[[ResourceKey, bool], str]  # key and is_namespaced → why it is not permitted; "" if it is


class ServedKind(Protocol):
    @property
    def namespaced(self) -> bool: ...
    @property
    def version(self) -> str: ...
    @property
    def versions(self) -> Sequence[str]: ...


def invalid(
    turns: Sequence[Turn],
    board: Board,
    kinds: Mapping[GroupKind, ServedKind],
    terms: Terms,
    permitted: Permitted,
) -> list[tuple[Turn, str]]:
    coming = {defined for turn in board.turns if (defined := defined_by(turn.task))}
    found = []
    for turn in turns:
        kind = turn.key.group_kind
        served = kinds.get(kind)
        if served is None or not _has_version(turn, served):
            if tuple(kind) in coming or terms.skips_missing_kind(turn.task):
                continue
            reason = _not_served(turn)
        else:
            reason = permitted(turn.key, served.namespaced)
        if reason:
            found.append((turn, reason))
    return found


def _has_version(turn: Turn, served: ServedKind) -> bool:
    if turn.task.desired is None:
        return True
    _, version = split_api_version(str(turn.task.desired.get("apiVersion") or ""))
    return version == served.version or version in served.versions


def _not_served(turn: Turn) -> str:
    """argo: Argo CD's message, which names the kind and says what to install."""
    key = turn.key
    _, version = split_api_version(str((turn.task.desired or turn.live or {}).get("apiVersion") or ""))
    return (
        f'The Kubernetes API could not find version "{version}" of {key.group}/{key.kind} for requested resource '
        f'{key.namespace}/{key.name}. Make sure the "{key.kind}" CRD is installed on the destination cluster.'
    )
