"""RBAC authorizer: Roles and bindings in the cluster decide what a user may do.

In: a user and the attributes of a request. Out: allowed or not, and all rules of a user. Never: writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from argosy.kube.client import User
from argosy.kube.objects import Manifest
from argosy.kube.schema import selectors
from argosy.kube.schema.resources import Resource
from argosy.sandbox.apiserver import escalation, status_errors
from argosy.sandbox.apiserver.authentication import USER_SECRET_TYPE
from argosy.sandbox.apiserver.authorization import SUPERUSERS, Attributes
from argosy.sandbox.store import Event, Store

GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = f"{GROUP}/roles", f"{GROUP}/clusterroles"
BINDINGS, CLUSTER_BINDINGS = f"{GROUP}/rolebindings", f"{GROUP}/clusterrolebindings"
BUCKETS = frozenset({ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS})
Rule = dict[str, Any]
FULL_AUTHORITY: list[Rule] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]
GARBAGE_FIELDS = frozenset({"ownerReferences", "finalizers", "selfLink", "managedFields"})


class Rbac:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._cache: dict[tuple[str, str], list[Rule]] = {}
        self._bindings: dict[tuple[str, str], list[Manifest]] = {}
        store.subscribe(self._changed)

    def _changed(self, events: Sequence[Event]) -> None:
        if any(event.bucket in BUCKETS for event in events):
            self._cache.clear()
            self._bindings.clear()

    def allows(self, user: User, asked: Attributes) -> bool:
        return any(permits(rule, asked) for rule in self._rules_for(user, asked.namespace))

    def problem(self, user: User, namespace: str) -> str:
        """k8s: the error names the missing roles of the user's bindings."""
        lost = [
            f'{reference["kind"].lower()}.{GROUP} "{reference["name"]}" not found'
            for reference in self._lost_references(user, namespace)
        ]
        return f"RBAC: {_aggregate(lost)}" if lost else ""

    def _lost_references(self, user: User, namespace: str) -> list[Manifest]:
        """Role references of the user's bindings whose role does not exist."""
        bindings = [(binding, "") for binding in self._loaded(CLUSTER_BINDINGS, "")]
        if namespace:
            bindings += [(binding, namespace) for binding in self._loaded(BINDINGS, namespace)]
        return [
            binding["roleRef"]
            for binding, place in bindings
            if _binds(binding, user, place) and not self._exists(binding["roleRef"], place)
        ]

    def rules(self, user: User, namespace: str) -> Manifest:
        """The rules of a user in a namespace, in the format of SelfSubjectRulesReview."""
        found = list(self._rules_for(user, namespace))
        wanted = ("verbs", "apiGroups", "resources", "resourceNames")
        resources = [{name: rule[name] for name in wanted if name in rule} for rule in found if "resources" in rule]
        paths = [
            {"verbs": rule["verbs"], "nonResourceURLs": rule["nonResourceURLs"]}
            for rule in found
            if "nonResourceURLs" in rule
        ]
        return {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}

    def _rules_for(self, user: User, namespace: str) -> Iterator[Rule]:
        for binding in self._loaded(CLUSTER_BINDINGS, ""):
            if _binds(binding, user, ""):
                yield from self._role(binding["roleRef"], "")
        if namespace:
            for binding in self._loaded(BINDINGS, namespace):
                if _binds(binding, user, namespace):
                    yield from self._role(binding["roleRef"], namespace)

    def _loaded(self, bucket: str, namespace: str) -> list[Manifest]:
        key = (bucket, namespace)
        if key not in self._bindings:
            self._bindings[key] = [orjson.loads(entry.body) for entry in self._store.list(bucket, namespace)]
        return self._bindings[key]

    def _role(self, reference: Manifest, namespace: str) -> list[Rule]:
        place = namespace if reference["kind"] == "Role" else ""
        return self.role_rules(place, reference["name"])

    def _exists(self, reference: Manifest, namespace: str) -> bool:
        place = (ROLES, namespace) if reference["kind"] == "Role" else (CLUSTER_ROLES, "")
        return self._store.get(*place, reference["name"]) is not None

    def role_rules(self, namespace: str, name: str) -> list[Rule]:
        """Rules of a Role (with a namespace) or ClusterRole, including aggregated rules."""
        key = (namespace, name)
        if key not in self._cache:
            entry = self._store.get(ROLES if namespace else CLUSTER_ROLES, namespace, name)
            role = orjson.loads(entry.body) if entry else {}
            rules = list(role.get("rules") or [])
            self._cache[key] = rules + self._gathered(role, {name})
        return self._cache[key]

    def _gathered(self, role: Manifest, visited: set[str]) -> list[Rule]:
        """Rules that an aggregated ClusterRole selects.

        k8s: the selected roles may be aggregated themselves.
        """
        found: list[Rule] = []
        for label_selector in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or []:
            selector = selectors.from_label_selector(label_selector)
            for other in self._loaded(CLUSTER_ROLES, ""):
                metadata = other["metadata"]
                if metadata["name"] not in visited and selector.matches(metadata.get("labels") or {}):
                    visited.add(metadata["name"])
                    found += [*(other.get("rules") or []), *self._gathered(other, visited)]
        return found

    def check_escalation(
        self, user: User, resource: Resource, manifest: Manifest, *, old: Manifest | None = None, request_name: str = ""
    ) -> None:
        """k8s: users cannot grant permissions they do not hold, unless they may `escalate` or `bind` the role.

        `request_name` is the name in the URL, which a POST does not have: the permission to escalate a role by name
        does not allow creating it. As in Kubernetes, the check precedes validation, so `manifest` may be invalid.
        """
        if SUPERUSERS in user.groups:
            return
        if resource.group_kind == ("", "Secret") and manifest.get("type") == USER_SECRET_TYPE:
            why = f"only members of system:masters may write Secrets of type {USER_SECRET_TYPE}, which define users"
            raise status_errors.forbidden(resource, manifest["metadata"]["name"], why)
        if resource.group != GROUP:
            return
        if old is not None and _without_garbage_fields(manifest) == _without_garbage_fields(old):
            return
        namespace, name = manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]
        own = list(self._rules_for(user, namespace))
        if resource.kind in ("Role", "ClusterRole"):
            verb, plural, target = "escalate", resource.plural, request_name
            granted = manifest.get("rules") or []
        else:
            reference = manifest.get("roleRef") or {}
            kinds = ("Role", "ClusterRole") if namespace else ("ClusterRole",)
            if reference.get("kind") not in kinds or not reference.get("name"):
                return  # validation, which comes next, refuses it
            verb, plural, target = "bind", f"{reference['kind'].lower()}s", reference["name"]
            granted = self._role(reference, namespace)
        if self.allows(user, Attributes(verb, GROUP, plural, "", namespace, target)):
            return
        if verb == "bind" and not self._exists(reference, namespace):  # a role created later would be granted unchecked
            raise status_errors.not_found(resource, target)  # k8s: names the kind of the binding
        if missing := escalation.find_uncovered(own, granted):
            who = f"user {escalation.quote(user.name)} (groups={escalation.quote_list(user.groups)})"
            why = f"{who} is attempting to grant RBAC permissions not currently held:\n{escalation.shown(missing)}"
            if references := self._lost_references(user, namespace):
                # k8s: the message has the kind that is written, not that of the role
                lost = [status_errors.not_found(resource, reference["name"]).message for reference in references]
                why += f"; resolution errors: [{_aggregate(lost)}]"
            raise status_errors.forbidden(resource, name, why)
        aggregates = manifest.get("aggregationRule") or (old or {}).get("aggregationRule")  # it can select any role
        if aggregates and escalation.find_uncovered(own, FULL_AUTHORITY):
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise status_errors.forbidden(resource, name, why)


