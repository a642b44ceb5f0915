"""A CRD with CEL rules is validated in a confined worker, which must load every regex engine that it needs."""

from __future__ import annotations

import pytest

from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.cel_rules import CelRuleEvaluator
from support.definitions import thing_definition

pytestmark = pytest.mark.anyio


def definition(pattern: str) -> Manifest:
    return thing_definition(
        text={"type": "string", "pattern": pattern, "x-kubernetes-validations": [{"rule": "self != 'never'"}]}
    )


async def test_confined_worker_validates_crd_patterns_like_go_regexp() -> None:
    rules = CelRuleEvaluator()
    try:
        assert await rules.validate_definition(definition(r"(?i)^\pL+\z"), None) == []
        (fault,) = await rules.validate_definition(definition(r"(a)\1"), None)
        assert fault.message.endswith(r"isn't: error parsing regexp: invalid escape sequence: `\1`")
    finally:
        await rules.close()
