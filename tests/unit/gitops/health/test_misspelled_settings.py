"""Tests misspelled health settings: each is a warning with a suggestion and a location."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.health.setting_fault_and_location import SettingFault, SettingLocation
from argosy.gitops.health.settings import read_config_maps, read_manifests

HEALTH = "resource.customizations.health."


def argocd(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "metadata": {"name": "gitops"}, "spec": spec}


def config_map(name: str, **data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def get_only_problem(problems: tuple[SettingFault, ...]) -> SettingFault:
    [problem] = problems
    return problem


@pytest.mark.parametrize(
    ("key", "right"),
    [
        ("resource.customization.health.apps_Deployment", HEALTH + "apps_Deployment"),
        ("resources.customizations.health.Pod", HEALTH + "Pod"),
        ("resource.customisations.health.Pod", HEALTH + "Pod"),
        ("Resource.Customizations.health.Pod", HEALTH + "Pod"),
        ("resource.customization", "resource.customizations"),
    ],
)
def test_misspelled_argocd_cm_key_gets_a_suggestion(key: str, right: str) -> None:
    fault = get_only_problem(read_config_maps({key: "return {}"}).problems)
    assert fault.severity == "warning"
    assert str(fault) == f"{key}: is not read; did you mean {right}? (AGY406)"


@pytest.mark.parametrize(
    "key",
    [
        "resource.exclusions",
        "resource.inclusions",
        "resource.compareoptions",
        "resource.respectRBAC",
        "resource.ignoreResourceUpdatesEnabled",
        "resource.sensitive.mask.annotations",
        "timeout.reconciliation",
        "accounts.alice",
    ],
)
def test_other_argocd_cm_keys_are_not_reported(key: str) -> None:
    assert read_config_maps({key: "x"}).problems == ()


@pytest.mark.parametrize(
    ("field", "right"),
    [
        ("resourceHealthCheck", "resourceHealthChecks"),
        ("resourcehealthchecks", "resourceHealthChecks"),
        ("resourceAction", "resourceActions"),
        ("extraConfigs", "extraConfig"),
    ],
)
def test_misspelled_field_of_argocd_resource_gets_a_suggestion(field: str, right: str) -> None:
    fault = get_only_problem(read_manifests([argocd(**{field: []})]).problems)
    assert (fault.severity, fault.location) == ("warning", SettingLocation(0, ("spec", field)))
    assert f"did you mean {right}?" in str(fault)


def test_other_fields_of_argocd_resource_are_not_reported() -> None:
    others = ("resourceExclusions", "resourceInclusions", "resourceTrackingMethod", "resourceIgnoreDifferences")
    assert read_manifests([argocd(**dict.fromkeys((*others, "server", "repo", "resources"), "x"))]).problems == ()


@pytest.mark.parametrize(
    ("key", "right"),
    [
        ("fallback", "health.fallback?"),
        ("helth.fallback", "health.fallback?"),
        ("health.fallbak", "health.fallback?"),
        ("profile.Pod", "health.profile.Pod?"),
        ("health.profiles.apps_Deployment", "health.profile.apps_Deployment?"),
        ("health.zzz", "health.fallback and health.profile.<group>_<Kind>"),
        (HEALTH + "Pod", "move it into ConfigMap argocd-cm"),
    ],
)
def test_misspelled_argosy_cm_key_gets_a_suggestion(key: str, right: str) -> None:
    fault = get_only_problem(read_config_maps({}, {key: "true"}).problems)
    assert fault.severity == "warning"
    assert right in str(fault)


def test_argosy_setting_in_argocd_cm_is_reported() -> None:
    assert "move it into ConfigMap argosy-cm" in str(
        get_only_problem(read_config_maps({"health.fallback": "true"}).problems)
    )


@pytest.mark.parametrize(("profile", "hint"), [("stric", "did you mean strict?"), ("zzz", "it has argocd, lenient")])
def test_unknown_profile_is_reported_with_available_profiles(profile: str, hint: str) -> None:
    settings = read_config_maps({}, {"health.profile.serving.kserve.io_InferenceService": profile})
    assert hint in str(get_only_problem(settings.problems))
    assert get_only_problem(settings.problems).severity == "warning"


def test_misspelled_field_in_map_or_actions_gets_a_suggestion() -> None:
    in_map = read_config_maps({"resource.customizations": "Pod: {health_lua: x}"})
    assert "health_lua is not read; did you mean health.lua?" in str(get_only_problem(in_map.problems))
    in_actions = read_config_maps({"resource.customizations.actions.Pod": "definition: []"})
    assert "definition is not read; did you mean definitions?" in str(get_only_problem(in_actions.problems))


def test_argosy_key_is_not_attributed_to_argo_cd() -> None:
    assert "Argo CD" not in str(
        get_only_problem(read_config_maps({}, {"health.profile.apps/Deployment": "x"}).problems)
    )


def test_every_fault_has_its_location_kind_and_severity() -> None:
    text = "Pod: {health.lua: {}}\nfoo_Bar: {health.lua: x}"
    cm = config_map(
        "argocd-cm",
        **{
            "resource.customizations": text,
            HEALTH + "Node": 3,
            "resource.customizations.actions.apps_DaemonSet": "a: [",
        },
    )
    resource = argocd(resourceHealthChecks=[{"kind": "A", "check": "x"}, {"group": "b.c", "kind": "D", "check": 1}])
    faults = {
        fault.location: (fault.pattern, fault.severity, fault.line) for fault in read_manifests([resource, cm]).problems
    }
    assert faults == {
        SettingLocation(0, ("spec", "resourceHealthChecks", 1)): ("b.c/D", "error", 0),
        SettingLocation(1, ("data", "resource.customizations", "Pod", "health.lua")): ("Pod", "error", 0),
        SettingLocation(1, ("data", "resource.customizations", "foo_Bar")): ("foo/Bar", "error", 0),
        SettingLocation(1, ("data", HEALTH + "Node")): ("Node", "error", 0),
        SettingLocation(1, ("data", "resource.customizations.actions.apps_DaemonSet")): ("apps/DaemonSet", "error", 1),
    }


def test_invalid_kind_pattern_is_reported() -> None:
    settings = read_config_maps({"resource.customizations": '"apps/{Deployment": {health.lua: x}'})
    assert "has an unbalanced brace" in str(get_only_problem(settings.problems))
    assert settings.checks == ()
