"""Requested health checks, and how they merge with existing entries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import UserError
from argosy.features.health_checks.argocd_install.merge import (
    DEFAULT_KINDS,
    RequestedHealthCheck,
    build_requested_checks,
    list_affected_kinds,
    list_changes,
    list_missing_checks,
    merge_entries,
    read_entry_kind,
    read_scripts_from_data,
    read_scripts_from_entries,
)
from argosy.gitops.health.bundled_rules import list_profiles, load_bundled_rules, load_profile_rules
from argosy.gitops.health.lint import lint_script
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import INFERENCE_SERVICE
from support.examples import examples

PVC = {"group": "", "kind": "PersistentVolumeClaim", "check": "-- of somebody else\nreturn {}\n"}
SECRET = {"group": "external-secrets.io", "kind": "ExternalSecret", "check": "return {}\n", "note": "kept"}
TRAINED_MODEL = GroupKind("serving.kserve.io", "TrainedModel")


def entry(of: GroupKind, check: str) -> dict[str, str]:
    return {"group": of.group, "kind": of.kind, "check": check}


def test_default_checks_use_strict_models_and_the_runtime_rule() -> None:
    model, runtime = build_requested_checks(DEFAULT_KINDS)
    assert (model.group_kind.kind, model.profile) == ("InferenceService", "strict")
    assert model.script == load_profile_rules("strict")[INFERENCE_SERVICE].script
    assert (runtime.group_kind.kind, runtime.profile) == ("ServingRuntime", "")
    assert runtime.script == load_bundled_rules()[runtime.group_kind].script


@pytest.mark.parametrize("profile", ["strict", "lenient", "argocd"])
def test_each_profile_has_its_own_inference_service_script(profile: str) -> None:
    (check,) = build_requested_checks([INFERENCE_SERVICE], profile)
    assert check.profile == profile
    scripts = {load_profile_rules(name)[INFERENCE_SERVICE].script for name in ("strict", "lenient", "argocd")}
    assert len(scripts - {check.script}) == 2


def test_kind_with_a_single_profile_uses_it() -> None:
    (check,) = build_requested_checks([GroupKind("", "PersistentVolumeClaim")])
    assert (check.profile, check.key) == ("wait-for-consumer", "resource.customizations.health.PersistentVolumeClaim")


def test_kind_with_built_in_argocd_check_is_rejected() -> None:
    with pytest.raises(UserError, match=r"Deployment\.apps: Argo CD has a built-in health check for this kind"):
        build_requested_checks([GroupKind("apps", "Deployment")])


def test_unknown_profile_is_rejected_with_the_valid_ones() -> None:
    with pytest.raises(UserError, match=r"unknown profile strickt; choose one of .*strict"):
        build_requested_checks(DEFAULT_KINDS, "strickt")


def test_check_key_joins_group_and_kind_with_underscore() -> None:
    (check,) = build_requested_checks([INFERENCE_SERVICE])
    assert check.key == "resource.customizations.health.serving.kserve.io_InferenceService"


@pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.tier("all"))])
def test_bundled_scripts_lint_without_errors(step: int) -> None:
    """argo: checks in settings have no libraries beyond the basic ones, unlike bundled ones."""
    rules = [
        *load_bundled_rules().values(),
        *(rule for name in list_profiles() for rule in load_profile_rules(name).values()),
    ]
    assert len(rules) > 50
    lint_findings = [(rule.where, one) for rule in rules[::step] for one in lint_script(rule.script)]
    wrong = [(where, one.message) for where, one in lint_findings if one.severity == "error"]
    assert wrong == []


def test_merge_keeps_position_and_fields_of_foreign_entries() -> None:
    checks = build_requested_checks(DEFAULT_KINDS)
    before = [PVC, entry(INFERENCE_SERVICE, "return {}"), SECRET]
    after = merge_entries(before, checks)
    assert [after[0], after[2]] == [PVC, SECRET]
    assert after[1] == checks[0].entry
    assert after[3:] == [checks[1].entry]


def test_merge_keeps_additional_fields_of_own_entry() -> None:
    (check,) = build_requested_checks([INFERENCE_SERVICE])
    assert merge_entries([{**entry(INFERENCE_SERVICE, "old"), "note": "x"}], [check]) == [{**check.entry, "note": "x"}]


def test_merge_removes_duplicate_entries_of_a_kind() -> None:
    (check,) = build_requested_checks([INFERENCE_SERVICE])
    twice = [entry(INFERENCE_SERVICE, "a"), PVC, entry(INFERENCE_SERVICE, "b")]
    assert merge_entries(twice, [check]) == [check.entry, PVC]


def test_merge_keeps_malformed_entries() -> None:
    (check,) = build_requested_checks([INFERENCE_SERVICE])
    broken: list[Any] = ["text", {"group": "serving.kserve.io"}, None]
    assert merge_entries(broken, [check]) == [*broken, check.entry]


KINDS = [*DEFAULT_KINDS, TRAINED_MODEL, GroupKind("", "PersistentVolumeClaim"), GroupKind("apps", "Deployment")]
ENTRIES = st.lists(st.builds(entry, st.sampled_from(KINDS), st.sampled_from(["a", "b"])), max_size=8)
CHECKS = st.lists(st.sampled_from(KINDS), unique=True, max_size=3).map(
    lambda kinds: [RequestedHealthCheck(of, f"ours for {of}") for of in kinds]
)


@settings(max_examples=examples())
@given(ENTRIES, CHECKS)
def test_merge_keeps_foreign_entries_in_order_and_is_idempotent(
    before: list[dict[str, str]], checks: list[RequestedHealthCheck]
) -> None:
    after = merge_entries(before, checks)
    ours = {check.group_kind for check in checks}
    foreign = [check_entry for check_entry in before if read_entry_kind(check_entry) not in ours]
    assert [check_entry for check_entry in after if read_entry_kind(check_entry) not in ours] == foreign
    assert sorted(check_entry["check"] for check_entry in after if read_entry_kind(check_entry) in ours) == sorted(
        requested_check.script for requested_check in checks
    )
    assert merge_entries(after, checks) == after


def test_last_of_two_entries_for_a_kind_wins() -> None:
    twice = [entry(INFERENCE_SERVICE, "a"), entry(INFERENCE_SERVICE, "b")]
    assert read_scripts_from_entries(twice) == {INFERENCE_SERVICE: "b"}


def test_argocd_cm_keys_are_parsed_to_kinds() -> None:
    checks = build_requested_checks([*DEFAULT_KINDS, GroupKind("", "PersistentVolumeClaim")])
    data = {check.key: check.script for check in checks} | {"url": "https://x", "resource.exclusions": "[]"}
    assert read_scripts_from_data(data) == {check.group_kind: check.script for check in checks}


def test_script_that_differs_by_one_character_is_missing() -> None:
    checks = build_requested_checks(DEFAULT_KINDS)
    data = {check.key: check.script for check in checks}
    assert list_missing_checks(data, checks) == []
    assert list_missing_checks({**data, checks[0].key: checks[0].script[:-2] + "\n"}, checks) == [checks[0]]


def test_change_description_names_the_replaced_profile() -> None:
    lenient, strict = (build_requested_checks([INFERENCE_SERVICE], profile) for profile in ("lenient", "strict"))
    (change,) = list_changes({INFERENCE_SERVICE: lenient[0].script}, strict)
    assert change.is_needed
    assert change.description == "serving.kserve.io/InferenceService (profile strict): replaces profile lenient"


def test_change_description_states_new_replaced_or_up_to_date() -> None:
    model, runtime = build_requested_checks(DEFAULT_KINDS)
    there = {model.group_kind: "return {}", runtime.group_kind: runtime.script}
    (other,) = list_changes({}, [model])
    sentences = [change.description.partition(": ")[2] for change in (*list_changes(there, [model, runtime]), other)]
    assert sentences == ["replaces another script", "already up to date", "new"]


def test_existing_checks_of_any_kserve_kind_are_affected() -> None:
    checks = build_requested_checks(DEFAULT_KINDS)
    assert list_affected_kinds([TRAINED_MODEL], checks) == [TRAINED_MODEL]
    assert list_affected_kinds([GroupKind("", "PersistentVolumeClaim")], checks) == []
    assert (
        list_affected_kinds(
            [TRAINED_MODEL], build_requested_checks([GroupKind("mlops.mlops.dev", "NotebookValidationJob")])
        )
        == []
    )
