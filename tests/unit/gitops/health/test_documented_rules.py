"""Tests bundled rules against the documented health of each row, with and without Lua libraries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health import builtin
from argosy.gitops.health.bundled_rules import (
    PROFILES_FOLDER,
    RULES_FOLDER,
    list_profiles_of_kind,
    load_bundled_rules,
    load_profile_rules,
)
from argosy.gitops.health.lint import lint_script
from argosy.gitops.health.lua import run_health_script
from argosy.gitops.health.rule_lookup import HealthRules
from argosy.gitops.health.settings import read_config_maps, read_manifests
from argosy.kube.objects import read_yaml
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import INFERENCE_SERVICE, NOTEBOOK_JOB, PERSISTENT_VOLUME_CLAIM
from support.documented_health import (
    CELLS,
    CLAIM,
    CLAIM_LATER,
    CLUSTER_SERVING_RUNTIME,
    EXTERNAL_SECRET,
    NOTEBOOK,
    PENDING_CLAIM,
    SERVICE_LENIENT,
    SERVICE_STRICT,
    SERVING_RUNTIME,
    STOPPED,
    TRAINED_MODEL,
    Condition,
    Row,
    cell,
    claim,
    notebook,
    runtime,
    secret,
    service,
)

SECRETS = GroupKind("external-secrets.io", "ExternalSecret")


def serving(kind: str) -> GroupKind:
    return GroupKind("serving.kserve.io", kind)


TABLES: list[tuple[GroupKind, str, list[Row]]] = [
    (INFERENCE_SERVICE, "strict", SERVICE_STRICT),
    (INFERENCE_SERVICE, "lenient", SERVICE_LENIENT),
    (serving("ServingRuntime"), "", SERVING_RUNTIME),
    (serving("ClusterServingRuntime"), "", CLUSTER_SERVING_RUNTIME),
    (serving("TrainedModel"), "", TRAINED_MODEL),
    (PERSISTENT_VOLUME_CLAIM, "wait-for-consumer", [*CLAIM, *CLAIM_LATER]),
    (SECRETS, "", EXTERNAL_SECRET),
    (NOTEBOOK_JOB, "basic", NOTEBOOK),
    (NOTEBOOK_JOB, "cells", CELLS),
]


def script(of: GroupKind, profile: str = "") -> str:
    return (load_profile_rules(profile) if profile else load_bundled_rules())[of].script


def evaluate_rule(
    of: GroupKind, profile: str, manifest: dict[str, Any], facts: Any = None
) -> tuple[HealthStatus | None, str]:
    """Return the health and message of a rule; a check in argocd-cm, which has no libraries, must give the same."""
    text = script(of, profile)
    opened, closed = (run_health_script(text, manifest, facts=facts, open_libs=is_open) for is_open in (True, False))
    assert opened == closed and not opened.fault
    return opened.health, opened.message


def rows() -> Iterator[Any]:
    for of, profile, table in TABLES:
        for row in table:
            yield pytest.param(of, profile, row, id=f"{of.kind}-{profile or 'only'}-{row.says}")


@pytest.mark.parametrize(("of", "profile", "row"), list(rows()))
def test_rule_gives_the_documented_result(of: GroupKind, profile: str, row: Row) -> None:
    assert evaluate_rule(of, profile, row.manifest) == (row.health, row.message)


def test_stopped_inference_service_is_suspended_and_not_degraded() -> None:
    for profile in ("strict", "argocd"):
        assert evaluate_rule(INFERENCE_SERVICE, profile, STOPPED) == (
            HealthStatus.SUSPENDED,
            "InferenceService is Stopped",
        )


def test_empty_condition_message_is_replaced_by_a_default() -> None:
    for status, message in (("False", "InferenceService is not ready"), ("Unknown", "InferenceService is progressing")):
        assert evaluate_rule(INFERENCE_SERVICE, "strict", service(Condition("Ready", status, "")))[1] == message


@pytest.mark.parametrize(
    "reason",
    [
        *("Progressing", "MinimumReplicasUnavailable", "GroupsProgressing", "AllGroupsReady", "HPAProgressing"),
        *("ScaledObjectProgressing", "WaitingForGateway", "GatewaysNotReady", "HTTPRoutesNotReady"),
        "InferencePoolNotReady",
    ],
)
def test_starting_llm_inference_service_is_not_degraded(reason: str) -> None:
    manifest = runtime("LLMInferenceService", {"conditions": [{"type": "Ready", "status": "False", "reason": reason}]})
    assert evaluate_rule(serving("LLMInferenceService"), "", manifest) == (HealthStatus.PROGRESSING, reason)
    manifest["status"]["conditions"][0]["reason"] = "RefsInvalid"
    assert evaluate_rule(serving("LLMInferenceService"), "", manifest) == (HealthStatus.DEGRADED, "RefsInvalid")


# PersistentVolumeClaims and their StorageClasses

MODES = {"storageClasses": {"gp3": "WaitForFirstConsumer", "nfs": "Immediate"}, "defaultStorageClass": "nfs"}
AT_ONCE = "PVC is pending (StorageClass nfs binds immediately, waiting for a volume)"


@pytest.mark.parametrize(
    ("storage_class", "facts", "health", "message"),
    [
        ("gp3", MODES, "Healthy", PENDING_CLAIM),
        ("nfs", MODES, "Progressing", AT_ONCE),
        (None, MODES, "Progressing", AT_ONCE),
        ("unheard-of", MODES, "Healthy", PENDING_CLAIM),
        ("nfs", {}, "Healthy", PENDING_CLAIM),
        ("nfs", None, "Healthy", PENDING_CLAIM),
        ("", MODES, "Progressing", "PVC is pending (no StorageClass, waiting for a volume)"),
    ],
)
def test_pending_claim_is_healthy_unless_its_class_binds_immediately(
    storage_class: str | None, facts: Any, health: str, message: str
) -> None:
    manifest = claim({"phase": "Pending"}, storage_class)
    assert evaluate_rule(PERSISTENT_VOLUME_CLAIM, "wait-for-consumer", manifest, facts) == (health, message)


def test_pending_claim_is_progressing_unless_profile_is_selected() -> None:
    pending = claim({"phase": "Pending"}, "gp3")
    assert HealthRules().find_rule(*PERSISTENT_VOLUME_CLAIM).origin == "built-in"
    assert builtin.assess_builtin(pending).health is HealthStatus.PROGRESSING
    chosen = read_config_maps({}, {"health.profile.PersistentVolumeClaim": "wait-for-consumer"})
    rule = HealthRules(chosen).find_rule(*PERSISTENT_VOLUME_CLAIM)
    assert run_health_script(rule.script, pending, facts=MODES).health is HealthStatus.HEALTHY


def test_check_of_core_kind_has_no_group_in_key_and_an_empty_one_in_argocd_resource() -> None:
    check = "return {status = 'Healthy'}"
    by_key = read_config_maps({"resource.customizations.health.PersistentVolumeClaim": check})
    entry = {"group": "", "kind": "PersistentVolumeClaim", "check": check}
    by_resource = read_manifests([operators_resource(entry)])
    for settings in (by_key, by_resource):
        assert [(health_check.pattern, health_check.script) for health_check in settings.checks] == [
            ("PersistentVolumeClaim", check)
        ]


# One kind with several rules


def operators_resource(*entries: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1beta1",
        "kind": "ArgoCD",
        "metadata": {"name": "openshift-gitops", "namespace": "openshift-gitops"},
        "spec": {"resourceHealthChecks": list(entries)},
    }


@pytest.mark.parametrize("profile", ["strict", "lenient", "argocd"])
def test_selected_inference_service_profile_is_used(profile: str) -> None:
    assert set(list_profiles_of_kind(INFERENCE_SERVICE)) == {"argocd", "lenient", "strict"}
    chosen = read_config_maps({}, {"health.profile.serving.kserve.io_InferenceService": profile})
    assert HealthRules(chosen).find_rule(*INFERENCE_SERVICE).profile == profile


def test_default_profiles_are_argocd_for_services_and_basic_for_jobs() -> None:
    assert HealthRules().find_rule(*INFERENCE_SERVICE).profile == "argocd"
    assert HealthRules().find_rule(*NOTEBOOK_JOB).profile == "basic"


def test_two_checks_for_one_kind_are_reported() -> None:
    checks = [script(INFERENCE_SERVICE, profile) for profile in ("strict", "lenient")]
    entries = ({"group": INFERENCE_SERVICE.group, "kind": INFERENCE_SERVICE.kind, "check": check} for check in checks)
    settings = read_manifests([operators_resource(*entries)])
    assert len(settings.checks) == 1
    assert [fault for fault in settings.faults if "InferenceService" in fault and "keep one" in fault]


# Secrets


@pytest.mark.parametrize(
    ("message", "is_waiting"),
    [
        ("not found", True),
        ("not found: 404", True),
        ('could not get secret data from provider: secrets "a" not found', True),
        ("nonot found", True),
        ("Schlüssel „a“ not found", True),
        ("first line\n\tnot found", True),
        ("x" * 900 + " not found", True),
        ("not foun", False),
        ("notfound", False),
        ("Not Found", False),
        ("not  found", False),
        ("", False),
        ("\x01 not found", False),
    ],
)
def test_message_text_is_found_without_a_string_library(message: str, is_waiting: bool) -> None:
    health, _ = evaluate_rule(SECRETS, "", secret(Condition("Ready", "False", message)))
    assert health is (HealthStatus.PROGRESSING if is_waiting else HealthStatus.DEGRADED)


# Notebooks


@pytest.mark.parametrize(("limit", "shown"), [({"maxRetries": 5}, "5"), ({"maxRetries": 0}, "0"), ({}, "3")])
def test_retry_limit_is_taken_from_the_job(limit: dict[str, int], shown: str) -> None:
    job = notebook({"phase": "Failed", "retryCount": 2}, spec={"retryPolicy": limit})
    assert evaluate_rule(NOTEBOOK_JOB, "basic", job) == (
        HealthStatus.DEGRADED,
        f"Notebook validation failed (retry 2/{shown})",
    )


@pytest.mark.parametrize("profile", ["basic", "cells"])
def test_job_is_progressing_until_its_generation_is_observed(profile: str) -> None:
    stale = notebook({"phase": "Succeeded", "observedGeneration": 1}, generation=2)
    awaited = "Waiting for the controller to observe generation 2"
    assert evaluate_rule(NOTEBOOK_JOB, profile, stale) == (HealthStatus.PROGRESSING, awaited)
    for status in ({"phase": "Succeeded", "observedGeneration": 2}, {"phase": "Succeeded"}):
        assert evaluate_rule(NOTEBOOK_JOB, profile, notebook(status, generation=2)) == (
            HealthStatus.HEALTHY,
            "Notebook validation succeeded",
        )


@pytest.mark.parametrize("word", ["error", "Failure", "failure"])
@pytest.mark.parametrize(
    ("error_fields", "shown"),
    [
        ({"errorType": "ValueError"}, "ValueError"),
        ({"errorType": "ValueError", "errorMessage": "KeyError: 'x'"}, "ValueError"),
        ({"errorMessage": "ModuleNotFoundError: No module named 'torch'"}, "ModuleNotFoundError"),
        ({"errorMessage": "botocore.exceptions.ClientError: 403"}, "botocore.exceptions.ClientError"),
        ({"errorMessage": "_Odd2Error:"}, "_Odd2Error"),
        ({"errorMessage": "KeyboardInterrupt"}, "KeyboardInterrupt"),
        ({"errorMessage": "cell timed out: 600 s"}, "cell timed out: 600 s"),
        ({"errorMessage": "Überlauf: 3"}, "Überlauf: 3"),
        ({"errorMessage": ": no name"}, ": no name"),
        ({"errorMessage": ""}, "Error"),
        ({}, "Error"),
    ],
)
def test_failing_cell_is_named_with_its_error_in_either_spelling(
    word: str, error_fields: dict[str, str], shown: str
) -> None:
    job = notebook({"phase": "Failed", "results": [cell(0, "Success"), cell(3, word, **error_fields)]})
    assert evaluate_rule(NOTEBOOK_JOB, "cells", job) == (HealthStatus.DEGRADED, f"Failed at cell 3: {shown}")


def test_successful_cells_are_counted_in_either_spelling() -> None:
    results = [cell(0, "success"), cell(1, "Success"), cell(2, "Skipped"), cell(3, "Failure")]
    running = notebook({"phase": "ValidationRunning", "results": results})
    assert evaluate_rule(NOTEBOOK_JOB, "cells", running) == (
        HealthStatus.PROGRESSING,
        "Executing notebook (2 cells completed)",
    )


# The test cases next to each rule

MINE = ("serving.kserve.io", "mlops.mlops.dev", "external-secrets.io", "bitnami.com", "PersistentVolumeClaim")


def folders() -> Iterator[Any]:
    for tree in (RULES_FOLDER, PROFILES_FOLDER):
        for file in sorted(tree.rglob("health_test.yaml")):
            if set(MINE) & set(file.relative_to(tree).parts):
                yield pytest.param(file, id=str(file.parent.relative_to(RULES_FOLDER.parent)))


@pytest.mark.parametrize("file", list(folders()))
@pytest.mark.parametrize("open_libs", [True, False], ids=["open", "closed"])
def test_rule_passes_its_cases_with_and_without_libraries(file: Path, open_libs: bool) -> None:
    text = (file.parent / "health.lua").read_text()
    for case in read_yaml(file.read_text())["tests"]:
        manifest = read_yaml((file.parent / case["inputPath"]).read_text())
        expected = Assessment(HealthStatus(case["healthStatus"]["status"]), case["healthStatus"]["message"])
        assert run_health_script(text, manifest, facts=case.get("facts"), open_libs=open_libs) == expected, case[
            "inputPath"
        ]


@pytest.mark.parametrize("file", list(folders()))
def test_every_testdata_file_of_a_rule_is_used_by_a_case(file: Path) -> None:
    named = {case["inputPath"] for case in read_yaml(file.read_text())["tests"]}
    assert {f"testdata/{path.name}" for path in file.parent.glob("testdata/*.yaml")} == named


@pytest.mark.parametrize("file", list(folders()))
def test_rule_can_be_pasted_into_argocd_cm_without_lint_errors(file: Path) -> None:
    rules = {finding.rule for finding in lint_script((file.parent / "health.lua").read_text(), open_libs=False)}
    is_always_healthy = file.parent.name.endswith("ServingRuntime") or "lenient" in file.parts
    assert rules == ({"AGY402"} if is_always_healthy else set())
