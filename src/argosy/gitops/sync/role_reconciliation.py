"""What `kubectl auth reconcile` says about a role or a binding. Argo CD runs it before it applies one.

In: a desired and a live manifest. Out: the message of kubectl. Never: writes; grants anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

from argosy.gitops.sync.client_side_apply_patch_builder import contains_desired
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
RBAC_VERSION: Final = f"{RBAC_GROUP}/v1"  # argo: roles of older versions are only applied
BINDING_KINDS: Final = frozenset(GroupKind(RBAC_GROUP, kind) for kind in ("RoleBinding", "ClusterRoleBinding"))
ROLE_KINDS: Final = frozenset(GroupKind(RBAC_GROUP, kind) for kind in ("Role", "ClusterRole"))
AUTO_UPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
_ALL: Final = "*"
_SUBJECT_FIELDS: Final = ("kind", "apiGroup", "name", "namespace")


class PolicyRule(NamedTuple):
    """A rule of a role, with its fields in the order in which Go prints them."""

    verbs: Sequence[str] = ()
    groups: Sequence[str] = ()
    resources: Sequence[str] = ()
    names: Sequence[str] = ()
    urls: Sequence[str] = ()

    def __str__(self) -> str:
        titles = ("Verbs", "APIGroups", "Resources", "ResourceNames", "NonResourceURLs")
        fields = [f"{title}:[{' '.join(texts)}]" for title, texts in zip(titles, self, strict=True)]
        return f"{{{' '.join(fields)}}}"

    def covers(self, atom: PolicyRule) -> bool:
        """True if this rule allows all that a rule with one verb and one resource allows."""
        return (
            (_ALL in self.verbs or set(atom.verbs) <= set(self.verbs))
            and (_ALL in self.groups or set(atom.groups) <= set(self.groups))
            and (_ALL in self.resources or all(map(self._has_resource, atom.resources)))
            and (not self.names or (bool(atom.names) and set(atom.names) <= set(self.names)))
            and all(map(self._has_url, atom.urls))
        )

    def _has_resource(self, resource: str) -> bool:
        _, slash, subresource = resource.partition("/")
        return resource in self.resources or (bool(slash) and f"*/{subresource}" in self.resources)

    def _has_url(self, url: str) -> bool:
        return any(own == url or (own.endswith(_ALL) and url.startswith(own.rstrip(_ALL))) for own in self.urls)

    def split(self) -> Iterator[PolicyRule]:
        """Split the rule into rules with at most one verb, one resource and one name."""
        for group, resource, verb in product(self.groups, self.resources, self.verbs):
            if not self.names:
                yield PolicyRule((verb,), (group,), (resource,))
            for name in self.names:
                yield PolicyRule((verb,), (group,), (resource,), (name,))
        for url, verb in product(self.urls, self.verbs):
            yield PolicyRule((verb,), urls=(url,))


def is_reconciled(kind: GroupKind, manifest: Manifest) -> bool:
    return kind in ROLE_KINDS | BINDING_KINDS and manifest.get("apiVersion") == RBAC_VERSION


def describe_reconciliation(kubectl_name: str, desired: Manifest, live: Manifest | None, *, dry_run: bool) -> str:
    """Return the output of `kubectl auth reconcile`, as Argo CD puts it before that of `kubectl apply`."""
    first_line = f"{kubectl_name} reconciled{' (dry run)' if dry_run else ''}"
    operation, missing = _compare(desired, live)
    if not operation:
        return first_line
    is_opted_out = live is not None and _read_texts(live["metadata"], "annotations").get(AUTO_UPDATE) == "false"
    caveat = f", but object opted out ({AUTO_UPDATE}: false)" if is_opted_out else ""
    title = "subjects" if "roleRef" in desired else "rules"
    lines = [f"\tmissing {title} added:", *(f"\t\t{item}" for item in missing)] if missing else []
    return "\n".join([f"{first_line}. reconciliation required {operation}{caveat}", *lines])


def _compare(desired: Manifest, live: Manifest | None) -> tuple[str, Sequence[object]]:
    """Return what has to be done to the live object, and the rules or subjects that it lacks."""
    is_binding = "roleRef" in desired
    if live is None:
        return "create", _read_subjects(desired) if is_binding else _read_rules(desired)
    if is_binding and not contains_desired(live.get("roleRef"), desired["roleRef"]):
        return "recreate", ()
    missing: Sequence[object]
    if is_binding:
        live_subjects = _read_subjects(live)
        missing = [subject for subject in dict.fromkeys(_read_subjects(desired)) if subject not in live_subjects]
    else:
        rules = _read_rules(live)
        atoms = [atom for rule in _read_rules(desired) for atom in rule.split()]
        missing = [atom for atom in atoms if not any(rule.covers(atom) for rule in rules)]
    return (
        "update" if missing or _lacks_metadata(desired, live) or _differs_in_aggregation(desired, live) else ""
    ), missing


def _lacks_metadata(desired: Manifest, live: Manifest) -> bool:
    """k8s: values that differ are kept; only new keys count."""
    return any(
        _read_texts(desired["metadata"], field).keys() - _read_texts(live["metadata"], field).keys()
        for field in ("annotations", "labels")
    )


def _differs_in_aggregation(desired: Manifest, live: Manifest) -> bool:
    expected, present = (manifest.get("aggregationRule") for manifest in (desired, live))
    if not expected:
        return bool(present)
    return any(
        selector not in _read_maps(present or {}, "clusterRoleSelectors")
        for selector in _read_maps(expected, "clusterRoleSelectors")
    )


def _read_rules(role: Manifest) -> list[PolicyRule]:
    fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
    return [
        PolicyRule(*(tuple(map(str, rule.get(field) or ())) for field in fields)) for rule in _read_maps(role, "rules")
    ]


def _read_subjects(binding: Manifest) -> list[str]:
    """Return the subjects as Go prints them."""
    return [
        "{{Kind:{} APIGroup:{} Name:{} Namespace:{}}}".format(*(subject.get(field) or "" for field in _SUBJECT_FIELDS))
        for subject in _read_maps(binding, "subjects")
    ]


def _read_maps(parent: Any, field: str) -> list[Mapping[str, Any]]:
    items = parent.get(field) if isinstance(parent, Mapping) else None
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def _read_texts(parent: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    texts = parent.get(field)
    return texts if isinstance(texts, Mapping) else {}
