"""Authorization of requests: either every authenticated user may do everything, or RBAC decides.

In: a user and the attributes of a request. Out: nothing, or Forbidden in Kubernetes' words. Never: authenticates.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from argosy.errors import Forbidden
from argosy.kube.client import User
from argosy.kube.objects import Manifest
from argosy.kube.schema.resources import Resource

SUPERUSERS = "system:masters"
EVERYTHING: Manifest = {
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
    def allows(self, user: User, asked: Attributes) -> bool: ...

    def problem(self, user: User, namespace: str) -> str:
        """Errors in resolving the user's rules, such as missing roles; empty if there are none."""

    def rules(self, user: User, namespace: str) -> Manifest:
        """The user's rules in the namespace, in the format of SelfSubjectRulesReview."""

    def check_escalation(
        self, user: User, resource: Resource, manifest: Manifest, *, old: Manifest | None = None, request_name: str = ""
    ) -> None:
        """Raise Forbidden for a role or binding that grants more than the user holds."""


class AllowAll:
    """The sandbox's default: every authenticated user may do everything, as on a laptop cluster."""

    def allows(self, user: User, asked: Attributes) -> bool:
        return True

    def problem(self, user: User, namespace: str) -> str:
        return ""

    def rules(self, user: User, namespace: str) -> Manifest:
        return EVERYTHING

    def check_escalation(
        self, user: User, resource: Resource, manifest: Manifest, *, old: Manifest | None = None, request_name: str = ""
    ) -> None:
        return None


class Access:
    def __init__(self, authorizer: Authorizer | None = None) -> None:
        self.authorizer: Authorizer = authorizer or AllowAll()

    def allows(self, user: User, asked: Attributes) -> bool:
        """A user without a name is never allowed, whatever its groups are."""
        return bool(user.name) and (SUPERUSERS in user.groups or self.authorizer.allows(user, asked))

    def rules(self, user: User, namespace: str) -> Manifest:
        return EVERYTHING if SUPERUSERS in user.groups else self.authorizer.rules(user, namespace)

    def require(self, user: User, asked: Attributes) -> None:
        if not self.allows(user, asked):
            raise refusal(user, asked, self.authorizer.problem(user, asked.namespace))


def refusal(user: User, asked: Attributes, problem: str = "") -> Forbidden:
    more = f": {problem}" if problem else ""
    if asked.path:
        message = f'forbidden: User "{user.name}" cannot {asked.verb} path "{asked.path}"{more}'
        return Forbidden(message, reason="Forbidden", details={})
    named = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    which = f'{named} "{asked.name}"' if asked.name else named
    scope = f' in the namespace "{asked.namespace}"' if asked.namespace else " at the cluster scope"
    details = {"name": asked.name} if asked.name else {}
    if asked.group:
        details["group"] = asked.group
    details["kind"] = asked.resource
    message = (
        f'{which} is forbidden: User "{user.name}" cannot {asked.verb} resource "{asked.resource_path}" '
        f'in API group "{asked.group}"{scope}{more}'
    )
    return Forbidden(message, reason="Forbidden", details=details)
