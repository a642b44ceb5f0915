"""Tests the health settings of an installation, and which of them are reported as wrong."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.health.settings import Customizations, read_config_maps, read_manifests

HEALTH = "resource.customizations.health."
SCRIPT = 'return {status = "Healthy"}'
OTHER = 'return {status = "Degraded"}'


def scripts(customizations: Customizations) -> dict[str, str]:
    return {check.pattern: check.script for check in customizations.checks}


def config_map(name: str = "argocd-cm", **data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def argocd(version: str = "v1beta1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"argoproj.io/{version}", "kind": "ArgoCD", "metadata": {"name": "gitops"}, "spec": spec}


def test_kind_keys_become_patterns_with_and_without_group() -> None:
    settings = read_config_maps({HEALTH + "serving.kserve.io_InferenceService": SCRIPT, HEALTH + "Pod": OTHER})
    assert scripts(settings) == {"serving.kserve.io/InferenceService": SCRIPT, "Pod": OTHER}
    assert settings.checks[1].where == HEALTH + "Pod"
    assert settings.faults == ()


def test_all_key_applies_to_grouped_kinds_after_exact_names() -> None:
    settings = read_config_maps({HEALTH + "all": SCRIPT, HEALTH + "apps_Deployment": OTHER})
    assert [check.pattern for check in settings.checks] == ["apps/Deployment", "*/*"]


def test_open_libraries_are_enabled_by_a_separate_key() -> None:
    grant = "resource.customizations.useOpenLibs."
    settings = read_config_maps(
        {HEALTH + "Pod": SCRIPT, HEALTH + "Node": SCRIPT, grant + "Pod": "true", grant + "Node": "F"}
    )
    assert {check.pattern: check.open_libs for check in settings.checks} == {"Pod": True, "Node": False}


def test_customizations_map_allows_wildcards_in_order() -> None:
    text = """
"*.crossplane.io/*":
  health.lua: one
  health.lua.useOpenLibs: true
"*.upbound.io/*": {health.lua: two}
apps/Deployment: {health.lua: three}
"""
    settings = read_config_maps({"resource.customizations": text})
    assert [(check.pattern, check.script, check.open_libs) for check in settings.checks] == [
        ("apps/Deployment", "three", False),
        ("*.crossplane.io/*", "one", True),
        ("*.upbound.io/*", "two", False),
    ]
    assert settings.faults == ()


def test_kind_key_wins_over_the_map_and_the_duplicate_is_named() -> None:
    settings = read_config_maps({HEALTH + "Pod": SCRIPT, "resource.customizations": "Pod: {health.lua: old}"})
    assert scripts(settings) == {"Pod": SCRIPT}
    assert settings.faults == (f"{HEALTH}Pod: Pod has another check in resource.customizations[Pod]; "
                            "this one wins, remove the other (AGY406)",)  # fmt: skip


def test_empty_check_is_ignored() -> None:
    assert read_config_maps({HEALTH + "Pod": ""}).checks == ()


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("serving.kserve.io/InferenceService", "serving.kserve.io_InferenceService"),
        ("InferenceService_serving.kserve.io", "serving.kserve.io_InferenceService"),
        ("InferenceService.serving.kserve.io", "serving.kserve.io_InferenceService"),
        ("serving.kserve.io.InferenceService", "serving.kserve.io_InferenceService"),
        ("serving.kserve.io_v1beta1_InferenceService", "serving.kserve.io_InferenceService"),
        ("Deployment_apps", "apps_Deployment"),
        ("_PersistentVolumeClaim", "PersistentVolumeClaim"),
        ("core_PersistentVolumeClaim", "PersistentVolumeClaim"),
        ("v1_PersistentVolumeClaim", "PersistentVolumeClaim"),
    ],
)
def test_misformatted_key_is_ignored_and_reported_with_the_right_one(name: str, right: str) -> None:
    settings = read_config_maps({HEALTH + name: SCRIPT, HEALTH + "Pod": SCRIPT})
    assert scripts(settings) == {"Pod": SCRIPT}
    [fault] = settings.faults
    assert fault.startswith(HEALTH + name)
    assert f"write {HEALTH}{right} (AGY406)" in fault


@pytest.mark.parametrize("name", ["serving.kserve.io_inferenceservice", "", "a_b_c", "pods"])
def test_key_without_recognizable_kind_is_a_fault(name: str) -> None:
    settings = read_config_maps({HEALTH + name: SCRIPT})
    assert settings.checks == ()
    assert "AGY406" in settings.faults[0]


def test_wildcard_in_a_key_is_reported_with_the_map() -> None:
    [fault] = read_config_maps({HEALTH + "*.crossplane.io_*": SCRIPT}).faults
    assert "use the map `resource.customizations`" in fault


@pytest.mark.parametrize(
    ("name", "right"), [("apps_Deployment", "apps/Deployment"), ("/Pod", "Pod"), ("core/Pod", "Pod")]
)
def test_misformatted_name_in_the_map_gets_a_suggestion(name: str, right: str) -> None:
    [fault] = read_config_maps({"resource.customizations": f"{name}: {{health.lua: x}}"}).faults
    assert f"write {right} " in fault


def test_unknown_customization_type_gets_a_suggestion() -> None:
    [fault] = read_config_maps({"resource.customizations.healt.Pod": SCRIPT}).faults
    assert "did you mean health?" in fault


def test_other_customizations_are_ignored() -> None:
    data = {"resource.customizations.ignoreDifferences.all": "x", "url": "https://a", "resource.exclusions": "[]"}
    assert read_config_maps(data) == Customizations()


ACTIONS = """
mergeBuiltinActions: true
discovery.lua: |
  return {restart = {}}
