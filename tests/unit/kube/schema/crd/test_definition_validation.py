"""CustomResourceDefinitions: defaults, and the errors that reject a definition."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from argosy.kube.schema.crd import apply_definition_defaults, check_definition


def definition(schema: dict[str, Any], **spec: Any) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gears.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "gears", "kind": "Gear"},
            "versions": [version],
            **spec,
        },
    }


def with_spec(spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    return definition({"type": "object", "properties": {"spec": spec}}, **more)


def words(new_definition: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(fault) for fault in check_definition(apply_definition_defaults(new_definition), old)]


GOOD = with_spec({"type": "object", "properties": {"a": {"type": "string"}}})


def test_definition_defaults_fill_names_conversion_and_status() -> None:
    before = deepcopy(GOOD)
    filled = apply_definition_defaults(GOOD)
    assert filled["spec"]["names"] == {"plural": "gears", "kind": "Gear", "singular": "gear", "listKind": "GearList"}
    assert filled["spec"]["conversion"] == {"strategy": "None"}
    assert filled["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }
    assert before == GOOD
    assert words(GOOD) == []


def test_schema_without_types_is_rejected_as_not_structural() -> None:
    assert words(definition({"properties": {"spec": {"properties": {}}}})) == [
        "spec.validation.openAPIV3Schema.properties[spec].type: Required value: "
        "must not be empty for specified object fields",
        "spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root",
    ]


def test_definition_name_must_be_plural_dot_group() -> None:
    manifest = deepcopy(GOOD)
    manifest["metadata"]["name"] = "zzz.example.org"
    assert words(manifest) == [
        'metadata.name: Invalid value: "zzz.example.org": must be spec.names.plural+"."+spec.group'
    ]


ROOT = "spec.validation.openAPIV3Schema.properties[spec]"


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"type": "array"}, ".properties[f].items: Required value: must be specified"),
        (
            {"type": "text"},
            '.properties[f].type: Unsupported value: "text": supported values: "array", "boolean", '
            '"integer", "number", "object", "string"',
        ),
        (
            {"type": "string", "pattern": "("},
            '.properties[f].pattern: Invalid value: "(": must be a valid regular '
            "expression, but isn't: error parsing regexp: missing closing ): `(`",
        ),
        ({"type": "string", "$ref": "#/x"}, ".properties[f].$ref: Forbidden: $ref is not supported"),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            ".properties[f].uniqueItems: Forbidden: "
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False},
            ".properties[f].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (
            {"type": "string", "anyOf": [{"type": "string"}]},
            ".properties[f].anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            {"type": "object", "anyOf": [{"properties": {"a": {"minLength": 1}}}]},
            ".properties[f].properties[a]: "
            f"Required value: because it is defined in {ROOT}.properties[f].anyOf[0].properties[a]",
        ),
        (
            {"type": "string", "default": 3},
            '.properties[f].default: Invalid value: "integer":  in body must be of type string: "integer"',
        ),
        (
            {"type": "object", "default": {"b": 1}, "properties": {"a": {"type": "string"}}},
            '.properties[f].default: Invalid value: map[string]interface {}{"b":1}: must not have unknown fields',
        ),
        (
            {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object", "properties": {}}},
            ".properties[f].x-kubernetes-list-map-keys: Required value: must not be empty if "
            "x-kubernetes-list-type is map",
        ),
        (
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["n"],
                "items": {"type": "object", "properties": {"n": {"type": "string"}}},
            },
            ".properties[f].items.properties[n].default: Required value: this property is in "
            "x-kubernetes-list-map-keys, "
            "so it must have a default or be a required property",
        ),
        (
            {"type": "string", "x-kubernetes-map-type": "atomic"},
            '.properties[f].type: Invalid value: "string": must be object if x-kubernetes-map-type is specified',
        ),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
            ".properties[f].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
        ),
        (
            {"type": "string", "x-kubernetes-validations": [{"rule": " "}]},
            ".properties[f].x-kubernetes-validations[0].rule: Required value: rule is not specified",
        ),
    ],
)
def test_invalid_schema_is_rejected_with_server_message(field: dict[str, Any], said: str) -> None:
    assert ROOT + said in words(with_spec({"type": "object", "properties": {"f": field}}))


def test_cel_rule_that_does_not_compile_is_rejected() -> None:
    rules = [{"rule": "self.a =="}]
    (message,) = words(with_spec({"type": "object", "properties": {}, "x-kubernetes-validations": rules}))
    assert message.startswith(f"{ROOT}.x-kubernetes-validations[0].rule: Invalid value: apiextensions.ValidationRule")
    assert "compilation failed: ERROR:" in message


def test_old_self_is_rejected_where_old_value_cannot_be_correlated() -> None:
    item = {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    (message,) = words(with_spec({"type": "object", "properties": {"l": {"type": "array", "items": item}}}))
    assert message.endswith(
        f"oldSelf cannot be used on the uncorrelatable portion of the schema within {ROOT}.properties[l]"
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"scope": "World"}, 'spec.scope: Unsupported value: "World": supported values: "Cluster", "Namespaced"'),
        ({"group": "local"}, 'spec.group: Invalid value: "local": should be a domain with at least one dot'),
        (
            {"preserveUnknownFields": True},
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
            "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ),
        (
            {"conversion": {"strategy": "Webhook"}},
            'spec.conversion.strategy: Invalid value: "Webhook": conversion by '
            "webhook is not supported by the sandbox; use strategy None, or serve one version only",
        ),
        ({"names": {"plural": "gears", "kind": "Gear", "shortNames": ["A b"]}}, None),
    ],
)
def test_invalid_definition_spec_is_rejected_with_server_message(change: dict[str, Any], said: str | None) -> None:
    messages = words({**GOOD, "spec": {**GOOD["spec"], **change}})
    assert any(
        message == said if said else message.startswith("spec.names.shortNames[0]: Invalid value")
        for message in messages
    )


def changed_version(**change: Any) -> dict[str, Any]:
    manifest = deepcopy(GOOD)
    manifest["spec"]["versions"][0].update(change)
    return manifest


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"storage": False},
            'spec.versions: Invalid value: []string{"v1"}: must have exactly one version marked as storage version',
        ),
        ({"schema": None}, "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"),
        (
            {"subresources": {"scale": {"specReplicasPath": ".x", "statusReplicasPath": ".status.r"}}},
            'spec.subresources.scale.specReplicasPath: Invalid value: ".x": should be a json path under .spec',
        ),
        (
            {"additionalPrinterColumns": [{"name": "A", "type": "text", "jsonPath": ".a"}]},
            'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of '
            "boolean,date,integer,number,string",
        ),
        (
            {"selectableFields": [{"jsonPath": ".spec.b"}]},
            "spec.versions[0].selectableFields[0].jsonPath: Invalid value: "
            '".spec.b": is an invalid path: does not refer to a valid field',
        ),
        (
            {"selectableFields": [{"jsonPath": ".spec"}]},
            "spec.versions[0].selectableFields[0].jsonPath: Invalid value: "
            '".spec": must point to a field of type string, boolean or integer. Enum string fields and strings '
            "with formats "
            "are allowed.",
        ),
    ],
)
def test_invalid_definition_version_is_rejected_with_server_message(change: dict[str, Any], said: str) -> None:
    assert said in words(changed_version(**change))


def test_scope_of_established_definition_is_immutable() -> None:
    old = apply_definition_defaults(GOOD)
    old["status"] = {**old["status"], "conditions": [{"type": "Established", "status": "True"}]}
    new = {**old, "spec": {**old["spec"], "scope": "Cluster"}}
    assert [str(error) for error in check_definition(new, old)] == [
        'spec.scope: Invalid value: "Cluster": field is immutable'
    ]
    assert check_definition(old, old) == []


def test_stored_version_cannot_be_removed() -> None:
    old = apply_definition_defaults(GOOD)
    new = deepcopy(old)
    new["spec"]["versions"][0]["name"] = "v2"
    assert [str(error) for error in check_definition(new, old)] == [
        'status.storedVersions[0]: Invalid value: "v1": must appear in spec.versions'
    ]


def test_schema_nested_too_deeply_is_rejected() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(3000):
        schema = {"type": "object", "properties": {"a": schema}}
    (message,) = words(definition(schema))
    assert message.endswith("Forbidden: schemas nested deeper than 100 are not supported by the sandbox")
    shallow: dict[str, Any] = {"type": "string"}
    for _ in range(60):
        shallow = {"type": "object", "properties": {"a": shallow}}
    assert words(definition(shallow)) == []
