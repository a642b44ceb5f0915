"""Gates: open only where what they ask for is known to be so."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from argosy.features.promote.environment_contents import Release
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
from argosy.features.promote.promotion_log import PromotionAction, PromotionActor, PromotionLogEntry
from argosy.features.promote.promotion_pipeline import PromotionPipeline
from argosy.gitops.delivery_file.values import DeliveryEnvironment, DeliveryRole, PromotionGate

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
def test_a_time_that_has_passed_opens_and_one_that_has_not_tells_how_long(kind: str) -> None:
    assert evaluate_gate(PromotionGate(kind, "10m"), facts()).is_open
    waiting = evaluate_gate(PromotionGate(kind, "1h"), facts())
    assert not waiting.is_open and waiting.reason == "a-dev is Healthy for 20m, 40m to go"


def test_a_soak_begins_with_the_deployment_and_anew_with_each_recovery() -> None:
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
def test_what_is_not_certain_keeps_it_closed(standing: EnvironmentState, reason: str) -> None:
    gate_result = evaluate_gate(PromotionGate("healthy", "1m"), facts(standing))
    assert not gate_result.is_open and gate_result.reason == reason


@pytest.mark.parametrize(
    "gate", [PromotionGate("healthy", "1m"), PromotionGate("soak", "1m"), PromotionGate("notebook", "eval")]
)
def test_without_a_cluster_it_cannot_be_judged_and_stays_closed(gate: PromotionGate) -> None:
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
def test_a_notebook_must_have_succeeded_since_the_release(ran: NotebookRun | None, is_open: bool, reason: str) -> None:
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
def test_an_approval_counts_for_one_release_by_one_who_has_the_role(
    log: tuple[PromotionLogEntry, ...], is_open: bool, reason: str
) -> None:
    gate_result = evaluate_gate(PromotionGate("approval", "leads"), facts(log=log), LEADS)
    assert (
        gate_result.is_open is is_open
        and gate_result.reason.startswith(reason)
        and gate_result.opened_by == "carol@example.com, ml-leads"
    )


def test_a_role_that_nobody_has_says_where_to_name_somebody() -> None:
    gate_result = evaluate_gate(PromotionGate("approval", "leads"), facts())
    assert not gate_result.is_open and gate_result.next_command == "add rbac.roles.leads.groups to argosy.yaml"


def test_a_hold_closes_until_it_is_resumed() -> None:
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


def test_a_hold_of_the_application_is_respected() -> None:
    target = DeliveryEnvironment("production", "a-prod", "ns", "p", after="dev")
    (gate_result,) = evaluate_gates(
        PromotionPipeline((DEV, target)), DEV, target, facts(target=EnvironmentState(hold="held by bob: no"))
    )
    assert not gate_result.is_open and gate_result.next_command == "argosy app release a-prod"


def test_what_was_rolled_back_from_does_not_come_again_but_a_newer_release_may() -> None:
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


def test_what_somebody_can_do_is_advised_before_waiting() -> None:
    soak, yes = (
        GateResult("soak", False, "", next_command=WAIT_ADVICE),
        GateResult("approval", False, "", next_command="approve"),
    )
    assert choose_next_command([soak, yes]) == "approve" and choose_next_command([soak]) == WAIT_ADVICE
    assert choose_next_command([GateResult("healthy", False, "unknown")]) == ""


def test_durations_are_read_and_told() -> None:
    assert parse_duration("1h30m") == 5400 and parse_duration("2d") == 172800
    assert [format_duration(seconds) for seconds in (0, 59, 73, 7199, 7200, 172800)] == [
        "0s",
        "59s",
        "1m",
        "119m",
        "2h",
        "2d",
    ]
