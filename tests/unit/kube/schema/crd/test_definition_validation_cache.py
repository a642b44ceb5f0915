"""Schema validation cache: a valid schema is not checked again; an invalid one is checked and reported every time."""

from __future__ import annotations

import copy

import pytest

from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.schema.crd import definition_validation as checks

CRD = load_definition("applications.argoproj.io")


def test_valid_schema_is_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.check_definition(CRD) == []
    monkeypatch.setattr(checks, "_check_schema_tree", lambda *_: pytest.fail("it was looked through again"))
    assert checks.check_definition(copy.deepcopy(CRD)) == []


def test_error_in_a_copy_of_a_valid_schema_is_found_every_time() -> None:
    assert checks.check_definition(CRD) == []
    broken = copy.deepcopy(CRD)
    broken["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["type"] = "nonsense"
    first = checks.check_definition(broken)
    assert first and checks.check_definition(broken) == first
