"""Explains one field of an object, differing or not: its cause, its owner, and since when.

In: Evidence and a pointer. Out: FieldExplanation. Never: a value of a Secret, unless the caller passes one: manifests
to be shown are masked before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from argosy.errors import PatchError
from argosy.gitops.analysis.cause import Cause, CauseKind
from argosy.gitops.analysis.causes import causes
from argosy.gitops.analysis.evidence import ABSENT, Evidence
from argosy.gitops.application.step_results import Difference, Origin
from argosy.gitops.diff.differences import owner_of
from argosy.gitops.diff.field_subset import same
from argosy.kube.patch.json_pointer import parse
from argosy.kube.patch.managed_fields import Manager, managers_of

AS_ASKED: Final = "matches Git"
DEFAULT: Final = "not set in Git; default set by the API server"
LEFT: Final = "not set in Git; a sync does not change it"


@dataclass(frozen=True, slots=True)
class FieldStory:
    """`cause` says why the field differs, or where its value comes from."""

    pointer: str
    differs: bool
    cause: Cause
    manager: str = ""
    since: str = ""


def tell(evidence: Evidence, pointer: str, found: Difference | None) -> FieldStory:
    """Explain the field. `difference`: None if it does not differ."""
    owner = _owner(evidence, pointer)
    name, since = (owner.name, owner.time) if owner else ("", "")
    if found is not None:
        (cause,) = causes(evidence, [found])
        return FieldStory(pointer, True, cause, found.manager or name, found.since or since)
    return FieldStory(pointer, False, _at_rest(evidence, pointer, name, since), name, since)


def _at_rest(evidence: Evidence, pointer: str, name: str, since: str) -> Cause:
    """Return the origin of the value of a field that does not differ."""
    origin = evidence.origins.get(pointer, Origin(""))
    if evidence.at(pointer, evidence.pair.desired) is not ABSENT:
        made = Cause(CauseKind.AS_ASKED, AS_ASKED, "", origin.file, origin.line, origin.repository)
        return replace(made, manager=name, at=since)
    live, default = evidence.at(pointer, evidence.pair.live), evidence.at(pointer, evidence.filled)
    if default is not ABSENT and same(default, live):
        return Cause(CauseKind.DEFAULTING, DEFAULT, manager=name, at=since)
    if name and name != evidence.controller:
        return Cause(CauseKind.OTHER_CONTROLLER, f"set by {name}; {LEFT}", manager=name, at=since)
    return Cause(CauseKind.UNKNOWN, LEFT, manager=name, at=since)


def _owner(evidence: Evidence, pointer: str) -> Manager | None:
    live = evidence.pair.live
    if live is None:
        return None
    try:
        managers = managers_of(live)
    except PatchError:
        return None
    return owner_of(_tokens(pointer, live), live, managers)


def _tokens(pointer: str, live: Any) -> list[str | int]:
    """Parse the pointer, with integers where the live manifest has lists."""
    found: list[str | int] = []
    for token in parse(pointer):
        is_index = isinstance(live, list) and token.isdecimal()
        found.append(int(token) if is_index else token)
        if isinstance(live, dict):
            live = live.get(token)
        else:
            live = live[int(token)] if is_index and int(token) < len(live) else None
    return found
