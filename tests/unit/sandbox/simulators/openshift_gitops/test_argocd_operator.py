"""The simulated OpenShift GitOps operator on the embedded cluster."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.kube.client import Cluster, PatchKind
from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators.openshift_gitops import make
from support.loop_clock import until_still

pytestmark = pytest.mark.anyio
Until = Callable[[Callable[[], Awaitable[object]]], Awaitable[None]]

GITOPS = "openshift-gitops"
NEEDED = ("ArgoCD", "AppProject", "Route", "OperatorGroup", "Subscription", "ClusterServiceVersion")
ARGOCD = ResourceKey("argoproj.io", "ArgoCD", GITOPS, GITOPS)
SETTINGS = ResourceKey("", "ConfigMap", GITOPS, "argocd-cm")
POLICY = ResourceKey("", "ConfigMap", GITOPS, "argocd-rbac-cm")
PASSWORD = ResourceKey("", "Secret", GITOPS, "openshift-gitops-cluster")
ROUTE = ResourceKey("route.openshift.io", "Route", GITOPS, "openshift-gitops-server")
SERVER = ResourceKey("apps", "Deployment", GITOPS, "openshift-gitops-server")
CONTROLLER = ResourceKey("apps", "StatefulSet", GITOPS, "openshift-gitops-application-controller")
CHECK = {"group": "serving.kserve.io", "kind": "InferenceService", "check": "return {status = 'Healthy'}\n"}
KEY = "resource.customizations.health.serving.kserve.io_InferenceService"


@contextlib.asynccontextmanager
async def played(cluster: EmbeddedCluster, variant: str = "", *, whole: bool = False) -> AsyncIterator[None]:
    """Run the add-on as the sandbox does; without `whole`, only with the definitions that the tests need."""
    addon = make(variant)
    needed = [definition for definition in addon.definitions if whole or definition["spec"]["names"]["kind"] in NEEDED]
    async with run_addons([replace(addon, definitions=needed)], cluster, on_failure=lambda: None):
        yield


async def live(cluster: Cluster, key: ResourceKey) -> Manifest:
    return await cluster.get(key) or {"metadata": {}}


async def settled(cluster: EmbeddedCluster) -> None:
    """Wait until nothing is written for a while; only for tests that something does not happen."""
    await until_still(lambda: cluster.plane.store.revision)


async def available(cluster: Cluster) -> bool:
    return bool(((await live(cluster, ARGOCD)).get("status") or {}).get("phase") == "Available")


async def plays(cluster: Cluster, namespace: str, *names: str) -> bool:
    """True if each of these workloads has a running Pod and none in the namespace has two."""
    listing = await cluster.list(GroupKind("", "Pod"), namespace=namespace)
    ready = [
        pod["metadata"]["labels"]["app.kubernetes.io/name"]
        for pod in listing.items
        if (pod.get("status") or {}).get("phase") == "Running"
    ]
    return sorted(set(names) & set(ready)) == sorted(names) and len(ready) == len(set(ready))


async def test_unknown_variant_error_lists_the_variants() -> None:
    with pytest.raises(UserError, match=r"unknown variant helm; choose among: argocd_operator, argocd_operator=plain"):
        make("helm")


async def test_installation_becomes_available_and_is_marked_simulated(cluster: EmbeddedCluster, until: Until) -> None:
    async with played(cluster, whole=True):
        await until(lambda: available(cluster))
        await until(lambda: plays(cluster, GITOPS, SERVER.name, CONTROLLER.name, "cluster"))

        async def is_ready() -> bool:
            statuses = [(await live(cluster, key)).get("status") or {} for key in (SERVER, CONTROLLER)]
            return all(status.get("readyReplicas") == 1 for status in statuses)

        await until(is_ready)
        argocd, settings = await live(cluster, ARGOCD), await live(cluster, SETTINGS)
        [condition] = argocd["status"]["conditions"]
        assert (condition["status"], condition["message"]) == ("True", "simulated by argosy")
        [reference] = settings["metadata"]["ownerReferences"]
        assert (reference["kind"], reference["uid"]) == ("ArgoCD", argocd["metadata"]["uid"])
        host = (await live(cluster, ROUTE))["spec"]["host"]
        assert settings["data"]["url"] == f"https://{host}" and argocd["status"]["host"] == host
        [available_] = [
            entry for entry in (await live(cluster, SERVER))["status"]["conditions"] if entry["type"] == "Available"
        ]
        assert available_["status"] == "True" and "simulated by argosy" in available_["message"]


async def test_argocd_resource_changes_are_written_to_argocd_cm(cluster: EmbeddedCluster, until: Until) -> None:
    async with played(cluster):
        await until(lambda: available(cluster))
        patch = {"spec": {"resourceHealthChecks": [CHECK], "rbac": {"defaultPolicy": "role:readonly"}}}
        await cluster.patch(ARGOCD, patch)

        async def is_there() -> bool:
            return (await live(cluster, SETTINGS))["data"].get(KEY) == CHECK["check"]

        await until(is_there)
        await cluster.patch(ARGOCD, {"spec": {"resourceHealthChecks": None}})

        async def is_gone() -> bool:
            return KEY not in (await live(cluster, SETTINGS))["data"]

        await until(is_gone)
        assert (await live(cluster, POLICY))["data"]["policy.default"] == "role:readonly"


async def test_direct_config_map_edit_is_reverted(cluster: EmbeddedCluster, until: Until) -> None:
    async with played(cluster):
        await until(lambda: available(cluster))
        right = (await live(cluster, SETTINGS))["data"]
        await cluster.patch(SETTINGS, {"data": {"mine": "1", "url": "changed"}})

        async def is_right() -> bool:
            return (await live(cluster, SETTINGS))["data"] == right

        await until(is_right)


async def test_only_keys_of_argocd_rbac_cm_that_the_resource_sets_are_reverted(
    cluster: EmbeddedCluster, until: Until
) -> None:
    async with played(cluster):
        await until(lambda: available(cluster))
        await cluster.patch(ARGOCD, {"spec": {"rbac": {"policy": "g, ml, role:admin\n", "scopes": None}}})

        async def is_written() -> bool:
            return (await live(cluster, POLICY))["data"]["policy.csv"] == "g, ml, role:admin\n"

        await until(is_written)
        await cluster.patch(POLICY, {"data": {"policy.csv": "changed", "scopes": "[email]", "policy.ml.csv": "mine"}})
        await until(is_written)
        await settled(cluster)
        data = (await live(cluster, POLICY))["data"]
        assert (data["scopes"], data["policy.ml.csv"]) == ("[email]", "mine")


async def test_lost_owner_reference_is_restored_and_a_foreign_one_is_overwritten(
    cluster: EmbeddedCluster, until: Until
) -> None:
    async def owners() -> list[str]:
        return [reference["kind"] for reference in (await live(cluster, SETTINGS))["metadata"]["ownerReferences"]]

    async with played(cluster):
        await until(lambda: available(cluster))
        owner = await cluster.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "o", "namespace": GITOPS}}
        )
        foreign = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": owner["metadata"]["uid"]}
        await cluster.patch(SETTINGS, {"metadata": {"ownerReferences": [foreign]}})

        async def is_repaired() -> bool:
            return (await live(cluster, SETTINGS))["metadata"].get("ownerReferences", [{}])[0].get("kind") == "ArgoCD"

        await until(is_repaired)
        assert await owners() == ["ArgoCD"]
        await cluster.patch(SETTINGS, {"metadata": {"ownerReferences": None}})
        await until(is_repaired)


async def test_config_maps_that_users_fill_are_created_once(cluster: EmbeddedCluster, until: Until) -> None:
    known_hosts, certificates = (
        SETTINGS._replace(name=name) for name in ("argocd-ssh-known-hosts-cm", "argocd-tls-certs-cm")
    )
    async with played(cluster):
        await until(lambda: available(cluster))
        assert "github.com ssh-ed25519 " in (await live(cluster, known_hosts))["data"]["ssh_known_hosts"]
        await cluster.patch(known_hosts, {"data": {"ssh_known_hosts": "mine"}})
        await cluster.delete(certificates)

        async def is_there_again() -> bool:
            return await cluster.get(certificates) is not None

        await until(is_there_again)
        await settled(cluster)
        assert (await live(cluster, known_hosts))["data"] == {"ssh_known_hosts": "mine"}


async def test_deleted_config_map_is_recreated(cluster: EmbeddedCluster, until: Until) -> None:
    async with played(cluster):
        await until(lambda: available(cluster))
        before = (await live(cluster, SETTINGS))["metadata"]["uid"]
        await cluster.delete(SETTINGS)

        async def is_new() -> bool:
            return (await live(cluster, SETTINGS))["metadata"].get("uid") not in (None, before)

        await until(is_new)


async def test_annotating_the_argocd_resource_writes_no_config_map(cluster: EmbeddedCluster, until: Until) -> None:
    async with played(cluster):
        await until(lambda: available(cluster))
        await settled(cluster)
        versions = [(await live(cluster, key))["metadata"]["resourceVersion"] for key in (SETTINGS, POLICY, ARGOCD)]
        await cluster.patch(ARGOCD, {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}})
        await settled(cluster)
        after = [(await live(cluster, key))["metadata"]["resourceVersion"] for key in (SETTINGS, POLICY, ARGOCD)]
        assert after[:2] == versions[:2], "to touch the resource changes no ConfigMap"


async def test_admin_password_is_generated_once_and_kept(cluster: EmbeddedCluster, until: Until) -> None:
    passwords = []
    for _ in range(2):
        async with played(cluster):
            await until(lambda: available(cluster))
            passwords.append((await live(cluster, PASSWORD))["data"]["admin.password"])
    assert passwords[0] == passwords[1] and len(passwords[0]) >= 32


async def test_deleting_the_argocd_resource_deletes_its_objects(cluster: EmbeddedCluster, until: Until) -> None:
    async with played(cluster):
        await until(lambda: available(cluster))
        await cluster.delete(ARGOCD)

        async def are_gone() -> bool:
            return not any([await cluster.get(key) for key in (SETTINGS, POLICY, PASSWORD, ROUTE, SERVER, CONTROLLER)])

        await until(are_gone)
        await settled(cluster)
        assert await are_gone(), "nobody made them again"


async def test_second_argocd_resource_in_a_namespace_fails(cluster: EmbeddedCluster, until: Until) -> None:
    async with played(cluster):
        await until(lambda: available(cluster))
        before = (await live(cluster, SETTINGS))["metadata"]["resourceVersion"]
        other = ARGOCD._replace(name="other")
        metadata = {"name": "other", "namespace": GITOPS}
        await cluster.create({"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "metadata": metadata, "spec": {}})

        async def is_told() -> bool:
            return bool((await live(cluster, other)).get("status"))

        await until(is_told)
        status = (await live(cluster, other))["status"]
        assert status["phase"] == "Failed" and "openshift-gitops is already in" in status["conditions"][0]["message"]
        assert (await live(cluster, SETTINGS))["metadata"]["resourceVersion"] == before


async def test_another_namespace_gets_its_own_installation(cluster: EmbeddedCluster, until: Until) -> None:
    async with played(cluster):
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        metadata = {"name": "cd", "namespace": "team"}
        spec = {"extraConfig": {"a": "b"}, "applicationSet": {"enabled": False}, "redis": {"enabled": False}}
        await cluster.create(
            {"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "metadata": metadata, "spec": spec}
        )

        async def is_there() -> bool:
            return ((await live(cluster, SETTINGS._replace(namespace="team"))).get("data") or {}).get("a") == "b"

        await until(is_there)
        await until(lambda: plays(cluster, "team", "cd-repo-server", "cd-server", "cd-application-controller"))
        deployments = await cluster.list(SERVER.group_kind, namespace="team")
        assert {deployment["metadata"]["name"] for deployment in deployments.items} == {"cd-repo-server", "cd-server"}
        secret = await live(cluster, PASSWORD._replace(namespace="team", name="cd-default-cluster-config"))
        assert base64.b64decode(secret["data"]["namespaces"]) == b"team", "it may deliver only to its own namespace"
        assert await cluster.get(ResourceKey("route.openshift.io", "Route", "team", "cd-server")) is None


async def test_disabling_the_route_deletes_it(cluster: EmbeddedCluster, until: Until) -> None:
    async with played(cluster):
        await until(lambda: available(cluster))
        await cluster.patch(ARGOCD, {"spec": {"server": {"route": {"enabled": False}}}})

        async def is_gone() -> bool:
            return await cluster.get(ROUTE) is None and (await live(cluster, ARGOCD))["status"]["host"] == ""

        await until(is_gone)
        assert (await live(cluster, SETTINGS))["data"]["url"] == "https://openshift-gitops-server"


async def test_invalid_config_map_key_is_reported_on_the_argocd_resource(
    cluster: EmbeddedCluster, until: Until
) -> None:
    async with played(cluster):
        await until(lambda: available(cluster))
        await cluster.patch(ARGOCD, {"spec": {"extraConfig": {"not a key": "x"}}})

        async def is_told() -> bool:
            return bool((await live(cluster, ARGOCD))["status"]["phase"] == "Failed")

        await until(is_told)
        [condition] = (await live(cluster, ARGOCD))["status"]["conditions"]
        assert condition["reason"] == "ErrorOccurred" and "not a key" in condition["message"]
        await cluster.patch(ARGOCD, {"spec": {"extraConfig": None}})
        await until(lambda: available(cluster))


async def test_restarted_deployment_gets_a_new_pod_and_is_observed(cluster: EmbeddedCluster, until: Until) -> None:
    async def pods() -> list[str]:
        listing = await cluster.list(
            GroupKind("", "Pod"), namespace=GITOPS, labels="app.kubernetes.io/name=openshift-gitops-server"
        )
        return [pod["metadata"]["name"] for pod in listing.items]

    async with played(cluster):
        await until(lambda: plays(cluster, GITOPS, SERVER.name))
        [before] = await pods()
        restarted = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}
        await cluster.patch(SERVER, {"spec": {"template": restarted}}, kind_of_patch=PatchKind.STRATEGIC)

        async def is_observed() -> bool:
            server = await live(cluster, SERVER)
            return bool(server["status"]["observedGeneration"] == server["metadata"]["generation"] > 1)

        await until(is_observed)
        assert len(await pods()) == 1 and await pods() != [before]


async def test_namespace_deletion_logs_no_termination_errors(
    cluster: EmbeddedCluster, until: Until, caplog: pytest.LogCaptureFixture
) -> None:
    async with played(cluster):
        await until(lambda: plays(cluster, GITOPS, SERVER.name, CONTROLLER.name))
        await cluster.delete(ResourceKey("", "Namespace", "", GITOPS))

        async def is_gone() -> bool:
            return await cluster.get(ResourceKey("", "Namespace", "", GITOPS)) is None

        await until(is_gone)
        assert not [record.getMessage() for record in caplog.records if "being terminated" in record.getMessage()]


async def test_workloads_outside_the_installation_are_left_alone(cluster: EmbeddedCluster, until: Until) -> None:
    spec: Any = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}},
    }
    foreign_deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "mine", "namespace": "default"},
        "spec": spec,
    }
    await cluster.create(foreign_deployment)
    async with played(cluster):
        await until(lambda: available(cluster))
        await settled(cluster)
        assert not (await live(cluster, ResourceKey("apps", "Deployment", "default", "mine"))).get("status")
        assert not (await cluster.list(GroupKind("", "Pod"), namespace="default")).items


async def test_plain_variant_has_no_argocd_resource_and_keeps_edits(cluster: EmbeddedCluster, until: Until) -> None:
    async with played(cluster, "plain"):
        await until(lambda: plays(cluster, "argocd", "argocd-server", "argocd-application-controller"))
        assert GroupKind("argoproj.io", "ArgoCD") not in await cluster.kinds()
        plain = SETTINGS._replace(namespace="argocd")
        assert "ownerReferences" not in (await live(cluster, plain))["metadata"]
        await cluster.patch(plain, {"data": {"mine": "1"}})
        await settled(cluster)
        assert (await live(cluster, plain))["data"] == {"mine": "1"}