definitions:
- name: restart
  action.lua: return obj
"""


def test_actions_are_read_with_their_definitions() -> None:
    settings = read_config_maps({"resource.customizations.actions.apps_Deployment": ACTIONS})
    [actions] = settings.actions
    assert (actions.pattern, actions.discovery) == ("apps/Deployment", "return {restart = {}}\n")
    assert (dict(actions.definitions), actions.merge_builtin) == ({"restart": "return obj"}, True)
    assert settings.faults == ()


def test_actions_of_the_map_are_read() -> None:
    text = "apps/Deployment:\n  actions: |\n" + "".join(f"    {line}\n" for line in ACTIONS.splitlines())
    [actions] = read_config_maps({"resource.customizations": text}).actions
    assert dict(actions.definitions) == {"restart": "return obj"}


@pytest.mark.parametrize(
    "text",
    [
        "definitions: 3",
        "definitions: [3]",
        "definitions: [{name: x}]",
        "definitions: [{name: x, action.lua: a}, {name: x, action.lua: b}]",
        "[1]",
        "a: [",
        "discovery.lua: {}",
        "mergeBuiltinActions: x",
    ],
)
def test_malformed_actions_are_reported_as_one_fault(text: str) -> None:
    assert len(read_config_maps({"resource.customizations.actions.Pod": text}).faults) == 1


@pytest.mark.parametrize("text", ["a: [", "[1]", "3", "Pod: 3", "Pod: {health.lua: {}}", "Pod: {useOpenLibs: true}"])
def test_malformed_map_is_a_fault_and_kind_keys_still_apply(text: str) -> None:
    settings = read_config_maps({"resource.customizations": text, HEALTH + "Node": SCRIPT})
    assert scripts(settings) == {"Node": SCRIPT}
    assert len(settings.faults) == 1


def test_argosy_settings_select_profiles_and_fallback() -> None:
    own = {
        "health.fallback": "true",
        "health.profile.serving.kserve.io_InferenceService": "strict",
        "sync.waveDelay": "2",
    }
    settings = read_config_maps({}, own)
    assert settings.fallback
    assert settings.profiles == {"serving.kserve.io/InferenceService": "strict"}
    assert settings.faults == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("health.fallback", "maybe"),
        ("health.profile.apps/Deployment", "x"),
        ("health.profile.Pod", " "),
        ("health.fallbak", "x"),
    ],
)
def test_invalid_argosy_setting_is_a_fault(key: str, value: str) -> None:
    settings = read_config_maps({}, {key: value})
    assert len(settings.faults) == 1
    assert settings.faults[0].startswith(key)
    assert not settings.fallback and not settings.profiles


# -- manifests -----------------------------------------------------------------------------------------------------


def check_of(kind: str, script: object, group: str = "serving.kserve.io") -> dict[str, Any]:
    return {"group": group, "kind": kind, "check": script}


def test_config_maps_are_found_among_other_manifests() -> None:
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "argocd-cm"}}
    own = config_map("argosy-cm", **{"health.fallback": "true"})
    settings = read_manifests(
        [other, config_map(**{HEALTH + "Pod": SCRIPT}), own, config_map("mine", **{HEALTH + "Node": "x"})]
    )
    assert (scripts(settings), settings.fallback, settings.faults) == ({"Pod": SCRIPT}, True, ())
    assert settings.checks[0].where == f"{HEALTH}Pod"


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
def test_health_checks_of_argocd_resource_are_read(version: str) -> None:
    checks = [check_of("InferenceService", SCRIPT), check_of("PersistentVolumeClaim", OTHER, "")]
    settings = read_manifests([argocd(version, resourceHealthChecks=checks)])
    assert scripts(settings) == {"serving.kserve.io/InferenceService": SCRIPT, "PersistentVolumeClaim": OTHER}
    assert settings.checks[0].where == "ArgoCD/gitops spec.resourceHealthChecks[0]"
    assert settings.faults == ()


def test_actions_of_argocd_resource_are_read() -> None:
    listed = [{"group": "apps", "kind": "Deployment", "action": ACTIONS}]
    [actions] = read_manifests([argocd(resourceActions=listed)]).actions
    assert actions.pattern == "apps/Deployment"


def test_duplicate_kind_is_a_fault_and_the_last_check_wins() -> None:
    settings = read_manifests(
        [argocd(resourceHealthChecks=[check_of("InferenceService", SCRIPT), check_of("InferenceService", OTHER)])]
    )
    assert scripts(settings) == {"serving.kserve.io/InferenceService": OTHER}
    [fault] = settings.faults
    assert "already in ArgoCD/gitops spec.resourceHealthChecks[0]" in fault
    assert "the last one wins" in fault


def test_identical_duplicate_check_is_not_a_fault() -> None:
    resource = argocd(resourceHealthChecks=[check_of("InferenceService", SCRIPT)])
    assert read_manifests([resource, resource]).faults == ()


def test_conflicting_argocd_resources_are_a_fault() -> None:
    one, two = (argocd(resourceHealthChecks=[check_of("InferenceService", text)]) for text in (SCRIPT, OTHER))
    assert len(read_manifests([one, two]).faults) == 1


def test_extra_config_wins_over_resource_health_checks() -> None:
    key = HEALTH + "serving.kserve.io_InferenceService"
    settings = read_manifests(
        [
            argocd(
                resourceHealthChecks=[check_of("InferenceService", SCRIPT)],
                extraConfig={key: OTHER, "admin.enabled": "false"},
            )
        ]
    )
    assert scripts(settings) == {"serving.kserve.io/InferenceService": OTHER}
    assert len(settings.faults) == 1


def test_argocd_resource_wins_over_the_generated_config_map() -> None:
    key = HEALTH + "serving.kserve.io_InferenceService"
    resource = argocd(resourceHealthChecks=[check_of("InferenceService", SCRIPT)])
    settings = read_manifests([resource, config_map(**{key: OTHER, HEALTH + "Pod": OTHER})])
    assert scripts(settings) == {"serving.kserve.io/InferenceService": SCRIPT, "Pod": OTHER}
    [fault] = settings.faults
    assert "AGY405" in fault and "change the ArgoCD resource only" in fault


def test_resource_customizations_field_is_read_and_reported_in_v1beta1() -> None:
    text = "apps/Deployment: {health.lua: x}"
    assert read_manifests([argocd("v1alpha1", resourceCustomizations=text)]).faults == ()
    settings = read_manifests([argocd("v1beta1", resourceCustomizations=text)])
    assert scripts(settings) == {"apps/Deployment": "x"}
    assert "use resourceHealthChecks" in settings.faults[0]


def test_ignore_differences_field_is_reported_with_the_right_place() -> None:
    [fault] = read_manifests([argocd(ignoreDifferences=[{"kind": "InferenceService"}])]).faults
    assert "Application's spec" in fault and "resourceIgnoreDifferences" in fault


@pytest.mark.parametrize(
    "spec",
    [
        {"resourceHealthChecks": 3},
        {"resourceHealthChecks": [3]},
        {"resourceHealthChecks": [{"check": "x"}]},
        {"resourceHealthChecks": [check_of("Pod", None, "")]},
        {"resourceActions": [{"kind": "Pod", "action": {}}]},
        {"extraConfig": []},
        {"extraConfig": {"a": 1}},
    ],
)
def test_malformed_fields_are_reported_as_one_fault(spec: dict[str, Any]) -> None:
    assert len(read_manifests([argocd(**spec)]).faults) == 1


@pytest.mark.parametrize(
    "manifest", [{}, {"apiVersion": 1, "kind": 2}, {"apiVersion": "v1", "kind": "ConfigMap"}, argocd()]
)
def test_manifests_without_settings_give_no_customizations(manifest: dict[str, Any]) -> None:
    assert read_manifests([manifest]) == Customizations()


def test_non_string_value_and_non_mapping_data_are_faults() -> None:
    assert len(read_manifests([config_map(**{HEALTH + "Pod": 3})]).faults) == 1
    assert len(read_manifests([{**config_map(), "data": []}, {**argocd(), "spec": []}]).faults) == 2
