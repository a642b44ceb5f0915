"""May this user do that? Either everybody who is known may do everything, or RBAC objects decide.

In: a user and what it asks for. Out: nothing, or Forbidden in Kubernetes' words. Never: finds out who the user is.
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
    """What is asked for: a verb on a resource, or on a path that is none."""

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
        """What kept it from allowing more; empty if nothing did."""

    def rules(self, user: User, namespace: str) -> Manifest:
        """All that the user may do there, as SelfSubjectRulesReview tells it."""

    def check_escalation(
        self, user: User, resource: Resource, manifest: Manifest, *, old: Manifest | None = None, request_name: str = ""
    ) -> None:
        """Refuses a role or binding that gives more than the user has."""


class AllowAll:
    """The sandbox's default: whoever holds a credential may do everything, as on a laptop cluster."""

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
        """Nobody, who has no name, may do nothing, whatever groups were claimed."""
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
