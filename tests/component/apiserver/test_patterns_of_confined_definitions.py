"""A definition with CEL rules is checked in a confined worker, which must know every engine that it needs."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.apiserver.rules import Rules

pytestmark = pytest.mark.anyio


def definition(pattern: str) -> dict[str, Any]:
    text = {"type": "string", "pattern": pattern, "x-kubernetes-validations": [{"rule": "self != 'never'"}]}
    spec = {"type": "object", "properties": {"text": text}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }
            ],
        },
    }


async def test_a_pattern_is_judged_alike_in_a_confined_worker() -> None:
    rules = Rules()
    try:
        assert await rules.definition_faults(definition(r"(?i)^\pL+\z"), None) == []
        (fault,) = await rules.definition_faults(definition(r"(a)\1"), None)
        assert fault.message.endswith(r"isn't: error parsing regexp: invalid escape sequence: `\1`")
    finally:
        await rules.close()
