"""The conditions of an Application, with their times.

In: existing conditions, new ones, and the types that were evaluated. Out: conditions in Argo CD's format. Never: a new
time for an old condition.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from argosy.gitops.status.status_json_conversions import as_mappings

MAX_MESSAGE_LENGTH: Final = 8192  # characters of a message, so that the status stays small enough


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


class AppCondition(NamedTuple):
    type: ConditionType
    message: str


def conditions_to_wire(
    before: Any, new_conditions: Iterable[AppCondition], evaluated_types: Collection[ConditionType], now: str
) -> list[dict[str, str]]:
    """Replace the types that were evaluated; others stay as they are."""
    shortened = dict.fromkeys(AppCondition(condition.type, _shorten(condition.message)) for condition in new_conditions)
    since = {_condition_identity(condition): condition.get("lastTransitionTime") for condition in as_mappings(before)}
    unchanged = [
        dict(condition)
        for condition in as_mappings(before)
        if condition.get("type") not in evaluated_types and _condition_identity(condition) not in shortened
    ]
    added = [_condition_to_wire(condition, since.get(condition) or now) for condition in shortened]
    return sorted(unchanged + added, key=lambda condition: [str(condition.get(name)) for name in _SORT_FIELDS])


_SORT_FIELDS: Final = ("type", "message", "lastTransitionTime")


def _condition_identity(condition: Mapping[str, Any]) -> tuple[str, str]:
    """Return a tuple that equals a Condition of the same type and message."""
    return str(condition.get("type")), str(condition.get("message"))


def _condition_to_wire(condition: AppCondition, since: str) -> dict[str, str]:
    return {"type": condition.type.value, "message": condition.message, "lastTransitionTime": since}


def _shorten(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE_LENGTH else message[: MAX_MESSAGE_LENGTH - 2] + " …"
