"""Tests health assessment of many manifests: rule precedence, result order, batching, caching and broken checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from argosy.fair_share import Tenant, charge_work_to
from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.assess import FIRST_BACKOFF_SECONDS, HealthAssessor
from argosy.gitops.health.lua import EVALUATE_FUNCTION, FIELDS_READ_FUNCTION, MAX_LIMIT_FAILURES
from argosy.gitops.health.lua.worker import list_fields_read, run_user_script
from argosy.gitops.health.rule_lookup import HealthRules
from argosy.gitops.health.settings import read_config_maps
from argosy.gitops.health.storage_class_facts import read_cluster_facts
from argosy.isolation import CrashError, LimitExceeded, NotConfinedError

pytestmark = pytest.mark.anyio
HANGS = "while true do end"
CRASHES = "crash"


class Bench:
    """Runs batches in this process instead of a worker, counts them, and simulates timeouts and crashes."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.sent: list[Any] = []
        self.time = 0.0

    async def run_batch(self, function: str, payloads: Sequence[Any]) -> list[Any]:
        if function == FIELDS_READ_FUNCTION:
            return [list(fields) if (fields := list_fields_read(script)) is not None else None for script in payloads]
        assert function == EVALUATE_FUNCTION
        self.batches.append(len(payloads))
        self.sent += payloads
        ends = {HANGS: LimitExceeded("wall", "slow"), CRASHES: CrashError("the worker left no status")}
        return [ends.get(row["script"]) or run_user_script(row) for row in payloads]


def thing(name: str, kind: str = "Thing", group: str = "example.io", **more: Any) -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": {"name": name}, **more}


def check(kind: str, script: str, **more: str) -> dict[str, str]:
    return {f"resource.customizations.health.{kind}": script, **more}


Data = dict[str, str]


def assessor(argocd_cm: Data | None = None, argosy_cm: Data | None = None) -> tuple[HealthAssessor, Bench]:
    bench = Bench()
    book = HealthRules(read_config_maps(argocd_cm or {}, argosy_cm or {}))
    return HealthAssessor(book, bench, now=lambda: bench.time), bench


SAYS_NAME = "return {status = 'Healthy', message = obj.metadata.name}"


async def test_results_are_in_the_order_of_the_manifests() -> None:
    judge, bench = assessor(check("example.io_Thing", SAYS_NAME))
    pod = thing("p", "Pod", "", status={"phase": "Succeeded"})
    got = await judge.assess_all([thing("a"), pod, thing("b"), thing("c", "Other")])
    assert [answer and answer.message for answer in got] == ["a", "", "b", None]
    assert bench.batches == [2]


async def test_user_check_overrides_bundled_and_built_in_rules() -> None:
    judge, _ = assessor(check("Pod", SAYS_NAME) | check("serving.kserve.io_InferenceService", SAYS_NAME))
    isvc = thing("model", "InferenceService", "serving.kserve.io")
    got = await judge.assess_all([thing("p", "Pod", ""), isvc])
    assert [answer and (answer.message, answer.rule) for answer in got] == [
        ("p", "argocd-cm resource.customizations.health.Pod"),
        ("model", "argocd-cm resource.customizations.health.serving.kserve.io_InferenceService"),
    ]


async def test_pending_deletion_takes_precedence_over_any_check() -> None:
    judge, bench = assessor(check("example.io_Thing", SAYS_NAME))
    going = thing("a")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert await judge.assess_all([going]) == [Assessment(HealthStatus.PROGRESSING, "Pending deletion")]
    assert bench.batches == []


async def test_pending_deletion_applies_to_kinds_without_health() -> None:
    going = thing("a", "ConfigMap", "")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert await assessor()[0].assess_all([going]) == [Assessment(HealthStatus.PROGRESSING, "Pending deletion")]


async def test_hook_held_by_its_finalizer_is_assessed() -> None:
    judge, _ = assessor(check("example.io_Thing", SAYS_NAME))
    going = thing("a")
    going["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["argocd.argoproj.io/hook-finalizer"],
    }
    (got,) = await judge.assess_all([going])
    assert got and got.health is HealthStatus.HEALTHY


@pytest.mark.parametrize("wrong", [None, 5, True, "x", {}])
async def test_finalizers_of_wrong_type_do_not_prevent_pending_deletion(wrong: Any) -> None:
    going = thing("a")
    going["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": wrong}
    assert await assessor()[0].assess_all([going]) == [Assessment(HealthStatus.PROGRESSING, "Pending deletion")]


async def test_empty_result_suppresses_the_built_in_check() -> None:
    judge, _ = assessor(check("Pod", "return nil"))
    (got,) = await judge.assess_all([thing("p", "Pod", "", status={"phase": "Failed"})])
    assert got and got.health is None


