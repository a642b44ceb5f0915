"""The conditions of an Application, with their times.

In: existing conditions, new ones, and the types that were evaluated. Out: conditions in Argo CD's format. Never: a new
time for an old condition.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from argosy.gitops.status.wire_format import mappings

LONGEST: Final = 8192  # characters of a message, so that the status stays small enough


class ConditionType(enum.StrEnum):
    """argo: all types of Argo CD, and one of ours. An Error blocks automated syncs, a Warning does not."""

    DELETION_ERROR = "DeletionError"
    INVALID_SPEC_ERROR = "InvalidSpecError"
    COMPARISON_ERROR = "ComparisonError"
    SYNC_ERROR = "SyncError"
    UNKNOWN_ERROR = "UnknownError"
    SHARED_RESOURCE_WARNING = "SharedResourceWarning"
    REPEATED_RESOURCE_WARNING = "RepeatedResourceWarning"
    EXCLUDED_RESOURCE_WARNING = "ExcludedResourceWarning"
    ORPHANED_RESOURCE_WARNING = "OrphanedResourceWarning"
    SOURCE_WARNING = "SourceWarning"  # ours: likely mistakes

    @property
    def is_error(self) -> bool:
        return self.endswith("Error")


class Condition(NamedTuple):
    type: ConditionType
    message: str


def conditions_wire(
    before: Any, found: Iterable[Condition], looked_for: Collection[ConditionType], now: str
) -> list[dict[str, str]]:
    """Replace the types that were evaluated; others stay as they are."""
    told = dict.fromkeys(Condition(each.type, _shortened(each.message)) for each in found)
    since = {_words(each): each.get("lastTransitionTime") for each in mappings(before)}
    kept = [dict(each) for each in mappings(before) if each.get("type") not in looked_for and _words(each) not in told]
    fresh = [_wire(each, since.get(each) or now) for each in told]
    return sorted(kept + fresh, key=lambda each: [str(each.get(name)) for name in _ORDER])


_ORDER: Final = ("type", "message", "lastTransitionTime")


def _words(written: Mapping[str, Any]) -> tuple[str, str]:
    """Return a tuple that equals a Condition of the same type and message."""
    return str(written.get("type")), str(written.get("message"))


def _wire(condition: Condition, since: str) -> dict[str, str]:
    return {"type": condition.type.value, "message": condition.message, "lastTransitionTime": since}


def _shortened(message: str) -> str:
    return message if len(message) <= LONGEST else message[: LONGEST - 2] + " …"
