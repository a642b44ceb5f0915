"""Label selectors: what they match, and the errors for invalid selectors."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import ManifestError
from argosy.kube.schema.selectors import label_selector_from_wire, parse_label_selector
from support.examples import examples

KEYS = st.from_regex(
    r"[a-z]([a-z0-9.-]{0,6}[a-z0-9])?(/[A-Za-z0-9]([A-Za-z0-9_.-]{0,6}[A-Za-z0-9])?)?", fullmatch=True
).filter(
    lambda key: all(
        part and not part.startswith("-") and not part.endswith("-") for part in key.partition("/")[0].split(".")
    )
)
VALUES = st.from_regex(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,6}[A-Za-z0-9])?)?", fullmatch=True)


@st.composite
def terms(draw: st.DrawFn) -> str:
    key = draw(KEYS)
    values = draw(st.lists(VALUES.filter(bool), min_size=1, max_size=4))
    number = draw(st.integers(-100, 100))
    return draw(
        st.sampled_from(
            [
                f"{key}={values[0]}",
                f"{key} == {values[0]}",
                f"{key}!={values[0]}",
                f"{key} in ({','.join(values)})",
                f"{key} notin ( {', '.join(values)} )",
                key,
                f"!{key}",
                f"{key}>{abs(number)}",
                f"{key}<{abs(number)}",
            ]
        )
    )


SELECTORS = st.lists(terms(), max_size=5).map(",".join)
LABELS = st.dictionaries(KEYS, VALUES, max_size=5)


@settings(max_examples=examples())
@given(SELECTORS)
def test_label_selector_round_trips_through_text(text: str) -> None:
    selector = parse_label_selector(text)
    assert parse_label_selector(str(selector)) == selector
    assert hash(parse_label_selector(str(selector))) == hash(selector)


@settings(max_examples=examples())
@given(st.lists(terms(), max_size=5), LABELS)
def test_selector_matches_if_all_its_terms_match(selector_terms: list[str], present: dict[str, str]) -> None:
    assert parse_label_selector(",".join(selector_terms)).matches(present) is all(
        parse_label_selector(term).matches(present) for term in selector_terms
    )


@settings(max_examples=examples())
@given(KEYS, VALUES, LABELS)
def test_notin_matches_exactly_what_in_does_not_match(key: str, value: str, present: dict[str, str]) -> None:
    for sample in (present, {**present, key: value}):
        assert parse_label_selector(f"{key} in ({value})").matches(sample) is not parse_label_selector(
            f"{key} notin ({value})"
        ).matches(sample)


@settings(max_examples=examples())
@given(KEYS, VALUES)
def test_in_with_one_value_is_equality(key: str, value: str) -> None:
    assert (
        parse_label_selector(f"{key} in ({value})")
        == parse_label_selector(f"{key}={value}")
        == parse_label_selector(f"{key}=={value}")
    )
    assert parse_label_selector(f"{key} notin ({value})") == parse_label_selector(f"{key}!={value}")


@settings(max_examples=examples())
@given(st.dictionaries(KEYS, VALUES, max_size=4), LABELS)
def test_match_labels_equal_the_textual_selector(match_labels: dict[str, str], present: dict[str, str]) -> None:
    text = ",".join(f"{key}={value}" for key, value in match_labels.items())
    assert label_selector_from_wire({"matchLabels": match_labels}) == parse_label_selector(text)
    assert label_selector_from_wire({"matchLabels": match_labels}).matches({**present, **match_labels})


@pytest.mark.parametrize(
    ("text", "present", "matched"),
    [
        ("", {}, True),
        ("a", {"a": ""}, True),
        ("a", {}, False),
        ("!a", {"b": "c"}, True),
        ("a!=b", {}, True),
        ("a=", {"a": ""}, True),
        ("a in (b, c)", {"a": "c"}, True),
        ("a in (b,)", {"a": ""}, True),
        ("a in ()", {"a": ""}, True),
        ("a notin (b)", {"a": "b"}, False),
        ("a>3", {"a": "4"}, True),
        ("a>3", {"a": "3"}, False),
        ("a<3", {"a": "x"}, False),
        ("a<3", {}, False),
        ("in in (in)", {"in": "in"}, True),
        ("a in (,b,,c)", {"a": ""}, True),
        ("!a=b", {"a": "b"}, True),
    ],
)
def test_selector_operators_match_like_kubernetes(text: str, present: dict[str, str], matched: bool) -> None:
    assert parse_label_selector(text).matches(present) is matched


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (,,)", "unable to parse requirement: found ')', expected: ',', or identifier"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        (
            "a>b",
            'unable to parse requirement: values[0]: Invalid value: "b": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (
            "a=-b",
            'unable to parse requirement: values[0][a]: Invalid value: "-b": a valid label must be an empty string '
            "or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
            "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
            "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
        (
            "/a=b",
            'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty',
        ),
    ],
)
def test_invalid_label_selector_is_rejected_with_server_message(text: str, words: str) -> None:
    with pytest.raises(ManifestError) as refusal:
        parse_label_selector(text)
    assert refusal.value.message == words


def test_match_labels_and_match_expressions_must_all_match() -> None:
    selector = label_selector_from_wire(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["a", "b"]},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        }
    )
    assert selector.matches({"app": "web", "tier": "b"})
    assert not selector.matches({"app": "web", "tier": "b", "old": ""})
    assert str(selector) == "app=web,!old,tier in (a,b)"


def test_missing_selector_matches_nothing_and_empty_one_everything() -> None:
    assert not label_selector_from_wire(None).matches({"a": "b"})
    assert not label_selector_from_wire(None).is_empty
    assert label_selector_from_wire({}).matches({"a": "b"})
    assert label_selector_from_wire({}).is_empty


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ({"key": "a", "operator": "Near"}, '"Near" is not a valid label selector operator'),
        (
            {"key": "a", "operator": "In"},
            "values: Invalid value: []string(nil): for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            {"key": "a", "operator": "Exists", "values": ["b"]},
            'values: Invalid value: []string{"b"}: values set must be empty for exists and does not exist',
        ),
    ],
)
def test_invalid_match_expression_is_rejected(expression: dict[str, object], words: str) -> None:
    with pytest.raises(ManifestError) as refusal:
        label_selector_from_wire({"matchExpressions": [expression]})
    assert refusal.value.message == words
