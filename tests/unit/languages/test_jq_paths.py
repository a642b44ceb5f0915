"""jq paths: the supported subset removes what jq's del() removes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.languages.jq_evaluator import JqTooExpensiveError
from argosy.languages.jq_path_expressions import compile_jq
from support.examples import examples

jq = pytest.importorskip("jq", reason="the real jq is not installed")

DOCUMENT = {
    "metadata": {"annotations": {"a.b/c": "1", "d": "2"}, "labels": None},
    "spec": {
        "replicas": 3,
        "containers": [
            {"name": "web", "image": "web:1", "ports": [{"port": 80}, {"port": 443}]},
            {"name": "proxy-1", "image": "proxy:2", "env": []},
            {"name": "log", "resources": {"limits": {"cpu": "1"}}},
        ],
        "flags": {"x": True, "y": False},
    },
}
UNDERSTOOD = [
    ".",
    ".spec",
    ".spec.replicas",
    ".spec.containers[0]",
    ".spec.containers[-1].name",
    ".spec.containers[7]",
    ".spec.containers[]",
    ".spec.containers[].image",
    ".spec.containers[].image?",
    ".spec.containers[]?.ports[]?.port",
    ".spec.nothing[]?",
    ".spec.nothing[]",
    ".spec.replicas.below",
    ".nothing.at.all",
    '.metadata.annotations["a.b/c"]',
    '.metadata.annotations."d"',
    '."spec"."flags"',
    '.["spec"]["flags"]',
    ".spec.containers.[0].name",
    ".metadata.labels.x",
    '.spec.containers[] | select(.name == "web")',
    '.spec.containers[] | select(.name == "web") | .image',
    '.spec.containers[] | select(.name == "web").image',
    '.spec.containers[] | select(.name != "web") | .name',
    '.spec.containers[] | select(.name | test("proxy"))',
    '.spec.containers[] | select(.name | test("^proxy-1$"))',
    '.spec.containers[] | select(.name | test("og$"))',
    '.spec.containers[] | select(.name | startswith("pro") or endswith("eb"))',
    '.spec.containers[] | select(has("env"))',
    '.spec.containers[] | select(has("env") | not)',
    ".spec.containers[] | select(.ports[].port == 443)",
    '.spec.containers[] | select(.ports[]?.port > 80 and .name == "web")',
    ".spec.containers[] | select(.env == null)",
    ".spec.replicas, .metadata.annotations",
    "(.spec.containers[0], .spec.containers[1]) | .name",
    ".spec.containers[0], .spec.containers[0]",
    ".spec.flags | .x",
    ".spec.flags[] | select(. == true)",
    ".spec.flags[] | select(.)",
    ".spec | select(.replicas >= 3) | .containers",
    ".spec | select(.replicas < 3) | .containers",
    '.spec.containers[] | select((.name == "web") or (.name == "log")) | .name',
    ".spec == 1",
]


def really(expression: str, document: Any) -> Any:
    try:
        return jq.compile(f"del({expression})").input_value(document).first()
    except ValueError:
        return document


@pytest.mark.parametrize("expression", UNDERSTOOD)
def test_supported_path_removes_what_jq_removes(expression: str) -> None:
    path = compile_jq(expression)
    assert path is not None, "it is left to the real jq"
    before = json.dumps(DOCUMENT)
    assert path.delete_paths(DOCUMENT) == really(expression, DOCUMENT)
    assert json.dumps(DOCUMENT) == before


@pytest.mark.parametrize(
    "expression",
    [
        "", "..", ".a[1:2]", ".. | .image?", ".a + 1", ".a // .b", "env", "$ENV.PATH", "paths", ".a | length",
        "def f: .; f",
        '.a | test("(a+)+$")', '.a | test("a"; "x")', ".a[.b]", '."\\(1)"', "if . then . else . end", ".a as $x | $x",
        "reduce .[] as $x (0; 1)", "recurse", "range(1000000000)", ".a]", "(.a", '"', ".a.", "[.a]", "{}", "a" * 20_000,
        "(" * 200 + "." + ")" * 200,
    ],
)  # fmt: skip
def test_unsupported_expression_is_left_to_the_real_jq(expression: str) -> None:
    assert compile_jq(expression) is None


def test_exponential_expression_is_stopped() -> None:
    path = compile_jq(" | ".join(["(.,.)"] * 40))
    assert path is not None
    with pytest.raises(JqTooExpensiveError):
        path.delete_paths({"a": 1})


leaves = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["a", "b", "ab"])
documents = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner)),
)
steps = st.sampled_from([".a", ".b", "[0]", "[-1]", "[]", '["c"]'])
conditions = st.sampled_from(['. == "a"', ". == null", ". > 0", ". != false", "not", ". <= 1 or . == true"])


@st.composite
def expressions(draw: Any) -> str:
    def path() -> str:
        return "." + "".join(draw(st.lists(steps, min_size=1, max_size=3))).removeprefix(".")

    parts = [path() for _ in range(draw(st.integers(1, 2)))]
    text = draw(st.sampled_from([" | ", ", "])).join(parts)
    return f"({text}) | select({draw(conditions)})" if draw(st.booleans()) else text


@settings(max_examples=examples(300), deadline=None)
@given(expressions(), documents)
def test_random_path_removes_what_jq_removes(expression: str, document: Any) -> None:
    path = compile_jq(expression)
    assert path is not None
    assert path.delete_paths(document) == really(expression, document)
