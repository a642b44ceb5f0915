"""Promotion gates open only if their condition is known to hold."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from argosy.features.promote.classified_manifest_fields import Release
from argosy.features.promote.gates import (
    WAIT_ADVICE,
    EnvironmentState,
    GateFacts,
    GateResult,
    NotebookRun,
    choose_next_command,
    evaluate_gates,
    format_duration,
    parse_duration,
)
from argosy.features.promote.promotion_log_trailers import PromotionAction, PromotionActor, PromotionLogEntry
from argosy.features.promote.promotion_pipeline import PromotionPipeline
from argosy.gitops.delivery_file.delivery_value_types import DeliveryEnvironment, DeliveryRole, PromotionGate

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
R = Release("r4", "a" * 40)
DEV = DeliveryEnvironment("dev", "a-dev", "ns-dev", "d")
FINE = EnvironmentState("Healthy", NOW - timedelta(minutes=20), "Synced", True, "b" * 40, NOW - timedelta(minutes=30))


def evaluate_gate(gate: PromotionGate, facts: GateFacts, roles: tuple[DeliveryRole, ...] = ()) -> GateResult:
    target = DeliveryEnvironment("production", "a-prod", "ns", "p", after="dev", gates=(gate,))
    return evaluate_gates(PromotionPipeline((DEV, target), roles, "argosy.yaml"), DEV, target, facts)[-1]


def facts(standing: EnvironmentState | None = FINE, **more: object) -> GateFacts:
    return replace(GateFacts(NOW, release=R, released_at=NOW - timedelta(hours=1), source=standing), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["healthy", "soak"])
def test_time_gate_opens_after_its_duration_and_reports_the_time_left(kind: str) -> None:
    assert evaluate_gate(PromotionGate(kind, "10m"), facts()).is_open
    waiting = evaluate_gate(PromotionGate(kind, "1h"), facts())
    assert not waiting.is_open and waiting.reason == "a-dev is Healthy for 20m, 40m to go"


def test_soak_starts_at_the_deployment_and_restarts_at_each_recovery() -> None:
    late = replace(FINE, health_since=NOW - timedelta(days=3), deployed_at=NOW - timedelta(minutes=5))
    assert evaluate_gate(PromotionGate("healthy", "10m"), facts(late)).is_open
    assert not evaluate_gate(PromotionGate("soak", "10m"), facts(late)).is_open
    assert not evaluate_gate(
        PromotionGate("soak", "10m"), facts(replace(FINE, health_since=NOW - timedelta(minutes=5)))
    ).is_open
    assert not evaluate_gate(
        PromotionGate("soak", "1m"), facts(replace(FINE, sync_failure="its last sync failed"))
    ).is_open


@pytest.mark.parametrize(
    ("standing", "reason"),
    [
        (replace(FINE, runs_release=False), "a-dev does not run this release yet"),
        (replace(FINE, runs_release=False, is_unpushed=True), "a-dev does not run this release: not pushed yet"),
        (replace(FINE, runs_release=None), "a-dev runs bbbbbbb, which is not in this clone"),
        (replace(FINE, sync="OutOfSync"), "a-dev is OutOfSync: the release is not fully deployed"),
        (replace(FINE, health="Degraded"), "a-dev is Degraded"),
        (replace(FINE, health_since=None), "a-dev is Healthy, but reports no start time"),
        (replace(FINE, health_since=NOW + timedelta(minutes=10)), "this machine's clock is 10m behind the cluster's"),
    ],
)
def test_uncertain_state_keeps_the_healthy_gate_closed(standing: EnvironmentState, reason: str) -> None:
    gate_result = evaluate_gate(PromotionGate("healthy", "1m"), facts(standing))
    assert not gate_result.is_open and gate_result.reason == reason


@pytest.mark.parametrize(
    "gate", [PromotionGate("healthy", "1m"), PromotionGate("soak", "1m"), PromotionGate("notebook", "eval")]
)
def test_gates_stay_closed_without_a_cluster(gate: PromotionGate) -> None:
    gate_result = evaluate_gate(gate, facts(None, unavailable_reason="no cluster"))
    assert not gate_result.is_open and gate_result.reason == "unknown: no cluster"


@pytest.mark.parametrize(
    ("ran", "is_open", "reason"),
    [
        (NotebookRun("Succeeded", NOW - timedelta(minutes=5)), True, "succeeded 5m ago"),
        (NotebookRun("Succeeded", NOW - timedelta(hours=2)), False, "succeeded before this release was committed"),
        (NotebookRun("Failed", NOW, "cell 3"), False, "is Failed: cell 3"),
        (None, False, "NotebookValidationJob/eval in ns-dev not found"),
    ],
)
def test_notebook_gate_needs_a_success_after_the_release(ran: NotebookRun | None, is_open: bool, reason: str) -> None:
    gate_result = evaluate_gate(PromotionGate("notebook", "eval"), facts(notebooks={"eval": ran}))
    assert gate_result.is_open is is_open and reason in gate_result.reason


LEADS = (DeliveryRole("leads", ("carol@example.com", "ml-leads")),)


def answer(action: PromotionAction, by: PromotionActor, release: Release = R) -> PromotionLogEntry:
    return PromotionLogEntry(action, "production", by, release, role="leads", unix_seconds=int(NOW.timestamp()) - 60)


CAROL, EVE = PromotionActor("carol@example.com"), PromotionActor("eve", "cluster", ("everybody",))


@pytest.mark.parametrize(
    ("log", "is_open", "reason"),
    [
        ((), False, "not approved yet"),
        ((answer(PromotionAction.APPROVE, CAROL),), True, "approved by carol@example.com 1m ago"),
        (
            (answer(PromotionAction.APPROVE, PromotionActor("dan", "cluster", ("ml-leads",))),),
            True,
            "approved by dan 1m ago",
        ),
        ((answer(PromotionAction.APPROVE, EVE),), False, "not approved yet"),
        ((answer(PromotionAction.APPROVE, CAROL, Release("r3", "c" * 40)),), False, "not approved yet"),
        (
            (answer(PromotionAction.REJECT, CAROL), answer(PromotionAction.APPROVE, CAROL)),
            False,
            "rejected by carol@example.com",
        ),
        (
            (answer(PromotionAction.APPROVE, CAROL), answer(PromotionAction.REJECT, CAROL)),
            True,
            "approved by carol@example.com",
        ),
    ],
)
def test_approval_counts_only_for_its_release_and_from_members_of_the_role(
    log: tuple[PromotionLogEntry, ...], is_open: bool, reason: str
) -> None:
    gate_result = evaluate_gate(PromotionGate("approval", "leads"), facts(log=log), LEADS)
    assert (
        gate_result.is_open is is_open
        and gate_result.reason.startswith(reason)
        and gate_result.opened_by == "carol@example.com, ml-leads"
    )


def test_approval_gate_with_an_empty_role_advises_to_add_groups() -> None:
    gate_result = evaluate_gate(PromotionGate("approval", "leads"), facts())
    assert not gate_result.is_open and gate_result.next_command == "add rbac.roles.leads.groups to argosy.yaml"


def test_hold_blocks_promotion_until_it_is_resumed() -> None:
    held = PromotionLogEntry(PromotionAction.HOLD, "production", CAROL, reason="quarter end")
    target = DeliveryEnvironment("production", "a-prod", "ns", "p", after="dev")
    way = PromotionPipeline((DEV, target))
    (gate_result,) = evaluate_gates(way, DEV, target, facts(log=(held,)))
    assert not gate_result.is_open and gate_result.reason == "held by carol@example.com: quarter end"
    assert (
        evaluate_gates(
            way, DEV, target, facts(log=(PromotionLogEntry(PromotionAction.RESUME, "production", CAROL), held))
        )
        == []
    )


def test_hold_of_the_application_blocks_promotion() -> None:
    target = DeliveryEnvironment("production", "a-prod", "ns", "p", after="dev")
    (gate_result,) = evaluate_gates(
        PromotionPipeline((DEV, target)), DEV, target, facts(target=EnvironmentState(hold="held by bob: no"))
    )
    assert not gate_result.is_open and gate_result.next_command == "argosy app release a-prod"


def test_rolled_back_release_is_blocked_and_a_newer_release_is_not() -> None:
    target = DeliveryEnvironment("production", "a-prod", "ns", "p", after="dev")
    log = (
        PromotionLogEntry(
            PromotionAction.ROLLBACK, "production", CAROL, Release("r3", "c" * 40), replaced=R, reason="bad"
        ),
    )
    (gate_result,) = evaluate_gates(PromotionPipeline((DEV, target)), DEV, target, facts(log=log))
    assert not gate_result.is_open and gate_result.reason == "from r4, by carol@example.com: bad"
    newer = facts(log=log, release=Release("r5", "d" * 40))
    assert evaluate_gates(PromotionPipeline((DEV, target)), DEV, target, newer) == []


def test_user_action_is_advised_before_waiting() -> None:
    soak, yes = (
        GateResult("soak", False, "", next_command=WAIT_ADVICE),
        GateResult("approval", False, "", next_command="approve"),
    )
    assert choose_next_command([soak, yes]) == "approve" and choose_next_command([soak]) == WAIT_ADVICE
    assert choose_next_command([GateResult("healthy", False, "unknown")]) == ""


def test_durations_are_parsed_and_formatted() -> None:
    assert parse_duration("1h30m") == 5400 and parse_duration("2d") == 172800
    assert [format_duration(seconds) for seconds in (0, 59, 73, 7199, 7200, 172800)] == [
        "0s",
        "59s",
        "1m",
        "119m",
        "2h",
        "2d",
    ]
