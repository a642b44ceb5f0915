"""Cases of the RBAC escalation check: the rules of a limited user, and the objects that the user writes.

In: a case and a cluster. Out: the response of the cluster. `$NS` is replaced by the namespace of a case and `$USER` by
its user; names of cluster-scoped objects start with `$NS`. Never: leaves an object behind.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from argosy.errors import ClusterError, Forbidden
from argosy.kube.client import Cluster, User
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from support.deadlines import HANG_SECONDS

RBAC = "rbac.authorization.k8s.io"
Verb = Literal["create", "apply", "patch"]
ALLOWED = "allowed"


def rule(verbs: str, resources: str, groups: str = "", names: Sequence[str] = ()) -> Manifest:
    """Build a rule from space-separated lists; `""` is the core group."""
    name_field = {"resourceNames": list(names)} if names else {}
    return {"verbs": verbs.split(), "apiGroups": groups.split(" "), "resources": resources.split(), **name_field}


def paths(*urls: str, verbs: str = "get") -> Manifest:
    return {"verbs": verbs.split(), "nonResourceURLs": list(urls)}


def role(*rules: Manifest, name: str = "target", **metadata: Any) -> Manifest:
    about = {"name": name, "namespace": "$NS", **metadata}
    return {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": about, "rules": list(rules)}


def cluster_role(*rules: Manifest, name: str = "$NS-target", **metadata: Any) -> Manifest:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, **metadata},
        "rules": list(rules),
    }


def aggregating(*rules: Manifest, **metadata: Any) -> Manifest:
    selector = {"clusterRoleSelectors": [{"matchLabels": {"for": "$NS"}}]}
    return cluster_role(*rules, **metadata) | {"aggregationRule": selector}


def binding(kind: str, role_name: str, *, everywhere: bool = False, to: str = "somebody", **metadata: Any) -> Manifest:
    """A RoleBinding in the namespace, or a ClusterRoleBinding."""
    about = {"name": "$NS-binding"} if everywhere else {"name": "binding", "namespace": "$NS"}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding" if everywhere else "RoleBinding",
        "metadata": {**about, **metadata},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role_name},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": to}],
    }


@dataclass(frozen=True)
class Case:
    """The user holds `own` in the namespace, `everywhere` in all, and the right to write roles and bindings."""

    name: str
    written: Manifest
    own: Sequence[Manifest] = ()
    everywhere: Sequence[Manifest] = ()
    existing: Sequence[Manifest] = ()
    verb: Verb = "create"
    groups: Sequence[str] = ("devs",)
    patch: Manifest = field(default_factory=dict)


def own(name: str, held: Sequence[Manifest], *granted: Manifest) -> Case:
    """A case: a user with these rules in the namespace creates a Role with other rules."""
    return Case(name, role(*granted), own=held)


def own_paths(name: str, held: Sequence[str], *granted: str) -> Case:
    """A case: a user with some nonResourceURLs creates a ClusterRole with others."""
    return Case(name, cluster_role(paths(*granted)), everywhere=[paths(*held)])


GET_PODS = rule("get", "pods")
STRONG = rule("delete", "secrets")
EVERYTHING = [rule("*", "*", "*"), paths("*", verbs="*")]
OTHER_LABEL = {"metadata": {"labels": {"a": "b"}}}


def escalate(resources: str, *names: str) -> Manifest:
    return rule("escalate", resources, RBAC, names)


def bind(resources: str, *names: str) -> Manifest:
    return rule("bind", resources, RBAC, names)


WRITE_RBAC = rule("get create update patch", "roles rolebindings clusterroles clusterrolebindings", RBAC)
HERE, EVERYWHERE = "granted-here", "granted-everywhere"  # readable once the server knows the roles


async def ask(cluster: Cluster, case: Case) -> str:
    """The response of the cluster: code, reason and message, or ALLOWED."""
    namespace_object = await cluster.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "contract-"}}
    )
    namespace = namespace_object["metadata"]["name"]
    user = f"{namespace}-user"
    created: list[Manifest] = [namespace_object]

    def fill_in(value: Any) -> Any:
        return json.loads(json.dumps(value).replace("$NS", namespace).replace("$USER", user))

    try:
        for manifest in (*case.existing, *_rights(case)):
            created.append(await cluster.create(fill_in(manifest)))  # noqa: PERF401 - `finally` needs each at once
        limited = cluster.acting_as(User(user, tuple(case.groups)))
        await _wait_for_rights(limited, namespace)
        return (await _write(limited, case, fill_in, created)).replace(user, "$USER").replace(namespace, "$NS")
    finally:
        for manifest in reversed(created):
            if case.verb == "patch" and manifest is not namespace_object:
                await cluster.patch(key_of(manifest), {"metadata": {"finalizers": None}})
            await cluster.delete(key_of(manifest))


def _rights(case: Case) -> list[Manifest]:
    role_in_namespace = cluster_role(*case.own, rule("get", "configmaps", names=[HERE]), name="$NS-here")
    rules = (WRITE_RBAC, *case.everywhere, rule("get", "configmaps", names=[EVERYWHERE]))
    return [
        role_in_namespace,
        binding("ClusterRole", "$NS-here", to="$USER", name="rights"),
        cluster_role(*rules, name="$NS-everywhere"),
        binding("ClusterRole", "$NS-everywhere", everywhere=True, to="$USER", name="$NS-rights"),
    ]


async def _wait_for_rights(limited: Cluster, namespace: str) -> None:
    """k8s: the authorizer watches roles and bindings, so it knows them with a delay."""
    async with asyncio.timeout(HANG_SECONDS):
        for name in (HERE, EVERYWHERE):
            while not await _may_read(limited, namespace, name):
                await asyncio.sleep(0.01)


async def _may_read(limited: Cluster, namespace: str, name: str) -> bool:
    try:
        await limited.get(ResourceKey("", "ConfigMap", namespace, name))
    except Forbidden:
        return False
    return True


async def _write(limited: Cluster, case: Case, fill_in: Callable[[Any], Any], created: list[Manifest]) -> str:
    written = fill_in(case.written)
    try:
        match case.verb:
            case "create":
                created.append(await limited.create(written))
            case "apply":
                await limited.apply(written, manager="contract")
            case "patch":
                await limited.patch(key_of(written), fill_in(case.patch))
    except ClusterError as error:
        return f"{error.code} {error.reason}: {error.message}"
    return ALLOWED
