"""RBAC authorizer: Roles and bindings in the cluster decide what a user may do.

In: a user and the attributes of a request. Out: allowed or not, and all rules of a user. Never: writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from argosy.kube.client import User
from argosy.kube.objects import Manifest
from argosy.kube.objects.go_format import quote, quote_list
from argosy.kube.schema import selectors
from argosy.kube.schema.api_resource import ApiResource
from argosy.sandbox.apiserver import escalation, status_errors
from argosy.sandbox.apiserver.authentication import USER_SECRET_TYPE
from argosy.sandbox.apiserver.authorization import SUPERUSER_GROUP, Attributes
from argosy.sandbox.store import Store, StoreEvent

RBAC_GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = f"{RBAC_GROUP}/roles", f"{RBAC_GROUP}/clusterroles"
BINDINGS, CLUSTER_BINDINGS = f"{RBAC_GROUP}/rolebindings", f"{RBAC_GROUP}/clusterrolebindings"
RBAC_BUCKETS = frozenset({ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS})
Rule = dict[str, Any]
CLUSTER_ADMIN_RULES: list[Rule] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]
GARBAGE_COLLECTOR_FIELDS = frozenset({"ownerReferences", "finalizers", "selfLink", "managedFields"})


class RbacAuthorizer:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._role_rules: dict[tuple[str, str], list[Rule]] = {}
        self._manifests: dict[tuple[str, str], list[Manifest]] = {}
        store.subscribe(self._on_store_events)

    def _on_store_events(self, events: Sequence[StoreEvent]) -> None:
        if any(event.bucket in RBAC_BUCKETS for event in events):
            self._role_rules.clear()
            self._manifests.clear()

    def allows(self, user: User, attributes: Attributes) -> bool:
        return any(rule_allows(rule, attributes) for rule in self._list_user_rules(user, attributes.namespace))

    def describe_resolution_errors(self, user: User, namespace: str) -> str:
        """k8s: the error names the missing roles of the user's bindings."""
        messages = [
            f'{reference["kind"].lower()}.{RBAC_GROUP} "{reference["name"]}" not found'
            for reference in self._find_missing_roles(user, namespace)
        ]
        return f"RBAC: {_format_messages(messages)}" if messages else ""

    def _find_missing_roles(self, user: User, namespace: str) -> list[Manifest]:
        """Role references of the user's bindings whose role does not exist."""
        bindings = [(binding, "") for binding in self._load_manifests(CLUSTER_BINDINGS, "")]
        if namespace:
            bindings += [(binding, namespace) for binding in self._load_manifests(BINDINGS, namespace)]
        return [
            binding["roleRef"]
            for binding, binding_namespace in bindings
            if _binds_user(binding, user, binding_namespace)
            and not self._role_exists(binding["roleRef"], binding_namespace)
        ]

    def list_rules(self, user: User, namespace: str) -> Manifest:
        """The rules of a user in a namespace, in the format of SelfSubjectRulesReview."""
        rules = list(self._list_user_rules(user, namespace))
        fields = ("verbs", "apiGroups", "resources", "resourceNames")
        resources = [{name: rule[name] for name in fields if name in rule} for rule in rules if "resources" in rule]
        paths = [
            {"verbs": rule["verbs"], "nonResourceURLs": rule["nonResourceURLs"]}
            for rule in rules
            if "nonResourceURLs" in rule
        ]
        return {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}

    def _list_user_rules(self, user: User, namespace: str) -> Iterator[Rule]:
        for binding in self._load_manifests(CLUSTER_BINDINGS, ""):
            if _binds_user(binding, user, ""):
                yield from self._list_referenced_rules(binding["roleRef"], "")
        if namespace:
            for binding in self._load_manifests(BINDINGS, namespace):
                if _binds_user(binding, user, namespace):
                    yield from self._list_referenced_rules(binding["roleRef"], namespace)

    def _load_manifests(self, bucket: str, namespace: str) -> list[Manifest]:
        key = (bucket, namespace)
        if key not in self._manifests:
            self._manifests[key] = [orjson.loads(entry.body) for entry in self._store.list(bucket, namespace)]
        return self._manifests[key]

    def _list_referenced_rules(self, reference: Manifest, namespace: str) -> list[Rule]:
        role_namespace = namespace if reference["kind"] == "Role" else ""
        return self.list_role_rules(role_namespace, reference["name"])

    def _role_exists(self, reference: Manifest, namespace: str) -> bool:
        bucket_and_namespace = (ROLES, namespace) if reference["kind"] == "Role" else (CLUSTER_ROLES, "")
        return self._store.get(*bucket_and_namespace, reference["name"]) is not None

    def list_role_rules(self, namespace: str, name: str) -> list[Rule]:
        """Rules of a Role (with a namespace) or ClusterRole, including aggregated rules."""
        key = (namespace, name)
        if key not in self._role_rules:
            entry = self._store.get(ROLES if namespace else CLUSTER_ROLES, namespace, name)
            role = orjson.loads(entry.body) if entry else {}
            rules = list(role.get("rules") or [])
            self._role_rules[key] = rules + self._list_aggregated_rules(role, {name})
        return self._role_rules[key]

    def _list_aggregated_rules(self, role: Manifest, visited: set[str]) -> list[Rule]:
        """Rules that an aggregated ClusterRole selects.

        k8s: the selected roles may be aggregated themselves.
        """
        rules: list[Rule] = []
        for label_selector in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or []:
            selector = selectors.label_selector_from_wire(label_selector)
            for other in self._load_manifests(CLUSTER_ROLES, ""):
                metadata = other["metadata"]
                if metadata["name"] not in visited and selector.matches(metadata.get("labels") or {}):
                    visited.add(metadata["name"])
                    rules += [*(other.get("rules") or []), *self._list_aggregated_rules(other, visited)]
        return rules

    def check_escalation(
        self,
        user: User,
        resource: ApiResource,
        manifest: Manifest,
        *,
        old: Manifest | None = None,
        request_name: str = "",
    ) -> None:
        """k8s: users cannot grant permissions they do not hold, unless they may `escalate` or `bind` the role.

        `request_name` is the name in the URL, which a POST does not have: the permission to escalate a role by name
        does not allow creating it. As in Kubernetes, the check precedes validation, so `manifest` may be invalid.
        """
        if SUPERUSER_GROUP in user.groups:
            return
        if resource.group_kind == ("", "Secret") and manifest.get("type") == USER_SECRET_TYPE:
            reason = f"only members of system:masters may write Secrets of type {USER_SECRET_TYPE}, which define users"
            raise status_errors.forbidden(resource, manifest["metadata"]["name"], reason)
        if resource.group != RBAC_GROUP:
            return
        if old is not None and _drop_garbage_collector_fields(manifest) == _drop_garbage_collector_fields(old):
            return
        namespace, name = manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]
        held_rules = list(self._list_user_rules(user, namespace))
        if resource.kind in ("Role", "ClusterRole"):
            verb, plural, target = "escalate", resource.plural, request_name
            granted_rules = manifest.get("rules") or []
        else:
            reference = manifest.get("roleRef") or {}
            kinds = ("Role", "ClusterRole") if namespace else ("ClusterRole",)
            if reference.get("kind") not in kinds or not reference.get("name"):
                return  # validation, which comes next, refuses it
            verb, plural, target = "bind", f"{reference['kind'].lower()}s", reference["name"]
            granted_rules = self._list_referenced_rules(reference, namespace)
        if self.allows(user, Attributes(verb, RBAC_GROUP, plural, "", namespace, target)):
            return
        # A role created later would be granted unchecked.
        if verb == "bind" and not self._role_exists(reference, namespace):
            raise status_errors.not_found(resource, target)  # k8s: names the kind of the binding
        if missing := escalation.find_uncovered(held_rules, granted_rules):
            user_text = f"user {quote(user.name)} (groups={quote_list(user.groups)})"
            reason = (
                f"{user_text} is attempting to grant RBAC permissions not currently "
                f"held:\n{escalation.format_permissions(missing)}"
            )
            if references := self._find_missing_roles(user, namespace):
                # k8s: the message has the kind that is written, not that of the role
                messages = [status_errors.not_found(resource, reference["name"]).message for reference in references]
                reason += f"; resolution errors: [{_format_messages(messages)}]"
            raise status_errors.forbidden(resource, name, reason)
        aggregates = manifest.get("aggregationRule") or (old or {}).get("aggregationRule")  # it can select any role
        if aggregates and escalation.find_uncovered(held_rules, CLUSTER_ADMIN_RULES):
            reason = "must have cluster-admin privileges to use the aggregationRule"
            raise status_errors.forbidden(resource, name, reason)


