"""Update validation predicts exactly the changes that a server rejects because of the previous object.

The server is the embedded one; other tests compare its rules with those of a real server.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from argosy.errors import ClusterError
from argosy.gitops.analysis.schema_validation import SchemaValidator
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of
from support.engine import embedded

pytestmark = pytest.mark.anyio
ROUNDS = [200, pytest.param(700, marks=pytest.mark.tier("all"))]
POD = {
    "restartPolicy": "Never",
    "containers": [
        {"name": "a", "image": "a:1", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80}],
         "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}},
    ],
    "volumes": [{"name": "cache", "emptyDir": {}}],
}  # fmt: skip
LASTING = {**POD, "restartPolicy": "Always"}
TEMPLATE = {"metadata": {"labels": {"app": "a", "tier": "b"}}, "spec": LASTING}
SELECTOR = {"matchLabels": {"app": "a"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "fast"}
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}


def build(api: str, kind: str, **fields: Any) -> Manifest:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "a", "namespace": "default"}, **fields}


MANIFESTS = (
    build("apps/v1", "Deployment", spec={"replicas": 1, "selector": SELECTOR, "template": TEMPLATE}),
    build("apps/v1", "DaemonSet", spec={"selector": SELECTOR, "template": TEMPLATE}),
    build("apps/v1", "StatefulSet", spec={
        "serviceName": "a", "selector": SELECTOR, "template": TEMPLATE, "podManagementPolicy": "Parallel",
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}]}),
    build("batch/v1", "Job", spec={"template": {"spec": POD}, "backoffLimit": 2, "parallelism": 1, "completions": 1}),
    build("batch/v1", "CronJob", spec={"schedule": "0 1 * * *", "jobTemplate": {"spec": {"template": {"spec": POD}}}}),
    build("v1", "Pod", spec=POD),
    build("v1", "PersistentVolumeClaim", spec=CLAIM),
    build("v1", "Service", spec={"selector": {"app": "a"}, "ports": [{"name": "a", "port": 80}], "type": "ClusterIP"}),
    build("v1", "ConfigMap", data={"a": "1"}, immutable=True),
    build("v1", "ConfigMap", data={"a": "1"}),
    build("v1", "Secret", data={"a": "MQ=="}, type="Opaque", immutable=False),
    build("rbac.authorization.k8s.io/v1", "RoleBinding", roleRef=ROLE, subjects=[
        {"kind": "ServiceAccount", "name": "a", "namespace": "default"}]),
    build("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": SELECTOR, "policyTypes": ["Ingress"]}),
    build("policy/v1", "PodDisruptionBudget", spec={"selector": SELECTOR, "minAvailable": 1}),
)  # fmt: skip
ADDED = {
    "Deployment": [("spec", {"minReadySeconds": 3}), ("spec", {"revisionHistoryLimit": 3})],
    "StatefulSet": [("spec", {"minReadySeconds": 3}), ("spec", {"revisionHistoryLimit": 3})],
    "Job": [
        ("spec", {"ttlSecondsAfterFinished": 3}),
        ("spec", {"suspend": True}),
        ("spec", {"completionMode": "Indexed"}),
    ],
    "Service": [
        ("spec", {"clusterIP": "None"}),
        ("spec", {"sessionAffinity": "ClientIP"}),
        ("spec", {"type": "NodePort"}),
    ],
    "PersistentVolumeClaim": [("spec", {"volumeName": "x"}), ("spec", {"volumeMode": "Block"})],
    "Secret": [("", {"type": "kubernetes.io/basic-auth"}), ("", {"immutable": True})],
    "Pod": [("spec", {"activeDeadlineSeconds": 5}), ("spec", {"terminationGracePeriodSeconds": 3})],
}
OTHERS: dict[type, list[Any]] = {str: ["b", "2", "2Gi", "c:1", "500m"], int: [2, 81, 0], bool: [True, False]}


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inner is None:
        yield path
    for step, child in inner or ():
        yield from leaves(child, (*path, step))


def changed(manifest: Manifest, chance: Random) -> Manifest:
    result = copy.deepcopy(manifest)
    added = ADDED.get(manifest["kind"], [])
    if added and chance.random() < 0.3:
        where, fields = chance.choice(added)
        (result[where] if where else result).update(copy.deepcopy(fields))
        return result
    path = chance.choice([leaf for leaf in leaves(result) if leaf[0] not in ("apiVersion", "kind", "metadata")])
    here = result
    for step in path[:-1]:
        here = here[step]
    if chance.random() < 0.3 and isinstance(here, dict):
        del here[path[-1]]
    elif path[-1:] and not isinstance(here[path[-1]], dict):
        here[path[-1]] = chance.choice(OTHERS[type(here[path[-1]])])
    return result


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with embedded(tmp_path) as embedded_cluster:
        for number, manifest in enumerate(MANIFESTS):
            placed = _named(manifest, f"a{number}")
            await embedded_cluster.apply(placed, manager="argocd")
            if manifest["kind"] == "PersistentVolumeClaim":  # only a bound claim can grow
                bound = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
                await embedded_cluster.patch(key_of(placed), bound, subresource="status")
        yield embedded_cluster


def _named(manifest: Manifest, name: str) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "name": name}}


@pytest.mark.parametrize("rounds", ROUNDS)
async def test_update_validation_reports_exactly_the_changes_that_the_server_rejects(
    cluster: Cluster, rounds: int
) -> None:
    chance, schemas = Random(7), SchemaValidator()
    false_alarms, silent, refusals = [], [], 0
    for number in range(rounds):
        index = number % len(MANIFESTS)
        before = _named(MANIFESTS[index], f"a{index}")
        after = _named(changed(MANIFESTS[index], chance), f"a{index}")
        if after == before or schemas.validate(after):
            continue  # invalid by itself, whatever the previous object is
        violations = schemas.validate_update(before, after)
        try:
            await cluster.apply(after, manager="argocd", dry_run=True)
            refused = ""
        except ClusterError as error:
            refused = str(error)
            refusals += 1
        if violations and not refused:
            false_alarms.append((after, violations))
        if refused and not violations:
            silent.append((after, refused))
    assert false_alarms == [] and silent == []
    assert refusals > rounds / 20


def deployment(**strategy: Any) -> Manifest:
    more = {"strategy": strategy} if strategy else {}
    return build("apps/v1", "Deployment", spec={"selector": SELECTOR, "template": TEMPLATE, **more})


def pod(*tolerations: Manifest) -> Manifest:
    return build("v1", "Pod", spec={**POD, **({"tolerations": list(tolerations)} if tolerations else {})})


def tolerated(key: str, **more: Any) -> Manifest:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **more}


ROLLING = {"type": "RollingUpdate"}
FULL = {**ROLLING, "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
NOT_READY = "node.kubernetes.io/not-ready"
# Measured results of kube-apiserver 1.32: with kubectl apply, and with kubectl apply --server-side
MEASURED = {
    "no strategy, then Recreate": (deployment(), deployment(type="Recreate"), False, True),
    "a type alone, then Recreate": (deployment(**ROLLING), deployment(type="Recreate"), False, True),
    "null does not help": (deployment(), deployment(type="Recreate", rollingUpdate=None), False, True),
    "what was written goes": (deployment(**FULL), deployment(type="Recreate"), False, False),
    "in part": (deployment(**ROLLING, rollingUpdate={"maxSurge": 1}), deployment(type="Recreate"), False, False),
    "back again": (deployment(type="Recreate"), deployment(**ROLLING), False, False),
    "a first toleration": (pod(), pod(tolerated("a")), False, False),
    "one more": (pod(tolerated("a")), pod(tolerated("a"), tolerated("b")), False, False),
    "in another order": (pod(tolerated("a"), tolerated("b")), pod(tolerated("b"), tolerated("a")), False, False),
    "another patience": (pod(tolerated("a")), pod(tolerated("a", tolerationSeconds=9)), False, False),
    "less patience with nodes": (pod(), pod(tolerated(NOT_READY, tolerationSeconds=9)), False, False),
    "none any more": (pod(tolerated("a")), pod(), True, True),
    "another one": (pod(tolerated("a")), pod(tolerated("b")), True, True),
    "all, in the place of two that were filled in": (pod(), pod({"operator": "Exists"}), True, True),
}  # fmt: skip


@pytest.mark.parametrize("name", MEASURED)
async def test_update_of_defaulted_fields_is_validated_per_apply_strategy(name: str, tmp_path: Path) -> None:
    before, after, is_refused, is_refused_there = MEASURED[name]
    schemas = SchemaValidator()
    assert bool(schemas.validate_update(before, after)) is is_refused
    assert bool(schemas.validate_update(before, after, is_server_side=True)) is is_refused_there
    async with embedded(tmp_path) as cluster:
        await cluster.apply(before, manager="argocd")
        try:
            await cluster.apply(after, manager="argocd", dry_run=True)
            refused = False
        except ClusterError:
            refused = True
    assert refused is is_refused_there