def permits(rule: Rule, asked: Attributes) -> bool:
    if not _has(rule.get("verbs"), asked.verb):
        return False
    if asked.path:
        return any(escalation.path_matches(pattern, asked.path) for pattern in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames")
    return (
        _has(rule.get("apiGroups"), asked.group)
        and _resource_fits(rule.get("resources") or (), asked)
        and (not names or asked.name in names)
    )


def _aggregate(messages: Sequence[str]) -> str:
    """k8s: a single error unchanged, several in brackets without duplicates."""
    messages = list(dict.fromkeys(messages))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"


def _has(values: Sequence[str] | None, wanted: str) -> bool:
    return values is not None and ("*" in values or wanted in values)


def _resource_fits(resources: Sequence[str], asked: Attributes) -> bool:
    wanted = {"*", asked.resource_path}
    if asked.subresource:
        wanted.add(f"*/{asked.subresource}")
    return any(each in wanted for each in resources)


def _binds(binding: Manifest, user: User, namespace: str) -> bool:
    return any(_is_subject(subject, user, namespace) for subject in binding.get("subjects") or ())


def _is_subject(subject: Manifest, user: User, namespace: str) -> bool:
    match subject.get("kind"):
        case "User":
            return bool(subject["name"] == user.name)
        case "Group":
            return subject["name"] in user.groups
        case "ServiceAccount":
            place = subject.get("namespace") or namespace
            return user.name == f"system:serviceaccount:{place}:{subject['name']}"
    return False


def _without_garbage_fields(manifest: Manifest) -> Manifest:
    """k8s: a change of only these fields needs no escalation check."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in GARBAGE_FIELDS}
    return {**manifest, "metadata": metadata}
