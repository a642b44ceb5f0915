"""Formats values like Go's `%#v`, because the API server's field errors print them so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.kube.schema.field_error import format_go_value
from argosy.kube.schema.quantity import read

# The real server prints the address of the value here, never the value itself.
_BOOL_POINTER = "(*bool)(0xc000000001)"


def format_string_map(values: Mapping[str, Any] | None) -> str:
    if values is None:
        return "map[string]string(nil)"
    entries = ", ".join(f"{format_go_value(key)}:{format_go_value(str(values[key] or ''))}" for key in sorted(values))
    return f"map[string]string{{{entries}}}"


def format_string_list(values: Sequence[str] | None, go_type: str = "string") -> str:
    if values is None:
        return f"[]{go_type}(nil)"
    return f"[]{go_type}{{{', '.join(format_go_value(value) for value in values)}}}"


def format_label_selector(selector: Mapping[str, Any] | None) -> str:
    if selector is None:
        return '"null"'
    terms = selector.get("matchExpressions")
    if terms:
        requirements = ", ".join(
            f"v1.LabelSelectorRequirement{{Key:{format_go_value(term.get('key') or '')}, "
            f"Operator:{format_go_value(term.get('operator') or '')}, Values:{format_string_list(term.get('values'))}}}"
            for term in terms
        )
        expressions = f"[]v1.LabelSelectorRequirement{{{requirements}}}"
    else:
        expressions = "[]v1.LabelSelectorRequirement(nil)"
    return (
        f"v1.LabelSelector{{MatchLabels:{format_string_map(selector.get('matchLabels'))}, "
        f"MatchExpressions:{expressions}}}"
    )


def format_int_or_string(value: object) -> str:
    if isinstance(value, str):
        return f"intstr.IntOrString{{Type:1, IntVal:0, StrVal:{format_go_value(value)}}}"
    return f'intstr.IntOrString{{Type:0, IntVal:{value or 0}, StrVal:""}}'


def _format_bool_pointer(value: object) -> str:
    return "(*bool)(nil)" if value is None else _BOOL_POINTER


def format_owner_references(references: Sequence[Mapping[str, Any]]) -> str:
    references_text = ", ".join(
        f"v1.OwnerReference{{APIVersion:{format_go_value(reference.get('apiVersion') or '')}, "
        f"Kind:{format_go_value(reference.get('kind') or '')}, "
        f"Name:{format_go_value(reference.get('name') or '')}, UID:{format_go_value(reference.get('uid') or '')}, "
        f"Controller:{_format_bool_pointer(reference.get('controller'))}, "
        f"BlockOwnerDeletion:{_format_bool_pointer(reference.get('blockOwnerDeletion'))}}}"
        for reference in references
    )
    return f"[]v1.OwnerReference{{{references_text}}}"


def format_quantity(text: str) -> str:
    """Format a quantity as its Go struct: value, power of ten, and its text if that is canonical."""
    parsed = read(text)
    sign, digits, exponent = parsed.value.normalize().as_tuple()
    value, scale = int("".join(map(str, digits)) or "0") * (-1 if sign else 1), exponent
    if parsed.style == "binary":
        value, scale = int(parsed.value), 0
    format_name = {"binary": "BinarySI", "decimal": "DecimalSI", "exponent": "DecimalExponent"}[parsed.style]
    return (
        f"resource.Quantity{{i:resource.int64Amount{{value:{value}, scale:{scale}}}, "
        f'd:resource.infDecAmount{{Dec:(*inf.Dec)(nil)}}, s:"{parsed.canonical_text}", Format:"{format_name}"}}'
    )


def format_role_ref(role_reference: Mapping[str, Any]) -> str:
    fields = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
    return (
        "rbac.RoleRef{"
        + ", ".join(
            f"{go_name}:{format_go_value(role_reference.get(json_name) or '')}" for go_name, json_name in fields
        )
        + "}"
    )


def format_strategy(update_strategy: Mapping[str, Any], go_type: str, rolling_go_type: str) -> str:
    """Format the strategy of a Deployment or DaemonSet whose type is unknown."""
    nested = (
        f"(*apps.{rolling_go_type})(nil)"
        if update_strategy.get("rollingUpdate") is None
        else f"(*apps.{rolling_go_type})(0xc000000001)"
    )
    return f"apps.{go_type}{{Type:{format_go_value(update_strategy.get('type') or '')}, RollingUpdate:{nested}}}"


def format_service_port(protocol: str, port: int) -> str:
    target = format_int_or_string(0)
    return (
        f'core.ServicePort{{Name:"", Protocol:{format_go_value(protocol)}, AppProtocol:(*string)(nil), Port:{port}, '
        f"TargetPort:{target}, NodePort:0}}"
    )


def format_disruption_budget(spec: Mapping[str, Any]) -> str:
    """Format the spec of a PodDisruptionBudget; Go prints pointers as addresses, so only nil or not nil is visible."""

    def pointer(name: str, kind: str) -> str:
        return f"(*{kind})({'nil' if spec.get(name) is None else '0xc000000001'})"

    fields = (
        ("MinAvailable", pointer("minAvailable", "intstr.IntOrString")),
        ("Selector", pointer("selector", "v1.LabelSelector")),
        ("MaxUnavailable", pointer("maxUnavailable", "intstr.IntOrString")),
        ("UnhealthyPodEvictionPolicy", pointer("unhealthyPodEvictionPolicy", "policy.UnhealthyPodEvictionPolicyType")),
    )
    return (
        "policy.PodDisruptionBudgetSpec{" + ", ".join(f"{name}:{pointer_text}" for name, pointer_text in fields) + "}"
    )


def format_rolling_update(rolling: Mapping[str, Any]) -> str:
    max_unavailable = f"(*intstr.IntOrString)({'nil' if rolling.get('maxUnavailable') is None else '0xc000000001'})"
    go_type = "apps.RollingUpdateStatefulSetStrategy"
    return f"{go_type}{{Partition:{rolling.get('partition') or 0}, MaxUnavailable:{max_unavailable}}}"
