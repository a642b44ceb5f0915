"""CEL validation rules: which rules run, which messages they give, and that none can crash the server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from argosy.kube.schema import cel
from argosy.kube.schema.crd import CustomKind, apply_definition_defaults, build_custom_kinds


def kind_with(spec: dict[str, Any]) -> CustomKind:
    schema = {"type": "object", "properties": {"spec": {"type": "object", **spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "gears", "kind": "Gear"}
    spec = {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]}
    return build_custom_kinds(apply_definition_defaults({"metadata": {"name": "gears.example.org"}, "spec": spec}))[0]


def evaluate_rules(kind: CustomKind, spec: Any, old: Any = None) -> tuple[list[str], list[str]]:
    def gear(inner: Any) -> dict[str, Any]:
        return {"apiVersion": "example.org/v1", "kind": "Gear", "metadata": {"name": "g"}, "spec": inner}

    calls = kind.build_rule_calls(gear(spec), None if old is None else gear(old))
    results = cel.evaluate(json.loads(json.dumps(calls)))
    faults, warnings = kind.read_rule_results(calls, json.loads(json.dumps(results)))
    return [str(fault) for fault in faults], warnings


SLOW = {"rule": "self.mode != 'slow' || self.size < 5", "message": "slow widgets must be small"}


def test_failed_rule_reports_its_message() -> None:
    kind = kind_with(
        {"properties": {"mode": {"type": "string"}, "size": {"type": "integer"}}, "x-kubernetes-validations": [SLOW]}
    )
    assert evaluate_rules(kind, {"mode": "slow", "size": 9}) == (
        ['spec: Invalid value: "object": slow widgets must be small'],
        [],
    )
    assert evaluate_rules(kind, {"mode": "slow", "size": 4}) == ([], [])
    assert evaluate_rules(kind, {"mode": "slow", "size": 9}, old={"mode": "slow", "size": 9}) == ([], [])


def test_transition_rule_runs_only_with_an_old_value() -> None:
    kind = kind_with(
        {"properties": {"a": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}}
    )
    assert evaluate_rules(kind, {"a": "x"}) == ([], [])
    assert evaluate_rules(kind, {"a": "x"}, old={"a": "x"}) == ([], [])
    assert evaluate_rules(kind, {"a": "y"}, old={"a": "x"}) == (
        ['spec.a: Invalid value: "string": failed rule: self == oldSelf'],
        [],
    )


def test_optional_old_self_rule_allows_create_and_checks_update() -> None:
    rule = {"rule": "!oldSelf.hasValue() || oldSelf.value() == self", "optionalOldSelf": True, "message": "fixed"}
    kind = kind_with({"properties": {"a": {"type": "integer", "x-kubernetes-validations": [rule]}}})
    assert evaluate_rules(kind, {"a": 1}) == ([], [])
    assert evaluate_rules(kind, {"a": 2}, old={"a": 1})[0] == ['spec.a: Invalid value: "integer": fixed']


def test_map_list_item_is_compared_with_old_item_of_same_key() -> None:
    item = {
        "type": "object",
        "properties": {"n": {"type": "string"}, "v": {"type": "integer"}},
        "required": ["n"],
        "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "grows only"}],
    }
    kind = kind_with(
        {
            "properties": {
                "l": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["n"],
                    "items": item,
                }
            }
        }
    )
    old = {"l": [{"n": "a", "v": 1}, {"n": "b", "v": 5}]}
    new = {"l": [{"n": "b", "v": 4}, {"n": "a", "v": 2}, {"n": "c", "v": 0}]}
    assert evaluate_rules(kind, new, old)[0] == ['spec.l[0]: Invalid value: "object": grows only']


def test_message_expression_reason_and_field_path_are_used() -> None:
    rules = [
        {
            "rule": "self.a < 3",
            "messageExpression": "'a is ' + string(self.a)",
            "reason": "FieldValueForbidden",
            "fieldPath": ".a",
        }
    ]
    kind = kind_with({"properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": rules})
    assert evaluate_rules(kind, {"a": 7})[0] == ["spec.a: Forbidden: a is 7"]


def test_property_names_invalid_in_cel_are_escaped() -> None:
    rules = [{"rule": "self.my__dash__name == 'x' && self.__namespace__ == 'n'"}]
    properties = {"my-name": {"type": "string"}, "namespace": {"type": "string"}}
    kind = kind_with({"properties": properties, "x-kubernetes-validations": rules})
    assert evaluate_rules(kind, {"my-name": "x", "namespace": "n"}) == ([], [])


@pytest.mark.parametrize(
    "rule",
    [
        "has(self.a) && !has(self.zz)",
        "self.list.all(x, x > 0) && self.list.exists(x, x == 2)",
        "self.list.map(x, x * 2) == [2, 4] && self.list.filter(x, x > 1) == [2]",
        "size(self.a) == 3 && self.a.matches('^[a-z]+$') && self.a.startsWith('a')",
        "self.a in ['abc', 'd']",
        "quantity('1Gi').isGreaterThan(quantity('1M')) && quantity('1Gi') == quantity('1024Mi')",
        "isQuantity('3m') && !isQuantity('x') && quantity('2').asInteger() == 2",
        "url('https://a.b:8/c').getHost() == 'a.b:8' && isURL('https://a') && !isURL('::')",
        "'%s is %d'.format(['x', 3]) == 'x is 3'",
        "self.list.isSorted() && self.list.sum() == 3 && self.list.max() == 2",
        "self.a.upperAscii() == 'ABC' && 'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b'",
        "isIP('10.0.0.1') && cidr('10.0.0.0/8').containsIP('10.1.2.3') && ip('::1').family() == 6",
        "duration('1h') > duration('30m')",
        "timestamp('2024-01-01T00:00:00Z') < timestamp('2025-01-01T00:00:00Z')",
        "self.map.all(k, self.map[k] != '')",
    ],
)
def test_functions_used_by_real_crds_are_supported(rule: str) -> None:
    value = {"a": "abc", "list": [1, 2], "map": {"k": "v"}}
    assert cel.evaluate([{"rule": rule, "self": value}]) == [{"outcome": "ok"}]


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        ("self.find('x') == 'y'", "find"),
        ("self.?a.orValue('') == ''", ".?"),
        ("authorizer.path('/') == 1", "authorizer"),
    ],
)
def test_unsupported_cel_feature_is_skipped_with_a_warning(rule: str, named: str) -> None:
    (result,) = cel.evaluate([{"rule": rule, "self": {"a": "x"}}])
    assert result["outcome"] == "skipped"
    assert named in result["message"]
    kind = kind_with({"properties": {"a": {"type": "string"}}, "x-kubernetes-validations": [{"rule": rule}]})
    faults, warnings = evaluate_rules(kind, {"a": "x"})
    assert faults == []
    assert named in warnings[0]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("self.missing == 1", "no such key: missing"),
        ("1 / 0 == 1", ""),
        ("self.a", "cel expression must evaluate to a bool"),
        ("(" * 5000, "nested deeper"),
        ("!" * 5000 + "true", "nested deeper"),
        ("x" * 20000, "longer than"),
        ("self.", "Syntax error"),
    ],
)
def test_rule_that_cannot_be_evaluated_gives_an_error(rule: str, said: str) -> None:
    (result,) = cel.evaluate([{"rule": rule, "self": {"a": "x"}}])
    assert result["outcome"] == "error"
    assert said in result["message"]


def test_find_compile_error_reports_only_invalid_cel() -> None:
    assert cel.find_compile_error("self.a == 1") == ""
    assert cel.find_compile_error("self.?a.hasValue()") == ""
    assert cel.find_compile_error("self.a ==").startswith("compilation failed: ERROR:")
    assert cel.find_compile_error("'a' +", is_message_expression=True).startswith(
        "messageExpression compilation failed: "
    )
