"""Subresources (scale, eviction, binding, logs), and values set by admission: addresses, ports, classes, accounts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.kube.objects import Manifest
from support.api_client import DEFINITIONS, JSON_PATCH, MERGE, WIDGETS, Api, definition, deployment, named, pod, widget

pytestmark = pytest.mark.anyio
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}


def scale(replicas: int, name: str = "d", **metadata: str) -> Manifest:
    about = {"name": name, **metadata}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": about, "spec": {"replicas": replicas}}


# -- scale ------------------------------------------------------------------------------------------------------


async def test_scale_subresource_is_read_and_written_as_kind_scale(api: Api) -> None:
    await api.made(DEPLOYMENTS, deployment("d", 2))
    read = (await api.get(f"{DEPLOYMENTS}/d/scale")).json
    assert (read["kind"], read["spec"]) == ("Scale", {"replicas": 2})
    assert read["status"] == {"replicas": 0, "selector": "app=d"}
    assert (await api.put(f"{DEPLOYMENTS}/d/scale", scale(3))).json["spec"] == {"replicas": 3}
    patched = await api.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 4}})
    assert patched.json["spec"] == {"replicas": 4}
    live_deployment = (await api.get(f"{DEPLOYMENTS}/d")).json
    assert (live_deployment["spec"]["replicas"], live_deployment["metadata"]["generation"]) == (4, 3)
    dry = await api.patch(f"{DEPLOYMENTS}/d/scale?dryRun=All", {"spec": {"replicas": 9}})
    assert dry.json["spec"] == {"replicas": 9} and (await api.get(f"{DEPLOYMENTS}/d")).json == live_deployment


NEGATIVE = 'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
REFUSED_SCALES = [
    ("PUT", scale(-1), 422, NEGATIVE),
    ("PUT", scale(1, resourceVersion="1"), 409, "the object has been modified"),
    ("PUT", scale(1, uid="zz"), 409, "Precondition failed: UID in precondition: zz"),
    ("PUT", scale(1, "other"), 400, "the name of the object (other) does not match the name on the URL (d)"),
    ("PUT", {"spec": {"replicas": 1}}, 400, "name must be provided"),
    ("PUT", deployment("d"), 400, "cannot be handled as a Scale"),
    ("PUT", scale(1) | {"spec": {"replicas": "x"}}, 400, "cannot unmarshal string"),
    ("PATCH", {"spec": {"replicas": -1}}, 422, NEGATIVE),
    ("PATCH", {"metadata": {"resourceVersion": "1"}}, 409, "the object has been modified"),
    ("PATCH", [{"op": "test", "path": "/spec/replicas", "value": 44}], 422, "the server rejected our request"),
]


@pytest.mark.parametrize(("method", "body", "code", "words"), REFUSED_SCALES)
async def test_invalid_scale_changes_nothing(api: Api, method: str, body: Any, code: int, words: str) -> None:
    created = await api.made(DEPLOYMENTS, deployment("d", 2))
    media = "application/json" if method == "PUT" else JSON_PATCH if isinstance(body, list) else MERGE
    answer = await api.ask(method, f"{DEPLOYMENTS}/d/scale", body, media)
    assert (answer.code, words in answer.message) == (code, True), answer.body
    assert (await api.get(f"{DEPLOYMENTS}/d")).json == created


async def test_custom_kind_is_scaled_at_the_path_of_its_crd(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    await api.made(WIDGETS, widget("w", size=1))
    assert (await api.put(f"{WIDGETS}/w/scale", scale(5, "w"))).json["spec"] == {"replicas": 5}
    live_widget = (await api.get(f"{WIDGETS}/w")).json
    assert (live_widget["spec"]["size"], live_widget["metadata"]["generation"]) == (5, 2)
    assert (await api.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": -1}})).code == 422


# -- evictions, bindings, logs ----------------------------------------------------------------------------------


async def test_eviction_deletes_the_pod_unless_dry_run(api: Api) -> None:
    await api.made(PODS, pod("p"))
    dry = await api.post(f"{PODS}/p/eviction?dryRun=All", EVICTION)
    assert dry.code == 201 and (await api.get(f"{PODS}/p")).code == 200
    assert (await api.post(f"{PODS}/p/eviction", EVICTION)).json["status"] == "Success"
    assert (await api.get(f"{PODS}/p")).code == 404
    assert (await api.post(f"{PODS}/p/eviction", EVICTION)).code == 404


async def test_eviction_honors_its_preconditions(api: Api) -> None:
    await api.made(PODS, pod("p"))
    body = {**EVICTION, "deleteOptions": {"preconditions": {"uid": "other"}}}
    assert (await api.post(f"{PODS}/p/eviction", body)).code == 409


async def test_exhausted_disruption_budget_blocks_eviction_of_running_pod(api: Api) -> None:
    await api.made(PODS, pod("p", "n1", labels={"app": "x"}))
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    await api.made(BUDGETS, named("policy/v1", "PodDisruptionBudget", "b", spec=spec))
    await api.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}})
    refused = await api.post(f"{PODS}/p/eviction", EVICTION)
    assert refused.code == 429 and refused.json["details"]["causes"][0]["reason"] == "DisruptionBudget"
    await api.patch(f"{BUDGETS}/b/status", {"status": {"disruptionsAllowed": 1}})
    assert (await api.post(f"{PODS}/p/eviction", EVICTION)).code == 201


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
async def test_pod_that_is_not_running_is_evicted_despite_exhausted_budget(api: Api, phase: str) -> None:
    """The eviction API ignores PodDisruptionBudgets for Pods that are pending or have terminated."""
    await api.made(PODS, pod("p", "n1", labels={"app": "x"}))
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    await api.made(BUDGETS, named("policy/v1", "PodDisruptionBudget", "b", spec=spec))
    await api.patch(f"{PODS}/p/status", {"status": {"phase": phase}})
    assert (await api.get(f"{BUDGETS}/b")).json["status"]["disruptionsAllowed"] == 0
    assert (await api.post(f"{PODS}/p/eviction", EVICTION)).code == 201


async def test_terminating_pod_is_evicted_despite_exhausted_budget(api: Api) -> None:
    terminating = pod("p", "n1", labels={"app": "x"})
    terminating["metadata"]["finalizers"] = ["example.org/wait"]
    await api.made(PODS, terminating)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    await api.made(BUDGETS, named("policy/v1", "PodDisruptionBudget", "b", spec=spec))
    await api.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}})
    assert (await api.post(f"{PODS}/p/eviction", EVICTION)).code == 429
    await api.delete(f"{PODS}/p")
    assert (await api.post(f"{PODS}/p/eviction", EVICTION)).code == 201


async def test_pod_is_bound_to_a_node_only_once(api: Api) -> None:
    await api.made(PODS, pod("p"))
    target = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "n1"}}
    assert (await api.post(f"{PODS}/p/binding", target)).code == 201
    bound = (await api.get(f"{PODS}/p")).json
    assert bound["spec"]["nodeName"] == "n1" and bound["status"]["conditions"][0]["type"] == "PodScheduled"
    assert (await api.post(f"{PODS}/p/binding", {**target, "target": {"name": "n2"}})).code == 409
    assert (await api.post(f"{PODS}/p/binding", {**target, "target": {}})).code == 400


class Lines:
    """Source of Pod logs."""

    async def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]:
        for line in ["one", "two", container][-tail if tail else 0 :]:
            yield line


async def test_pod_logs_come_from_the_registered_log_source(api: Api) -> None:
    await api.made(PODS, pod("p"))
    refused = await api.get(f"{PODS}/p/log")
    assert refused.code == 400 and "nothing runs Pods in this cluster" in refused.message
    api.plane.subresources.pod_logs = Lines()
    answer = await api.get(f"{PODS}/p/log?tailLines=2")
    assert (answer.headers["content-type"], answer.body) == ("text/plain", b"two\nc\n")
    assert "container x is not valid for pod p" in (await api.get(f"{PODS}/p/log?container=x")).message


@pytest.mark.parametrize("part", ["exec", "attach", "portforward"])
async def test_exec_attach_and_portforward_are_rejected_if_nothing_runs_pods(api: Api, part: str) -> None:
    await api.made(PODS, pod("p"))
    for method in ("GET", "POST"):
        answer = await api.ask(method, f"{PODS}/p/{part}")
        assert answer.code >= 400 and "nothing runs Pods" in answer.message


async def test_portforward_error_contains_access_hint_of_the_log_source(api: Api) -> None:
    class Played(Lines):
        def describe_access(self, manifest: Manifest) -> str:
            return f"{manifest['metadata']['name']} is only played"

    await api.made(PODS, pod("p"))
    api.plane.subresources.pod_logs = Played()
    answer = await api.ask("POST", f"{PODS}/p/portforward")
    assert (answer.code, answer.message) == (501, "portforward is not available: p is only played")
    assert (await api.ask("POST", f"{PODS}/q/portforward")).code == 404


# -- Services ---------------------------------------------------------------------------------------------------


def service(name: str, **spec: Any) -> Manifest:
    return named("v1", "Service", name, spec={"ports": [{"port": 80}], **spec})


def node_port(name: str, number: int) -> Manifest:
    return service(name, type="NodePort", ports=[{"port": 80, "nodePort": number}])


async def test_services_get_unique_cluster_ips_and_node_ports(api: Api) -> None:
    services = await asyncio.gather(*(api.made(SERVICES, service(f"s{n}", type="NodePort")) for n in range(60)))
    assert len({manifest["spec"]["clusterIP"] for manifest in services}) == 60
    assert len({manifest["spec"]["ports"][0]["nodePort"] for manifest in services}) == 60


async def test_cluster_ip_or_node_port_of_another_service_is_rejected(api: Api) -> None:
    taken = (await api.made(SERVICES, node_port("a", 30081)))["spec"]["clusterIP"]
    ports = await api.post(SERVICES, node_port("b", 30081))
    assert ports.code == 422 and "spec.ports[0].nodePort: Invalid value: 30081: provided port is" in ports.message
    address = await api.post(SERVICES, service("b", clusterIP=taken))
    assert address.code == 422 and f"failed to allocate IP {taken}: provided IP is already allocated" in address.message
    outside = await api.post(SERVICES, service("b", clusterIP="1.2.3.4"))
    assert outside.code == 422 and "the provided IP (1.2.3.4) is not in the valid range" in outside.message


FREED = [
    ("DELETE", f"{SERVICES}/a", None, ""),
    ("PATCH", f"{SERVICES}/a", {"spec": {"type": "ClusterIP", "ports": [{"port": 80}]}}, MERGE),
]


@pytest.mark.parametrize(("method", "path", "body", "media"), FREED)
async def test_released_node_port_can_be_reused(api: Api, method: str, path: str, body: Any, media: str) -> None:
    await api.made(SERVICES, node_port("a", 30081))
    assert (await api.ask(method, path, body, media)).code == 200
    assert (await api.post(SERVICES, node_port("b", 30081))).code == 201


async def test_rejected_or_dry_run_service_allocates_no_address(api: Api) -> None:
    for address in ("10.96.7.7", "10.96.7.8"):
        assert (await api.post(f"{SERVICES}?dryRun=All", service("dry", clusterIP=address))).code == 201
        assert (await api.post(SERVICES, service("Bad_Name", clusterIP=address))).code == 422
        assert (await api.post(SERVICES, service(f"s{address[-1]}", clusterIP=address))).code == 201


async def test_service_keeps_its_address_and_ports_on_replace(api: Api) -> None:
    created = await api.made(SERVICES, service("a", type="NodePort"))
    replaced = (await api.put(f"{SERVICES}/a", service("a", type="NodePort"))).json
    assert replaced["spec"]["clusterIP"] == created["spec"]["clusterIP"]
    assert replaced["spec"]["ports"] == created["spec"]["ports"]


# -- classes, accounts ------------------------------------------------------------------------------------------


async def test_pvc_without_class_gets_the_newest_default_storage_class(api: Api) -> None:
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    base_spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

    async def claimed(name: str, **spec: Any) -> str | None:
        claim = await api.made(claims, named("v1", "PersistentVolumeClaim", name, spec={**base_spec, **spec}))
        return claim["spec"].get("storageClassName")

    assert await claimed("none") is None
    for name in ("old", "new"):
        notes = {"storageclass.kubernetes.io/is-default-class": "true"}
        about = {"name": name, "annotations": notes}
        sent = {"metadata": about, "provisioner": "a.b/c"}
        await api.made("/apis/storage.k8s.io/v1/storageclasses", sent)
    assert await claimed("some") == "new"
    assert await claimed("own", storageClassName="old") == "old"
    assert await claimed("empty", storageClassName="") == ""


async def test_pod_gets_a_service_account(api: Api) -> None:
    usual = (await api.made(PODS, pod("usual")))["spec"]
    assert (usual["serviceAccountName"], usual["serviceAccount"]) == ("default", "default")
    await api.made("/api/v1/namespaces/default/serviceaccounts", named("v1", "ServiceAccount", "builder"))
    sent = pod("own")
    sent["spec"]["serviceAccountName"] = "builder"
    assert (await api.made(PODS, sent))["spec"]["serviceAccount"] == "builder"
