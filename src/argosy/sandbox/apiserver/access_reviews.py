"""Reviews that are answered and never stored: access, rules, the caller's identity, tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.kube.client import User
from argosy.kube.objects import Manifest
from argosy.kube.patch.managed_fields import record_update
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.authorization import Attributes
from argosy.sandbox.apiserver.metadata import stamp
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.registry_call import Call
from argosy.sandbox.apiserver.request_decoding import decoded
from argosy.sandbox.apiserver.served_kind import Served

Authenticate = Callable[[str, Sequence[str]], tuple[User, list[str]] | None]


class Reviews:
    def __init__(self, registry: Registry, authenticate: Authenticate) -> None:
        self._registry = registry
        self._authenticate = authenticate

    async def answer(self, served: Served, namespace: str, value: Any, call: Call) -> Manifest:
        resource = served.resource
        self._registry.authorize(call.user, "create", served, namespace)
        beside = self._registry.large_work.run
        manifest, _ = await beside(call.user.name, call.size, decoded, served, value, call.validation, call.duplicates)
        manifest = {"kind": resource.kind, "apiVersion": resource.api_version, **manifest}
        spec = manifest.get("spec") or {}
        match resource.kind:
            case "SelfSubjectReview":
                now = stamp(self._registry.clock())
                return {
                    **manifest,
                    "metadata": {"creationTimestamp": now},
                    "status": {"userInfo": user_info(call.user)},
                }
            case "SelfSubjectRulesReview":
                if not spec.get("namespace"):
                    raise status_errors.bad_request("no namespace on request")
                status = self._registry.access.rules(call.user, spec["namespace"])
                return {**manifest, "metadata": {"creationTimestamp": None}, "spec": {}, "status": status}
            case "SelfSubjectAccessReview":
                status = self._access(call.user, spec)
            case "SubjectAccessReview" | "LocalSubjectAccessReview":
                groups = tuple(spec.get("groups") or ())
                status = self._access(User(spec.get("user", ""), groups, spec.get("uid", "")), spec)
            case "TokenReview":
                status = self._token(spec)
            case _:
                raise status_errors.method_not_allowed()
        return self._echo(served, manifest, status, call)

    def _echo(self, served: Served, manifest: Manifest, status: Manifest, call: Call) -> Manifest:
        """k8s: the response is the review as it was sent, with a status and managedFields."""
        metadata = {**(manifest.get("metadata") or {}), "creationTimestamp": None}
        owned = record_update(
            None,
            {**manifest, "metadata": metadata},
            zero=served.zero,
            manager=call.manager,
            api_version=served.resource.api_version,
            subresource="",
            now=stamp(self._registry.clock()),
            shape=served.shape,
        )
        return {**owned, "status": status}

    def _access(self, user: User, spec: Manifest) -> Manifest:
        attributes, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if (attributes is None) == (path is None):
            raise status_errors.bad_request(
                "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            )
        if path is not None:
            asked = Attributes(path.get("verb", ""), path=path.get("path", ""))
        else:
            names = ("verb", "group", "resource", "subresource", "namespace", "name")
            asked = Attributes(*((attributes or {}).get(name, "") for name in names))
        access = self._registry.access
        if access.allows(user, asked):
            return {"allowed": True}
        problem = access.authorizer.problem(user, asked.namespace)
        return {"allowed": False, **({"reason": problem} if problem else {})}

    def _token(self, spec: Manifest) -> Manifest:
        found = self._authenticate(str(spec.get("token") or ""), spec.get("audiences") or [])
        if found is None:
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": user_info(found[0]), "audiences": found[1]}


def user_info(user: User) -> Manifest:
    info: Manifest = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {name: list(values) for name, values in user.extra.items()}
    return info
