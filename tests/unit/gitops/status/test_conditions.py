"""Status conditions: which are replaced, and when their time changes."""

from __future__ import annotations

from argosy.gitops.status.conditions import MAX_MESSAGE_LENGTH, AppCondition, ConditionType, conditions_to_wire

OLD, NOW = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
SYNC, COMPARISON = ConditionType.SYNC_ERROR, ConditionType.COMPARISON_ERROR
BEFORE = [
    {"type": "ComparisonError", "message": "no such path", "lastTransitionTime": OLD},
    {"type": "SyncError", "message": "failed", "lastTransitionTime": OLD},
]


def test_only_conditions_of_evaluated_types_are_replaced() -> None:
    assert conditions_to_wire(BEFORE, [], {COMPARISON}, NOW) == BEFORE[1:]
    assert conditions_to_wire(BEFORE, [], (), NOW) == BEFORE


def test_condition_with_the_same_message_keeps_its_time() -> None:
    assert conditions_to_wire(BEFORE, [AppCondition(SYNC, "failed")], {SYNC, COMPARISON}, NOW) == BEFORE[1:]


def test_condition_with_another_message_gets_a_new_time() -> None:
    conditions = conditions_to_wire(BEFORE, [AppCondition(SYNC, "failed again")], {SYNC}, NOW)
    assert conditions[1] == {"type": "SyncError", "message": "failed again", "lastTransitionTime": NOW}


def test_conditions_are_sorted_and_deduplicated() -> None:
    conditions = [
        AppCondition(SYNC, "b"),
        AppCondition(SYNC, "a"),
        AppCondition(COMPARISON, "c"),
        AppCondition(SYNC, "b"),
    ]
    written = conditions_to_wire(None, conditions, {SYNC, COMPARISON}, NOW)
    assert [(condition["type"], condition["message"]) for condition in written] == [
        ("ComparisonError", "c"),
        ("SyncError", "a"),
        ("SyncError", "b"),
    ]


def test_conditions_of_unknown_types_are_kept() -> None:
    strange = [{"type": "Odd", "message": "x"}]
    assert conditions_to_wire([*strange, "no map"], [], set(ConditionType), NOW) == strange


def test_long_message_is_truncated_and_keeps_its_time() -> None:
    first = conditions_to_wire(None, [AppCondition(SYNC, "x" * 100_000)], {SYNC}, OLD)
    assert len(first[0]["message"]) == MAX_MESSAGE_LENGTH
    assert conditions_to_wire(first, [AppCondition(SYNC, "x" * 100_000)], {SYNC}, NOW) == first


def test_errors_are_distinguished_from_warnings() -> None:
    assert SYNC.is_error and not ConditionType.SHARED_RESOURCE_WARNING.is_error


def test_condition_of_an_unevaluated_type_is_not_duplicated() -> None:
    assert conditions_to_wire(BEFORE, [AppCondition(SYNC, "failed")], (), NOW) == BEFORE
