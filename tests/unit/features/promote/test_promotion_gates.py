"""Gates: open only where what they ask for is known to be so."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from argosy.features.promote.environments import Way
from argosy.features.promote.gates import WAIT, Facts, Ran, Standing, Verdict, advised, duration, spoken, verdicts
from argosy.features.promote.promotion_log import Action, By, Entry
from argosy.features.promote.releases import Release
from argosy.gitops.delivery_file.values import Environment, Gate, Role

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
R = Release("r4", "a" * 40)
DEV = Environment("dev", "a-dev", "ns-dev", "d")
FINE = Standing("Healthy", NOW - timedelta(minutes=20), "Synced", True, "b" * 40, NOW - timedelta(minutes=30))


def judged(gate: Gate, facts: Facts, roles: tuple[Role, ...] = ()) -> Verdict:
    target = Environment("production", "a-prod", "ns", "p", after="dev", gates=(gate,))
    return verdicts(Way((DEV, target), roles, "argosy.yaml"), DEV, target, facts)[-1]


def facts(standing: Standing | None = FINE, **more: object) -> Facts:
    return replace(Facts(NOW, release=R, released=NOW - timedelta(hours=1), source=standing), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["healthy", "soak"])
def test_a_time_that_has_passed_opens_and_one_that_has_not_tells_how_long(kind: str) -> None:
    assert judged(Gate(kind, "10m"), facts()).is_open
    waiting = judged(Gate(kind, "1h"), facts())
    assert not waiting.is_open and waiting.why == "a-dev is Healthy for 20m, 40m to go"


def test_a_soak_begins_with_the_deployment_and_anew_with_each_recovery() -> None:
    late = replace(FINE, since=NOW - timedelta(days=3), deployed=NOW - timedelta(minutes=5))
    assert judged(Gate("healthy", "10m"), facts(late)).is_open
    assert not judged(Gate("soak", "10m"), facts(late)).is_open
    assert not judged(Gate("soak", "10m"), facts(replace(FINE, since=NOW - timedelta(minutes=5)))).is_open
    assert not judged(Gate("soak", "1m"), facts(replace(FINE, trouble="its last sync failed"))).is_open


@pytest.mark.parametrize(
    ("standing", "told"),
    [
        (replace(FINE, runs=False), "a-dev does not run this release yet"),
        (replace(FINE, runs=False, is_unpushed=True), "a-dev does not run this release: not pushed yet"),
        (replace(FINE, runs=None), "a-dev runs bbbbbbb, which is not in this clone"),
        (replace(FINE, sync="OutOfSync"), "a-dev is OutOfSync: the release is not fully deployed"),
        (replace(FINE, health="Degraded"), "a-dev is Degraded"),
        (replace(FINE, since=None), "a-dev is Healthy, but reports no start time"),
        (replace(FINE, since=NOW + timedelta(minutes=10)), "this machine's clock is 10m behind the cluster's"),
    ],
)
def test_what_is_not_certain_keeps_it_closed(standing: Standing, told: str) -> None:
    found = judged(Gate("healthy", "1m"), facts(standing))
    assert not found.is_open and found.why == told


@pytest.mark.parametrize("gate", [Gate("healthy", "1m"), Gate("soak", "1m"), Gate("notebook", "eval")])
def test_without_a_cluster_it_cannot_be_judged_and_stays_closed(gate: Gate) -> None:
    found = judged(gate, facts(None, why="no cluster"))
    assert not found.is_open and found.why == "unknown: no cluster"


@pytest.mark.parametrize(
    ("ran", "is_open", "told"),
    [
        (Ran("Succeeded", NOW - timedelta(minutes=5)), True, "succeeded 5m ago"),
        (Ran("Succeeded", NOW - timedelta(hours=2)), False, "succeeded before this release was committed"),
        (Ran("Failed", NOW, "cell 3"), False, "is Failed: cell 3"),
        (None, False, "NotebookValidationJob/eval in ns-dev not found"),
    ],
)
def test_a_notebook_must_have_succeeded_since_the_release(ran: Ran | None, is_open: bool, told: str) -> None:
    found = judged(Gate("notebook", "eval"), facts(notebooks={"eval": ran}))
    assert found.is_open is is_open and told in found.why


LEADS = (Role("leads", ("carol@example.com", "ml-leads")),)


def answer(action: Action, by: By, release: Release = R) -> Entry:
    return Entry(action, "production", by, release, role="leads", seconds=int(NOW.timestamp()) - 60)


CAROL, EVE = By("carol@example.com"), By("eve", "cluster", ("everybody",))


@pytest.mark.parametrize(
    ("log", "is_open", "told"),
    [
        ((), False, "not approved yet"),
        ((answer(Action.APPROVE, CAROL),), True, "approved by carol@example.com 1m ago"),
        ((answer(Action.APPROVE, By("dan", "cluster", ("ml-leads",))),), True, "approved by dan 1m ago"),
        ((answer(Action.APPROVE, EVE),), False, "not approved yet"),
        ((answer(Action.APPROVE, CAROL, Release("r3", "c" * 40)),), False, "not approved yet"),
        ((answer(Action.REJECT, CAROL), answer(Action.APPROVE, CAROL)), False, "rejected by carol@example.com"),
        ((answer(Action.APPROVE, CAROL), answer(Action.REJECT, CAROL)), True, "approved by carol@example.com"),
    ],
)
def test_an_approval_counts_for_one_release_by_one_who_has_the_role(
    log: tuple[Entry, ...], is_open: bool, told: str
) -> None:
    found = judged(Gate("approval", "leads"), facts(log=log), LEADS)
    assert found.is_open is is_open and found.why.startswith(told) and found.who == "carol@example.com, ml-leads"


def test_a_role_that_nobody_has_says_where_to_name_somebody() -> None:
    found = judged(Gate("approval", "leads"), facts())
    assert not found.is_open and found.next == "add rbac.roles.leads.groups to argosy.yaml"


def test_a_hold_closes_until_it_is_resumed() -> None:
    held = Entry(Action.HOLD, "production", CAROL, reason="quarter end")
    target = Environment("production", "a-prod", "ns", "p", after="dev")
    way = Way((DEV, target))
    (found,) = verdicts(way, DEV, target, facts(log=(held,)))
    assert not found.is_open and found.why == "held by carol@example.com: quarter end"
    assert verdicts(way, DEV, target, facts(log=(Entry(Action.RESUME, "production", CAROL), held))) == []


def test_a_hold_of_the_application_is_respected() -> None:
    target = Environment("production", "a-prod", "ns", "p", after="dev")
    (found,) = verdicts(Way((DEV, target)), DEV, target, facts(target=Standing(hold="held by bob: no")))
    assert not found.is_open and found.next == "argosy app release a-prod"


def test_what_was_rolled_back_from_does_not_come_again_but_a_newer_release_may() -> None:
    target = Environment("production", "a-prod", "ns", "p", after="dev")
    log = (Entry(Action.ROLLBACK, "production", CAROL, Release("r3", "c" * 40), over=R, reason="bad"),)
    (found,) = verdicts(Way((DEV, target)), DEV, target, facts(log=log))
    assert not found.is_open and found.why == "from r4, by carol@example.com: bad"
    newer = facts(log=log, release=Release("r5", "d" * 40))
    assert verdicts(Way((DEV, target)), DEV, target, newer) == []


def test_what_somebody_can_do_is_advised_before_waiting() -> None:
    soak, yes = Verdict("soak", False, "", next=WAIT), Verdict("approval", False, "", next="approve")
    assert advised([soak, yes]) == "approve" and advised([soak]) == WAIT
    assert advised([Verdict("healthy", False, "unknown")]) == ""


def test_durations_are_read_and_told() -> None:
    assert duration("1h30m") == 5400 and duration("2d") == 172800
    assert [spoken(each) for each in (0, 59, 73, 7199, 7200, 172800)] == ["0s", "59s", "1m", "119m", "2h", "2d"]