async def test_broken_check_does_not_affect_other_checks() -> None:
    cm = check("example.io_Thing", "return obj.status.phase.x") | check("example.io_Other", SAYS_NAME)
    judge, _ = assessor(cm)
    broken, fine = await judge.assess_all([thing("a"), thing("b", "Other")])
    assert broken == Assessment(
        HealthStatus.UNKNOWN,
        "<string>:1: attempt to index field 'status' (a nil value)",
        "argocd-cm resource.customizations.health.example.io_Thing",
        "<string>:1: attempt to index field 'status' (a nil value)",
    )
    assert fine and fine.health is HealthStatus.HEALTHY


async def test_hanging_check_is_stopped_after_a_few_objects() -> None:
    judge, bench = assessor(check("example.io_Thing", HANGS))
    got = await judge.assess_all([thing(str(number)) for number in range(100)])
    assert bench.batches == [MAX_LIMIT_FAILURES]
    assert {answer.health for answer in got if answer} == {HealthStatus.UNKNOWN}
    assert got[0] and got[0].fault.startswith("context deadline exceeded")
    assert got[99] and got[99].fault.startswith(
        f"not run: on {MAX_LIMIT_FAILURES} objects before it, context deadline exceeded"
    )


async def test_many_objects_of_one_check_use_few_batches() -> None:
    judge, bench = assessor(check("example.io_Thing", SAYS_NAME))
    got = await judge.assess_all([thing(str(number)) for number in range(1000)])
    assert [answer and answer.message for answer in got] == [str(number) for number in range(1000)]
    assert len(bench.batches) <= 6


async def test_only_fields_read_by_the_check_are_sent_to_the_worker() -> None:
    judge, bench = assessor(check("example.io_Thing", SAYS_NAME))
    (got,) = await judge.assess_all([thing("a", spec={"large": "x" * 1000})])
    assert got and got.message == "a"
    assert bench.sent[0]["manifest"] == {"metadata": {"name": "a"}}


