"""Subresources and reviews: scale, eviction, binding, finalize, logs, tokens, custom actions of add-ons.

In: a served kind, a name and the request body. Out: the response manifest. Never: knows of HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from argosy.errors import ClusterError, UserError
from argosy.kube.client import AccessDescriber, PatchKind, PodLogReader, PreviousPodLogReader, SubresourceRequest, User
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema import selectors
from argosy.kube.well_known_kinds import AUTHENTICATION_API_VERSION
from argosy.sandbox.apiserver import metadata as meta
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.access_reviews import AccessReviews, TokenReviewer
from argosy.sandbox.apiserver.deletion import ObjectDeleter, read_delete_options
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.request_body_decoding_and_patches import apply_patch, decode_as_kind, decode_object
from argosy.sandbox.apiserver.scale import build_apply_configuration, build_scale, set_replicas
from argosy.sandbox.apiserver.service_account_tokens import ServiceAccountTokens
from argosy.sandbox.apiserver.write_call_and_result_types import ADMIN, RegistryCall, WriteResult

Result = TypeVar("Result")
NO_PODS_MESSAGE = "nothing runs Pods in this cluster, so there is nothing to show or to connect to"
DISRUPTION_BUDGET_MESSAGE = "Cannot evict pod as it would violate the pod's disruption budget."
BODY_KINDS = {
    "eviction": ("policy/v1", "Eviction"),
    "binding": ("v1", "Binding"),
    "token": (AUTHENTICATION_API_VERSION, "TokenRequest"),
}


class SubresourceHandler:
    def __init__(self, registry: Registry, tokens: ServiceAccountTokens, authenticate: TokenReviewer) -> None:
        self._registry = registry
        self._deleter = ObjectDeleter(registry)
        self._tokens = tokens
        self._reviews = AccessReviews(registry, authenticate)
        self.pod_logs: PodLogReader | None = None
        self.performers: dict[tuple[GroupKind, str], Callable[[SubresourceRequest], Awaitable[Manifest]]] = {}

    # -- reviews -------------------------------------------------------------------------------------------------

    def is_review_kind(self, served: ApiKind) -> bool:
        """True for kinds that are answered and never stored."""
        return served.resource.verbs == ("create",)

    async def create_review(self, served: ApiKind, namespace: str, body: Any, call: RegistryCall) -> Manifest:
        if served.resource.kind == "Binding":
            body = await self._run_off_loop(call, decode_as_kind, "v1", "Binding", body)
            name = (body.get("metadata") or {}).get("name", "")
            pods = self._registry.catalog.find_resource("", "v1", "pods")
            assert pods is not None
            self._registry.authorize(call.user, "create", served, namespace)
            return await self._bind(pods, namespace, name, body, call)
        return await self._reviews.create_review(served, namespace, body, call)

    async def _run_off_loop(self, call: RegistryCall, function: Callable[..., Result], *args: Any) -> Result:
        return await self._registry.off_loop_executor.run(call.user.name, call.body_bytes, function, *args)

    # -- on one object -------------------------------------------------------------------------------------------

    async def create_subresource(
        self, served: ApiKind, namespace: str, name: str, subresource: str, body: Any, call: RegistryCall
    ) -> Manifest:
        self._registry.authorize(call.user, "create", served, namespace, name, subresource)
        if body_kind := BODY_KINDS.get(subresource):
            body = await self._run_off_loop(call, decode_as_kind, *body_kind, body)
        match served.resource.kind, subresource:
            case "Pod", "eviction":
                return await self._evict(served, namespace, name, body, call)
            case "Pod", "binding":
                return await self._bind(served, namespace, name, body, call)
            case "ServiceAccount", "token":
                return await self._create_token(served, namespace, name, body, call)
        if served.resource.custom:
            return await self._run_custom_subresource(served, namespace, name, subresource, body, call)
        raise build_unavailable_error(subresource)

    async def _run_custom_subresource(
        self, served: ApiKind, namespace: str, name: str, subresource: str, body: Any, call: RegistryCall
    ) -> Manifest:
        """Run a custom subresource that a CRD declares and an add-on implements."""
        subresource_info = served.resource.find_subresource(subresource)
        if subresource_info is None or "create" not in subresource_info.verbs:
            raise status_errors.not_found(served.resource, name)
        type_meta = {"apiVersion": served.resource.api_version, "kind": subresource_info.kind}
        request_body = {**type_meta, **body} if isinstance(body, dict) else {}
        if any(request_body.get(field) != text for field, text in type_meta.items()):
            raise status_errors.bad_request(
                f"{subresource} needs a {subresource_info.kind} in version {type_meta['apiVersion']}"
            )
        live = served.read_entry(self._registry.get(served, namespace, name, ADMIN))
        perform = self.performers.get((served.resource.group_kind, subresource))
        if perform is None:
            raise build_unavailable_error(subresource, "no running add-on implements it")
        try:
            return await perform(SubresourceRequest(live, request_body, dry_run=call.dry_run))
        except UserError as error:
            raise status_errors.bad_request(error.message) from error

    def build_connect_error(
        self, served: ApiKind, namespace: str, name: str, subresource: str, user: User
    ) -> ClusterError:
        """The error for exec, attach, port-forward and proxy; says how to reach the Pod instead if that is known."""
        pod_runner: object = self.pod_logs
        if not isinstance(pod_runner, AccessDescriber) or served.resource.kind not in ("Pod", "Service"):
            return build_unavailable_error(subresource)
        self._registry.authorize(user, "create", served, namespace, name, subresource)
        live = served.read_entry(self._registry.get(served, namespace, name, ADMIN))
        return build_unavailable_error(subresource, pod_runner.describe_access(live))

    async def update_scale(
        self, served: ApiKind, namespace: str, name: str, body: Any, call: RegistryCall
    ) -> WriteResult:
        self._registry.authorize(call.user, "update", served, namespace, name, "scale")
        return await self._change_scale(served, namespace, name, lambda _: body, call)

    async def patch_scale(
        self, served: ApiKind, namespace: str, name: str, patch: Any, kind: PatchKind | None, call: RegistryCall
    ) -> WriteResult:
        """`kind` None is a server-side apply: it owns the replicas and may conflict with other owners."""
        self._registry.authorize(call.user, "patch", served, namespace, name, "scale")
        if kind is None:
            scale = await self._run_off_loop(call, decode_as_kind, "autoscaling/v1", "Scale", patch)
            replicas = (scale.get("spec") or {}).get("replicas", 0)
            config = build_apply_configuration(served, patch, replicas)
            return await self._registry.apply(served, namespace, name, config, call, subresource="scale")
        patch_kind = PatchKind.MERGE if kind is PatchKind.STRATEGIC else kind  # a Scale has no lists to merge
        return await self._change_scale(
            served, namespace, name, lambda current: apply_patch(served, current, patch, patch_kind), call
        )

    async def _change_scale(
        self, served: ApiKind, namespace: str, name: str, change_scale: Callable[[Manifest], Any], call: RegistryCall
    ) -> WriteResult:
        def apply_scale(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            scale = decode_as_kind("autoscaling/v1", "Scale", change_scale(build_scale(served, old)))
            metadata = scale.get("metadata") or {}
            meta.check_name(metadata, name)
            meta.check_namespace(served, metadata, namespace)
            if metadata.get("uid"):
                meta.check_uid(served, old, metadata["uid"])
            new = set_replicas(served, old, (scale.get("spec") or {}).get("replicas", 0))
            if version := meta.read_resource_version(metadata):
                new = {**new, "metadata": {**new["metadata"], "resourceVersion": version}}
            return new, ()

        return await self._registry.read_modify_write(served, namespace, name, apply_scale, call, "scale")

    async def finalize(self, served: ApiKind, namespace: str, name: str, body: Any, call: RegistryCall) -> WriteResult:
        """k8s: only this subresource changes spec.finalizers of a namespace; without any, the namespace is removed."""
        self._registry.authorize(call.user, "update", served, namespace, name, "finalize")
        manifest, _ = await self._run_off_loop(call, decode_object, served, body, call.validation, call.duplicates)
        finalizers = (manifest.get("spec") or {}).get("finalizers") or []

        def set_finalizers(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            spec = {key: field_value for key, field_value in (old.get("spec") or {}).items() if key != "finalizers"}
            return {**old, "spec": {**spec, **({"finalizers": finalizers} if finalizers else {})}}, ()

        return await self._registry.read_modify_write(served, namespace, name, set_finalizers, call, "finalize")

    async def _evict(self, served: ApiKind, namespace: str, name: str, eviction: Any, call: RegistryCall) -> Manifest:
        entry = self._registry.store.get(served.bucket, namespace, name)
        if entry is None:
            raise status_errors.not_found(served.resource, name)
        pod = served.read_entry(entry)
        if not self._can_be_evicted(namespace, pod):
            details = {"causes": [{"reason": "DisruptionBudget", "message": DISRUPTION_BUDGET_MESSAGE}]}
            raise ClusterError(DISRUPTION_BUDGET_MESSAGE, code=429, reason="TooManyRequests", details=details)
        options = read_delete_options(eviction.get("deleteOptions") or {}, {"dryRun": "All"} if call.dry_run else {})
        # k8s: eviction needs no permission to delete
        await self._deleter.delete(served, namespace, name, options, replace(call, user=ADMIN))
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    def _can_be_evicted(self, namespace: str, pod: Manifest) -> bool:
        """k8s: budgets ignore Pods that do not run or are terminating; every matching budget must allow it."""
        does_not_run = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed", "Pending")
        if does_not_run or pod["metadata"].get("deletionTimestamp"):
            return True
        budgets = self._registry.catalog.find_resource("policy", "v1", "poddisruptionbudgets")
        assert budgets is not None
        labels = pod["metadata"].get("labels") or {}
        for entry in self._registry.store.list(budgets.bucket, namespace):
            budget = budgets.read_entry(entry)
            selector = (budget.get("spec") or {}).get("selector")
            is_covered = selector is not None and selectors.label_selector_from_wire(selector).matches(labels)
            if is_covered and not (budget.get("status") or {}).get("disruptionsAllowed"):
                return False
        return True

    async def _bind(self, served: ApiKind, namespace: str, name: str, binding: Any, call: RegistryCall) -> Manifest:
        node = ((binding or {}).get("target") or {}).get("name", "")
        if not node:
            raise status_errors.bad_request("a Binding needs target.name, the node to run the Pod on")
        scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}

        def set_node(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            spec, status = old.get("spec") or {}, old.get("status") or {}
            if spec.get("nodeName"):
                reason = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
                raise status_errors.conflict(served.resource, name, reason)
            other_conditions = [
                old_condition
                for old_condition in status.get("conditions") or []
                if old_condition["type"] != "PodScheduled"
            ]
            condition = {**scheduled, "lastTransitionTime": format_timestamp(self._registry.clock())}
            status = {**status, "conditions": [*other_conditions, condition]}
            return {**old, "spec": {**spec, "nodeName": node}, "status": status}, ()

        await self._registry.read_modify_write(served, namespace, name, set_node, call, "binding")
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    async def _create_token(
        self, served: ApiKind, namespace: str, name: str, token_request: Any, call: RegistryCall
    ) -> Manifest:
        entry = self._registry.store.get(served.bucket, namespace, name)
        if entry is None:
            raise status_errors.not_found(served.resource, name)
        await self._tokens.ensure_key()
        return self._tokens.create_token(served.read_entry(entry), token_request or {}, self._registry.clock())

    # -- logs ----------------------------------------------------------------------------------------------------

    def stream_logs(
        self,
        served: ApiKind,
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
        pod = served.read_entry(entry)
        spec = pod.get("spec") or {}
        names = [
            container_spec["name"]
            for field in ("initContainers", "containers")
            for container_spec in spec.get(field) or []
        ]
        if not container:
            main_containers = [container_spec["name"] for container_spec in spec.get("containers") or []]
            if len(main_containers) > 1:
                message = (
                    f"a container name must be specified for pod {name}, choose one of: [{' '.join(main_containers)}]"
                )
                raise status_errors.bad_request(message)
            container = main_containers[0]
        elif container not in names:
            raise status_errors.bad_request(f"container {container} is not valid for pod {name}")
        if previous:
            log_source: object = self.pod_logs
            if isinstance(log_source, PreviousPodLogReader):
                earlier = log_source.previous_lines(pod, container=container, tail=tail)
                if earlier is not None:
                    return earlier
            raise status_errors.bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
        if self.pod_logs is None:
            raise status_errors.bad_request(f'container "{container}" in pod "{name}" has no log: {NO_PODS_MESSAGE}')
        try:
            return self.pod_logs.lines(pod, container=container, follow=follow, tail=tail)
        except UserError as error:
            message = f'container "{container}" in pod "{name}" has no log: {error.message}'
            raise status_errors.bad_request(message) from error


def build_unavailable_error(subresource: str, reason: str = NO_PODS_MESSAGE) -> ClusterError:
    message = f"{subresource} is not available: {reason}"
    return ClusterError(message, code=501, reason="NotImplemented", details={})
