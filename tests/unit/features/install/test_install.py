"""Manifests of an installation, and the changes that `argosy install` makes to a cluster."""

from __future__ import annotations

import importlib.util
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.features.install import roles
from argosy.features.install.live_state import LEADER_LEASE_NAME, load_install_state
from argosy.features.install.manifests import build_manifests
from argosy.features.install.options import InstallOptions
from argosy.features.install.plan import InstallPlan, InstallState, build_install_plan
from argosy.features.install.plan_execution import execute_plan
from argosy.gitops.application_client import control_namespace
from argosy.gitops.engine.engine import EngineOptions
from argosy.isolation import ProcessPool, WorkerPool
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of, read_yaml_documents
from argosy.kube.resource_key import ResourceKey
from argosy.main import build_parser
from argosy.web.auth import account_password_token_store, cached_accounts_and_policy, login_rate_limit
from support.deadlines import wait_until_async
from support.definitions import are_established
from support.paths import ROOT
from support.pod_security import refused, refused_by_scc

PLAIN = InstallOptions()
HA, OBSERVER = InstallOptions(is_ha=True), InstallOptions(is_read_only=True)
ALL = [PLAIN, HA, OBSERVER, InstallOptions("team", is_ha=True, tls_secret="t")]
SERVER = ResourceKey("apps", "Deployment", "argosy", "argosy-server")
CONTROLLER = ResourceKey("apps", "Deployment", "argosy", "argosy-controller")


def pods(options: InstallOptions) -> dict[str, Any]:
    deployments = [manifest for manifest in build_manifests(options) if manifest["kind"] == "Deployment"]
    return {deployment["metadata"]["name"]: deployment["spec"]["template"]["spec"] for deployment in deployments}


@pytest.mark.parametrize("name", ["argosy-controller", "argosy-server"])
def test_worker_memory_limits_fit_into_the_pod_memory_limit(name: str) -> None:
    crew, pool = ProcessPool(workers=EngineOptions.render_workers), WorkerPool()
    itself = 512 << 20
    programs = crew.max_workers * ProgramLimits().memory  # a render runs one at a time
    deployed = read_yaml_documents((ROOT / "deploy" / "argosy" / f"{name.removeprefix('argosy-')}.yaml").read_text())
    deployed_pods = [manifest["spec"]["template"]["spec"] for manifest in deployed if manifest["kind"] == "Deployment"]
    for pod in [pods(PLAIN)[name], *deployed_pods]:
        limit = pod["containers"][0]["resources"]["limits"]["memory"]
        assert limit.endswith("Gi"), limit
        assert itself + crew.max_memory_bytes + pool.max_memory_bytes + programs <= int(limit.removesuffix("Gi")) << 30


async def planned(cluster: Cluster, options: InstallOptions = PLAIN) -> InstallPlan:
    return build_install_plan(options, await load_install_state(cluster, options))


async def installed(cluster: Cluster, options: InstallOptions = PLAIN) -> InstallPlan:
    plan = await planned(cluster, options)
    await execute_plan(cluster, plan, lambda step: None, 0.0)
    await wait_until_async(partial(are_established, cluster), "the definitions are established")
    return plan


def changed(plan: InstallPlan) -> set[tuple[str, str, str]]:
    return {(str(step.verb), step.key.kind, step.key.name) for step in plan.to_write}


@pytest.mark.parametrize("options", ALL)
def test_pods_meet_restricted_pod_security_and_scc(options: InstallOptions) -> None:
    for spec in pods(options).values():
        assert refused(spec) + refused_by_scc(spec) == []
        (container,) = spec["containers"]
        (home,) = [variable["value"] for variable in container["env"] if variable["name"] == "HOME"]
        mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        assert {"name": mounted[home], "emptyDir": {}} in spec["volumes"], "HOME cannot be written to"


