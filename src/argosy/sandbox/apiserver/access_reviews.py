"""Reviews that are answered and never stored: access, rules, the caller's identity, tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.kube.client import User
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.patch.managed_fields import record_update
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.authorization import Attributes
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.request_body_decoding_and_patches import decode_object
from argosy.sandbox.apiserver.write_call_and_result_types import RegistryCall

TokenReviewer = Callable[[str, Sequence[str]], tuple[User, list[str]] | None]


class AccessReviews:
    def __init__(self, registry: Registry, review_token: TokenReviewer) -> None:
        self._registry = registry
        self._authenticate_token = review_token

    async def create_review(self, served: ApiKind, namespace: str, body: Any, call: RegistryCall) -> Manifest:
        resource = served.resource
        self._registry.authorize(call.user, "create", served, namespace)
        run_off_loop = self._registry.off_loop_executor.run
        manifest, _ = await run_off_loop(
            call.user.name, call.body_bytes, decode_object, served, body, call.validation, call.duplicates
        )
        manifest = {"kind": resource.kind, "apiVersion": resource.api_version, **manifest}
        spec = manifest.get("spec") or {}
        match resource.kind:
            case "SelfSubjectReview":
                now = format_timestamp(self._registry.clock())
                return {
                    **manifest,
                    "metadata": {"creationTimestamp": now},
                    "status": {"userInfo": build_user_info(call.user)},
                }
            case "SelfSubjectRulesReview":
                if not spec.get("namespace"):
                    raise status_errors.bad_request("no namespace on request")
                status = self._registry.access.list_rules(call.user, spec["namespace"])
                return {**manifest, "metadata": {"creationTimestamp": None}, "spec": {}, "status": status}
            case "SelfSubjectAccessReview":
                status = self._review_access(call.user, spec)
            case "SubjectAccessReview" | "LocalSubjectAccessReview":
                groups = tuple(spec.get("groups") or ())
                status = self._review_access(User(spec.get("user", ""), groups, spec.get("uid", "")), spec)
            case "TokenReview":
                status = self._review_token(spec)
            case _:
                raise status_errors.method_not_allowed()
        return self._build_review(served, manifest, status, call)

    def _build_review(self, served: ApiKind, manifest: Manifest, status: Manifest, call: RegistryCall) -> Manifest:
        """k8s: the response is the review as it was sent, with a status and managedFields."""
        metadata = {**(manifest.get("metadata") or {}), "creationTimestamp": None}
        tracked_manifest = record_update(
            None,
            {**manifest, "metadata": metadata},
            empty_object=served.zero_value,
            manager=call.field_manager,
            api_version=served.resource.api_version,
            subresource="",
            now=format_timestamp(self._registry.clock()),
            shape=served.shape,
        )
        return {**tracked_manifest, "status": status}

    def _review_access(self, user: User, spec: Manifest) -> Manifest:
        attributes, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if (attributes is None) == (path is None):
            raise status_errors.bad_request(
                "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            )
        if path is not None:
            requested = Attributes(path.get("verb", ""), path=path.get("path", ""))
        else:
            names = ("verb", "group", "resource", "subresource", "namespace", "name")
            requested = Attributes(*((attributes or {}).get(name, "") for name in names))
        access = self._registry.access
        if access.allows(user, requested):
            return {"allowed": True}
        resolution_errors = access.authorizer.describe_resolution_errors(user, requested.namespace)
        return {"allowed": False, **({"reason": resolution_errors} if resolution_errors else {})}

    def _review_token(self, spec: Manifest) -> Manifest:
        result = self._authenticate_token(str(spec.get("token") or ""), spec.get("audiences") or [])
        if result is None:
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": build_user_info(result[0]), "audiences": result[1]}


def build_user_info(user: User) -> Manifest:
    info: Manifest = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {name: list(values) for name, values in user.extra.items()}
    return info
