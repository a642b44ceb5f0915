"""ConfigMap data and workloads that the simulated operator computes from an ArgoCD resource (pure functions)."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.objects import read_yaml, read_yaml_documents
from argosy.sandbox.simulators.openshift_gitops import initial_objects
from argosy.sandbox.simulators.openshift_gitops.argocd_instance_objects import ArgoCDInstance, build_workloads
from argosy.sandbox.simulators.openshift_gitops.config_maps import build_policy_data, build_settings_data
from argosy.sandbox.simulators.openshift_gitops.settings_objects import build_config_data

URL = "https://argocd.example.com"
HEALTH = "resource.customizations.health"


def computed(**spec: Any) -> dict[str, str]:
    return build_settings_data(spec, url=URL)


def instance(**spec: Any) -> ArgoCDInstance:
    metadata = {"name": "team", "namespace": "argo", "uid": "u", "creationTimestamp": "2030-01-01T00:00:00Z"}
    return ArgoCDInstance({"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "metadata": metadata, "spec": spec})


@pytest.mark.parametrize(
    ("group", "kind", "key"),
    [
        ("serving.kserve.io", "InferenceService", f"{HEALTH}.serving.kserve.io_InferenceService"),
        ("", "PersistentVolumeClaim", f"{HEALTH}.PersistentVolumeClaim"),
        (None, "PersistentVolumeClaim", f"{HEALTH}.PersistentVolumeClaim"),
    ],
)
def test_health_check_becomes_the_customization_key_of_its_kind(group: str | None, kind: str, key: str) -> None:
    entry = {"kind": kind, "check": "return hs\n"} | ({} if group is None else {"group": group})
    assert computed(resourceHealthChecks=[entry])[key] == "return hs\n"


def test_last_of_two_health_checks_for_one_kind_wins() -> None:
    twice = [{"group": "a.io", "kind": "A", "check": check} for check in ("first", "second")]
    assert computed(resourceHealthChecks=twice)[f"{HEALTH}.a.io_A"] == "second"


def test_resource_actions_become_the_customization_key_of_their_kind() -> None:
    entry = {"group": "a.io", "kind": "A", "action": "discovery.lua: |\n"}
    assert computed(resourceActions=[entry])["resource.customizations.actions.a.io_A"] == "discovery.lua: |\n"


def test_ignore_differences_are_written_as_yaml() -> None:
    spec = {
        "all": {"managedFieldsManagers": ["kube-controller-manager"]},
        "resourceIdentifiers": [
            {"group": "apps", "kind": "Deployment", "customization": {"jsonPointers": ["/spec/replicas"]}},
            {"group": "", "kind": "Secret", "customization": {"jqPathExpressions": [".data"]}},
        ],
    }
    data = computed(resourceIgnoreDifferences=spec)
    prefix = "resource.customizations.ignoreDifferences"
    empty = {"jqpathexpressions": [], "jsonpointers": [], "managedfieldsmanagers": []}
    expected = {
        "all": {"managedfieldsmanagers": ["kube-controller-manager"]},
        "apps_Deployment": {"jsonpointers": ["/spec/replicas"]},
        "Secret": {"jqpathexpressions": [".data"]},
    }
    for kind, fields in expected.items():
        assert read_yaml(data[f"{prefix}.{kind}"]) == {**empty, **fields}


def test_empty_argocd_resource_yields_only_defaults() -> None:
    data = computed()
    assert not [key for key in data if "customizations" in key]
    assert data["application.instanceLabelKey"] == "app.kubernetes.io/instance"
    assert data["application.resourceTrackingMethod"] == "annotation"
    assert (data["admin.enabled"], data["statusbadge.enabled"], data["url"]) == ("true", "false", URL)
    assert all(isinstance(value, str) for value in data.values())


@pytest.mark.parametrize(
    ("field", "value", "key", "text"),
    [
        ("applicationInstanceLabelKey", "team.io/app", "application.instanceLabelKey", "team.io/app"),
        ("resourceTrackingMethod", "annotation+label", "application.resourceTrackingMethod", "annotation+label"),
        ("resourceTrackingMethod", "guess", "application.resourceTrackingMethod", "annotation"),
        ("kustomizeBuildOptions", "--enable-helm", "kustomize.buildOptions", "--enable-helm"),
        ("statusBadgeEnabled", True, "statusbadge.enabled", "true"),
        ("disableAdmin", True, "admin.enabled", "false"),
        ("usersAnonymousEnabled", True, "users.anonymous.enabled", "true"),
        ("oidcConfig", "name: Okta\n", "oidc.config", "name: Okta\n"),
        ("resourceExclusions", "- kinds: [X]\n", "resource.exclusions", "- kinds: [X]\n"),
        ("resourceInclusions", "- kinds: [Y]\n", "resource.inclusions", "- kinds: [Y]\n"),
        ("installationID", "one", "installationID", "one"),
        ("banner", {"content": "Hi", "url": "https://x"}, "ui.bannerurl", "https://x"),
        ("kustomizeVersions", [{"version": "v5", "path": "/k"}], "kustomize.version.v5", "/k"),
        ("controller", {"respectRBAC": "strict"}, "resource.respectRBAC", "strict"),
        ("helpChatText", "Ask", "help.chatText", "Ask"),
        ("sso", {"provider": "dex", "dex": {"config": "connectors: []"}}, "dex.config", "connectors: []"),
        ("localUsers", [{"name": "ci", "login": True}], "accounts.ci", "apiKey, login"),
        ("localUsers", [{"name": "ci", "enabled": False}], "accounts.ci.enabled", "false"),
        ("extraConfig", {"timeout.reconciliation": "60s"}, "timeout.reconciliation", "60s"),
    ],
)
def test_argocd_field_becomes_its_config_map_key(field: str, value: Any, key: str, text: str) -> None:
    assert computed(**{field: value})[key] == text


def test_extra_config_overrides_all_other_settings() -> None:
    key = f"{HEALTH}.a.io_A"
    extra = {key: "mine", "url": "https://mine", "accounts.ci": "login"}
    spec = {
        "resourceHealthChecks": [{"group": "a.io", "kind": "A", "check": "theirs"}],
        "localUsers": [{"name": "ci"}],
        "extraConfig": extra,
    }
    data = computed(**spec)
    assert {name: data[name] for name in extra} == extra and "accounts.ci.enabled" not in data


def test_openshift_oauth_uses_the_dex_service_account_as_client_id() -> None:
    data = build_config_data(instance(sso={"provider": "dex", "dex": {"openShiftOAuth": True}}))["argocd-cm"]
    assert "clientID: system:serviceaccount:argo:team-argocd-dex-server" in data["dex.config"]


@pytest.mark.parametrize("odd", [None, "text", 3, [None], ["text"], [3], [{}]])
@pytest.mark.parametrize("field", ["localUsers", "kustomizeVersions"])
def test_malformed_entries_yield_only_string_values(field: str, odd: Any) -> None:
    assert all(isinstance(value, str) for value in computed(**{field: odd}).values())


def test_empty_default_policy_is_kept_and_a_missing_one_is_defaulted() -> None:
    assert build_policy_data({}) == {"policy.csv": "", "policy.default": "role:readonly", "scopes": "[groups]"}
    chosen = {"defaultPolicy": "", "policy": "g, a, role:admin\n", "scopes": "[email]", "policyMatcherMode": "regex"}
    assert build_policy_data({"rbac": chosen}) == {
        "policy.csv": "g, a, role:admin\n", "policy.default": "", "scopes": "[email]", "policy.matchMode": "regex",
    }  # fmt: skip


def test_initial_openshift_instance_excludes_tekton_runs() -> None:
    argocd = next(manifest for manifest in initial_objects.build_openshift_objects() if manifest["kind"] == "ArgoCD")
    text = build_config_data(ArgoCDInstance(argocd))["argocd-cm"]["resource.exclusions"]
    [entries] = read_yaml_documents(text)
    assert {"apiGroups": ["tekton.dev"], "kinds": ["TaskRun", "PipelineRun"], "clusters": ["*"]} in entries
    assert "tekton.dev" not in computed()["resource.exclusions"], "it is OpenShift that asks for it"


@pytest.mark.parametrize(
    ("written", "seconds"), [("120s", "120s"), ("3m0s", "180s"), ("1h30m", "5400s"), ("", None), ("soon", None)]
)
def test_app_sync_sets_the_controller_reconciliation_timeout(written: str, seconds: str | None) -> None:
    workload = build_workloads(instance(controller={"appSync": written}))["applicationController"]
    [container] = workload["spec"]["template"]["spec"]["containers"]
    variables = {variable["name"]: variable["value"] for variable in container.get("env", ())}
    assert variables.get("ARGOCD_RECONCILIATION_TIMEOUT") == seconds


@pytest.mark.parametrize(
    ("spec", "host", "url"),
    [
        ({}, "", "https://team-server"),
        ({"server": {"host": "cd.example.com"}}, "", "https://cd.example.com"),
        (
            {"server": {"host": "cd.example.com", "route": {"enabled": True}}},
            "cd.example.com",
            "https://cd.example.com",
        ),
        (
            {"server": {"route": {"enabled": True}}},
            "team-server-argo.apps.argosy.invalid",
            "https://team-server-argo.apps.argosy.invalid",
        ),
    ],
)
def test_host_and_url_come_from_the_route_if_it_is_enabled(spec: dict[str, Any], host: str, url: str) -> None:
    argocd = instance(**spec)
    assert (argocd.host, build_config_data(argocd)["argocd-cm"]["url"]) == (host, url)


@pytest.mark.parametrize(
    "build_objects", [initial_objects.build_openshift_objects, initial_objects.build_plain_objects]
)
def test_every_initial_object_is_marked_as_simulated(build_objects: Any) -> None:
    annotation_values = {
        manifest["metadata"]["annotations"].get("sandbox.argosy.dev/simulated") for manifest in build_objects()
    }
    assert annotation_values == {"simulated by argosy"}