def rule_allows(rule: Rule, attributes: Attributes) -> bool:
    if not _has_value_or_star(rule.get("verbs"), attributes.verb):
        return False
    if attributes.path:
        return any(escalation.matches_path(pattern, attributes.path) for pattern in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames")
    return (
        _has_value_or_star(rule.get("apiGroups"), attributes.group)
        and _matches_resource(rule.get("resources") or (), attributes)
        and (not names or attributes.name in names)
    )


def _format_messages(messages: Sequence[str]) -> str:
    """k8s: a single error unchanged, several in brackets without duplicates."""
    messages = list(dict.fromkeys(messages))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"


def _has_value_or_star(values: Sequence[str] | None, value: str) -> bool:
    return values is not None and ("*" in values or value in values)


def _matches_resource(resources: Sequence[str], attributes: Attributes) -> bool:
    accepted = {"*", attributes.resource_path}
    if attributes.subresource:
        accepted.add(f"*/{attributes.subresource}")
    return any(resource in accepted for resource in resources)


def _binds_user(binding: Manifest, user: User, namespace: str) -> bool:
    return any(_is_subject(subject, user, namespace) for subject in binding.get("subjects") or ())


def _is_subject(subject: Manifest, user: User, namespace: str) -> bool:
    match subject.get("kind"):
        case "User":
            return bool(subject["name"] == user.name)
        case "Group":
            return subject["name"] in user.groups
        case "ServiceAccount":
            account_namespace = subject.get("namespace") or namespace
            return user.name == f"system:serviceaccount:{account_namespace}:{subject['name']}"
    return False


def _drop_garbage_collector_fields(manifest: Manifest) -> Manifest:
    """k8s: a change of only these fields needs no escalation check."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in GARBAGE_COLLECTOR_FIELDS}
    return {**manifest, "metadata": metadata}