async def test_object_version_is_assessed_once() -> None:
    judge, bench = assessor(check("example.io_Thing", SAYS_NAME))
    first = thing("a")
    first["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    newer = thing("b")
    newer["metadata"] |= {"uid": "u", "resourceVersion": "2"}
    for manifest in (first, first, newer):
        (got,) = await judge.assess_all([manifest])
        assert got and got.message == manifest["metadata"]["name"]
    assert bench.batches == [1, 1]


async def test_changed_facts_cause_a_new_assessment() -> None:
    judge, bench = assessor(check("example.io_Thing", "return {status = 'Healthy', message = facts.x or 'none'}"))
    manifest = thing("a")
    manifest["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    assert [(await judge.assess_all([manifest], facts))[0] for facts in ({"x": "1"}, {"x": "2"}, {"x": "1"})] == [
        Assessment(HealthStatus.HEALTHY, text, "argocd-cm resource.customizations.health.example.io_Thing")
        for text in ("1", "2", "1")
    ]
    assert bench.batches == [1, 1, 1]  # only the last result is cached: many versions of an object take no more memory


@pytest.mark.parametrize("script", [HANGS, CRASHES])
async def test_timeout_or_crash_result_is_not_cached(script: str) -> None:
    judge, bench = assessor(check("example.io_Thing", script))
    manifest = thing("a")
    manifest["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    await judge.assess_all([manifest])
    await judge.assess_all([manifest])
    assert bench.batches == [1, 1]


async def test_hanging_check_is_retried_after_a_backoff() -> None:
    judge, bench = assessor(check("example.io_Thing", HANGS))
    things = [thing(str(number)) for number in range(5)]
    for moment in (0.0, FIRST_BACKOFF_SECONDS - 1, FIRST_BACKOFF_SECONDS + 1):
        bench.time = moment
        got = await judge.assess_all(things)
        assert {answer.health for answer in got if answer} == {HealthStatus.UNKNOWN}
    assert bench.batches == [MAX_LIMIT_FAILURES, MAX_LIMIT_FAILURES]


async def test_backoff_grows_while_a_check_keeps_hanging() -> None:
    judge, bench = assessor(check("example.io_Thing", HANGS))
    things = [thing(str(number)) for number in range(5)]
    for moment, batches in (
        (0.0, 1),
        (FIRST_BACKOFF_SECONDS + 1, 2),
        (2 * FIRST_BACKOFF_SECONDS + 2, 2),
        (3 * FIRST_BACKOFF_SECONDS + 2, 3),
        (5 * FIRST_BACKOFF_SECONDS, 3),
    ):
        bench.time = moment
        await judge.assess_all(things)
        assert len(bench.batches) == batches


async def test_backoff_of_one_project_does_not_block_another_project() -> None:
    judge, bench = assessor(check("example.io_Thing", HANGS))
    for project, batches in (("hostile", 1), ("hostile", 1), ("team", 2)):
        with charge_work_to(Tenant(project)):
            await judge.assess_all([thing(str(number)) for number in range(5)])
        assert len(bench.batches) == batches


async def test_result_that_depends_on_the_clock_is_not_cached() -> None:
    judge, bench = assessor(check("example.io_Thing", f"local os = require('os') {SAYS_NAME}"))
    manifest = thing("a")
    manifest["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    await judge.assess_all([manifest])
    await judge.assess_all([manifest])
    assert bench.batches == [1, 1]


async def test_another_api_version_is_assessed_separately() -> None:
    judge, _ = assessor(check("example.io_Thing", "return {status = 'Healthy', message = obj.apiVersion}"))
    manifest = thing("a")
    manifest["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    got = await judge.assess_all([manifest, {**manifest, "apiVersion": "example.io/v2"}])
    assert [answer and answer.message for answer in got] == ["example.io/v1", "example.io/v2"]
    got = await judge.assess_all([{**manifest, "apiVersion": "example.io/v2"}])
    assert [answer and answer.message for answer in got] == ["example.io/v2"]


async def test_invalid_wildcard_does_not_affect_other_checks() -> None:
    cm = {WILD: "'[z-a]*':\n  health.lua: return {status = 'Healthy', message = 'wild'}\n"}
    judge, _ = assessor(cm | check("example.io_Thing", SAYS_NAME))
    got = await judge.assess_all([thing("a"), thing("b", "Other")])
    assert [answer and answer.message for answer in got] == ["a", None]


WILD = "resource.customizations"


async def test_map_wildcards_match_and_exact_keys_take_precedence() -> None:
    cm = {WILD: "'*.example.io/*':\n  health.lua: return {status = 'Healthy', message = 'wild'}\n"}
    cm |= check("a.example.io_Thing", "return {status = 'Healthy', message = 'exact'}")
    judge, _ = assessor(cm)
    got = await judge.assess_all([thing("x", group="a.example.io"), thing("x", group="b.example.io"), thing("x")])
    assert [answer and answer.message for answer in got] == ["exact", "wild", None]


async def test_open_libraries_apply_only_to_the_configured_kind() -> None:
    script = "return {status = 'Healthy', message = string.upper('x')}"
    cm = check("example.io_Thing", script) | check("example.io_Other", script)
    judge, _ = assessor(cm | {"resource.customizations.useOpenLibs.example.io_Thing": "true"})
    opened, closed = await judge.assess_all([thing("a"), thing("b", "Other")])
    assert opened and opened.message == "X"
    assert closed and "global 'string'" in closed.fault


async def test_fallback_applies_to_custom_resources_only_if_enabled() -> None:
    ready = thing("a", status={"conditions": [{"type": "Ready", "status": "True"}]})
    config_map = thing("c", "ConfigMap", "")
    assert await assessor()[0].assess_all([ready, config_map]) == [None, None]
    on, none = await assessor(argosy_cm={"health.fallback": "true"})[0].assess_all([ready, config_map])
    assert none is None
    assert on and on.health is HealthStatus.HEALTHY
    assert on.message.startswith("fallback: ")


async def test_selected_profile_replaces_the_default_and_uses_facts() -> None:
    claim = thing("data", "PersistentVolumeClaim", "", spec={"storageClassName": "fast"}, status={"phase": "Pending"})
    storage = {"kind": "StorageClass", "metadata": {"name": "fast"}, "volumeBindingMode": "Immediate"}
    judge, _ = assessor(argosy_cm={"health.profile.PersistentVolumeClaim": "wait-for-consumer"})
    default, _ = assessor()
    words = [
        (await default.assess_all([claim]))[0],
        (await judge.assess_all([claim]))[0],
        (await judge.assess_all([claim], read_cluster_facts([storage])))[0],
    ]
    assert [answer and answer.health for answer in words] == [
        HealthStatus.PROGRESSING,
        HealthStatus.HEALTHY,
        HealthStatus.PROGRESSING,
    ]


def test_cluster_facts_contain_binding_modes_and_default_class() -> None:
    marked = {"storageclass.kubernetes.io/is-default-class": "true"}
    classes = [
        {"kind": "StorageClass", "metadata": {"name": "slow", "annotations": marked}},
        {"kind": "StorageClass", "metadata": {"name": "fast"}, "volumeBindingMode": "WaitForFirstConsumer"},
        {"kind": "ConfigMap", "metadata": {"name": "x"}},
    ]
    assert read_cluster_facts(classes) == {
        "storageClasses": {"slow": "Immediate", "fast": "WaitForFirstConsumer"},
        "defaultStorageClass": "slow",
    }


async def test_check_is_not_run_if_required_confinement_is_unavailable() -> None:
    class Unconfined(Bench):
        async def run_batch(self, function: str, payloads: Sequence[Any]) -> list[Any]:
            raise NotConfinedError("confinement is required, and this machine cannot confine files")

    settings = read_config_maps(check("example.io_Thing", SAYS_NAME), {})
    judge = HealthAssessor(HealthRules(settings), Unconfined(), now=lambda: 0.0)
    ours = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}, "status": {"phase": "Active"}}
    first, second, other = await judge.assess_all([thing("a"), thing("b"), ours])
    for assessment in (first, second):
        assert assessment is not None and assessment.health is HealthStatus.UNKNOWN
        assert "confinement is required" in assessment.fault
    assert other is None or not other.fault