BAD: list[tuple[str, Any]] = [
    ("pod: hostNetwork", {"hostNetwork": True}),
    ("volume a: hostPath", {"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}),
    ("pod: runs as root", {"securityContext": {"runAsUser": 0}}),
    ("pod: may run as root", {"securityContext": {"runAsNonRoot": False}}),
    ("pod: seccomp is off", {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}),
    ("pod: SELinux options", {"securityContext": {"seLinuxOptions": {"type": "spc_t"}}}),
    ("pod: sysctl kernel.msgmax", {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}),
]
BAD_CONTAINERS: list[tuple[str, Any]] = [
    ("privileged", {"privileged": True}),
    ("privileges may escalate", {"allowPrivilegeEscalation": None}),
    ("keeps capabilities", {"capabilities": {}}),
    ("adds capabilities", {"capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}}),
    ("sees more of /proc", {"procMount": "Unmasked"}),
    ("AppArmor is off", {"appArmorProfile": {"type": "Unconfined"}}),
]


@pytest.mark.parametrize(("said", "change"), BAD)
def test_pod_security_helper_detects_pod_violations(said: str, change: dict[str, Any]) -> None:
    spec = deepcopy(pods(PLAIN)["argosy-server"])
    for name, value in change.items():
        spec[name] = {**spec.get(name, {}), **value} if isinstance(value, dict) else value
    assert said in refused(spec)


@pytest.mark.parametrize(("said", "change"), BAD_CONTAINERS)
def test_pod_security_helper_detects_container_violations(said: str, change: dict[str, Any]) -> None:
    spec = deepcopy(pods(PLAIN)["argosy-server"])
    spec["containers"][0]["securityContext"].update(change)
    assert f"containers/server: {said}" in refused(spec)
    fixed = {**spec, "securityContext": {**spec["securityContext"], "runAsUser": 1000}}
    assert "pod: runAsUser is chosen by the cluster" in refused_by_scc(fixed)


@pytest.mark.parametrize("options", ALL)
def test_container_commands_parse_and_match_the_declared_ports(options: InstallOptions) -> None:
    for name, spec in pods(options).items():
        (container,) = spec["containers"]
        chosen = build_parser().parse_args(container["command"][1:])
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert chosen.namespace == options.namespace
        if name == "argosy-server":
            assert ports == {"https": chosen.port, "metrics": chosen.metrics_port}
            assert f"argosy-server.{options.namespace}.svc" in chosen.hostname
            assert (str(chosen.tls_cert) == "/tls/tls.crt") is bool(options.tls_secret)
        else:
            assert ports == {"metrics": chosen.port}


@pytest.mark.parametrize("options", ALL)
def test_selectors_of_services_policies_and_budgets_match_the_pods(options: InstallOptions) -> None:
    manifests = build_manifests(options)
    templates = [
        manifest["spec"]["template"]["metadata"]["labels"] for manifest in manifests if manifest["kind"] == "Deployment"
    ]
    selectors = [manifest["spec"]["selector"] for manifest in manifests if manifest["kind"] == "Service"]
    selectors += [
        manifest["spec"]["podSelector"]["matchLabels"] for manifest in manifests if manifest["kind"] == "NetworkPolicy"
    ]
    selectors += [
        manifest["spec"]["selector"]["matchLabels"]
        for manifest in manifests
        if manifest["kind"] == "PodDisruptionBudget"
    ]
    assert len(selectors) == 3 * len(templates)
    for selector in selectors:
        assert sum(selector.items() <= labels.items() for labels in templates) == 1
    for spec in pods(options).values():
        assert spec["containers"][0]["resources"]["requests"].keys() == {"cpu", "memory"}
        assert {"livenessProbe", "readinessProbe", "startupProbe"} <= spec["containers"][0].keys()
        liveness = spec["containers"][0]["livenessProbe"]
        assert liveness["httpGet"] == {"path": "/livez", "port": "metrics"}
        assert liveness["failureThreshold"] * liveness["periodSeconds"] == 120
        assert ("affinity" in spec) is options.is_ha


def test_read_only_install_can_write_only_login_objects() -> None:
    manifests = build_manifests(InstallOptions(is_read_only=True))
    assert not [manifest for manifest in manifests if manifest["metadata"]["name"].startswith("argosy-controller")]
    rules = [rule for manifest in manifests for rule in manifest.get("rules") or ()]
    for rule in rules:
        if set(rule["verbs"]) - {"get", "list", "watch"}:
            assert rule["verbs"] == ["patch"] and rule["resourceNames"], rule
    names = {name for rule in rules for name in rule.get("resourceNames") or ()}
    assert names == {
        account_password_token_store.ACCOUNTS_SECRET,
        account_password_token_store.INITIAL_ADMIN_SECRET,
        login_rate_limit.CONFIG_MAP_NAME,
        cached_accounts_and_policy.SESSIONS_CONFIG_MAP,
    }


def test_every_role_is_bound_to_a_service_account_of_the_installation() -> None:
    for options in ALL:
        manifests = build_manifests(options)
        named = {
            (manifest["kind"], manifest["metadata"]["name"])
            for manifest in manifests
            if manifest["kind"].endswith("Role")
        }
        bindings = [manifest for manifest in manifests if manifest["kind"].endswith("RoleBinding")]
        accounts = {manifest["metadata"]["name"] for manifest in manifests if manifest["kind"] == "ServiceAccount"}
        assert {(binding["roleRef"]["kind"], binding["roleRef"]["name"]) for binding in bindings} == named
        for binding in bindings:
            (subject,) = binding["subjects"]
            assert subject["name"] in accounts and subject["namespace"] == options.namespace


def test_install_names_equal_those_of_controller_and_server() -> None:
    assert LEADER_LEASE_NAME == control_namespace.LEADER_LEASE_NAME
    assert set(roles.LOGIN_CONFIG_MAPS) == {
        login_rate_limit.CONFIG_MAP_NAME,
        cached_accounts_and_policy.SESSIONS_CONFIG_MAP,
    }


@pytest.mark.parametrize("wrong", [
    {"namespace": "Big"}, {"image": ""}, {"image": "a b"}, {"hostnames": ("a:1",)}, {"tls_secret": "../x"}
])  # fmt: skip
def test_invalid_install_option_is_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="invalid value"):
        InstallOptions(**wrong)


@pytest.mark.parametrize("name", ["Big", "a/b", "a..b", ".a", "a-.b", "a\n", "a" * 254])
def test_tls_secret_name_may_contain_dots_but_must_be_valid(name: str) -> None:
    assert InstallOptions(tls_secret="argosy.example.com-tls").tls_secret == "argosy.example.com-tls"
    with pytest.raises(UserError, match="lower case letters, digits, dashes and dots"):
        InstallOptions(tls_secret=name)


def test_deploy_folder_equals_the_generated_manifests() -> None:
    spec = importlib.util.spec_from_file_location("make_deploy", ROOT / "tools" / "make_deploy.py")
    assert spec and spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    folder = ROOT / "deploy" / "argosy"
    assert {path.name: path.read_text() for path in folder.iterdir()} == tool.files(), "python tools/make_deploy.py"
    files = [path for path in sorted(folder.iterdir()) if path.name != "kustomization.yaml"]
    manifests = [manifest for file in files for manifest in read_yaml_documents(file.read_text())]
    assert {key_of(document): document for document in manifests} == {
        key_of(document): document for document in build_manifests(PLAIN)
    }


# -- in a cluster ----------------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("options", ALL)
async def test_second_install_changes_nothing(cluster: Cluster, options: InstallOptions) -> None:
    first = await installed(cluster, options)
    assert {step.verb for step in first.steps} == {"create"} and not first.problems
    second = await planned(cluster, options)
    assert second.to_write == [] and not second.notes and not second.problems


@pytest.mark.anyio
async def test_new_image_updates_only_the_deployments(cluster: Cluster) -> None:
    await installed(cluster)
    plan = await installed(cluster, replace(PLAIN, image="argosy:9"))
    assert changed(plan) == {
        ("update", "Deployment", "argosy-controller"), ("update", "Deployment", "argosy-server")
    }  # fmt: skip
    assert any("argosy:9" in sentence for step in plan.to_write for sentence in step.differences), plan.to_write
    live = await cluster.get(SERVER)
    assert live and live["spec"]["template"]["spec"]["containers"][0]["image"] == "argosy:9"


@pytest.mark.parametrize(
    ("image", "is_told"),
    [("argosy:0.1.0", True), ("ml/argosy:1", True), ("registry.example.com/argosy:1", False), ("localhost/a", False)],
)
def test_image_without_a_registry_is_noted(image: str, is_told: bool) -> None:
    notes = build_install_plan(replace(PLAIN, image=image), InstallState({})).notes
    assert any(f"image {image} has no registry: every node must have it" in note for note in notes) == is_told


@pytest.mark.anyio
async def test_switch_to_read_only_removes_controller_and_write_permissions(cluster: Cluster) -> None:
    await installed(cluster)
    plan = await installed(cluster, replace(PLAIN, is_read_only=True))
    gone = {step.key.name for step in plan.steps if step.verb == "delete"}
    assert gone == {"argosy-controller", "argosy-server-acts"}
    assert await cluster.get(CONTROLLER) is None
    role = await cluster.get(ResourceKey("rbac.authorization.k8s.io", "Role", "argosy", "argosy-server"))
    assert role and all(rule["verbs"] == ["patch"] for rule in role["rules"])
    assert (await planned(cluster, replace(PLAIN, is_read_only=True))).to_write == []
    back = await installed(cluster)
    assert await cluster.get(CONTROLLER) and not back.problems


@pytest.mark.anyio
async def test_existing_namespace_and_crd_are_not_taken_over(cluster: Cluster) -> None:
    namespace: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argosy"}}
    definition = deepcopy(build_manifests(PLAIN)[1])
    definition["metadata"].pop("labels")
    for manifest in (namespace, definition):
        await cluster.create(manifest)
    plan = await installed(cluster)
    assert any("namespace argosy already exists" in note for note in plan.notes)
    assert any("applications.argoproj.io already exists" in note for note in plan.notes)
    live = await cluster.get(ResourceKey("", "Namespace", "", "argosy"))
    assert live and not {"pod-security.kubernetes.io/enforce", "app.kubernetes.io/part-of"} & set(
        live["metadata"]["labels"]
    )


@pytest.mark.anyio
async def test_existing_namespace_gets_the_control_label(cluster: Cluster) -> None:
    await cluster.create({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argosy", "labels": {"team": "ml"}}
    })  # fmt: skip
    assert await control_namespace.find_control_namespace(cluster) == "argocd"
    (step,) = [step for step in (await installed(cluster)).to_write if step.verb == "update"]
    assert step.differences == ("metadata.labels.argosy.dev/control: true is added",)
    assert await control_namespace.find_control_namespace(cluster) == "argosy"
    assert (await planned(cluster)).to_write == []
    live = await cluster.get(step.key)
    assert live and live["metadata"]["labels"].items() >= {"team": "ml", "argosy.dev/control": "true"}.items()


@pytest.mark.anyio
async def test_second_installation_and_foreign_object_names_are_rejected(cluster: Cluster) -> None:
    await installed(cluster)
    elsewhere = await planned(cluster, InstallOptions("other"))
    assert elsewhere.problems == (
        "argosy is already installed in namespace argosy; use --namespace argosy, or uninstall it there first",
    )
    with pytest.raises(UserError, match="installed in namespace argosy"):
        await execute_plan(cluster, elsewhere, lambda step: None, 0.0)
    service = ResourceKey("", "Service", "argosy", "argosy-server")
    await cluster.patch(service, {"metadata": {"labels": {"app.kubernetes.io/part-of": "something-else"}}})
    (problem,) = (await planned(cluster)).problems
    assert "is not managed by argosy" in problem


@pytest.mark.anyio
async def test_read_only_install_keeps_argocd_secret_and_adds_no_admin_secret(cluster: Cluster) -> None:
    await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}})
    await cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {
        "name": "argocd-secret", "namespace": "argocd"}, "data": {"a": "Yg=="}})  # fmt: skip
    options = InstallOptions("argocd", is_read_only=True)
    plan = await installed(cluster, options)
    assert ("create", "Secret", "argocd-initial-admin-secret") not in changed(plan)
    live = await cluster.get(ResourceKey("", "Secret", "argocd", "argocd-secret"))
    assert live and live["data"] == {"a": "Yg=="} and not live["metadata"].get("labels")
