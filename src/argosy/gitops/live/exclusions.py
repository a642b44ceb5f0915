"""Decides which kinds an installation watches.

In: `resource.exclusions` and `resource.inclusions` of argocd-cm. Out: True or False for a kind. Never: raises; an
unreadable setting is reported in `faults`, and the other one applies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.application import IN_CLUSTER
from argosy.gitops.application.canonical_cluster_address import parse_cluster_address
from argosy.gitops.application.cluster_globs import matches_cluster
from argosy.kube.objects import read_yaml
from argosy.kube.objects.go_field_names import spell_fields_like_go
from argosy.kube.objects.strict_typed_field_reader import FieldReader
from argosy.kube.resource_key import GroupKind
from argosy.languages.globs import matches_glob

EXCLUSIONS_SETTING: Final = "resource.exclusions"
INCLUSIONS_SETTING: Final = "resource.inclusions"
IN_CLUSTER_ADDRESS: Final = IN_CLUSTER[0]
REQUIRED_VERBS: Final = frozenset({"list", "watch"})
_RULE_FIELDS: Final = ("apiGroups", "kinds", "clusters")


@dataclass(frozen=True, slots=True)
class KindRule:
    """argo: one entry. Groups and clusters are globs; a kind is a full name or *; an empty list matches everything."""

    groups: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()

    def applies_to(self, kind: GroupKind, cluster: str) -> bool:
        return (
            (not self.kinds or "*" in self.kinds or kind.kind in self.kinds)
            and _matches_any(self.groups, kind.group)
            and self.applies_to_cluster(cluster)
        )

    def applies_to_cluster(self, cluster: str) -> bool:
        address = parse_cluster_address(cluster)
        return not self.clusters or any(matches_cluster(pattern, address) for pattern in self.clusters)


# argo: too many objects that change too often to watch them
ALWAYS_EXCLUDED: Final = (
    KindRule(groups=("events.k8s.io", "metrics.k8s.io")),
    KindRule(groups=("",), kinds=("Event",)),
    KindRule(groups=("coordination.k8s.io",), kinds=("Lease",)),
)


@dataclass(frozen=True, slots=True)
class Exclusions:
    """The rules that apply to one cluster."""

    excluded: tuple[KindRule, ...] = ()
    included: tuple[KindRule, ...] = ()
    cluster: str = IN_CLUSTER_ADDRESS
    faults: tuple[str, ...] = field(default=(), compare=False)

    def excludes(self, kind: GroupKind) -> bool:
        """argo: an exclusion beats an inclusion; if there are inclusions, all other kinds are excluded."""
        if any(rule.applies_to(kind, self.cluster) for rule in (*ALWAYS_EXCLUDED, *self.excluded)):
            return True
        included = [rule for rule in self.included if rule.applies_to_cluster(self.cluster)]
        return bool(included) and not any(rule.applies_to(kind, self.cluster) for rule in included)

    def is_watched(self, kind: GroupKind, verbs: Sequence[str] = tuple(REQUIRED_VERBS)) -> bool:
        return REQUIRED_VERBS.issubset(verbs) and not self.excludes(kind)


def read_exclusions(argocd_cm: Mapping[str, str], cluster: str = IN_CLUSTER_ADDRESS) -> Exclusions:
    """Read both settings. An unreadable one has no effect and is listed in `faults`; callers may keep the last one."""
    faults: list[str] = []
    return Exclusions(
        excluded=_read_rules(argocd_cm, EXCLUSIONS_SETTING, faults),
        included=_read_rules(argocd_cm, INCLUSIONS_SETTING, faults),
        cluster=cluster,
        faults=tuple(faults),
    )


def _read_rules(argocd_cm: Mapping[str, str], setting: str, faults: list[str]) -> tuple[KindRule, ...]:
    where = f"argocd-cm: {setting}"
    try:
        entries = read_yaml(argocd_cm.get(setting, ""))
        if entries is not None and not isinstance(entries, list):
            raise UserError("must be a list; start each rule with a dash")
        return tuple(
            _read_rule(_read_fields(entry, f"[{position}]"), where, faults)
            for position, entry in enumerate(entries or ())
        )
    except UserError as error:
        line = f"line {error.line} of its text: " if error.line else ""
        faults.append(f"{where}: {line}{error.message}; the setting is ignored until it is corrected")
        return ()


def _read_fields(entry: Any, path: str) -> FieldReader:
    values = FieldReader(entry, "", path).values
    return FieldReader(spell_fields_like_go(values, _RULE_FIELDS), "", path)


def _read_rule(entry: FieldReader, where: str, faults: list[str]) -> KindRule:
    faults += [
        f"{where}: {_quote(name)} is not a field of a rule and is ignored; the fields are {', '.join(_RULE_FIELDS)}"
        for name in entry.values
        if name not in _RULE_FIELDS
    ]
    kinds = entry.read_text_list("kinds")
    faults += [
        f"{where}: invalid kind {_quote(kind)}; use a full name or a single *"
        for kind in kinds
        if "*" in kind and kind != "*"
    ]
    return KindRule(entry.read_text_list("apiGroups"), kinds, entry.read_text_list("clusters"))


def _matches_any(globs: Sequence[str], text: str) -> bool:
    return not globs or any(matches_glob(glob, text) for glob in globs)


def _quote(name: Any) -> str:
    return repr(str(name)[:60])
