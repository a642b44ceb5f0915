"""Automated sync: when it starts, is delayed or is refused; self-heal, its backoff, and allowEmpty."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.gitops.application import Application, RetryStrategy, read_application
from argosy.gitops.application.step_results import AppComparison, Pair, SyncStatus
from argosy.gitops.sync.auto_sync_decision import (
    DelaySync,
    HealBackoff,
    RefuseSync,
    StartSync,
    SyncTarget,
    decide_auto_sync,
)
from argosy.kube.resource_key import ResourceKey

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SOURCE = {"repoURL": "https://git.example/x", "path": "p"}
SYNCED_BEFORE = {"operation": {"sync": {"revision": "abc"}}, "phase": "Succeeded", "startedAt": "2025-12-31T23:00:00Z",
                 "finishedAt": "2025-12-31T23:00:05Z", "message": "successfully synced",
                 "syncResult": {"revision": "abc", "source": SOURCE}}  # fmt: skip


def app(state: dict[str, Any] | None = None, operation: dict[str, Any] | None = None, **automated: bool) -> Application:
    return read_application(
        {
            "metadata": {"name": "models"},
            "spec": {"source": SOURCE, "syncPolicy": {"automated": automated}},
            **({"operation": operation} if operation else {}),
            **({"status": {"operationState": state}} if state else {}),
        }
    )


def pair(name: str, *, extra: bool = False, differs: bool = True) -> Pair:
    key = ResourceKey("apps", "Deployment", "ml", name)
    manifest = {"metadata": {"name": name}}
    return Pair(key, None if extra else manifest, manifest, differs)


def outdated(*pairs: Pair) -> AppComparison:
    return AppComparison(pairs or (pair("web"),), status=SyncStatus.OUT_OF_SYNC)


ABC, NEW = SyncTarget(("abc",)), SyncTarget(("def",))


def test_out_of_sync_app_is_synced_to_the_new_revision() -> None:
    decision = decide_auto_sync(app(SYNCED_BEFORE, prune=True), outdated(), NEW, NOW)
    assert isinstance(decision, StartSync)
    assert (decision.request.sync.revision, decision.request.sync.prune, decision.request.is_automated) == (
        "def",
        True,
        True,
    )
    assert decision.request.sync.resources == () and decision.request.retry.limit == 5
    assert [source.wire for source in decision.request.sync.sources] == [SOURCE]


@pytest.mark.parametrize("status", [SyncStatus.SYNCED, SyncStatus.UNKNOWN])
def test_auto_sync_starts_only_when_out_of_sync(status: SyncStatus) -> None:
    assert decide_auto_sync(app(), AppComparison((pair("web"),), status=status), NEW, NOW) is None


def test_auto_sync_does_not_start_if_disabled_or_operation_is_pending() -> None:
    assert decide_auto_sync(app(enabled=False), outdated(), NEW, NOW) is None
    assert decide_auto_sync(app(operation={"sync": {"revision": "x"}}), outdated(), NEW, NOW) is None
    assert decide_auto_sync(read_application({"metadata": {"name": "a"}, "spec": {}}), outdated(), NEW, NOW) is None


def test_auto_sync_does_not_start_for_an_application_that_is_being_deleted() -> None:
    deleted = replace(app(), deletion_timestamp="2026-01-01T00:00:00Z")
    assert decide_auto_sync(deleted, outdated(), NEW, NOW) is None


def test_automated_request_has_the_policy_of_the_application() -> None:
    decision = decide_auto_sync(app(), outdated(), NEW, NOW)
    assert isinstance(decision, StartSync) and not decision.request.sync.prune
    policy = app().policy._replace(retry=RetryStrategy(limit=2))
    decision = decide_auto_sync(replace(app(), policy=policy), outdated(), NEW, NOW)
    assert isinstance(decision, StartSync) and decision.request.retry.limit == 2


def test_given_backoff_delays_self_heal() -> None:
    state = {**SYNCED_BEFORE, "finishedAt": NOW.isoformat(),
             "operation": {"sync": {"revision": "abc", "autoHealAttemptsCount": 1}}}  # fmt: skip
    decision = decide_auto_sync(app(state, selfHeal=True), outdated(), ABC, NOW, HealBackoff(first_seconds=7.0))
    assert decision == DelaySync(7.0)


def test_auto_sync_does_not_start_for_prunes_alone_without_prune() -> None:
    assert decide_auto_sync(app(), outdated(pair("web", extra=True)), NEW, NOW) is None
    assert isinstance(
        decide_auto_sync(app(prune=True), outdated(pair("web", extra=True), pair("b")), NEW, NOW), StartSync
    )


def test_failed_revision_is_not_retried_by_auto_sync() -> None:
    state = {**SYNCED_BEFORE, "phase": "Failed", "message": "one or more objects failed to apply"}
    decision = decide_auto_sync(app(state, selfHeal=True), outdated(), ABC, NOW)
    assert decision == RefuseSync("Failed last sync attempt to [abc]: one or more objects failed to apply")
    assert isinstance(decide_auto_sync(app(state, selfHeal=True), outdated(), NEW, NOW), StartSync)


def test_sync_that_failed_before_its_revision_was_known_does_not_end_auto_sync() -> None:
    state = {**SYNCED_BEFORE, "phase": "Error", "operation": {"sync": {}}, "syncResult": {"source": SOURCE}}
    assert isinstance(decide_auto_sync(app(state), outdated(), ABC, NOW), StartSync)


def test_ended_sync_without_a_result_is_not_repeated_for_any_revision() -> None:
    state = {name: value for name, value in SYNCED_BEFORE.items() if name != "syncResult"}
    decision = decide_auto_sync(app({**state, "phase": "Error"}), outdated(), NEW, NOW)
    assert decision == RefuseSync("Failed last sync attempt to [def]: successfully synced")


def test_synced_sources_with_falsy_helm_values_differ_from_those_without() -> None:
    before = {"revision": "abc", "source": {**SOURCE, "helm": {"valuesObject": {"replicas": 0}}}}
    decision = decide_auto_sync(app({**SYNCED_BEFORE, "syncResult": before}), outdated(), ABC, NOW)
    assert isinstance(decision, StartSync)


def test_several_sources_count_as_attempted_only_with_all_revisions() -> None:
    sources = [SOURCE, {**SOURCE, "path": "q"}]
    state = {**SYNCED_BEFORE, "syncResult": {"revisions": ["abc", "def"], "sources": sources}}
    application = read_application(
        {
            "metadata": {"name": "models"},
            "spec": {"sources": sources, "syncPolicy": {"automated": {}}},
            "status": {"operationState": state},
        }
    )
    assert decide_auto_sync(application, outdated(), SyncTarget(("abc", "def")), NOW) is None
    decision = decide_auto_sync(application, outdated(), SyncTarget(("abc", "new")), NOW)
    assert isinstance(decision, StartSync)
    assert (decision.request.sync.revision, decision.request.sync.revisions) == ("", ("abc", "new"))


@pytest.mark.parametrize("revision", ["", "abc"])
def test_sync_of_local_manifests_does_not_count_as_a_sync_of_the_revision(revision: str) -> None:
    sync = {"manifests": ["{}"], "revision": revision}
    state = {**SYNCED_BEFORE, "operation": {"sync": sync}, "syncResult": {"revision": revision, "source": SOURCE}}
    assert isinstance(decide_auto_sync(app(state), outdated(), ABC, NOW), StartSync)


def test_drift_is_not_healed_without_self_heal() -> None:
    assert decide_auto_sync(app(SYNCED_BEFORE), outdated(), ABC, NOW) is None


def test_self_heal_syncs_only_the_drifted_resources() -> None:
    comparison = outdated(pair("web"), pair("other", differs=False))
    decision = decide_auto_sync(app(SYNCED_BEFORE, selfHeal=True), comparison, ABC, NOW)
    assert isinstance(decision, StartSync)
    assert decision.request.sync.resources == (ResourceKey("apps", "Deployment", "", "web"),)
    assert decision.request.sync.heal_attempts == 1


def test_self_heal_backoff_grows_with_each_attempt() -> None:
    state = {**SYNCED_BEFORE, "finishedAt": NOW.isoformat(),
             "operation": {"sync": {"revision": "abc", "autoHealAttemptsCount": 2}}}  # fmt: skip
    assert decide_auto_sync(app(state, selfHeal=True), outdated(), ABC, NOW) == DelaySync(6.0)
    assert isinstance(
        decide_auto_sync(app(state, selfHeal=True), outdated(), ABC, NOW + timedelta(seconds=6)), StartSync
    )
    assert [HealBackoff().delay_seconds(heals) for heals in range(8)] == [0, 2, 6, 18, 54, 162, 300, 300]


def test_changed_source_starts_a_new_sync_attempt() -> None:
    moved = {**SYNCED_BEFORE, "syncResult": {"revision": "abc", "source": {**SOURCE, "path": "old"}}}
    decision = decide_auto_sync(app(moved), outdated(), ABC, NOW)
    assert isinstance(decision, StartSync) and decision.request.sync.heal_attempts == 0


def test_auto_sync_refuses_to_prune_everything_without_allow_empty() -> None:
    comparison = outdated(pair("web", extra=True))
    decision = decide_auto_sync(app(prune=True), comparison, NEW, NOW)
    assert isinstance(decision, RefuseSync) and "wipe out all resources" in decision.message
    assert isinstance(decide_auto_sync(app(prune=True, allowEmpty=True), comparison, NEW, NOW), StartSync)
    nothing_to_prune = AppComparison((), status=SyncStatus.OUT_OF_SYNC)  # only the metadata of the namespace differs
    assert isinstance(decide_auto_sync(app(prune=True), nothing_to_prune, NEW, NOW), StartSync)


def test_revision_without_changes_in_the_app_paths_is_not_synced() -> None:
    assert decide_auto_sync(app(SYNCED_BEFORE), outdated(), SyncTarget(("def",), may_hold_changes=False), NOW) is None


def test_null_in_the_source_does_not_start_a_new_sync() -> None:
    source = {**SOURCE, "helm": {"valuesObject": {"a": None}}}
    state = {**SYNCED_BEFORE, "syncResult": {"revision": "abc", "source": {**SOURCE, "helm": {"valuesObject": {}}}}}
    application = read_application(
        {
            "metadata": {"name": "models"},
            "spec": {"source": source, "syncPolicy": {"automated": {}}},
            "status": {"operationState": state},
        }
    )
    assert decide_auto_sync(application, outdated(), ABC, NOW) is None
