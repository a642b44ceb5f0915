"""Custom objects: pruning, defaulting, validation and printer columns match a real server."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import ManifestError
from argosy.kube.schema.crd import (
    CustomKind,
    apply_definition_defaults,
    build_custom_kinds,
    check_definition,
    convert_version,
)
from argosy.kube.schema.selectors import parse_field_selector
from support.examples import examples
from support.paths import ROOT


def definition(spec_schema: dict[str, Any], **version: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", **spec_schema}}}
    return apply_definition_defaults(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "gears.example.org"},
            "spec": {
                "group": "example.org",
                "scope": "Namespaced",
                "names": {"plural": "gears", "kind": "Gear", "shortNames": ["gr"], "categories": ["all"]},
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
                ],
            },
        }
    )


def kind_of(properties: dict[str, Any], **version: Any) -> CustomKind:
    crd = definition({"properties": properties}, **version)
    assert check_definition(crd) == []
    return build_custom_kinds(crd)[0]


def gear(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.org/v1", "kind": "Gear", "metadata": {"name": "g", "namespace": "n"}, "spec": spec}


GEAR = {
    "size": {"type": "integer", "minimum": 0, "maximum": 10},
    "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
    "items": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
    },
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
SCALE = {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.ready"}, "status": {}}


def words(kind: CustomKind, manifest: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(fault) for fault in kind.validate(manifest, old)]


def test_unknown_fields_are_pruned_and_reported() -> None:
    manifest, unknown = kind_of(GEAR).decode(gear(size=1, zzz=2, items=[{"name": "a", "b": 1}], free={"any": {"x": 1}}))
    assert manifest["spec"] == {"size": 1, "items": [{"name": "a"}], "free": {"any": {"x": 1}}}
    assert unknown == ["spec.items[0].b", "spec.zzz"]


def test_unknown_metadata_fields_are_pruned_and_reported() -> None:
    value = gear(size=1)
    value["metadata"] |= {"labels": {"a": "b"}, "ownerReferences": [{"uid": "u", "odd": 1}], "odd": 1}
    manifest, unknown = kind_of(GEAR).decode(value)
    assert manifest["metadata"] == {
        "name": "g",
        "namespace": "n",
        "labels": {"a": "b"},
        "ownerReferences": [{"uid": "u"}],
    }
    assert unknown == ["metadata.odd", "metadata.ownerReferences[0].odd"]


def test_object_without_changes_is_returned_without_copying() -> None:
    kind = kind_of(GEAR)
    value = gear(size=1, mode="slow")
    assert kind.decode(value)[0] is value
    assert kind.apply_defaults(value) is value


def test_defaults_fill_absent_fields_without_changing_the_input() -> None:
    kind = kind_of(GEAR)
    value = gear(size=1)
    before = deepcopy(value)
    assert kind.apply_defaults(value)["spec"] == {"size": 1, "mode": "fast"}
    assert value == before


def test_null_is_dropped_defaulted_or_kept_depending_on_schema() -> None:
    kind = kind_of(
        {
            "plain": {"type": "string"},
            "filled": {"type": "string", "default": "x"},
            "open": {"type": "string", "nullable": True, "default": "x"},
        }
    )
    manifest, unknown = kind.decode(gear(plain=None, filled=None, open=None))
    assert kind.apply_defaults(manifest)["spec"] == {"filled": "x", "open": None}
    assert unknown == []


def test_default_value_gets_its_nested_defaults() -> None:
    inner = {"type": "object", "default": {}, "properties": {"deep": {"type": "integer", "default": 3}}}
    kind = kind_of({"inner": inner, "list": {"type": "array", "items": {**inner, "default": None}}})
    assert kind.apply_defaults(gear(list=[{}]))["spec"] == {"inner": {"deep": 3}, "list": [{"deep": 3}]}


def test_invalid_enum_and_bound_are_rejected_with_server_message() -> None:
    kind = kind_of(GEAR)
    assert words(kind, gear(size=99, mode="odd")) == [
        'spec.mode: Unsupported value: "odd": supported values: "fast", "slow"',
        "spec.size: Invalid value: 99: spec.size in body should be less than or equal to 10",
    ]


def test_wrong_type_also_fails_scale_and_skips_cel_rules() -> None:
    crd = definition({"properties": GEAR, "x-kubernetes-validations": [{"rule": "self.size < 5"}]}, subresources=SCALE)
    assert check_definition(crd) == []
    assert words(build_custom_kinds(crd)[0], gear(size="abc")) == [
        'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
        ".spec.size: Invalid value: 0: .spec.size accessor error: abc is of the type string, expected int64",
        '<nil>: Invalid value: "null": some validation rules were not checked because the object was invalid; '
        "correct the existing errors to complete validation",
    ]


def test_duplicate_map_list_key_is_rejected() -> None:
    assert words(kind_of(GEAR), gear(size=1, items=[{"name": "n"}, {"name": "n"}])) == [
        'spec.items[1]: Duplicate value: map[string]interface {}{"name":"n"}'
    ]


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"type": "string", "minLength": 2}, "a", 'Invalid value: "a": spec.f in body should be at least 2 chars long'),
        ({"type": "string", "maxLength": 2}, "abc", "Too long: may not be more than 2 bytes"),
        ({"type": "string", "pattern": "^a+$"}, "b", "Invalid value: \"b\": spec.f in body should match '^a+$'"),
        (
            {"type": "number", "minimum": 1.5},
            1.2,
            "Invalid value: 1.2: spec.f in body should be greater than or equal to 1.5",
        ),
        (
            {"type": "integer", "maximum": 3, "exclusiveMaximum": True},
            3,
            "Invalid value: 3: spec.f in body should be less than 3",
        ),
        ({"type": "integer", "multipleOf": 5}, 7, "Invalid value: 7: spec.f in body should be a multiple of 5"),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
            [],
            "Invalid value: 0: spec.f in body should have at least 1 items",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            ["a", "b"],
            "Too many: 2: must have at most 1 items",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1},
            {"a": "", "b": ""},
            "Too many: 2: must have at most 1 items",
        ),
        ({"type": "boolean"}, "x", 'Invalid value: "string": spec.f in body must be of type boolean: "string"'),
        (
            {"type": "object", "properties": {}},
            [1],
            'Invalid value: "array": spec.f in body must be of type object: "array"',
        ),
        (
            {"x-kubernetes-int-or-string": True},
            True,
            'Invalid value: "boolean": spec.f in body must be of type integer,string: "boolean"',
        ),
        (
            {"type": "string", "format": "date-time"},
            "today",
            'Invalid value: "today": spec.f in body must be of type date-time: "today"',
        ),
        ({"type": "integer", "enum": [1, 2]}, 3, 'Unsupported value: 3: supported values: "1", "2"'),
        ({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}, ["a", "a"], None),
    ],
)
def test_violated_constraint_is_rejected(schema: dict[str, Any], value: Any, said: str | None) -> None:
    expected = f"spec.f: {said}" if said else 'spec.f[1]: Duplicate value: "a"'
    assert words(kind_of({"f": schema}), gear(f=value)) == [expected]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "number"}, 3),
        ({"type": "integer"}, 3.0),
        ({"x-kubernetes-int-or-string": True}, "80%"),
        ({"type": "string", "format": "unheard-of"}, "x"),
        ({"type": "string", "format": "cidr"}, "10.0.0.0/8"),
        ({"type": "string", "format": "uuid"}, "8d6f9ee7-3ff5-4f5a-8ba8-3e9eb2b7a3f0"),
        ({"type": "integer", "minimum": 0, "anyOf": [{"maximum": 3}, {"minimum": 9}]}, 10),
        ({"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"}, "a.b-c"),
    ],
)
def test_value_allowed_by_schema_gives_no_error(schema: dict[str, Any], value: Any) -> None:
    assert words(kind_of({"f": schema}), gear(f=value)) == []


@pytest.mark.parametrize(
    ("combination", "value", "said"),
    [
        ({"anyOf": [{"maximum": 3}, {"minimum": 9}]}, 5, '"spec.f" must validate at least one schema (anyOf)'),
        (
            {"oneOf": [{"maximum": 3}, {"minimum": 2}]},
            2,
            '"spec.f" must validate one and only one schema (oneOf). Found 2 valid alternatives',
        ),
        ({"allOf": [{"maximum": 3}, {"minimum": 1}]}, 5, '"spec.f" must validate all the schemas (allOf)'),
        ({"not": {"maximum": 3}}, 2, '"spec.f" must not validate the schema (not)'),
    ],
)
def test_failed_combination_is_reported_without_a_field(combination: dict[str, Any], value: int, said: str) -> None:
    messages = words(kind_of({"f": {"type": "integer", **combination}}), gear(f=value))
    assert f'<nil>: Invalid value: "": {said}' in messages


def test_update_does_not_revalidate_unchanged_fields() -> None:
    kind = kind_of(GEAR)
    old = gear(size=99, mode="fast")
    assert words(kind, gear(size=99, mode="slow"), old) == []
    assert len(words(kind, gear(size=98, mode="fast"), old)) == 1


def test_embedded_resource_requires_api_version() -> None:
    kind = kind_of(
        {
            "template": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            }
        }
    )
    assert words(kind, gear(template={"kind": "X"})) == ["spec.template.apiVersion: Required value: must not be empty"]
    value = gear(template={"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "spec": {"z": 1}})
    assert kind.decode(value) == (value, [])
    assert words(kind, value) == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 40 + "!"),
        ("^" + "a?" * 30 + "a" * 30 + "$", "a" * 29),
        ("(x+x+)+y", "x" * 60),
        ("^[a]*[a]*[a]*[a]*[a]*[a]*$", "a" * 2000 + "!"),
    ],
)
def test_hostile_pattern_does_not_hang_validation(pattern: str, text: str) -> None:
    kind = kind_of({"f": {"type": "string", "pattern": pattern}})
    assert len(words(kind, gear(f=text))) == 1  # a backtracking engine would not finish


@pytest.mark.parametrize(
    ("pattern", "text", "matched"),
    [
        ("^[a-z]{2,4}$", "abc", True),
        ("^[a-z]{2,4}$", "abc\n", False),
        ("^v[0-9]+x$", "v12x", True),
        ("b", "abc", True),
        ("^[[:alpha:]]+$", "abc", True),
        ("^\\d+$", "١", False),
    ],
)
def test_pattern_matches_like_go_regexp(pattern: str, text: str, matched: bool) -> None:
    assert (words(kind_of({"f": {"type": "string", "pattern": pattern}}), gear(f=text)) == []) is matched


def test_api_resource_has_names_and_subresources_of_the_definition() -> None:
    resource = kind_of(GEAR, subresources=SCALE).resource
    assert (resource.plural, resource.singular, resource.list_kind) == ("gears", "gear", "GearList")
    assert (resource.short_names, resource.categories, resource.custom) == (("gr",), ("all",), True)
    scale = resource.find_subresource("scale")
    assert scale is not None and (scale.group, scale.kind) == ("autoscaling", "Scale")
    assert resource.find_subresource("status") is not None
    assert kind_of(GEAR).resource.find_subresource("status") is None


def test_singular_name_defaults_to_the_lowercase_kind() -> None:
    crd = definition({})
    names = crd["spec"]["names"]

    def singular(**names: Any) -> str:
        return build_custom_kinds({**crd, "spec": {**crd["spec"], "names": names}})[0].resource.singular

    assert singular(**{**names, "singular": "cog"}) == "cog"
    assert singular(kind="Gear", plural="gears") == "gear"


def test_merge_shape_has_list_types_and_map_keys_of_the_schema() -> None:
    shape = kind_of(GEAR).shape
    spec = shape.field("spec")
    assert spec is not None and spec.kind == "struct"
    items = spec.field("items")
    assert items is not None and (items.kind, items.list_type, items.map_keys) == ("list", "map", ("name",))
    free, size = spec.field("free"), spec.field("size")
    assert free is not None and free.kind == "untyped"
    assert size is not None and size.kind == "scalar"
    assert spec.field("unheard") is None
    metadata = shape.field("metadata")
    assert metadata is not None
    owners, finalizers, labels = (metadata.field(name) for name in ("ownerReferences", "finalizers", "labels"))
    assert owners is not None and owners.map_keys == ("uid",)
    assert finalizers is not None and finalizers.list_type == "set"
    assert labels is not None and labels.kind == "map" and labels.field("any") is not None


def test_printer_columns_show_the_values_of_their_json_paths() -> None:
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Mode", "type": "string", "jsonPath": ".spec.mode"},
        {"name": "Free", "type": "string", "jsonPath": ".spec.free"},
        {"name": "Wrong", "type": "boolean", "jsonPath": ".spec.size", "priority": 1},
    ]
    kind = kind_of(GEAR, additionalPrinterColumns=columns)
    now = datetime(2024, 1, 1, tzinfo=UTC)
    assert kind.build_cells(gear(size=3, free={"a": [1]}), now) == ["g", 3, None, '{"a":[1]}', None]
    assert [column["name"] for column in kind.column_definitions] == ["Name", "Size", "Mode", "Free", "Wrong"]
    assert kind.column_definitions[4]["priority"] == 1


def test_kind_without_printer_columns_prints_its_age() -> None:
    value = gear()
    value["metadata"]["creationTimestamp"] = "2024-01-01T00:00:00Z"
    assert kind_of(GEAR).build_cells(value, datetime(2024, 1, 1, 0, 5, tzinfo=UTC)) == ["g", "5m"]


def test_only_selectable_fields_can_be_used_in_field_selectors() -> None:
    kind = kind_of(GEAR, selectableFields=[{"jsonPath": ".spec.mode"}])
    assert kind.field_labels.build_predicate(parse_field_selector("spec.mode=slow,metadata.name=g"))(gear(mode="slow"))
    with pytest.raises(ManifestError, match=r"^field label not supported: spec\.size$"):
        kind.field_labels.build_predicate(parse_field_selector("spec.size=1"))


def test_convert_version_changes_only_the_api_version() -> None:
    value = gear(size=1)
    assert convert_version(value, "example.org/v2") == {**value, "apiVersion": "example.org/v2"}
    assert convert_version(value, "example.org/v1") is value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-20, 20) | st.floats(-5, 5) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["size", "mode", "items", "free", "name", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)
KIND = build_custom_kinds(definition({"properties": GEAR}))[0]


@settings(max_examples=examples())
@given(JSON)
def test_decode_and_defaults_are_idempotent_for_any_object(spec: Any) -> None:
    value = {**gear(), "spec": spec}
    frozen = json.dumps(value, sort_keys=True)
    manifest, _ = KIND.decode(value)
    filled = KIND.apply_defaults(manifest)
    KIND.validate(filled)
    assert json.dumps(value, sort_keys=True) == frozen
    assert KIND.decode(manifest) == (manifest, [])
    assert KIND.apply_defaults(filled) is filled


SHARED = ROOT.parent / "shared" / "data" / "kubeapi" / "widgets-crd.yaml"


@pytest.mark.skipif(not SHARED.exists(), reason="the shared answers of a real server are not here")
def test_shared_widgets_definition_is_valid() -> None:
    import yaml

    widgets = apply_definition_defaults(yaml.safe_load(SHARED.read_text()))
    assert check_definition(widgets) == []
    kind = build_custom_kinds(widgets)[0]
    widget = {"apiVersion": "argosy.dev/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}}
    assert [str(fault) for fault in kind.validate(widget)][:1] == ["spec.size: Required value"]
