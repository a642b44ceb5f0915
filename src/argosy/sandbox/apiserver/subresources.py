"""Subresources and reviews: scale, eviction, binding, finalize, logs, tokens, custom actions of add-ons.

In: a served kind, a name and the request body. Out: the response manifest. Never: knows of HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from argosy.errors import ClusterError, UserError
from argosy.kube.client import Asked, EarlierLogs, PatchKind, PodLogs, User, WayIn
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.kube.schema import selectors
from argosy.sandbox.apiserver import metadata as meta
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.access_reviews import Authenticate, Reviews
from argosy.sandbox.apiserver.deletion import Deletion, read_options
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.registry_call import ADMIN, Call, Written
from argosy.sandbox.apiserver.request_decoding import decoded, decoded_as, patched
from argosy.sandbox.apiserver.scale import applied_scale, read_scale, write_scale
from argosy.sandbox.apiserver.served_kind import Served
from argosy.sandbox.apiserver.tokens import Tokens

Result = TypeVar("Result")
NOTHING_RUNS = "nothing runs Pods in this cluster, so there is nothing to show or to connect to"
BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
SENT = {
    "eviction": ("policy/v1", "Eviction"),
    "binding": ("v1", "Binding"),
    "token": ("authentication.k8s.io/v1", "TokenRequest"),
}


class Actions:
    def __init__(self, registry: Registry, tokens: Tokens, authenticate: Authenticate) -> None:
        self._registry = registry
        self._deletion = Deletion(registry)
        self._tokens = tokens
        self._reviews = Reviews(registry, authenticate)
        self.pod_logs: PodLogs | None = None
        self.performers: dict[tuple[GroupKind, str], Callable[[Asked], Awaitable[Manifest]]] = {}

    # -- reviews -------------------------------------------------------------------------------------------------

    def answers(self, served: Served) -> bool:
        """True for kinds that are answered and never stored."""
        return served.resource.verbs == ("create",)

    async def review(self, served: Served, namespace: str, value: Any, call: Call) -> Manifest:
        if served.resource.kind == "Binding":
            value = await self._beside(call, decoded_as, "v1", "Binding", value)
            name = (value.get("metadata") or {}).get("name", "")
            pods = self._registry.catalog.at("", "v1", "pods")
            assert pods is not None
            self._registry.authorize(call.user, "create", served, namespace)
            return await self._bind(pods, namespace, name, value, call)
        return await self._reviews.answer(served, namespace, value, call)

    async def _beside(self, call: Call, function: Callable[..., Result], *args: Any) -> Result:
        return await self._registry.large_work.run(call.user.name, call.size, function, *args)

    # -- on one object -------------------------------------------------------------------------------------------

    async def act(
        self, served: Served, namespace: str, name: str, subresource: str, value: Any, call: Call
    ) -> Manifest:
        self._registry.authorize(call.user, "create", served, namespace, name, subresource)
        if sent := SENT.get(subresource):
            value = await self._beside(call, decoded_as, *sent, value)
        match served.resource.kind, subresource:
            case "Pod", "eviction":
                return await self._evict(served, namespace, name, value, call)
            case "Pod", "binding":
                return await self._bind(served, namespace, name, value, call)
            case "ServiceAccount", "token":
                return await self._token(served, namespace, name, value, call)
        if served.resource.custom:
            return await self._perform(served, namespace, name, subresource, value, call)
        raise unavailable(subresource)

    async def _perform(
        self, served: Served, namespace: str, name: str, subresource: str, value: Any, call: Call
    ) -> Manifest:
        """Run a custom subresource that a CRD declares and an add-on implements."""
        part = served.resource.subresource(subresource)
        if part is None or "create" not in part.verbs:
            raise status_errors.not_found(served.resource, name)
        wanted = {"apiVersion": served.resource.api_version, "kind": part.kind}
        sent = {**wanted, **value} if isinstance(value, dict) else {}
        if any(sent.get(field) != text for field, text in wanted.items()):
            raise status_errors.bad_request(f"{subresource} needs a {part.kind} in version {wanted['apiVersion']}")
        live = served.read(self._registry.get(served, namespace, name, ADMIN))
        perform = self.performers.get((served.resource.group_kind, subresource))
        if perform is None:
            raise unavailable(subresource, "no running add-on implements it")
        try:
            return await perform(Asked(live, sent, dry_run=call.dry_run))
        except UserError as error:
            raise status_errors.bad_request(error.message) from error

    def no_way_in(self, served: Served, namespace: str, name: str, subresource: str, user: User) -> ClusterError:
        """The error for exec, attach, port-forward and proxy; says how to reach the Pod instead if that is known."""
        players: object = self.pod_logs
        if not isinstance(players, WayIn) or served.resource.kind not in ("Pod", "Service"):
            return unavailable(subresource)
        self._registry.authorize(user, "create", served, namespace, name, subresource)
        live = served.read(self._registry.get(served, namespace, name, ADMIN))
        return unavailable(subresource, players.way_in(live))

    async def scale(self, served: Served, namespace: str, name: str, value: Any, call: Call) -> Written:
        self._registry.authorize(call.user, "update", served, namespace, name, "scale")
        return await self._rescale(served, namespace, name, lambda _: value, call)

    async def patch_scale(
        self, served: Served, namespace: str, name: str, patch: Any, kind: PatchKind | None, call: Call
    ) -> Written:
        """`kind` None is a server-side apply: it owns the replicas and may conflict with other owners."""
        self._registry.authorize(call.user, "patch", served, namespace, name, "scale")
        if kind is None:
            sent = await self._beside(call, decoded_as, "autoscaling/v1", "Scale", patch)
            replicas = (sent.get("spec") or {}).get("replicas", 0)
            config = applied_scale(served, patch, replicas)
            return await self._registry.apply(served, namespace, name, config, call, subresource="scale")
        chosen = PatchKind.MERGE if kind is PatchKind.STRATEGIC else kind  # a Scale has no lists to merge
        return await self._rescale(
            served, namespace, name, lambda current: patched(served, current, patch, chosen), call
        )

    async def _rescale(
        self, served: Served, namespace: str, name: str, change: Callable[[Manifest], Any], call: Call
    ) -> Written:
        def scaled(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            value = decoded_as("autoscaling/v1", "Scale", change(read_scale(served, old)))
            metadata = value.get("metadata") or {}
            meta.check_name(metadata, name)
            meta.check_namespace(served, metadata, namespace)
            if metadata.get("uid"):
                meta.check_uid(served, old, metadata["uid"])
            new = write_scale(served, old, (value.get("spec") or {}).get("replicas", 0))
            if version := meta.version_of(metadata):
                new = {**new, "metadata": {**new["metadata"], "resourceVersion": version}}
            return new, ()

        return await self._registry.change(served, namespace, name, scaled, call, "scale")

    async def finalize(self, served: Served, namespace: str, name: str, value: Any, call: Call) -> Written:
        """k8s: only this subresource changes spec.finalizers of a namespace; without any, the namespace is removed."""
        self._registry.authorize(call.user, "update", served, namespace, name, "finalize")
        sent, _ = await self._beside(call, decoded, served, value, call.validation, call.duplicates)
        finalizers = (sent.get("spec") or {}).get("finalizers") or []

        def finalized(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            spec = {key: each for key, each in (old.get("spec") or {}).items() if key != "finalizers"}
            return {**old, "spec": {**spec, **({"finalizers": finalizers} if finalizers else {})}}, ()

        return await self._registry.change(served, namespace, name, finalized, call, "finalize")

    async def _evict(self, served: Served, namespace: str, name: str, value: Any, call: Call) -> Manifest:
        entry = self._registry.store.get(served.bucket, namespace, name)
        if entry is None:
            raise status_errors.not_found(served.resource, name)
        pod = served.read(entry)
        if not self._may_be_evicted(namespace, pod):
            details = {"causes": [{"reason": "DisruptionBudget", "message": BUDGET}]}
            raise ClusterError(BUDGET, code=429, reason="TooManyRequests", details=details)
        options = read_options(value.get("deleteOptions") or {}, {"dryRun": "All"} if call.dry_run else {})
        # k8s: eviction needs no permission to delete
        await self._deletion.delete(served, namespace, name, options, replace(call, user=ADMIN))
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    def _may_be_evicted(self, namespace: str, pod: Manifest) -> bool:
        """k8s: budgets ignore Pods that do not run or are terminating; every matching budget must allow it."""
        does_not_run = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed", "Pending")
        if does_not_run or pod["metadata"].get("deletionTimestamp"):
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
            raise status_errors.bad_request("a Binding needs target.name, the node to run the Pod on")
        scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}

        def bound(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            spec, status = old.get("spec") or {}, old.get("status") or {}
            if spec.get("nodeName"):
                why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
                raise status_errors.conflict(served.resource, name, why)
            others = [each for each in status.get("conditions") or [] if each["type"] != "PodScheduled"]
            condition = {**scheduled, "lastTransitionTime": meta.stamp(self._registry.clock())}
            status = {**status, "conditions": [*others, condition]}
            return {**old, "spec": {**spec, "nodeName": node}, "status": status}, ()

        await self._registry.change(served, namespace, name, bound, call, "binding")
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    async def _token(self, served: Served, namespace: str, name: str, value: Any, call: Call) -> Manifest:
        entry = self._registry.store.get(served.bucket, namespace, name)
        if entry is None:
            raise status_errors.not_found(served.resource, name)
        await self._tokens.ready()
        return self._tokens.request(served.read(entry), value or {}, self._registry.clock())

    # -- logs ----------------------------------------------------------------------------------------------------

    def logs(
        self,
        served: Served,
        namespace: str,
        name: str,
        user: User,
        *,
        container: str,
        follow: bool,
        tail: int | None,
        previous: bool = False,
    ) -> AsyncIterator[str]:
        """Stream container logs. k8s: the container may be omitted if there is only one."""
        self._registry.authorize(user, "get", served, namespace, name, "log")
        entry = self._registry.store.get(served.bucket, namespace, name)
        if entry is None:
            raise status_errors.not_found(served.resource, name)
        pod = served.read(entry)
        spec = pod.get("spec") or {}
        names = [each["name"] for part in ("initContainers", "containers") for each in spec.get(part) or []]
        if not container:
            own = [each["name"] for each in spec.get("containers") or []]
            if len(own) > 1:
                message = f"a container name must be specified for pod {name}, choose one of: [{' '.join(own)}]"
                raise status_errors.bad_request(message)
            container = own[0]
        elif container not in names:
            raise status_errors.bad_request(f"container {container} is not valid for pod {name}")
        if previous:
            kept: object = self.pod_logs
            if isinstance(kept, EarlierLogs):
                earlier = kept.earlier(pod, container=container, tail=tail)
                if earlier is not None:
                    return earlier
            raise status_errors.bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
        if self.pod_logs is None:
            raise status_errors.bad_request(f'container "{container}" in pod "{name}" has no log: {NOTHING_RUNS}')
        try:
            return self.pod_logs.lines(pod, container=container, follow=follow, tail=tail)
        except UserError as error:
            message = f'container "{container}" in pod "{name}" has no log: {error.message}'
            raise status_errors.bad_request(message) from error


def unavailable(subresource: str, why: str = NOTHING_RUNS) -> ClusterError:
    message = f"{subresource} is not available: {why}"
    return ClusterError(message, code=501, reason="NotImplemented", details={})
