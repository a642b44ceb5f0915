"""What is asked of an object rather than written into it: scale, evict, bind, finalize, logs, tokens; and reviews.

In: a served kind, a name and what the client sent. Out: an answer manifest. Never: speaks HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from argosy.apiserver import metadata as meta
from argosy.apiserver import refusals
from argosy.apiserver.call import Call, Written
from argosy.apiserver.deletion import Deletion, read_options
from argosy.apiserver.registry import Registry
from argosy.apiserver.reviews import Authenticate, Reviews
from argosy.apiserver.scale import write_scale
from argosy.apiserver.served import Served
from argosy.apiserver.tokens import Tokens
from argosy.cluster import PodLogs, User
from argosy.model.errors import ClusterError
from argosy.model.manifest import Manifest
from argosy.schema import selectors

NOTHING_RUNS = "nothing runs Pods in this cluster; start the sandbox with an add-on that does"
BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."


class Actions:
    def __init__(self, registry: Registry, tokens: Tokens, authenticate: Authenticate) -> None:
        self._registry = registry
        self._deletion = Deletion(registry)
        self._tokens = tokens
        self._reviews = Reviews(registry, authenticate)
        self.pod_logs: PodLogs | None = None

    # -- reviews -------------------------------------------------------------------------------------------------

    def answers(self, served: Served) -> bool:
        """Kinds that are answered and never stored."""
        return served.resource.verbs == ("create",)

    async def review(self, served: Served, namespace: str, value: Any, call: Call) -> Manifest:
        if served.resource.kind == "Binding":
            name = ((value or {}).get("metadata") or {}).get("name", "")
            pods = self._registry.catalog.at("", "v1", "pods")
            assert pods is not None
            return await self._bind(pods, namespace, name, value, call)
        return await self._reviews.answer(served, namespace, value, call)

    # -- on one object -------------------------------------------------------------------------------------------

    async def act(
        self, served: Served, namespace: str, name: str, subresource: str, value: Any, call: Call
    ) -> Manifest:
        self._registry.authorize(call.user, "create", served, namespace, name, subresource)
        match served.resource.kind, subresource:
            case "Pod", "eviction":
                return await self._evict(served, namespace, name, value, call)
            case "Pod", "binding":
                return await self._bind(served, namespace, name, value, call)
            case "ServiceAccount", "token":
                return await self._token(served, namespace, name, value, call)
        raise unavailable(subresource)

    async def scale(self, served: Served, namespace: str, name: str, value: Any, call: Call) -> Written:
        replicas = ((value or {}).get("spec") or {}).get("replicas", 0) if isinstance(value, dict) else None
        if not isinstance(replicas, int) or isinstance(replicas, bool):
            raise refusals.bad_request("spec.replicas of a Scale must be a whole number")
        version = ((value.get("metadata") or {}).get("resourceVersion")) or ""

        def scaled(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            new = write_scale(served, old, replicas)
            if version:
                new = {**new, "metadata": {**new["metadata"], "resourceVersion": version}}
            return new, ()

        return await self._registry.change(served, namespace, name, scaled, call, "scale")

    async def finalize(self, served: Served, namespace: str, name: str, value: Any, call: Call) -> Written:
        """k8s: only this path changes a namespace's own finalizers; with the last one it goes."""
        finalizers = ((value or {}).get("spec") or {}).get("finalizers") or []

        def finalized(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            spec = {key: each for key, each in (old.get("spec") or {}).items() if key != "finalizers"}
            return {**old, "spec": {**spec, **({"finalizers": finalizers} if finalizers else {})}}, ()

        return await self._registry.change(served, namespace, name, finalized, call, "finalize")

    async def _evict(self, served: Served, namespace: str, name: str, value: Any, call: Call) -> Manifest:
        pod = served.read(self._registry.get(served, namespace, name, call.user))
        if not self._may_be_evicted(namespace, pod):
            details = {"causes": [{"reason": "DisruptionBudget", "message": BUDGET}]}
            raise ClusterError(BUDGET, code=429, reason="TooManyRequests", details=details)
        options = read_options((value or {}).get("deleteOptions") or {}, {})
        await self._deletion.delete(served, namespace, name, options, call)
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    def _may_be_evicted(self, namespace: str, pod: Manifest) -> bool:
        """k8s: a Pod that is not running costs nobody anything; else every budget over it must have room."""
        if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed", "Pending"):
            return True
        budgets = self._registry.catalog.at("policy", "v1", "poddisruptionbudgets")
        assert budgets is not None
        labels = pod["metadata"].get("labels") or {}
        for entry in self._registry.store.list(budgets.bucket, namespace):
            budget = budgets.read(entry)
            selector = (budget.get("spec") or {}).get("selector")
            over = selector is not None and selectors.from_label_selector(selector).matches(labels)
            if over and not (budget.get("status") or {}).get("disruptionsAllowed"):
                return False
        return True

    async def _bind(self, served: Served, namespace: str, name: str, value: Any, call: Call) -> Manifest:
        node = ((value or {}).get("target") or {}).get("name", "")
        if not node:
            raise refusals.bad_request("a Binding needs target.name, the node to run the Pod on")
        scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}

        def bound(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            spec, status = old.get("spec") or {}, old.get("status") or {}
            if spec.get("nodeName"):
                why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
                raise refusals.conflict(served.resource, name, why)
            others = [each for each in status.get("conditions") or [] if each["type"] != "PodScheduled"]
            condition = {**scheduled, "lastTransitionTime": meta.stamp(self._registry.clock())}
            status = {**status, "conditions": [*others, condition]}
            return {**old, "spec": {**spec, "nodeName": node}, "status": status}, ()

        await self._registry.change(served, namespace, name, bound, call, "binding")
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    async def _token(self, served: Served, namespace: str, name: str, value: Any, call: Call) -> Manifest:
        entry = self._registry.store.get(served.bucket, namespace, name)
        if entry is None:
            raise refusals.not_found(served.resource, name)
        return self._tokens.request(served.read(entry), value or {}, self._registry.clock())

    # -- logs ----------------------------------------------------------------------------------------------------

    def logs(
        self, served: Served, namespace: str, name: str, user: User, *, container: str, follow: bool, tail: int | None
    ) -> AsyncIterator[str]:
        """k8s: with one container its name may be left out."""
        self._registry.authorize(user, "get", served, namespace, name, "log")
        entry = self._registry.store.get(served.bucket, namespace, name)
        if entry is None:
            raise refusals.not_found(served.resource, name)
        pod = served.read(entry)
        spec = pod.get("spec") or {}
        names = [each["name"] for part in ("initContainers", "containers") for each in spec.get(part) or []]
        if not container:
            own = [each["name"] for each in spec.get("containers") or []]
            if len(own) > 1:
                message = f"a container name must be specified for pod {name}, choose one of: [{' '.join(own)}]"
                raise refusals.bad_request(message)
            container = own[0]
        elif container not in names:
            raise refusals.bad_request(f"container {container} is not valid for pod {name}")
        if self.pod_logs is None:
            raise refusals.bad_request(f'container "{container}" in pod "{name}" has no log: {NOTHING_RUNS}')
        return self.pod_logs.lines(pod, container=container, follow=follow, tail=tail)


def unavailable(subresource: str) -> ClusterError:
    message = f"{subresource} is not available: {NOTHING_RUNS}"
    return ClusterError(message, code=501, reason="NotImplemented", details={})
