"""Explains one field of an object, differing or not: its cause, its owner, and since when.

In: Evidence and a pointer. Out: FieldExplanation. Never: a value of a Secret, unless the caller passes one: manifests
to be shown are masked before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from argosy.errors import PatchError
from argosy.gitops.analysis.difference_cause_detection import find_causes
from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind
from argosy.gitops.analysis.object_versions_as_cause_evidence import ABSENT, Evidence
from argosy.gitops.application.step_results import FieldDifference, FieldOrigin
from argosy.gitops.diff.differences import find_owner
from argosy.gitops.diff.field_projection import is_same_json
from argosy.kube.patch.json_pointer import parse
from argosy.kube.patch.managed_fields import Manager, read_managers

MATCHES_GIT: Final = "matches Git"
DEFAULT_VALUE: Final = "not set in Git; default set by the API server"
NOT_IN_GIT: Final = "not set in Git; a sync does not change it"


@dataclass(frozen=True, slots=True)
class FieldExplanation:
    """`cause` says why the field differs, or where its value comes from."""

    pointer: str
    differs: bool
    cause: Cause
    manager: str = ""
    since: str = ""


def explain_field(evidence: Evidence, pointer: str, difference: FieldDifference | None) -> FieldExplanation:
    """Explain the field. `difference`: None if it does not differ."""
    owner = _find_owner(evidence, pointer)
    name, since = (owner.name, owner.time) if owner else ("", "")
    if difference is not None:
        (cause,) = find_causes(evidence, [difference])
        return FieldExplanation(pointer, True, cause, difference.manager or name, difference.since or since)
    return FieldExplanation(pointer, False, _explain_unchanged_field(evidence, pointer, name, since), name, since)


def _explain_unchanged_field(evidence: Evidence, pointer: str, manager: str, since: str) -> Cause:
    """Return the origin of the value of a field that does not differ."""
    origin = evidence.origins.get(pointer, FieldOrigin(""))
    if evidence.get_value(pointer, evidence.pair.desired) is not ABSENT:
        cause = Cause(CauseKind.MATCHES_GIT, MATCHES_GIT, "", origin.file, origin.line, origin.repository)
        return replace(cause, manager=manager, at=since)
    live, default = evidence.get_value(pointer, evidence.pair.live), evidence.get_value(pointer, evidence.with_defaults)
    if default is not ABSENT and is_same_json(default, live):
        return Cause(CauseKind.DEFAULTING, DEFAULT_VALUE, manager=manager, at=since)
    if manager and manager != evidence.controller:
        return Cause(CauseKind.OTHER_CONTROLLER, f"set by {manager}; {NOT_IN_GIT}", manager=manager, at=since)
    return Cause(CauseKind.UNKNOWN, NOT_IN_GIT, manager=manager, at=since)


def _find_owner(evidence: Evidence, pointer: str) -> Manager | None:
    live = evidence.pair.live
    if live is None:
        return None
    try:
        managers = read_managers(live)
    except PatchError:
        return None
    return find_owner(_parse_tokens(pointer, live), live, managers)


def _parse_tokens(pointer: str, live: Any) -> list[str | int]:
    """Parse the pointer, with integers where the live manifest has lists."""
    tokens: list[str | int] = []
    for token in parse(pointer):
        is_index = isinstance(live, list) and token.isdecimal()
        tokens.append(int(token) if is_index else token)
        if isinstance(live, dict):
            live = live.get(token)
        else:
            live = live[int(token)] if is_index and int(token) < len(live) else None
    return tokens
