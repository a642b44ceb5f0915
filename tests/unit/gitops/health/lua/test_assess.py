"""Judging many manifests at once: who is asked, in which order, and what a broken check costs the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from argosy.fair_share import Tenant, charge_work_to
from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.assess import FIRST_BACKOFF_SECONDS, HealthAssessor
from argosy.gitops.health.cluster_facts import read_cluster_facts
from argosy.gitops.health.lua import EVALUATE_FUNCTION, FIELDS_READ_FUNCTION, MAX_LIMIT_FAILURES
from argosy.gitops.health.lua.worker import list_fields_read, run_user_script
from argosy.gitops.health.rule_lookup import HealthRules
from argosy.gitops.health.settings import read_config_maps
from argosy.isolation import CrashError, LimitExceeded, NotConfinedError

pytestmark = pytest.mark.anyio
HANGS = "while true do end"
CRASHES = "crash"


class Bench:
    """Runs batches here instead of in a worker, counts them, and says "too long" for the script that hangs."""

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


async def test_answers_come_in_the_order_of_the_manifests() -> None:
    judge, bench = assessor(check("example.io_Thing", SAYS_NAME))
    pod = thing("p", "Pod", "", status={"phase": "Succeeded"})
    got = await judge.assess_all([thing("a"), pod, thing("b"), thing("c", "Other")])
    assert [answer and answer.message for answer in got] == ["a", "", "b", None]
    assert bench.batches == [2]


async def test_a_users_check_comes_before_bundled_and_built_in_rules() -> None:
    judge, _ = assessor(check("Pod", SAYS_NAME) | check("serving.kserve.io_InferenceService", SAYS_NAME))
    isvc = thing("model", "InferenceService", "serving.kserve.io")
    got = await judge.assess_all([thing("p", "Pod", ""), isvc])
    assert [answer and (answer.message, answer.rule) for answer in got] == [
        ("p", "argocd-cm resource.customizations.health.Pod"),
        ("model", "argocd-cm resource.customizations.health.serving.kserve.io_InferenceService"),
    ]


async def test_pending_deletion_comes_before_any_check() -> None:
    judge, bench = assessor(check("example.io_Thing", SAYS_NAME))
    going = thing("a")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert await judge.assess_all([going]) == [Assessment(HealthStatus.PROGRESSING, "Pending deletion")]
    assert bench.batches == []


async def test_pending_deletion_is_told_of_kinds_without_health_too() -> None:
    going = thing("a", "ConfigMap", "")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert await assessor()[0].assess_all([going]) == [Assessment(HealthStatus.PROGRESSING, "Pending deletion")]


async def test_a_hook_that_its_finalizer_holds_is_judged() -> None:
    judge, _ = assessor(check("example.io_Thing", SAYS_NAME))
    going = thing("a")
    going["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["argocd.argoproj.io/hook-finalizer"],
    }
    (got,) = await judge.assess_all([going])
    assert got and got.health is HealthStatus.HEALTHY


@pytest.mark.parametrize("wrong", [None, 5, True, "x", {}])
async def test_finalizers_of_a_wrong_type_hold_nothing(wrong: Any) -> None:
    going = thing("a")
    going["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": wrong}
    assert await assessor()[0].assess_all([going]) == [Assessment(HealthStatus.PROGRESSING, "Pending deletion")]


async def test_an_empty_answer_stops_the_built_in_check() -> None:
    judge, _ = assessor(check("Pod", "return nil"))
    (got,) = await judge.assess_all([thing("p", "Pod", "", status={"phase": "Failed"})])
    assert got and got.health is None


async def test_one_broken_check_leaves_the_others_alone() -> None:
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


async def test_a_check_that_hangs_costs_a_few_seconds_and_not_one_an_object() -> None:
    judge, bench = assessor(check("example.io_Thing", HANGS))
    got = await judge.assess_all([thing(str(number)) for number in range(100)])
    assert bench.batches == [MAX_LIMIT_FAILURES]
    assert {answer.health for answer in got if answer} == {HealthStatus.UNKNOWN}
    assert got[0] and got[0].fault.startswith("context deadline exceeded")
    assert got[99] and got[99].fault.startswith(
        f"not run: on {MAX_LIMIT_FAILURES} objects before it, context deadline exceeded"
    )


async def test_many_objects_of_one_check_go_in_a_few_batches() -> None:
    judge, bench = assessor(check("example.io_Thing", SAYS_NAME))
    got = await judge.assess_all([thing(str(number)) for number in range(1000)])
    assert [answer and answer.message for answer in got] == [str(number) for number in range(1000)]
    assert len(bench.batches) <= 6


async def test_only_the_fields_that_a_check_reads_travel() -> None:
    judge, bench = assessor(check("example.io_Thing", SAYS_NAME))
    (got,) = await judge.assess_all([thing("a", spec={"large": "x" * 1000})])
    assert got and got.message == "a"
    assert bench.sent[0]["manifest"] == {"metadata": {"name": "a"}}


async def test_a_version_of_an_object_is_judged_once() -> None:
    judge, bench = assessor(check("example.io_Thing", SAYS_NAME))
    first = thing("a")
    first["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    newer = thing("b")
    newer["metadata"] |= {"uid": "u", "resourceVersion": "2"}
    for manifest in (first, first, newer):
        (got,) = await judge.assess_all([manifest])
        assert got and got.message == manifest["metadata"]["name"]
    assert bench.batches == [1, 1]


async def test_other_facts_are_another_question() -> None:
    judge, bench = assessor(check("example.io_Thing", "return {status = 'Healthy', message = facts.x or 'none'}"))
    manifest = thing("a")
    manifest["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    assert [(await judge.assess_all([manifest], facts))[0] for facts in ({"x": "1"}, {"x": "2"}, {"x": "1"})] == [
        Assessment(HealthStatus.HEALTHY, text, "argocd-cm resource.customizations.health.example.io_Thing")
        for text in ("1", "2", "1")
    ]
    assert bench.batches == [1, 1, 1]  # only the last answer is kept: an object of many versions takes no more memory


@pytest.mark.parametrize("script", [HANGS, CRASHES])
async def test_what_befell_the_worker_is_not_remembered_of_the_object(script: str) -> None:
    judge, bench = assessor(check("example.io_Thing", script))
    manifest = thing("a")
    manifest["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    await judge.assess_all([manifest])
    await judge.assess_all([manifest])
    assert bench.batches == [1, 1]


async def test_a_check_that_hangs_rests_for_a_while_and_is_tried_again() -> None:
    judge, bench = assessor(check("example.io_Thing", HANGS))
    things = [thing(str(number)) for number in range(5)]
    for moment in (0.0, FIRST_BACKOFF_SECONDS - 1, FIRST_BACKOFF_SECONDS + 1):
        bench.time = moment
        got = await judge.assess_all(things)
        assert {answer.health for answer in got if answer} == {HealthStatus.UNKNOWN}
    assert bench.batches == [MAX_LIMIT_FAILURES, MAX_LIMIT_FAILURES]


async def test_a_check_that_hangs_again_and_again_rests_for_longer_and_longer() -> None:
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


async def test_objects_of_one_project_that_make_a_check_hang_do_not_keep_it_from_those_of_another() -> None:
    judge, bench = assessor(check("example.io_Thing", HANGS))
    for project, batches in (("hostile", 1), ("hostile", 1), ("team", 2)):
        with charge_work_to(Tenant(project)):
            await judge.assess_all([thing(str(number)) for number in range(5)])
        assert len(bench.batches) == batches


async def test_an_answer_that_depends_on_the_clock_is_not_remembered() -> None:
    judge, bench = assessor(check("example.io_Thing", f"local os = require('os') {SAYS_NAME}"))
    manifest = thing("a")
    manifest["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    await judge.assess_all([manifest])
    await judge.assess_all([manifest])
    assert bench.batches == [1, 1]


async def test_another_version_of_the_api_is_another_question() -> None:
    judge, _ = assessor(check("example.io_Thing", "return {status = 'Healthy', message = obj.apiVersion}"))
    manifest = thing("a")
    manifest["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    got = await judge.assess_all([manifest, {**manifest, "apiVersion": "example.io/v2"}])
    assert [answer and answer.message for answer in got] == ["example.io/v1", "example.io/v2"]
    got = await judge.assess_all([{**manifest, "apiVersion": "example.io/v2"}])
    assert [answer and answer.message for answer in got] == ["example.io/v2"]


async def test_a_wildcard_that_means_nothing_stops_nobody() -> None:
    cm = {WILD: "'[z-a]*':\n  health.lua: return {status = 'Healthy', message = 'wild'}\n"}
    judge, _ = assessor(cm | check("example.io_Thing", SAYS_NAME))
    got = await judge.assess_all([thing("a"), thing("b", "Other")])
    assert [answer and answer.message for answer in got] == ["a", None]


WILD = "resource.customizations"


async def test_wildcards_of_the_old_map_match_and_exact_keys_come_first() -> None:
    cm = {WILD: "'*.example.io/*':\n  health.lua: return {status = 'Healthy', message = 'wild'}\n"}
    cm |= check("a.example.io_Thing", "return {status = 'Healthy', message = 'exact'}")
    judge, _ = assessor(cm)
    got = await judge.assess_all([thing("x", group="a.example.io"), thing("x", group="b.example.io"), thing("x")])
    assert [answer and answer.message for answer in got] == ["exact", "wild", None]


async def test_open_libraries_are_given_to_the_kind_that_asks_for_them() -> None:
    script = "return {status = 'Healthy', message = string.upper('x')}"
    cm = check("example.io_Thing", script) | check("example.io_Other", script)
    judge, _ = assessor(cm | {"resource.customizations.useOpenLibs.example.io_Thing": "true"})
    opened, closed = await judge.assess_all([thing("a"), thing("b", "Other")])
    assert opened and opened.message == "X"
    assert closed and "global 'string'" in closed.fault


async def test_the_fallback_judges_custom_kinds_only_where_it_is_switched_on() -> None:
    ready = thing("a", status={"conditions": [{"type": "Ready", "status": "True"}]})
    config_map = thing("c", "ConfigMap", "")
    assert await assessor()[0].assess_all([ready, config_map]) == [None, None]
    on, none = await assessor(argosy_cm={"health.fallback": "true"})[0].assess_all([ready, config_map])
    assert none is None
    assert on and on.health is HealthStatus.HEALTHY
    assert on.message.startswith("fallback: ")


async def test_a_chosen_profile_replaces_the_default_and_needs_its_facts() -> None:
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


def test_facts_tell_the_modes_of_storage_classes_and_the_default_one() -> None:
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


async def test_a_check_that_cannot_be_confined_as_required_is_not_run_and_says_so() -> None:
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
