"""Field selectors: parsing, and the fields by which each kind can be selected."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import ManifestError
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema.selectors import (
    FieldSelector,
    FieldTerm,
    build_custom_field_labels,
    get_field_labels,
    parse_field_selector,
)
from support.examples import examples

PATHS = st.from_regex(r"[a-z]{1,4}(\.[a-zA-Z]{1,5}){0,2}", fullmatch=True)
TERMS = st.builds(
    FieldTerm, PATHS, st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8), st.booleans()
)


@settings(max_examples=examples())
@given(st.lists(TERMS, max_size=4))
def test_field_terms_round_trip_through_text(terms: list[FieldTerm]) -> None:
    assert parse_field_selector(",".join(map(str, terms))) == FieldSelector(tuple(sorted(terms)))


@settings(max_examples=examples())
@given(st.lists(TERMS, max_size=4))
def test_order_of_field_terms_does_not_matter(terms: list[FieldTerm]) -> None:
    assert parse_field_selector(",".join(map(str, terms))) == parse_field_selector(",".join(map(str, reversed(terms))))


def test_escaped_characters_are_part_of_the_value() -> None:
    assert parse_field_selector(r"a=x\,y\=z\\,b!=1,c==2").terms == (
        FieldTerm("a", "x,y=z\\", False),
        FieldTerm("b", "1", True),
        FieldTerm("c", "2", False),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("b=1,a", "invalid selector: 'b=1,a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=\n", r"invalid field selector: invalid escape sequence: \n"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_invalid_field_selector_is_rejected_with_server_message(text: str, words: str) -> None:
    with pytest.raises(ManifestError) as refusal:
        parse_field_selector(text)
    assert refusal.value.message == words


def test_find_required_value_returns_value_of_equality_term() -> None:
    selector = parse_field_selector("metadata.name=a,spec.x!=b")
    assert selector.find_required_value("metadata.name") == "a"
    assert selector.find_required_value("spec.x") is None
    assert selector.matches({"metadata.name": "a"}.get) is True  # type: ignore[arg-type]


POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "n"},
    "spec": {"nodeName": "node-1", "restartPolicy": "Always"},
    "status": {"phase": "Running", "podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.1"}]},
}
EVENT = {
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod"},
    "source": {"component": "kubelet"},
    "type": "Normal",
}


@pytest.mark.parametrize(
    ("group", "kind", "manifest", "selector", "matched"),
    [
        ("", "Pod", POD, "spec.nodeName=node-1,status.phase!=Failed", True),
        ("", "Pod", POD, "spec.host=node-1", True),
        ("", "Pod", POD, "spec.hostNetwork=false", True),
        ("", "Pod", POD, "status.podIP=10.0.0.1", True),
        ("", "Pod", POD, "metadata.namespace=other", False),
        ("", "Node", {"metadata": {"name": "a"}}, "spec.unschedulable=false", True),
        ("", "Node", {"metadata": {"name": "a"}, "spec": {"unschedulable": True}}, "spec.unschedulable=true", True),
        ("batch", "Job", {"metadata": {"name": "a"}}, "status.successful=0", True),
        ("batch", "Job", {"metadata": {"name": "a"}, "status": {"succeeded": 2}}, "status.successful=2", True),
        ("", "Event", EVENT, "involvedObject.kind=Pod,source=kubelet,type=Normal", True),
        ("", "Event", EVENT, "involvedObject.name=,reportingComponent=", True),
        ("events.k8s.io", "Event", {"metadata": {}, "regarding": {"name": "x"}}, "regarding.name=x", True),
        ("", "Secret", {"metadata": {"name": "a"}, "type": "Opaque"}, "type=Opaque", True),
        ("", "ConfigMap", {"metadata": {"name": "a"}}, "metadata.name!=a", False),
    ],
)
def test_field_selector_matches_the_fields_of_a_kind(
    group: str, kind: str, manifest: dict[str, Any], selector: str, matched: bool
) -> None:
    assert get_field_labels(GroupKind(group, kind)).build_predicate(parse_field_selector(selector))(manifest) is matched


@pytest.mark.parametrize(
    ("group", "kind", "label", "words"),
    [
        (
            "",
            "ConfigMap",
            "data.a",
            '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (
            "apps",
            "ReplicaSet",
            "status.replicas",
            '"status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        ("", "Pod", "spec.size", "field label not supported: spec.size"),
        ("", "Node", "metadata.namespace", "field label not supported: metadata.namespace"),
        ("batch", "Job", "x", 'field label "x" not supported for Job'),
        ("events.k8s.io", "Event", "source", "field label not supported: source"),
    ],
)
def test_unsupported_field_label_is_rejected(group: str, kind: str, label: str, words: str) -> None:
    with pytest.raises(ManifestError) as refusal:
        get_field_labels(GroupKind(group, kind)).build_predicate(parse_field_selector(f"{label}=1"))
    assert refusal.value.message == words


def test_custom_kind_is_selected_by_fields_of_its_definition() -> None:
    field_labels = build_custom_field_labels(
        {"spec.color": lambda manifest: str(manifest["spec"]["color"])}, namespaced=False
    )
    assert field_labels.build_predicate(parse_field_selector("spec.color=red"))({"spec": {"color": "red"}})
    for unknown in ("spec.size", "metadata.namespace"):
        with pytest.raises(ManifestError, match=f"^field label not supported: {unknown}$"):
            field_labels.build_predicate(parse_field_selector(f"{unknown}=1"))
