"""jq paths with hostile expressions and documents: work is bounded, and exceeding the bound is reported."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.application import IgnoreDifference
from argosy.gitops.diff.application_comparison import compare_manifests
from argosy.gitops.diff.diff_options import DiffOptions
from argosy.gitops.diff.ignored_fields import JqResults, combine_rules
from argosy.kube.objects import key_of
from argosy.languages.jq_evaluator import JqTooExpensiveError
from argosy.languages.jq_path_expressions import compile_jq

MANY = 60_000
LARGE = {"x": list(range(MANY)), "names": {str(number): number for number in range(20_000)}, "text": "a" * 1_000_000}


@pytest.mark.parametrize("elements", [[1] * MANY, {str(number): 1 for number in range(MANY)}], ids=["list", "object"])
def test_many_elements_are_removed_with_one_copy_of_their_container(elements: Any) -> None:
    """One copy per element would be 3.6 billion entries here."""
    path = compile_jq(".a[]")
    assert path is not None
    assert path.delete_paths({"a": elements, "b": 1}) == {"a": type(elements)(), "b": 1}


@pytest.mark.parametrize(
    "expression",
    [
        "select(.x == .x) | " * 300 + ".x",
        "select(.names == .names) | " * 300 + ".x",
        "select(.text == .text) | " * 300 + ".x",
        "(" + ", ".join(['select(.text | test("b"))'] * 300) + ") | .x",
        "select((.x[], .x[]) < (.x[], .x[])) | .x",
        "(" * 40 + ".x[]?" + ")?" * 40 + ", .x[]" * 30,
        ".x | " + ". | " * 1500 + ".[0]",
    ],
    ids=["lists", "objects", "texts", "tests", "products", "attempts", "depth"],
)
def test_too_expensive_expression_is_stopped_even_inside_try(expression: str) -> None:
    path = compile_jq(expression)
    assert path is not None
    with pytest.raises(JqTooExpensiveError):
        path.delete_paths(LARGE)


def rule(*expressions: str) -> IgnoreDifference:
    return IgnoreDifference(kind="ConfigMap", jq_paths=expressions)


def config_map(name: str, **data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ml"}, "data": data}


def test_comparison_reports_expensive_expression_and_applies_others() -> None:
    hostile = "select(.data.x == .data.x) | " * 300 + ".data.b"
    rules = DiffOptions(ignore_rules=(rule(hostile, ".data.a"),))
    desired = [config_map(name, a="1", x=[0] * MANY) for name in ("one", "two")]
    live = {key_of(manifest): manifest | {"data": manifest["data"] | {"a": "2"}} for manifest in desired}
    comparison = compare_manifests(desired, live, rules)
    assert [pair.differs for pair in comparison.pairs] == [False, False]
    (fault,) = comparison.faults
    assert fault.startswith("jqPathExpressions: 'select(.data.x == .data.x)")
    assert fault.endswith("it takes too much time or memory; simplify it")


def test_too_expensive_expression_is_not_retried_on_next_document() -> None:
    hostile = "select(.data.x == .data.x) | " * 300 + ".data.b"
    removed = JqResults(too_expensive={})
    manifest = config_map("one", b="1", x=[0] * MANY)
    ignored = combine_rules([rule(hostile)], key_of(manifest))
    assert ignored.remove_from(manifest, removed) == manifest
    small = config_map("two", b="1", x=[0])
    assert ignored.remove_from(small, removed) == small
    assert "b" not in ignored.remove_from(small)["data"], "a new comparison tries it again"
