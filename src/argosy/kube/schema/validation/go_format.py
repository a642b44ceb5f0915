"""Formats values like Go's `%#v`, because the API server's field errors print them so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.kube.schema.field_error import go_value
from argosy.kube.schema.quantity import read

# The real server prints the address of the value here, never the value itself.
_TRUE = "(*bool)(0xc000000001)"


def string_map(given: Mapping[str, Any] | None) -> str:
    if given is None:
        return "map[string]string(nil)"
    shown = ", ".join(f"{go_value(key)}:{go_value(str(given[key] or ''))}" for key in sorted(given))
    return f"map[string]string{{{shown}}}"


def string_list(given: Sequence[str] | None, kind: str = "string") -> str:
    if given is None:
        return f"[]{kind}(nil)"
    return f"[]{kind}{{{', '.join(go_value(each) for each in given)}}}"


def label_selector(selector: Mapping[str, Any] | None) -> str:
    if selector is None:
        return '"null"'
    terms = selector.get("matchExpressions")
    if terms:
        shown = ", ".join(
            f"v1.LabelSelectorRequirement{{Key:{go_value(term.get('key') or '')}, "
            f"Operator:{go_value(term.get('operator') or '')}, Values:{string_list(term.get('values'))}}}"
            for term in terms
        )
        expressions = f"[]v1.LabelSelectorRequirement{{{shown}}}"
    else:
        expressions = "[]v1.LabelSelectorRequirement(nil)"
    return f"v1.LabelSelector{{MatchLabels:{string_map(selector.get('matchLabels'))}, MatchExpressions:{expressions}}}"


def int_or_string(value: object) -> str:
    if isinstance(value, str):
        return f"intstr.IntOrString{{Type:1, IntVal:0, StrVal:{go_value(value)}}}"
    return f'intstr.IntOrString{{Type:0, IntVal:{value or 0}, StrVal:""}}'


def _flag(value: object) -> str:
    return "(*bool)(nil)" if value is None else _TRUE


def owner_references(references: Sequence[Mapping[str, Any]]) -> str:
    shown = ", ".join(
        f"v1.OwnerReference{{APIVersion:{go_value(each.get('apiVersion') or '')}, "
        f"Kind:{go_value(each.get('kind') or '')}, "
        f"Name:{go_value(each.get('name') or '')}, UID:{go_value(each.get('uid') or '')}, "
        f"Controller:{_flag(each.get('controller'))}, BlockOwnerDeletion:{_flag(each.get('blockOwnerDeletion'))}}}"
        for each in references
    )
    return f"[]v1.OwnerReference{{{shown}}}"


def quantity(text: str) -> str:
    """Format a quantity as its Go struct: value, power of ten, and its text if that is canonical."""
    found = read(text)
    sign, digits, exponent = found.value.normalize().as_tuple()
    value, scale = int("".join(map(str, digits)) or "0") * (-1 if sign else 1), exponent
    if found.style == "binary":
        value, scale = int(found.value), 0
    name = {"binary": "BinarySI", "decimal": "DecimalSI", "exponent": "DecimalExponent"}[found.style]
    return (
        f"resource.Quantity{{i:resource.int64Amount{{value:{value}, scale:{scale}}}, "
        f'd:resource.infDecAmount{{Dec:(*inf.Dec)(nil)}}, s:"{found.kept}", Format:"{name}"}}'
    )


def role_ref(given: Mapping[str, Any]) -> str:
    fields = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
    return "rbac.RoleRef{" + ", ".join(f"{go}:{go_value(given.get(json) or '')}" for go, json in fields) + "}"


def strategy(given: Mapping[str, Any], kind: str, rolling: str) -> str:
    """Format the strategy of a Deployment or DaemonSet whose type is unknown."""
    nested = f"(*apps.{rolling})(nil)" if given.get("rollingUpdate") is None else f"(*apps.{rolling})(0xc000000001)"
    return f"apps.{kind}{{Type:{go_value(given.get('type') or '')}, RollingUpdate:{nested}}}"


def service_port(protocol: str, port: int) -> str:
    target = int_or_string(0)
    return (
        f'core.ServicePort{{Name:"", Protocol:{go_value(protocol)}, AppProtocol:(*string)(nil), Port:{port}, '
        f"TargetPort:{target}, NodePort:0}}"
    )


def budget(spec: Mapping[str, Any]) -> str:
    """Format the spec of a PodDisruptionBudget; Go prints pointers as addresses, so only nil or not nil is visible."""

    def pointer(name: str, kind: str) -> str:
        return f"(*{kind})({'nil' if spec.get(name) is None else '0xc000000001'})"

    fields = (
        ("MinAvailable", pointer("minAvailable", "intstr.IntOrString")),
        ("Selector", pointer("selector", "v1.LabelSelector")),
        ("MaxUnavailable", pointer("maxUnavailable", "intstr.IntOrString")),
        ("UnhealthyPodEvictionPolicy", pointer("unhealthyPodEvictionPolicy", "policy.UnhealthyPodEvictionPolicyType")),
    )
    return "policy.PodDisruptionBudgetSpec{" + ", ".join(f"{name}:{shown}" for name, shown in fields) + "}"


def partition(rolling: Mapping[str, Any]) -> str:
    most = f"(*intstr.IntOrString)({'nil' if rolling.get('maxUnavailable') is None else '0xc000000001'})"
    kind = "apps.RollingUpdateStatefulSetStrategy"
    return f"{kind}{{Partition:{rolling.get('partition') or 0}, MaxUnavailable:{most}}}"
