"""Authorization of requests: either every authenticated user may do everything, or RBAC decides.

In: a user and the attributes of a request. Out: nothing, or Forbidden in Kubernetes' words. Never: authenticates.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from argosy.errors import Forbidden
from argosy.kube.client import User
from argosy.kube.objects import Manifest
from argosy.kube.schema.api_resource import ApiResource

SUPERUSER_GROUP = "system:masters"
ALLOW_ALL_RULES: Manifest = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


class Attributes(NamedTuple):
    """Attributes of a request: a verb on a resource or on a non-resource path."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def resource_path(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class Authorizer(Protocol):
    def allows(self, user: User, attributes: Attributes) -> bool: ...

    def describe_resolution_errors(self, user: User, namespace: str) -> str:
        """Errors in resolving the user's rules, such as missing roles; empty if there are none."""

    def list_rules(self, user: User, namespace: str) -> Manifest:
        """The user's rules in the namespace, in the format of SelfSubjectRulesReview."""

    def check_escalation(
        self,
        user: User,
        resource: ApiResource,
        manifest: Manifest,
        *,
        old: Manifest | None = None,
        request_name: str = "",
    ) -> None:
        """Raise Forbidden for a role or binding that grants more than the user holds."""


class AllowAll:
    """The sandbox's default: every authenticated user may do everything, as on a laptop cluster."""

    def allows(self, user: User, attributes: Attributes) -> bool:
        return True

    def describe_resolution_errors(self, user: User, namespace: str) -> str:
        return ""

    def list_rules(self, user: User, namespace: str) -> Manifest:
        return ALLOW_ALL_RULES

    def check_escalation(
        self,
        user: User,
        resource: ApiResource,
        manifest: Manifest,
        *,
        old: Manifest | None = None,
        request_name: str = "",
    ) -> None:
        return None


class AccessChecker:
    def __init__(self, authorizer: Authorizer | None = None) -> None:
        self.authorizer: Authorizer = authorizer or AllowAll()

    def allows(self, user: User, attributes: Attributes) -> bool:
        """A user without a name is never allowed, whatever its groups are."""
        return bool(user.name) and (SUPERUSER_GROUP in user.groups or self.authorizer.allows(user, attributes))

    def list_rules(self, user: User, namespace: str) -> Manifest:
        return ALLOW_ALL_RULES if SUPERUSER_GROUP in user.groups else self.authorizer.list_rules(user, namespace)

    def require(self, user: User, attributes: Attributes) -> None:
        if not self.allows(user, attributes):
            raise build_forbidden_error(
                user, attributes, self.authorizer.describe_resolution_errors(user, attributes.namespace)
            )


def build_forbidden_error(user: User, attributes: Attributes, resolution_errors: str = "") -> Forbidden:
    suffix = f": {resolution_errors}" if resolution_errors else ""
    if attributes.path:
        message = f'forbidden: User "{user.name}" cannot {attributes.verb} path "{attributes.path}"{suffix}'
        return Forbidden(message, reason="Forbidden", details={})
    group_resource = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    object_text = f'{group_resource} "{attributes.name}"' if attributes.name else group_resource
    scope = f' in the namespace "{attributes.namespace}"' if attributes.namespace else " at the cluster scope"
    details = {"name": attributes.name} if attributes.name else {}
    if attributes.group:
        details["group"] = attributes.group
    details["kind"] = attributes.resource
    message = (
        f'{object_text} is forbidden: User "{user.name}" cannot {attributes.verb} resource '
        f'"{attributes.resource_path}" '
        f'in API group "{attributes.group}"{scope}{suffix}'
    )
    return Forbidden(message, reason="Forbidden", details=details)
